"""A damaged run folder is one line that names file, field and fix, and nothing is written beside it or into it."""

from __future__ import annotations

import json
import math
import re
import runpy
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError, JournalError
from composcope.evaluation.metrics import Metric, dumps
from composcope.experiments.cli import main
from composcope.experiments.notebook.opening import open_run
from composcope.experiments.run.reader import RunData, read_config

Capture = pytest.CaptureFixture[str]
Damage = Callable[[Path], object]
SET = "casesets/both-right-whole-wrong.jsonl"


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "a"
    made = runpy.run_path(str(Path(__file__).with_name("synthetic_runs.py")))["make_run"]
    return Path(made(folder, protocol="compositionality-gap", n=12, probes=()))


def text(name: str, content: str) -> Damage:
    def damage(run: Path) -> None:
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text(content)

    return damage


def gone(name: str) -> Damage:
    return lambda run: shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()


def document(name: str, **fields: Any) -> Damage:
    """Fields of a JSON document changed; those that are None are taken out."""

    def damage(run: Path) -> None:
        found = {**json.loads((run / name).read_text()), **fields}
        (run / name).write_text(json.dumps({k: v for k, v in found.items() if v is not None}))

    return damage


def first_line(name: str, **fields: Any) -> Damage:
    """Fields of the first line changed; those that are None are taken out."""

    def damage(run: Path) -> None:
        first, *rest = (run / name).read_text().splitlines()
        found = {k: v for k, v in {**json.loads(first), **fields}.items() if v is not None}
        (run / name).write_text("\n".join([json.dumps(found), *rest, ""]))

    return damage


def fewer(name: str) -> Damage:
    return lambda run: (run / name).write_text("".join((run / name).read_text().splitlines(True)[:-1]))


