"""The toolkit as a notebook uses it: the lines of the documentation, on a shipped organism."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import save_file

import composcope as cs
from composcope import terminal
from composcope.errors import InputError, NoCasesError
from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.evaluation.graded import Graded
from composcope.evaluation.journal import Contents
from composcope.experiments import figures
from composcope.experiments import probing as job_of_probes
from composcope.experiments.cli import main
from composcope.experiments.diagnosis import job
from composcope.experiments.notebook import ProbeResults, RunResults, opening, probing
from composcope.experiments.notebook import shown as displayed
from composcope.experiments.notebook.probing import run_config
from composcope.experiments.notebook.results import CaseResult, _line
from composcope.experiments.organism import weights
from composcope.experiments.organism.benchmarks import mixed
from composcope.experiments.report.sections import matching_notes
from composcope.experiments.run import read_lines
from composcope.experiments.run.diagnosis import FOLDER, CauseShare, Diagnosis, Verdict, write
from composcope.experiments.run.reader import ProbeData, RunData
from composcope.hooks import Site
from composcope.probes.catalog import PROBES
from composcope.probes.single_cases import pieces


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResults:
    folder = tmp_path_factory.mktemp("api")
    write_cases(mixed(24, 0), folder / "cases.jsonl")
    return cs.evaluate("organism:control", cs.read_cases(folder / "cases.jsonl"), out=folder / "run", quiet=True)


@pytest.fixture(scope="module")
def looked(run: RunResults) -> Any:
    return run.failures.probe("lookback", quiet=True)


def test_the_lines_of_the_documentation_run(run: RunResults, looked: Any) -> None:
    metrics = run.metrics.to_df()
    assert isinstance(metrics, pd.DataFrame)
    whole = metrics[metrics.metric == "composition"].iloc[0]
    assert all(row.items() >= m.group.items() for row, m in zip(run.metrics, run.data.metrics, strict=True))
    assert len(metrics) == len(run.metrics) and whole.n + whole.n_invalid == len(run.cases) == 24
    assert 0 < len(run.failures) <= len(run.cases)
    assert set(run.failures.ids).isdisjoint(run.successes.ids)

    assert {"quantity", "group", "n", "value", "low", "high"} <= set(looked.to_df().columns)
    assert looked.plot().rows
    difference = looked.maps["failure - success"]
    assert difference.dims == ("layer", "head")
    assert np.allclose(difference, looked.maps["failure"] - looked.maps["success"], atol=1e-6)

    drawn = cs.plot.attention(run.lm, "7 times 8", layer=0)
    assert {row["head"] for row in drawn.rows} == set(range(run.lm.anatomy.n_heads))
    said = [label.get_text() for label in drawn.figure.axes[0].get_xticklabels()]
    assert said == [row["key_token"] for row in drawn.rows if row["head"] == 0 and row["query"] == len(said) - 1]
    assert cs.plot.gap_slopes([run]).rows


def test_parts_of_a_case_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    parts = tuple(Part(f"What is {i}?", str(i)) for i in range(12))
    order = (11, 2, 10, *range(2), *range(3, 10))
    graded = [Graded("c", f"part:{i}", "correct" if i < 10 else "incorrect") for i in order]
    data = RunData(tmp_path)
    vars(data).update(cases={"c": Case("c", "Q?", "A", parts)}, graded=[*graded, Graded("c", "whole", "correct")],
                      asks={}, case_sets={}, journal=Contents())  # fmt: skip
    case = RunResults(data).case("c")
    assert [g.role for g in case.graded] == ["whole", *(f"part:{i}" for i in range(12))]
    assert case.parts == case.graded[1:]
    assert f"parts {' '.join('✓' * 10 + '✗' * 2)}" in repr(case)


@pytest.mark.parametrize("shard", [None, "1/2"])
def test_a_probe_takes_the_cases_from_the_run_and_those_of_a_shard_from_its_benchmark(
    shard: str | None, run: RunResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def investigate(*_: Any, benchmark: Any, **__: Any) -> Any:
        given.append(benchmark)
        return SimpleNamespace(no_contrast=None, evaluated=SimpleNamespace(ids=lambda _: set()))

    monkeypatch.setattr(importlib.import_module("composcope.experiments.investigate"), "investigate", investigate)
    own = run_config(run.data, None).replace(shard=shard)
    with pytest.raises(NoCasesError):
        probing.measure_and_keep(run.data, None, own, "neurons", True)  # type: ignore[arg-type]
    assert [found and found.cases for found in given] == [None if shard else tuple(run.data.cases.values())]


def test_a_case_shows_what_the_probes_kept_of_it(run: RunResults) -> None:
    case, other = run.failures[0], run.failures[1]
    assert case.signals == {}
    folder = Path(run.path) / "probes" / "patching" / "cases"
    folder.mkdir(parents=True)
    (folder.parent / "table.csv").write_text("quantity\n")
    same = {"role": "whole", "tokens": ["a", "b"], "axes": {"recovered": ["layer", "position"]}}
    entries = [{"case": c, "donor": donor, **same} for c, donor in ((other.id, "x"), (case.id, "x"), (case.id, "y"))]
    (folder / "index.json").write_text(json.dumps({"schema": 1, "entries": entries}))
    values = np.arange(18, dtype=np.float32).reshape(3, 3, 2)
    save_file({f"{i}.recovered": np.ascontiguousarray(v) for i, v in enumerate(values)}, folder / "tensors.safetensors")
    try:
        found = case.signals
    finally:
        shutil.rmtree(folder.parent)
    assert list(found) == ["patching whole recovered", "patching whole recovered 2"]
    for i, (array, donor) in enumerate(zip(found.values(), "xy", strict=True), 1):
        assert array.dims == ("layer", "position") and np.array_equal(array, values[i])
        assert (array.attrs["probe"], array.attrs["donor"], array.attrs["tokens"]) == ("patching", donor, ["a", "b"])


def test_figures_draw_the_same_from_results_as_from_the_folder(run: RunResults, looked: Any) -> None:
    of_folder = figures.draw("lookback", [run.path]).rows
    assert of_folder == looked.plot().rows == cs.plot.lookback([looked]).rows == run.plot("lookback").rows
    assert cs.plot.lookback_means(looked).rows == looked.plot("lookback-means").rows
    assert run.plot("gap-slopes").rows == cs.plot.gap_slopes([run.path]).rows == cs.plot.gap_slopes(run).rows


def test_figures_of_an_open_run_draw_the_probes_that_its_folder_has_now(
    run: RunResults, looked: Any, tmp_path: Path
) -> None:
    opened = cs.open_run(shutil.copytree(run.path, tmp_path / "run"))
    before = opened.plot("lookback-means").rows
    table = Path(opened.path) / "probes" / "lookback" / "table.csv"
    table.write_text(table.read_text().replace("lookback_ratio,failure", "other,failure"))
    now = cs.plot.lookback_means(opened.path).rows
    assert now != before
    assert opened.plot("lookback-means").rows == cs.plot.lookback_means(opened).rows == now
    assert "mine" not in opened.data.probe_names
    (Path(opened.path) / "probes" / "mine").mkdir()
    assert "mine" in displayed.probed_now(opened.data).probe_names


@pytest.mark.parametrize("name", list(PROBES))
def test_every_probes_results_have_a_figure_of_their_own(name: str, run: RunResults) -> None:
    none = ProbeResults(name, run.data, ProbeData(name, []), "")
    assert none.plot().empty, "nothing was measured, and the figure says so"


def test_a_run_is_opened_again_with_what_was_probed(run: RunResults, looked: Any) -> None:
    again = cs.open_run(run.path)
    kept = again.probe_results("lookback")
    assert kept.to_df().equals(looked.to_df())
    assert kept.case_ids == looked.case_ids and set(kept.case_ids) == {"failure", "success"}
    with pytest.raises(InputError, match=r"'neurons'.*lookback"):
        again.probe_results("neurons")


def test_some_failures_are_measured_in_memory_against_the_cases_named(
    run: RunResults, looked: Any, tmp_path: Path
) -> None:
    few = run.failures[:6].probe("lookback", cases=3, quiet=True, against=run.successes)
    assert set(few.case_ids["failure"]) <= set(run.failures.ids[:6])
    assert few.maps["failure"].shape == looked.maps["failure"].shape
    assert cs.open_run(run.path).probe_results("lookback").case_ids == looked.case_ids, "what is kept has not changed"
    assert few.plot().rows, "figures draw from results that no folder holds"
    assert few.as_run().probe("lookback") is few.data, "and not from those that the folder holds"
    other = cs.open_run(shutil.copytree(run.path, tmp_path / Path(run.path).name))
    both = [r for r in cs.plot.lookback_means([few, other]).rows if r["n"]]
    mine = [r for r in both if r["run"] != f"{tmp_path.name}/{run.name}"]
    alone = few.plot("lookback-means").rows
    assert len(both) > len(mine), "a run of the same name beside it"
    assert [r["value"] for r in mine] == [r["value"] for r in alone if r["n"]], "what is in memory only stays"


def test_some_cases_are_measured_against_all_or_some_of_the_others_and_kept_nowhere(
    run: RunResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "measure", lambda data, target, config, cases, quiet: cases)
    monkeypatch.setattr(probing, "measure_and_keep", lambda *_: pytest.fail("kept"))
    failures, successes = run.failures.ids, run.successes.ids
    assert run.failures[:2].probe("lookback", quiet=True) == {*failures[:2], *successes}
    assert run.successes[:2].probe("lookback", quiet=True) == {*failures, *successes[:2]}
    some = run.failures[:2].probe("lookback", quiet=True, against=run.successes[:2])
    assert some == {*failures[:2], *successes[:2]}  # type: ignore[comparison-overlap]


def test_cases_of_another_run_or_of_the_same_kind_are_nothing_to_compare_with(
    run: RunResults, looked: Any, tmp_path: Path
) -> None:
    copied = cs.open_run(shutil.copytree(run.path, tmp_path / "copied"))
    for against, named in ((run.failures, "failure cases"), (copied.successes, "of copied")):
        with pytest.raises(InputError, match=rf"against: .*{named}"):
            run.failures.probe("lookback", against=against, quiet=True)


@pytest.mark.parametrize("given", [{"cases": 2}, {"position": "prompt-end"}, {"case_details": 1}], ids=str)
def test_a_result_with_other_settings_leaves_the_runs_record_as_it_is(
    given: dict[str, Any], run: RunResults, looked: Any
) -> None:
    def record() -> dict[Path, bytes]:
        return {p: p.read_bytes() for p in Path(run.path).rglob("*") if p.is_file() and p.name != "log.txt"}

    before = record()
    other = run.failures.probe("lookback", **given, quiet=True)
    assert record() == before
    assert len(other.case_ids["failure"]) == min(given.get("cases", 32), len(looked.case_ids["failure"]))


def test_a_probe_from_a_notebook_leaves_the_other_probes_in_the_runs_record(run: RunResults, looked: Any) -> None:
    run.failures.probe("min-k", quiet=True)
    again = cs.open_run(run.path)
    assert again.data.probe_names == ["lookback", "min-k"]
    config = run_config(again.data, None)
    assert set(config.probes) == {"lookback", "min-k"} and config.probe_cases == 32
    assert again.probe_results("lookback").to_df().equals(cs.open_run(run.path).failures.probe("lookback").to_df())


def test_each_probe_keeps_the_cases_that_it_ran_on(run: RunResults, looked: Any, tmp_path: Path) -> None:
    shutil.copytree(run.path, path := tmp_path / "run")
    assert main(["probe", str(path), "--probes", "min-k", "--probe-cases", "2", "-q"]) == 0
    few, many = (cs.open_run(path).probe_results(name) for name in ("min-k", "lookback"))
    assert [len(cases) for cases in few.case_ids.values()] == [2, 2] and len(many.case_ids["failure"]) > 2
    assert many.case_ids == looked.case_ids and many.note == looked.note != few.note
    notes = matching_notes([RunData(path)])
    assert ["(lookback):" in notes[0], "(min-k):" in notes[1], few.note in notes[1]] == [True] * 3


def test_a_probe_with_nothing_to_measure_does_not_give_the_result_of_other_cases(
    run: RunResults, looked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any) -> Any:
        raise NoCasesError("no case has what the probe needs")

    shutil.copytree(run.path, path := tmp_path / "run")
    kept = path / "probes" / "lookback" / "inputs.json"
    before = json.loads(kept.read_text())
    kept.write_text(json.dumps({**before, "inputs": "of other cases", "groups": {"failure": ["x"], "success": ["y"]}}))
    monkeypatch.setattr(job_of_probes, "_probe", lambda name: replace(PROBES[name], run=none))
    with pytest.raises(NoCasesError, match="lookback had nothing to measure"):
        cs.open_run(path).failures.probe("lookback", quiet=True)
    assert cs.open_run(path).probe_results("lookback").case_ids["failure"] == ["x"]


PROBE = """
from composcope.probes import ProbeResult

