"""Whatever is altered in a run afterwards, in its journal, rows, cells, case sets or tables, is found and named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hostile_server import Hostile, completion, reply

from composcope.errors import ComposcopeError, InputError
from composcope.evaluation.asks import Ask
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.evaluation.protocols.base import CaseSet, Entry
from composcope.experiments.cli import main
from composcope.experiments.console import printing
from composcope.experiments.evaluating.evaluate import rescore
from composcope.experiments.figures import FIGURES
from composcope.experiments.run.reader import RunData
from composcope.experiments.verify import _asks, _case_sets, _cells, _probed, _rows, trace, verify


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over HTTP of twelve sums with two parts, some answered wrongly, with a figure."""
    folder = tmp_path_factory.mktemp("verify")

    def question(i: int, j: int) -> dict[str, Any]:
        return {"question": f"What is {i} plus {j}?", "answer": str(i + j), "answer_type": "number"}

    cases = [
        {"id": f"c{i}", "family": "even" if i % 2 == 0 else "odd", "parts": [question(i, 1), question(i, 2)],
         "question": f"What is {i} plus 3 plus {i}?", "answer": str(2 * i + 3), "answer_type": "number"}
        for i in range(12)
    ]  # fmt: skip
    (folder / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))

    def answer(prompt: str) -> str:
        numbers = [int(word) for word in prompt.rpartition("What is ")[2].partition("?")[0].split() if word.isdigit()]
        return str(sum(numbers) + (len(numbers) == 3 and numbers[0] % 3 == 0))

    server = Hostile(lambda c, r: reply(c, completion(f"So the final answer is: {answer(r.prompt)}")))
    command = ["evaluate", "-m", f"good@{server.url}", "-b", str(folder / "cases.jsonl"), "-o", str(folder / "r")]
    assert main([*command, "--concurrency", "1", "--quiet"]) == 0
    assert main(["plot", "failure-quadrants", str(folder / "r")]) == 0
    server.close()
    return folder / "r"


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "r"))