@pytest.fixture
def damaged(pristine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Damage], object]:
    """Runs ``a`` and ``b`` here, ``b`` with a damage."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        shutil.copytree(pristine, tmp_path / name)
    return lambda damage: damage(tmp_path / "b")


def contents(folder: Path) -> Mapping[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


COMMANDS = {
    "compare": ["compare", "a", "b"],
    "merge": ["merge", "a", "b", "--out", "m"],
    "score": ["score", "b", "-q"],
    "study": ["study", "lengths", "b"],
    "report": ["report", "b", "--out", "m"],
    "plot": ["plot", "gap-slopes", "b", "--out", "m"],
    "probe": ["probe", "b", "--probes", "min-k", "-q"],
}


@pytest.mark.parametrize(
    ("damage", "commands", "needle"),
    [
        (document("metrics.json", metrics=3), "compare study report plot", "b/metrics.json: field 'metrics' is 3"),
        (document("metrics.json", metrics=None), "compare report plot", "b/metrics.json: field 'metrics' is missing"),
        (document("metrics.json", metrics=[{"metric": "gap"}]), "compare plot", "metrics[0]: field 'group' is missing"),
        (document("manifest.json", identity=3), "compare merge score report plot probe", "field 'identity' is 3"),
        (document("manifest.json", identity=None), "compare merge score plot probe", "field 'identity' is missing"),
        (gone("manifest.json"), "merge report plot probe", "no manifest.json"),
        (text("config.yaml", "protocol: x\n"), "merge score plot probe", "b/config.yaml: field 'model' is missing"),
        (text("config.yaml", "model: m\nbenchmark: b\n"), "merge score probe", "field 'protocol' is missing"),
        (document("config.yaml", asking={"judge": 3}), "score probe", "config.yaml: asking: field 'judge' is 3"),
        (document("config.yaml", protocol="double-gate"), "merge score", "field 'protocol' is double-gate"),
        (gone("config.yaml"), "merge score probe", "b/config.yaml: no such file"),
        (document("metrics.json", metrics=[{"metric": "gap", "group": {}, "n": 3, "value": 0.5, "low": 0.1}]),
         "study report", "metrics[0]: field 'interval' is missing"),
        (document("manifest.json", engine={"identity": 3}), "score probe", "engine: field 'identity' is 3"),
        (fewer("journal/segment.jsonl"), "study", "b/journal: the answers of 1 of "),
        (gone("journal"), "merge", "b/journal: has no answers"),
        (first_line("asks.jsonl", ask=None), "study report", "b/asks.jsonl:1: field 'ask' is missing"),
        (first_line("cases.jsonl", id=None), "compare merge score study report", "cases.jsonl:1: field 'id' is miss"),
        (first_line("cases.jsonl", id=7), "compare merge score", "b/cases.jsonl:1: field 'id' is 7, not text"),
        (text("cases.jsonl", ""), "compare merge score study report", "b/cases.jsonl: no lines"),
        (text("graded.jsonl", ""), "study report", "b/graded.jsonl: no "),
        (first_line("graded.jsonl", outcome="good"), "study report", "graded.jsonl:1: outcome is 'good'"),
        (text("../study.json", '{"runs": 3}'), "report plot", "study.json: field 'runs' is 3, not a list"),
        (text("../study.json", '{"about": {"b": 1}}'), "report plot", "study.json: about: field 'b' is 1, not an obj"),
        (text("diagnosis/summary.json", '{"left_out": 3}'), "report", "b/diagnosis/summary.json: field 'left_out' is"),
        (text("diagnosis/summary.json", '{"mended": {"x": {"n": 1}}}'), "report", "mended.x: field 'count' is missing"),
        (first_line(SET, evidence=None), "study report", "whole-wrong.jsonl:1: field 'evidence' is missing"),
    ],
)  # fmt: skip
def test_a_damaged_run_is_one_line_with_file_and_field_and_nothing_is_written(
    damage: Damage, commands: str, needle: str, damaged: Callable[[Damage], object], capsys: Capture
) -> None:
    damaged(damage)
    before = contents(Path("b"))
    for name in commands.split():
        assert main(COMMANDS[name]) == 1, name
        (error,) = [line for line in capsys.readouterr().err.splitlines() if "composcope: error: " in line]
        assert needle in error, name
        assert "unexpected" not in error
        assert not Path("m").exists(), name
        left = {k: v for k, v in contents(Path("b")).items() if k != ".lock" and not k.endswith(".txt")}
        assert left == before, name


@pytest.mark.parametrize(
    "damage",
    [
        document("metrics.json", metrics=3),
        document("metrics.json", metrics=None),
        document("manifest.json", identity=3),
    ],
)
def test_the_list_of_runs_says_which_of_them_is_damaged_and_shows_the_others(
    damage: Damage, damaged: Callable[[Damage], object], capsys: Capture
) -> None:
    damaged(damage)
    assert main(["ls", "."]) == 0
    sound, broken = capsys.readouterr().out.splitlines()
    assert sound.startswith("a  complete") and "field" not in sound
    assert re.search(r"^b .*b/\w+\.json: field '\w+' is ", broken)


def test_cases_that_lost_a_line_are_not_counted_as_a_smaller_benchmark(
    damaged: Callable[[Damage], object], capsys: Capture
) -> None:
    damaged(document("manifest.json", n_cases=12))
    assert len(RunData(Path("b")).cases) == 12
    fewer("cases.jsonl")(Path("b"))
    metrics = (Path("b") / "metrics.json").read_bytes()
    assert main(["score", "b", "-q"]) == 1
    assert "b/cases.jsonl: 11 cases, and field 'n_cases' of manifest.json is 12" in capsys.readouterr().err
    assert (Path("b") / "metrics.json").read_bytes() == metrics


def test_graded_rows_that_lost_cases_are_not_studied_as_fewer(
    damaged: Callable[[Damage], object], capsys: Capture
) -> None:
    damaged(lambda run: (run / "graded.jsonl").write_text((run / "graded.jsonl").read_text().splitlines(True)[0]))
    for name in ("study", "report"):
        assert main(COMMANDS[name]) == 1
        assert "b/graded.jsonl: no row for 11 cases (first: 'case-0001')" in capsys.readouterr().err
    document("manifest.json", stopped="max_asks=1")(Path("b"))
    found = RunData(Path("b")).evaluated()
    assert ({row.case for row in found.graded}, found.stopped) == ({"case-0000"}, "max_asks=1")


def test_a_case_that_stands_twice_in_a_run_is_refused(damaged: Callable[[Damage], object]) -> None:
    damaged(lambda run: (run / "cases.jsonl").write_text((run / "cases.jsonl").read_text().splitlines(True)[0] * 2))
    with pytest.raises(InputError, match=r"b/cases\.jsonl: field 'id' is '.+' on several lines"):
        _ = RunData(Path("b")).cases


def test_a_case_set_of_two_labels_is_refused(damaged: Callable[[Damage], object]) -> None:
    damaged(first_line(SET, label="success"))
    with pytest.raises(InputError, match=r"field 'label' is 'success' and 'failure'"):
        RunData(Path("b")).evaluated()


def test_a_merge_that_finds_an_answer_missing_leaves_its_folder_as_it_was(
    damaged: Callable[[Damage], object], capsys: Capture
) -> None:
    damaged(lambda run: None)
    for out in (Path("new"), Path("empty")):
        if out.name == "empty":
            out.mkdir()
        assert main(["merge", "a", "b", "--out", str(out)]) == 1
        assert "not in the journal" in capsys.readouterr().err
        assert out.is_dir() == (out.name == "empty") and not any(out.glob("*"))


def test_a_sound_run_passes_every_check(pristine: Path) -> None:
    assert len(RunData(pristine).evaluated().cases) == 12
    assert read_config(pristine)["protocol"] == "compositionality-gap"


def test_a_run_without_a_journal_counts_and_one_whose_journal_lost_answers_does_not(
    pristine: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(pristine, tmp_path / "r"))
    (journal,) = (run / "journal").glob("*.jsonl")
    lines = journal.read_text().splitlines(True)
    journal.write_text("".join(lines[:-1]))
    with pytest.raises(JournalError, match=r"the answers of 1 of \d+ graded asks are missing"):
        RunData(run).evaluated()
    shutil.rmtree(run / "journal")
    assert RunData(run).evaluated().graded == RunData(pristine).evaluated().graded


@pytest.mark.parametrize("high", [0.5, math.inf, math.nan, None])
@pytest.mark.parametrize("low", [0.1, 0, -math.inf, None])
@pytest.mark.parametrize("value", [0.3, math.inf, None])
def test_whatever_metric_is_written_is_sound(
    value: float | None, low: float | None, high: float | None, tmp_path: Path
) -> None:
    """Intervals may be open on either side, as that of d50 where a curve never comes down."""
    row = Metric("d50", {"family": "rank"}, 3, 1, None, value, "case bootstrap", low, high)
    (tmp_path / "metrics.json").write_text(dumps("double-gate", [row]))
    found = RunData(tmp_path).counted
    assert found is not None and found.metrics[0].to_dict() == row.to_dict()


def test_a_folder_that_is_not_there_is_said_to_be_missing_and_not_a_file_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert f"{tmp_path / 'a'}: no such folder; give a run folder" in capsys.readouterr().err
    with pytest.raises(InputError, match="nothing: no such folder; give a run folder"):
        open_run(tmp_path / "nothing")
