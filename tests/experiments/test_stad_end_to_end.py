"""The whole of STaD without outside models: generation by a rule-based server, skills, an organism as the target."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from exit_codes import done
from json_server import running

from composcope.evaluation.benchmarks.catalog import load
from composcope.evaluation.cases import read_cases
from composcope.experiments.cli import main
from composcope.experiments.organism import tasks, world

N = 8


def _questions(path: Path) -> tuple[str, str]:
    """N questions that go well; then one whose scaffolds, one whose tag and one whose gold answer will be wrong.

    Returns a thing of the first and one of the second of these three.
    """
    things = world.world().things
    pairs = [(things[2 * i], things[2 * i + 1]) for i in range(N + 3)]
    found = [tasks.math_of("plus", a, b) for a, b in pairs]
    rows: list[dict[str, Any]] = [{"question": qa.question, "answer": int(qa.answer)} for qa in found]
    rows[-1]["answer"] += 5
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return pairs[N][0], pairs[N + 1][0]


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    path = tmp_path_factory.mktemp("stad") / "questions.jsonl"
    return path, *_questions(path)


@pytest.fixture(scope="module")
def server(questions: tuple[Path, str, str]) -> Iterator[str]:
    with running("rule_server.py", *questions[1:]) as url:
        yield url


def _asked(server: str) -> dict[str, int]:
    with urlopen(server.removesuffix("/v1") + "/asked") as reply:
        return json.loads(reply.read())


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text())


@pytest.mark.slow
def test_stad_runs_from_questions_to_bottlenecks(
    questions: tuple[Path, str, str], server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, role = questions[0], f"rules@{server}"
    made = tmp_path / "scaffolds"
    roles = ["--teacher", role, "--judge", role, "--solver", role]
    build = ["build", "scaffolds", f"stad:{path}", *roles, "--out", str(made)]
    assert main(build) == 0

    # What a teacher cannot solve, or solves against the gold answer, leaves with its stage and reason.
    cases = load(str(made / "cases.jsonl"))
    assert len(cases) == N and all(len(c.parts) == 3 for c in cases)
    dropped = [json.loads(line) for line in (made / "rejected.jsonl").read_text().splitlines()]
    assert [(d["id"], d["stage"]) for d in dropped] == [
        (f"questions-{N + 1:04d}", "consistency"),
        (f"questions-{N + 2:04d}", "consistency"),
        (f"questions-{N:04d}", "verify"),
    ]
    report = _json(made / "build.json")["report"]
    assert (report["items"], report["kept"], report["k"]) == (N + 3, N, {"3": N})
    assert report["coverage"]["count"] == N
    first = _asked(server)
    # 11 decomposed and answered, 9 consistent with the gold answer: 2 rewrites and 2 verifications each; 3 tasks of 8.
    assert (first["steps"], first["answers"], first["rewrite"], first["stand-alone"]) == (11, 11, 18, 24)
    # Judged: two last answers, and the wrong answer to two scaffolds, which is one and the same request.
    assert first["question"] == 18 and first["coverage"] == N and first["judge"] == 3

    # Stopped and started again: nothing is asked twice, and the same files come out.
    before = (made / "cases.jsonl").read_bytes()
    (made / "cases.jsonl").unlink()
    assert main(build) == 0
    assert _asked(server) == first and (made / "cases.jsonl").read_bytes() == before

    skilled = tmp_path / "skills"
    records = str(made / "records.jsonl")
    words = ["--teacher", role, "--clusters", "2", "--skills", "2"]
    assert main(["build", "skills", records, *words, "--out", str(skilled)]) == 0
    for case in read_cases(skilled / "cases.jsonl"):
        assert [p.skill for p in case.parts] == ["recall", "recall", "calculation"]

    for figure in ("skill-distribution", "skill-coverage", "skill-granularity"):
        assert main(["plot", figure, str(skilled), "--out", str(tmp_path / "figures")]) == 0
        assert "M=2, N=2" in (tmp_path / "figures" / f"{figure}.csv").read_text() or figure == "skill-coverage"

    # The target is an organism, asked as it was trained.
    run = tmp_path / "run"
    target = ["--model", "organism:control", "--benchmark", str(skilled / "cases.jsonl")]
    code = main(["evaluate", *target, "--protocol", "scaffolding", "--format", "plain", "--out", str(run), "--quiet"])
    assert code == done(run)
    metrics = {(m["metric"], json.dumps(m["group"])): m for m in _json(run / "metrics.json")["metrics"]}
    counts = [metrics[name, "{}"] for name in ("k_zero", "k_positive", "intractable")]
    assert sum(m["count"] for m in counts) + counts[0]["n_invalid"] == N
    capsys.readouterr()
    assert main(["study", "skills", str(run), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"]["skills"]
    assert {r["skill"]: r["n"] for r in rows}.keys() == {"recall", "calculation"}
    assert main(["study", "bottlenecks", str(run)]) == 0