def test_a_read_only_run_is_copied_into_a_folder_that_can_be_written(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    monkeypatch.setattr(
        "composcope.experiments.verify.rescore",
        lambda copy, *a, **k: (modes.extend(p.stat().st_mode & 0o200 for p in copy.rglob("*")), rescore(copy, *a, **k)),
    )
    for path in [run, *run.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    found = verify(run)
    for path in [run, *run.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    assert not found.problems and modes and all(modes)


def test_figures_of_a_report_over_several_runs_are_not_taken_for_those_of_the_first(run: Path) -> None:
    other = Path(shutil.copytree(run, run.with_name("other")))
    assert main(["report", str(run), str(other), "--out", str(run), "-q"]) == 0
    found = verify(run)
    assert found.problems == () and found.figures == 0
    assert len(found.notes) == 1 and "over several runs, not compared" in found.notes[0]


def test_an_untouched_run_follows_from_its_answers_and_nothing_is_written(run: Path) -> None:
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    found = verify(run)
    assert found.problems == () and found.notes == ()
    assert verify(Path(shutil.copytree(run, run.with_name("called-otherwise")))).problems == ()
    assert found.rows == len((run / "graded.jsonl").read_text().splitlines()) and found.figures == 1
    assert found.answers == len({json.loads(line)["ask"] for line in (run / "graded.jsonl").read_text().splitlines()})
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before
    assert main(["verify", str(run)]) == 0


def test_a_value_of_a_probe_belongs_to_a_case_of_the_run_in_whatever_role(run: Path) -> None:
    (run / "probes" / "p").mkdir(parents=True)
    file = run / "probes" / "p" / "values.csv"
    file.write_text("case,role\nc0,whole\nc0,part:7\nother,whole\nother,\nother,part:0\n")
    said = "probes/p/values.csv:4: case 'other' is none of the run's; run the probe again"
    assert [*_probed(RunData(run))] == [said] and said in verify(run).problems
    file.write_text("case,role\nc0,whole\nc0,part:7\nother,whole\nthird,whole\nother,whole\n")
    assert ["nor are 1 others" in line for line in _probed(RunData(run))] == [True], "one line for a whole file"


def edit(file: str, old: str, new: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        [path] = run.glob(file)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def edit_json(file: str, change: Callable[[Any], None]) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        path = run / file
        found = json.loads(path.read_text())
        change(found)
        path.write_text(json.dumps(found))

    return apply


def first_of(metric: str, **fields: Any) -> Callable[[Any], None]:
    return lambda found: next(m for m in found["metrics"] if m["metric"] == metric).update(fields)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (edit("graded.jsonl", '"outcome": "incorrect"', '"outcome": "correct"'), "case 'c0', role 'whole'"),
        (edit("graded.jsonl", '"gold": "3"', '"gold": "4"'), "gold is '4'"),
        (edit("graded.jsonl", '"repeat": 0', '"repeat": 0, "chance": 0.5'), "chance is 0.5"),
        (edit("graded.jsonl", '{"schema"', '{"note": "x", "schema"'), "extra is {'note': 'x'}"),
        (edit("asks.jsonl", '"prompt": "', '"prompt": "Not '), "asks.jsonl: case 'c0', role"),
        (
            lambda run: (run / "asks.jsonl").write_text((run / "asks.jsonl").read_text().partition("\n")[2]),
            "ask is missing",
        ),
        (edit_json("metrics.json", first_of("composition", value=0.99)), "composition: value is 0.99, the"),
        (edit_json("metrics.json", first_of("composition", low=0.9)), "composition: low is 0.9"),
        (edit_json("metrics.json", first_of("gap", group={"depth": 9})), "gap[depth=9]: no answers give this cell"),
        (edit_json("metrics.json", lambda found: found["metrics"].pop()), "the cell is missing"),
        (edit("casesets/both-right-whole-wrong.jsonl", '"case": "c0"', '"case": "c1"'), "differs from what"),
        (
            lambda run: (run / "casesets" / "both-right-whole-wrong.jsonl").unlink(),
            "both-right-whole-wrong.jsonl: differs",
        ),
        (edit("figures/failure-quadrants.csv", ",", ",9"), "figures/failure-quadrants.csv"),
        (edit("cases.jsonl", '"answer": "5"', '"answer": "6"'), "gold is '5'"),
    ],
    ids=[
        "outcome",
        "gold",
        "chance",
        "unknown field",
        "prompt",
        "prompt taken out",
        "value",
        "interval",
        "group",
        "taken out",
        "case set",
        "no case set",
        "figure",
        "case",
    ],
)
def test_what_does_not_follow_from_the_answers_is_named(
    run: Path, change: Callable[[Path], None], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change(run)
    found = verify(run)
    assert any(named in problem for problem in found.problems), found.problems
    assert main(["verify", str(run)]) == 1
    assert named in capsys.readouterr().out


def test_what_differs_in_a_run_of_other_code_may_differ_because_of_the_code(run: Path) -> None:
    def of_other_code(manifest: dict[str, Any]) -> None:
        manifest["composcope"] |= {"source": "0" * 64, "commit": "abcdef0123"}

    edit_json("manifest.json", of_other_code)(run)
    assert not verify(run).problems and not verify(run).notes, "nothing differs"
    change = edit_json("metrics.json", first_of("composition", low=0.25))
    change(run)
    (note,) = verify(run).notes
    assert "commit abcdef01" in note and f"composcope score {run.name}" in note
    edit_json("manifest.json", lambda manifest: manifest["composcope"].pop("source"))(run)
    assert not verify(run).notes, "an older manifest does not say which code it was"


def test_an_altered_answer_is_found_by_its_checksum(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit("journal/*.jsonl", "the final answer is: 3", "the final answer is: 4")(run)
    assert main(["verify", str(run)]) == 1
    said = capsys.readouterr().out
    [segment] = (run / "journal").glob("*.jsonl")
    assert f"DIFFERS: {segment}:" in said and "its checksum does not match" in said
    assert "1 asks are not in the journal" in said and "2 problems" in said


def lines_of(change: Callable[[list[bytes]], list[bytes]]) -> Callable[[Path], None]:
    def apply(run: Path) -> None:
        [path] = (run / "journal").glob("*.jsonl")
        path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))

    return apply


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (lambda ls: [*ls[:5], *ls[6:]], [6]),
        (lambda ls: [*ls[:6], *ls[5:]], [7]),
        (lambda ls: [*ls[:5], ls[6], ls[5], *ls[7:]], [6, 7, 8]),
        (lambda ls: [ls[0][:30], *ls[1:]], [1, 2]),
        (lambda ls: [*ls[:5], ls[5][:60] + b"\0\0" + ls[5][62:], *ls[6:]], [6]),
        (lambda ls: ls[:-1], []),
        (lambda ls: [], []),
    ],
    ids=["removed", "twice", "swapped", "first cut short", "NUL bytes", "last removed", "emptied"],
)
def test_what_was_done_to_the_journal_is_named_line_by_line(
    run: Path, change: Callable[[list[bytes]], list[bytes]], lines: list[int]
) -> None:
    lines_of(change)(run)
    [segment] = (run / "journal").glob("*.jsonl")
    found = verify(run)
    assert [p.partition(": ")[0] for p in found.problems if str(segment) in p] == [f"{segment}:{n}" for n in lines]
    assert found.problems


