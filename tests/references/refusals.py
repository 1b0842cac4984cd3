"""Bad input, one piece of it at a time: wrong fields, missing files, values at a limit and beyond it, unfit options."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from references.material import CASES, cases, lines

_CASE = {"id": "a", "question": "q", "answer": "1"}
_BAD: dict[str, Any] = {
    "no-answer": {"id": "a", "question": "q"},
    "misspelt": {**_CASE, "anwser": "2"},
    "gold": {**_CASE, "target": "2"},
    "empty": {**_CASE, "answer": " "},
    "listed": {**_CASE, "answer": ["1"]},
    "type": {**_CASE, "answer_type": "numbers"},
    "unreadable": {**_CASE, "answer": "lots", "answer_type": "number"},
    "depth": {**_CASE, "depth": 0},
    "depth-one": {**_CASE, "depth": 1},
    "chance": {**_CASE, "chance": 1.01},
    "chance-one": {**_CASE, "chance": 1},
    "chance-true": {**_CASE, "chance": True},
    "options": {**_CASE, "answer": "C", "answer_type": "choice", "options": ["x", "y"]},
    "no-options": {**_CASE, "answer_type": "choice"},
    "part": {**_CASE, "parts": [{"question": "p"}]},
    "part-field": {**_CASE, "paraphrases": ["p"]},
    "parts": {**_CASE, "parts": {"question": "p"}},
    "meta": {**_CASE, "meta": []},
    "crossed": {**_CASE, "meta": {"crossed": 4}},
    "variants": {**_CASE, "meta": {"variants": [{"qestion": "x"}]}},
    "schema": {**_CASE, "schema": 2},
    "unknowable": {**_CASE, "unknowable": "yes"},
}  # fmt: skip
_RUN = "evaluate -m strong -p compositionality-gap -q -o runs/new -b"
_ROWS = "score rows.jsonl -p compositionality-gap"
COMMANDS = (
    *(f"{_RUN} bad/{name}.jsonl" for name in _BAD),
    f"{_RUN} bad/twice.jsonl",
    f"{_RUN} bad/broken.jsonl",
    f"{_RUN} bad/nothing.jsonl",
    f"{_RUN} nowhere.jsonl",
    f"{_RUN} bamboogel:cases.jsonl",
    f"{_RUN} cases.jsonl --limit 0",
    f"{_RUN} cases.jsonl --format short-answer",
    f"{_RUN} cases.jsonl --few-shot 3",
    f"{_RUN} cases.jsonl --few-shot 0.5",
    f"{_RUN} cases.jsonl --shard 4/3",
    f"{_RUN} cases.jsonl --shard 0/3",
    f"{_RUN} cases.jsonl --also cot,nothing",
    f"{_RUN} cases.jsonl --temperature=-0.1",
    f"{_RUN} cases.jsonl --compat stad",
    f"{_RUN} cases.jsonl --config no.yaml",
    f"{_RUN} cases.jsonl --config bad/options.yaml",
    "evaluate -m strong -b cases.jsonl -p reasoning-gap -o runs/new",
    "evaluate -m strong -b cases.jsonl -p double-gap -o runs/new",
    "evaluate -m strong -b two.jsonl -o runs/whole -q",
    "evaluate -m strong -b cases.jsonl -o runs/whole -q",
    "evaluate -m weak -b two.jsonl -o runs/whole -q",
    "evaluate -m strong -b two.jsonl -o runs/part -q --max-asks 5",
    "verify runs/part",
    "ls runs",
    "ls runs/part --failures",
    "compare runs/whole runs/part",
    "compare runs/whole runs/other",
    "report runs/part -q",
    "plot gaps runs/part -q",
    "plot lookback runs/whole -q",
    "plot gaps runs/whole -q --group-by colour",
    "plot gaps runs/whole -q --runs half",
    "plot gap runs/whole",
    "merge runs/whole runs/part -o runs/merged -q",
    "merge runs/whole -o runs/whole -q",
    "diagnose runs/whole",
    "probe runs/whole --probes none",
    "probe runs/whole --probes lookbak",
    "score runs/part -q",
    "score runs/whole -q --compat agentcoma",
    "score runs/whole -q --compat collapse",
    "score runs/whole -q --audit many",
    "score runs/whole -q --audit 0",
    "score runs/whole -q --human-labels bad/labels.jsonl",
    "verify runs/whole --cell press_gap[depth=9]",
    "verify runs/whole --cell presgap",
    _ROWS,
    f"{_ROWS} --cases two.jsonl",
    "score bad/rows.jsonl -p compositionality-gap",
    "score bad/outcome.jsonl -p compositionality-gap",
    "score bad/roles.jsonl -p compositionality-gap",
    "build synthetic --depths 2,2 -o b/x",
    "build synthetic --families spatial,odd -o b/x",
    "build synthetic --depths two -o b/x",
    "build synthetic --depths 1 --per-cell 1 -o b/x",
    "build temporal nowhere.csv -o b/x",
    "build scaffolds two.jsonl -o b/x",
    "build compositional-gsm two.jsonl -o b/x",
    "build skills two.jsonl --teacher t --clusters 2 -o b/x",
    "import two.jsonl -o i/graded.jsonl",
    "import two.jsonl --from bamboogle -o i/graded.jsonl",
    "study sizes runs/whole",
    "study sizes runs/whole --size whole=big",
    "study formats runs/whole",
    "study taxonomy runs/whole --annotations bad/labels.jsonl",
    "study adjudicator runs/whole --sheet two.jsonl",
    "study bottlenecks runs/whole",
    "study stability-expectation runs/whole",
    "intervene --recipe sft",
    "intervene --recipe steering",
    "intervene --recipe steering runs/whole --layers a",
    "organism plant --cause lost",
    "organism plant --cause late --out o",
    "bench --preset fast",
    "call damage",
    "verify runs/whole -q",
    "score runs/whole -q",
    "compare runs/whole runs/whole -q",
    "call damage_more",
    "verify runs/whole -q",
)


def material(folder: Path) -> None:
    cases(folder)
    for name, case in _BAD.items():
        lines(folder / "bad" / f"{name}.jsonl", [case])
    lines(folder / "bad" / "twice.jsonl", [_CASE, {**_CASE, "question": "r"}])
    (folder / "bad" / "broken.jsonl").write_text('{"id": "a",\n')
    (folder / "bad" / "nothing.jsonl").write_text("# nothing\n\n")
    (folder / "bad" / "options.yaml").write_text("limmit: 3\n")
    lines(folder / "bad" / "labels.jsonl", [{"case": "shelf-0", "role": "whole", "label": "good"}])
    rows = [{"case": c["id"], "role": role, "outcome": outcome} for c in CASES[:4]
            for role, outcome in (("part:0", "correct"), ("part:1", "correct"), ("whole", "incorrect"))]  # fmt: skip
    lines(folder / "rows.jsonl", [*rows[:-1], {"case": "new", "role": "whole", "outcome": "correct"}])
    lines(folder / "bad" / "rows.jsonl", [*rows, rows[0]])
    lines(folder / "bad" / "outcome.jsonl", [{**rows[0], "outcome": "right"}])
    lines(folder / "bad" / "roles.jsonl", [{**r, "role": f"step:{i}"} for i, r in enumerate(rows)])


def _journal() -> Path:
    return next(Path("runs/whole/journal").glob("*.jsonl"))


def damage() -> str:
    """One answer of a run is changed afterwards, and one row of what was graded."""
    text = _journal().read_text().splitlines()
    text[5] = text[5].replace('"text": "', '"text": "not ').replace('"text":"', '"text":"not ')
    _journal().write_text("\n".join(text) + "\n")
    graded = Path("runs/whole/graded.jsonl")
    shutil.copy(graded, "before.jsonl")
    rows = graded.read_text().splitlines()
    first = json.loads(rows[2])
    first["outcome"] = "correct" if first["outcome"] != "correct" else "incorrect"
    graded.write_text("\n".join([*rows[:2], json.dumps(first), *rows[3:]]) + "\n")
    return f"{first['case']} {first['role']}"


def damage_more() -> str:
    """A count and a case set are changed, a case is left out, and the journal loses a line."""
    metrics = Path("runs/whole/metrics.json")
    found = json.loads(metrics.read_text())
    found["metrics"][3]["count"] += 1
    metrics.write_text(json.dumps(found))
    sets = sorted(Path("runs/whole/casesets").glob("*.jsonl"))
    sets[0].write_text("".join(sets[0].read_text().splitlines(keepends=True)[1:]))
    text = _journal().read_text().splitlines(keepends=True)
    _journal().write_text("".join([*text[:9], *text[10:]]))
    return sets[0].name