def mid_norm(lm, examples):
    return ProbeResult("mid-norm", [{"quantity": "n", "group": "all", "n": len(examples), "value": 1.0}], {}, {})

PROBES = {"mid-norm": mid_norm}
"""


def test_a_probe_of_ones_own_that_fails_leaves_the_run_complete(
    run: RunResults, looked: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run.path, path := tmp_path / "run")
    (tmp_path / "mine.py").write_text("PROBES = {'breaks': lambda lm, examples: 1 / 0}\n", encoding="utf-8")
    before = (path / "metrics.json").read_bytes()
    assert main(["probe", str(path), "--plugin", str(tmp_path / "mine.py"), "--probes", "breaks", "-q"]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    made = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    assert made["status"] == "complete" and "ZeroDivisionError" in made["invocations"][-1]["error"]
    assert cs.open_run(path).failures.ids == run.failures.ids and (path / "metrics.json").read_bytes() == before


def test_a_plugin_is_used_from_python_and_the_run_can_be_probed_without_it(
    run: RunResults, looked: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PROBES, "added", {})
    monkeypatch.setattr(PROBES, "_given", {})
    (tmp_path / "mine.py").write_text(PROBE)
    opened = cs.open_run(shutil.copytree(run.path, tmp_path / "run"))
    with pytest.raises(InputError, match="load_plugin"):
        opened.failures.probe("mid-norm")
    for ask in (lambda: opened.failures.probe("lookback", plugin="mine.py"), lambda: opened.diagnose(plugin="mine.py")):
        with pytest.raises(InputError, match=r"plugin: no such option.*load_plugin"):
            ask()
    assert cs.load_plugin(tmp_path / "mine.py") == {"PROBES": ("mid-norm",)}
    assert list(opened.failures.probe("mid-norm", quiet=True).to_df().value) == [1.0]

    monkeypatch.setattr(PROBES, "added", {})  # as in another process
    again = cs.open_run(opened.path)
    values = again.failures.probe("lookback", quiet=True).to_df().value
    assert np.array_equal(values, looked.to_df().value, equal_nan=True)
    assert again.failures.probe("min-k", cases=2, quiet=True).to_df().shape[0]
    again.failures.probe("min-k", quiet=True)
    assert {"lookback", "mid-norm", "min-k"} <= set(run_config(cs.open_run(opened.path).data, None).probes)
    assert list(again.probe_results("mid-norm").to_df().value) == [1.0]


def test_the_same_call_takes_its_answers_from_the_folder(run: RunResults, capsys: pytest.CaptureFixture[str]) -> None:
    cases = list(run.data.cases.values())
    cs.evaluate("organism:control", cases, out=run.path)
    assert "0 asks put to the model" in capsys.readouterr().err


def test_quiet_leaves_nothing_on_the_terminal_and_without_it_the_librarys_bar_stays(
    run: RunResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(job, "diagnosed", lambda *_: None)
    cases, copy = list(run.data.cases.values()), shutil.copytree(run.path, tmp_path / "run")
    capfd.readouterr()
    for bar in (True, False, True):  # the bar comes back
        cs.evaluate("organism:control", cases, out=run.path, quiet=not bar)
        assert ("Loading weights" in capfd.readouterr().err) == bar
    cs.open_run(copy).diagnose(quiet=True)
    cs.open_run(copy).failures.probe("min-k", quiet=True)
    assert capfd.readouterr() == ("", "")


def test_a_model_in_memory_gives_the_same_answers(run: RunResults, tmp_path: Path) -> None:
    cases = list(run.data.cases.values())[:6]
    own = cs.evaluate(run.lm, cases, out=tmp_path / "run", quiet=True)
    for case in own.cases:
        assert case.responses == run.case(case.id).responses
    assert own.target.engine.model is run.lm.model
    assert cs.open_run(own.path, run.lm).target.engine.batch_size is None
    with pytest.raises(InputError, match="dtype"):
        cs.evaluate(run.lm, cases, out=tmp_path / "other", dtype="float32")
    batched = cs.evaluate(run.lm, cases[:2], out=tmp_path / "batched", batch_size=3, quiet=True)
    assert [cs.open_run(batched.path, run.lm).target.engine.batch_size, batched.target.engine.batch_size] == [3, 3]


def test_what_was_not_counted_is_among_the_warnings_of_the_run(run: RunResults, tmp_path: Path) -> None:
    whole, bare, *_ = run.data.cases.values()
    cases = [replace(bare, parts=()), replace(whole, question="Which? " * 600), *[*run.data.cases.values()][2:6]]
    warnings = cs.evaluate(run.lm, cases, out=tmp_path / "run", quiet=True).warnings
    assert any("1 of 6 cases have no parts" in said and bare.id in said for said in warnings), warnings
    assert any("1 of 21 asks have no answer" in said and whole.id in said for said in warnings), warnings
    with pytest.raises(InputError, match="out=/proc/none: cannot be made"):
        cs.evaluate(run.lm, cases, out="/proc/none", quiet=True)


def test_what_is_not_there_is_answered_with_what_is(run: RunResults, looked: Any) -> None:
    with pytest.raises(InputError, match="mixed-0001"):
        run.case("mixed-00001")
    with pytest.raises(InputError, match="failure - success"):
        looked.maps["failure-success"]
    with pytest.raises(AttributeError, match="collapse_curve"):
        cs.plot.colapse_curve([run])
    with pytest.raises(NoCasesError):
        run.failures[:0].probe("lookback")
    with pytest.raises(InputError, match=r": no case 0$"):
        run.failures[:0][0]
    assert run.successes[run.successes.ids[-1]].label == "success"
    for wrong in (run.successes.ids[0], [run.failures.ids[0], run.successes.ids[0]]):
        with pytest.raises(InputError, match=f"'{run.successes.ids[0]}' is none of them"):
            run.failures[wrong]


ANYTHING: tuple[Any, ...] = (float("nan"), 5, None)
WRONG: tuple[dict[str, Any], ...] = (
    {"parts": Part("Q?", "A")}, {"answer_type": "int"}, {"aliases": "five"}, {"chance": 3}, {"depth": 0},
    {"answer_type": "choice", "options": (1, 1)}, {"answer_type": "boolean"}, {"meta": {"variants": 3}},
)  # fmt: skip
DICTS: Any = ({"question": "Q?", "answer": "A"},)


@pytest.mark.parametrize(
    ("cases", "named"),
    [
        ([{"id": "a", "question": "Q?"}], r"cases\[0\]: field 'answer'"),
        (["What is 2+2?"], r"cases\[0\]: str"),
        (Case("a", "Q?", "A"), "list of cases"),
        *(([Case("a", "Q?", answer)], rf"cases\[0\]: answer is {answer}") for answer in ANYTHING),
        ([Case("a", "Q?", "A", DICTS)], r"cases\[0\], parts\[0\]: dict"),
        (pd.DataFrame([{"id": "a"}]), r"cases\[0\]: field 'question'"),
        *(
            ([Case("a", "Q?", "A", **wrong)], rf"cases\[0\].*{list(wrong)[-1]}")
            for wrong in WRONG
        ),
    ],
    ids=str,
)  # fmt: skip
def test_cases_that_are_none_are_refused_with_their_place(cases: Any, named: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=named):
        cs.evaluate("organism:none", cases, out=tmp_path / "run")


def test_arguments_that_cannot_be_used_are_refused_by_name(run: RunResults, tmp_path: Path) -> None:
    def evaluate(**options: Any) -> object:
        return cs.evaluate("organism:none", mixed(1, 0), out=tmp_path / "run", **options)

    wrong: dict[str, Callable[[], object]] = {
        "limit=three": lambda: evaluate(limit="three"),
        "limit=0": lambda: evaluate(limit=0),
        "probs": lambda: evaluate(probs=3),
        "probes": lambda: evaluate(probes="all"),
        "also .no.": lambda: evaluate(also="no"),
        "^benchmark=nope.jsonl: ": lambda: cs.evaluate("organism:none", "nope.jsonl"),
        "^case nope: run has no such case": lambda: cs.diagnose(run.path, ids=["nope"]),
        "^group_by=cost: ": lambda: cs.plot.gaps(run, group_by="cost"),
        "^group_by=size: ": lambda: run.plot("gaps", group_by="size"),
        "lookback,min-k.*give one": lambda: run.failures.probe("lookback,min-k", quiet=True),
        "none.*give one": lambda: run.failures.probe("none", quiet=True),
        "all.*give one": lambda: run.failures.probe("all", quiet=True),
        "out: int": lambda: cs.evaluate("organism:none", mixed(1, 0), out=3),  # type: ignore[arg-type]
        "against of type list": lambda: run.failures.probe("min-k", against=["mixed-0001"]),  # type: ignore[arg-type]
        "list of ids": lambda: run.diagnose(ids="mixed-0001"),
        "cases 0": lambda: run.diagnose(cases=0),
        "case 1: give an id": lambda: run.case(1),  # type: ignore[arg-type]
        "probe 3: give the name": lambda: run.failures.probe(3),  # type: ignore[arg-type]
        "load_plugin": lambda: run.failures.probe(print),  # type: ignore[arg-type]
        "run: NoneType": lambda: cs.open_run(None),  # type: ignore[arg-type]
        "case file: list": lambda: cs.read_cases(["a.jsonl"]),  # type: ignore[arg-type]
        "plugin: NoneType": lambda: cs.load_plugin(None),  # type: ignore[arg-type]
        "first a list of cases": lambda: cs.write_cases("a.jsonl", mixed(1, 0)),  # type: ignore[arg-type]
        r"cases\[0\]: dict": lambda: cs.write_cases([{"id": "a"}], tmp_path / "a.jsonl"),  # type: ignore[list-item]
        "config: str": lambda: cs.investigate("organism:none", tmp_path),  # type: ignore[arg-type]
        "rows have numbers": lambda: run.metrics["gap"],  # type: ignore[index]
        f"holds 1 run; .*{run.name}": lambda: cs.open_run(Path(run.path).parent),
        "run is given twice": lambda: cs.plot.mink([run, ProbeResults("min-k", run.data, ProbeData("min-k", []), "")]),
        "attention: RunResults": lambda: cs.plot.attention(run, "a", layer=0),  # type: ignore[arg-type]
    }
    for named, call in wrong.items():
        with pytest.raises(InputError, match=named):
            call()


def test_a_run_stands_for_its_folder_and_some_of_its_cases_are_named_by_a_list(run: RunResults) -> None:
    assert cs.open_run(run).path == run.path  # type: ignore[arg-type]
    assert run.data.config is not None and run.data.config.benchmark == f"{run.path}/cases.jsonl", "its own cases"
    mixture = [Case(b, "?", "1", benchmark=b) for b in "ab"]
    names = [opening._benchmark(some, None).name.rpartition("-")[0] for some in (mixture, mixture[:1])]
    assert names == ["cases", "a"]
    ids = run.cases.ids
    assert run.cases[[0, ids[-1]]].ids == (ids[0], ids[-1])
    mask = [id in (ids[1], ids[3]) for id in ids]
    for chosen in (mask, np.array(mask), pd.Series(mask), np.array([1, 3]), pd.Series([ids[1], ids[3]])):
        assert run.cases[chosen].ids == (ids[1], ids[3])
    assert run.cases[np.int64(1)].id == ids[1] and run.cases[-len(ids)].id == ids[0]
    for wrong in (mask[:-1], [True, 1], len(ids), [len(ids)], -len(ids) - 1, 1.0, None):
        with pytest.raises(InputError, match="give"):
            run.cases[wrong]


def test_answers_that_a_merged_run_does_not_ask_for_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [tmp_path / f"seed-{seed}" for seed in (1, 2)]
    for seed, run in enumerate(runs, 1):
        cs.evaluate("organism:none", mixed(1, 0), out=run, temperature=1.0, seed=seed, quiet=True)
    assert main(["merge", *map(str, runs), "--out", str(tmp_path / "m")]) in (0, 2)
    n = len(read_lines(runs[1] / "asks.jsonl"))
    assert f"{n} answers of {runs[1]} are left out" in capsys.readouterr().err


def test_types_of_torch_are_options_too(tmp_path: Path) -> None:
    how: dict[str, Any] = {"dtype": torch.float32, "device": torch.device("cpu"), "quiet": True}
    config = cs.evaluate("organism:none", mixed(1, 0), out=tmp_path / "run", **how).data.config
    assert config is not None and (config.dtype, config.device) == ("float32", "cpu")


def test_a_diagnosis_shows_itself_short_and_as_a_table(tmp_path: Path) -> None:
    verdict = Verdict("a", "near-miss", ("<seen>",) * 50)
    found = Diagnosis(tmp_path, [verdict], [CauseShare("all", "", "near-miss", 1, 1, 1.0, None, None, "none")])
    assert "1 near-miss" in repr(found) and len(repr(found)) < 300
    frame = found.to_df()
    assert (frame.case[0], frame.cause[0], frame.why[0]) == ("a", "near-miss", verdict.why)


def test_a_case_shows_the_wording_that_was_asked(tmp_path: Path) -> None:
    part = Part("What is 1 + 1?", "2", answer_type="number", paraphrases=("One plus one?", "The sum of 1 and 1?"))
    case = Case("c", "What is 1 + 1 + 1?", "3", (part,), answer_type="number", evidence=("One is a number.",))
    run = cs.evaluate("organism:none", [case], out=tmp_path / "run", quiet=True)
    of_run = run.case("c")
    of_elsewhere = CaseResult(case, None, of_run.graded, of_run.responses)  # rows without the questions
    roles = ["whole", "part:0", "part:0:paraphrase:0", "part:0:paraphrase:1"]
    assert [g.role for g in of_run.graded] == roles, "the whole first"
    wording = {"whole": case.question, "part:0": part.question, "part:0:paraphrase:0": "One plus one?",
               "part:0:paraphrase:1": "The sum of 1 and 1?"}  # fmt: skip
    for shown in (of_run, of_elsewhere):
        frame = shown.to_df()
        assert dict(zip(frame.role, frame.question, strict=True)) == wording


def test_a_case_has_the_prompt_that_the_model_saw(run: RunResults) -> None:
    case = run.cases[0]
    assert case.prompt is not None and case.whole is not None and case.prompt != case.question
    seen = run.data.responses[str(case.whole.ask)].prompt_ids
    assert tuple(run.lm.tokens(case.prompt)[0].tolist()) == seen
    bare = CaseResult(case.case, None, case.graded, case.responses)
    assert bare.prompt is None, "rows without the questions"


def test_a_case_says_why_it_failed_as_soon_as_the_run_is_diagnosed(run: RunResults, tmp_path: Path) -> None:
    opened = cs.open_run(shutil.copytree(run.path, tmp_path / "run"))
    first, second = opened.failures.ids[:2]
    assert (opened.case(first).cause, opened.case(first).why) == (None, None)
    verdict = Verdict(first, "shortcut:last-item", ("<seen>",), mended_by="neutral")
    write(Diagnosis(Path(opened.path), [verdict], []))
    case = opened.case(first)
    assert (case.cause, case.why, case.verdict) == ("shortcut:last-item", verdict.why, verdict)
    assert verdict.means in verdict.why and "neutral" in verdict.why and verdict.why in case._repr_html_()
    assert opened.case(second).cause is None
    assert opened.failures.to_df().cause[0] == "shortcut:last-item"
    write(Diagnosis(Path(opened.path), [Verdict(first, "near-miss", ())], []))
    os.utime(Path(opened.path, FOLDER, "summary.json"), ns=(1, 1))
    assert opened.case(first).cause == "near-miss", "the run was diagnosed once more since"


def test_a_run_is_diagnosed_from_a_notebook_by_the_model_that_answered(
    run: RunResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(job, "diagnosed", lambda data, target, failing, *_: seen.append((target, failing)))
    opened = cs.open_run(shutil.copytree(run.path, tmp_path / "run"))
    opened.diagnose(cases=1, quiet=True)
    in_memory = cs.evaluate(run.lm, list(run.data.cases.values()), out=tmp_path / "own", quiet=True)
    in_memory.diagnose(cases=1, quiet=True)
    assert [[case.id for case in failing] for _, failing in seen] == [[run.failures.ids[0]]] * 2
    assert seen[1][0] is in_memory.target and seen[1][0].engine.model is run.lm.model
    assert seen[0][0].who == opened.data.manifest.identity["weights"]
    raw = run_config(run.data, None).replace(prompting="raw")
    assert [probing.in_memory(run.lm, None, c).prompting for c in (raw, raw.replace(prompting="chat"))] == [
        "raw",
        "chat",
    ]


def test_a_run_of_a_model_in_memory_is_opened_again_from_the_files_of_that_model(
    run: RunResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = weights.path("control")
    cs.evaluate(cs.load_model(files), list(run.data.cases.values())[:6], out=tmp_path / "own", quiet=True)
    seen: list[Any] = []
    monkeypatch.setattr(job, "diagnosed", lambda data, target, *_: seen.append(target.who))
    cs.diagnose(tmp_path / "own", quiet=True)
    again = cs.open_run(tmp_path / "own")
    again.failures.probe("min-k", quiet=True)
    assert {*seen, again.target.who} == {again.data.manifest.identity["weights"]} != {run.target.who}
    changed = cs.load_model(files)
    next(changed.model.parameters()).data[0, 0] += 1
    cs.evaluate(changed, list(run.data.cases.values())[:6], out=tmp_path / "changed", quiet=True)
    with pytest.raises(InputError, match="not the weights that answered"):
        cs.diagnose(tmp_path / "changed", quiet=True)


@pytest.mark.parametrize("quiet", [True, False])
def test_the_model_is_loaded_for_a_diagnosis_as_quietly_as_the_diagnosis_is_asked_for(
    run: RunResults, quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent: list[bool] = []
    monkeypatch.setattr(probing, "load", lambda *_: silent.append(terminal.silent()))
    monkeypatch.setattr(job, "diagnose", lambda *_, **options: options)
    opened = cs.open_run(run.path, object())
    assert opened.diagnose(quiet=quiet, cases=3) == {"target": None, "quiet": quiet, "cases": 3}
    assert silent == [quiet]


def test_one_head_is_drawn_by_its_number(run: RunResults) -> None:
    ways: list[dict[str, Any]] = [{"heads": [1]}, {"heads": 1}, {"head": 1}, {"head": np.int64(1)},
                                  {"heads": np.array([1])}, {"heads": 1, "layer": np.int64(0)}]  # fmt: skip
    drawn = [cs.plot.attention(run.lm, "7 times 8", **{"layer": 0, **way}).rows for way in ways]
    assert all(rows == drawn[0] for rows in drawn) and {row["head"] for row in drawn[0]} == {1}
    ids, site = run.lm.tokens("7 times 8"), Site(0, "pattern", head=1)
    n, looks = ids.shape[1], run.lm.run(ids, read=[site]).acts[site][0].tolist()
    assert [(r["query"], r["key"]) for r in drawn[0]] == [(q, k) for q in range(n) for k in range(q + 1)]
    assert [r["value"] for r in drawn[0]] == pytest.approx([looks[r["query"]][r["key"]] for r in drawn[0]])
    words = pieces(run.lm.tokenizer, ids[0].tolist())
    assert all((r["query_token"], r["key_token"]) == (words[r["query"]], words[r["key"]]) for r in drawn[0])
    both = cs.plot.attention(run.lm, "7 times 8", layer=0, heads=[0, 1]).rows
    assert [r for r in both if r["head"] == 1] == drawn[0] and len(both) == 2 * len(drawn[0])
    with pytest.raises(InputError, match=r"heads=\[1\]"):
        cs.plot.attention(run.lm, "7", layer=0, heads=[2], head=1)
    with pytest.raises(InputError, match=r"heads=\[\]"):
        cs.plot.attention(run.lm, "7", layer=0, heads=[])


def test_every_result_shows_itself_short_and_as_escaped_html(looked: Any, tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>"
    part = Part(f"What is {bad}?", "7", "fact", "number")
    case = Case(f"a{bad}", f"Whole {bad}?", f"{bad}", parts=(part, part), benchmark="html")
    run = cs.evaluate("organism:none", [case], out=tmp_path / "run", quiet=True)
    not_asked = replace(run.cases[0], graded=[], responses=[], asks=[])
    shown = [run, run.metrics, run.cases, run.cases[0], not_asked, run.failures, looked, looked.table]
    for thing in shown:
        assert len(repr(thing)) < 400
        html = thing._repr_html_()
        assert "<script" not in html and html.startswith("<div>")
    assert "&lt;script&gt;" in run.cases[0]._repr_html_()


def test_the_names_are_seen_and_nothing_heavy_is_loaded_for_them() -> None:
    code = (
        "import sys, composcope as cs; names = dir(cs);"
        "assert {'evaluate', 'open_run', 'plot', 'read_cases', 'load_model'} <= set(names), names;"
        "sys.exit(any(m in sys.modules for m in ('torch', 'pandas', 'xarray', 'matplotlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert "collapse_curve" in dir(cs.plot) and "attention" in dir(cs.plot)


def test_a_case_in_a_notebook_shows_its_questions_answers_and_marks() -> None:
    case = Case("c", "Whole?", "3", (Part("One?", "1", paraphrases=("First?", "Uno?")), Part("Two?", "2")))
    rows = [
        Graded("c", "whole", "incorrect", answer="4", gold="3"),
        Graded("c", "part:0", "correct", answer="1", gold="1"),
        Graded("c", "part:0:paraphrase:1", "invalid", gold="1", reason="no-answer"),
        Graded("c", "part:1", "abstained", gold="2"),
    ]
    found = CaseResult(case, "failure", rows, ["four", None, "?", "pass"])
    shown = [found._row(g, None, said) for g, said in zip(found.graded, found.responses, strict=True)]
    assert [r["question"] for r in shown] == ["Whole?", "One?", "Uno?", "Two?"]
    assert [(r["role"], r["gold"], r["answer"], r["outcome"], r["reason"], r["response"]) for r in shown][::2] == [
        ("whole", "3", "4", "incorrect", None, "four"), ("part:0:paraphrase:1", "1", None, "invalid", "no-answer", "?")
    ]  # fmt: skip
    ask = Ask("c", "whole", "...", "3", "number", question="Whole, backwards?")
    assert found._row(found.graded[0], ask, None)["question"] == "Whole, backwards?", "as it was asked"
    line = _line(found)
    assert (line["gold"], line["answer"], line["cause"]) == ("3", "4", None) and "part:0:paraphrase:1" not in line
    assert repr(found) == "<case c (failure): parts ✓ abstained, whole ✗ '4', gold '3'>"
    because = replace(found, verdict=Verdict("c", "lost", ()))
    assert repr(because).startswith("<case c (failure, lost): ")
    assert [found._of_role(role) for role in ("part:1", "part:2", "part:0:paraphrase:2", "code")] == [
        "Two?",
        *[None] * 3,
    ]
    assert [g.role for g in found.parts] == ["part:0", "part:1"], "a paraphrase is no part"
    bare = replace(found, graded=[])
    assert "whole not asked" in repr(bare) and bare.whole is None
    again = replace(found, graded=[Graded("c", "whole:cot", "correct", answer="3", gold="3"), *found.graded])
    assert again.whole is found.graded[0], "another way of asking is not the whole"
    assert replace(again, graded=again.graded[:1]).whole is None


def test_names_of_maps_and_axes_are_told_in_words() -> None:
    names = ("difference.composition", "ratio.composition.failure", "difference.math", "p.math", "other")
    tensors: dict[str, int] = dict.fromkeys(names, 0)
    assert [displayed.readable(n, tensors) for n in tensors] == [
        "failure - success", "failure", "math: failure - success", "math: p", "other"]  # fmt: skip
    assert displayed._distinct(["task", "task", "layer", "task"]) == ["task", "task 2", "layer", "task 3"]
    assert displayed._free("a", ["a", "a 2"]) == "a 3" and displayed._free("b", ["a"]) == "b"


def test_a_run_that_was_never_counted_is_not_opened(run: RunResults, tmp_path: Path) -> None:
    shutil.copytree(run.path, tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    with pytest.raises(InputError, match=r"metrics\.json"):
        cs.open_run(tmp_path / "run")


def test_errors_name_what_was_written_an_argument_in_python_and_a_flag_for_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = cs.Config(model="organism:control", benchmark="organism:none")
    with pytest.raises(InputError, match=r"^benchmark=organism:none: "):
        cs.evaluate("organism:control", "organism:none")
    with pytest.raises(InputError, match=r"^benchmark=organism:none: "):
        cs.investigate(config, tmp_path / "run")
    assert main(["evaluate", "-m", "organism:control", "-b", "organism:none", "-o", str(tmp_path / "run")]) == 1
    assert "--benchmark organism:none: " in capsys.readouterr().err