def test_a_run_that_a_limit_stopped_is_named_by_its_own_folder(run: Path) -> None:
    edit("manifest.json", '"stopped": null', '"stopped": "max_asks=5"')(run)
    lines_of(lambda ls: ls[:-1])(run)
    [problem] = verify(run).problems
    assert problem.startswith(f"{run}: the run is not finished (stopped by max_asks=5)")


def test_a_damaged_manifest_is_named_where_it_stands(run: Path) -> None:
    (run / "manifest.json").write_text("[]")
    with pytest.raises(ComposcopeError, match=str(run / "manifest.json")):
        verify(run)


@pytest.mark.parametrize("cell", ["composition", "composition[family=even]"])
def test_a_cell_leads_back_to_the_lines_of_its_answers(run: Path, cell: str) -> None:
    found = trace(run, cell)
    ids = [f"c{i}" for i in range(12) if "even" not in cell or i % 2 == 0]
    assert [row["case"] for row in found] == ids and {row["role"] for row in found} == {"whole"}
    for row in found:
        name, _, line = row["journal"].rpartition(":")
        record = json.loads((run / name).read_text().splitlines()[int(line) - 1])
        assert (record["case"], record["role"]) == (row["case"], "whole") and row["answer"] in record["response"][
            "text"
        ]


def test_a_run_scored_as_a_paper_does_is_verified_as_that_paper_does(run: Path) -> None:
    doubted = [m for m in json.loads((run / "metrics.json").read_text())["metrics"] if m.get("grader_low") is not None]
    assert main(["score", str(run), "--compat", "stad", "--quiet"]) == 0
    as_stad = json.loads((run / "metrics.json").read_text())["metrics"]
    assert doubted and not any(m.get("grader_low") for m in as_stad), "the rules' own errors are not the paper's"
    assert any("--compat stad" in w for w in json.loads((run / "metrics.json").read_text())["warnings"])
    assert verify(run).problems == ()


def test_a_cell_that_is_not_there_is_said(run: Path) -> None:
    with pytest.raises(InputError, match="no such cell; did you mean 'composition'"):
        trace(run, "compositoin")


@pytest.mark.parametrize(
    ("command", "bars"),
    [
        (["verify", "RUN"], {"grading again: 100 % (36/36)", "drawing figures again: 100 % (1/1)"}),
        (["verify", "RUN", "--cell", "composition"], {"counting without each case: 100 % (15/15)"}),
        (["compare", "RUN", "COPY"], {"comparing what was asked: 100 % (2/2)"}),
        (["merge", "RUN", "--out", "OUT"], {"grading again: 100 % (36/36)"}),
        (["score", "RUN"], {"grading again: 100 % (36/36)"}),
        (["plot", "outcomes", "RUN", "--out", "OUT"], {"drawing outcomes: 100 % (2/2)"}),
        (["doctor"], {"checking this machine: 100 % (7/7)"}),
        (["report", "RUN"], {f"drawing figures: 100 % ({len(FIGURES)}/{len(FIGURES)})"}),
    ],
)
@pytest.mark.usefixtures("undrawn")
def test_what_takes_long_has_a_bar_and_quiet_silences_it(
    command: list[str], bars: set[str], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(printing, "PATIENCE", 0.0)
    places = {"RUN": run, "OUT": tmp_path / "out", "COPY": tmp_path / "copy"}
    if "COPY" in command:
        shutil.copytree(run, places["COPY"])
    named = [str(places.get(word, word)) for word in command]
    assert main(named) == 0
    assert bars <= set(capsys.readouterr().err.splitlines())
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert main([*named, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["manifest.json", "config.yaml", "cases.jsonl"])
def test_a_run_without_one_of_its_files_is_refused_by_its_name(
    name: str, synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=3, probes=())
    (run / name).unlink()
    with pytest.raises(InputError, match=name):
        verify(run)


def test_asks_and_sets_that_are_missing_changed_or_of_nothing_are_each_named_once() -> None:
    def ask(case: str, prompt: str = "Q?") -> Ask:
        return Ask(case, "whole", prompt, "1", "text")

    stored: Any = SimpleNamespace(asks={"a": ask("a"), "b": ask("b", "Not Q?"), "x": ask("x")})
    again: Any = SimpleNamespace(asks={"a": ask("a"), "b": ask("b"), "c": ask("c")})
    told = [line.split(": ")[1] for line in _asks(stored, again)]
    assert told == [f"case {case!r}, role 'whole'" for case in "bxc"]
    assert [*_asks(again, again)] == []

    def named(**sets: str) -> Any:
        found = {name: CaseSet(name, "failure", tuple(Entry(c, ()) for c in ids)) for name, ids in sets.items()}
        return SimpleNamespace(case_sets=found)

    lines = [*_case_sets(named(same="ab", other="ab", gone="c"), named(same="ab", other="bd", more="e"))]
    assert [line.split(":")[0] for line in lines] == [f"casesets/{n}.jsonl" for n in ("other", "gone", "more")]
    assert ["'a', 'd'" in lines[0], "'c'" in lines[1], "'e'" in lines[2]] == [True] * 3


def test_rows_and_cells_that_are_missing_changed_or_of_nothing_are_each_named_once() -> None:
    def graded(**outcomes: str) -> Any:
        rows = [Graded(c, "whole", o, ask=f"k{c}", run=f"r{''.join(outcomes)}") for c, o in outcomes.items()]  # type: ignore[arg-type]
        return SimpleNamespace(graded=rows)

    journal: Any = SimpleNamespace(lines={"kb": "journal/s.jsonl:3"})
    told = [
        *_rows(graded(a="correct", b="correct", x="correct"), graded(a="correct", b="invalid", c="correct"), journal)
    ]
    assert [line.split(": ", 2)[1] for line in told] == [f"case {c!r}, role 'whole'" for c in "bxc"]
    assert told[0].endswith("outcome is 'correct', the answer in journal/s.jsonl:3 gives 'invalid'")
    assert ["no answer" in told[1], "missing" in told[2]] == [True, True]
    notes: list[str] = []
    stored = [Metric("a", {"z": 1, "b": 2}, n=3), Metric("human_recall", n=3), Metric("x", n=1), Metric("same", n=1)]
    given = [Metric("a", {"b": 2, "z": 1}, n=4), Metric("y", n=1), Metric("same", n=1)]
    cells = [*_cells(stored, given, notes)]
    assert cells[0] == "metrics.json: a[b=2, z=1]: n is 3, the answers give 4"
    assert [line.split(": ")[1] for line in cells[1:]] == ["x", "y"] and ["human_recall" in n for n in notes] == [True]
    assert ["no answers" in cells[1], "missing" in cells[2]] == [True, True]
