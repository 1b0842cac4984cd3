"""A run folder as data: metrics by their groups, tables, probes, what a run says of itself, and wrong fields."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from composcope.errors import InputError
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.evaluation.protocols.base import CaseSet, Entry, Reduction
from composcope.experiments.figures import FIGURES
from composcope.experiments.report.sections import matching_notes
from composcope.experiments.run import reader, write_json
from composcope.experiments.run.folder import MEASURED, probed_cases
from composcope.experiments.run.reader import ProbeData, RunData, load, read_run
from composcope.experiments.run.schema import Answerer, Evaluated, Manifest, Metrics
from composcope.experiments.run.single_cases import read_single_cases
from composcope.probes import examples

from ..bare_runs import bare_run


@pytest.fixture(scope="module")
def made(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.make_run(tmp_path_factory.mktemp("runs") / "run", n=6, probes=("min-k",))


def test_a_folder_that_is_no_run_is_refused_and_a_run_is_known_by_its_whole_path(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"manifest\.json"):
        read_run(tmp_path)
    monkeypatch.chdir(made)
    assert (read_run(".").path, read_run(".").name) == (made.resolve(), "run")
    (found,) = load([".", made, read_run(made)])
    assert found.path == made.resolve(), "each run once"
    with pytest.raises(InputError, match="no run folder given"):
        load([])


def _with(*metrics: Metric) -> RunData:
    run = RunData(Path("r"))
    run.__dict__["counted"] = SimpleNamespace(metrics=metrics)
    return run


def test_metrics_are_found_by_exactly_their_groups_and_the_usual_way_of_asking() -> None:
    usual, cot, bins, both, own = (Metric("m", g, n=i) for i, g in enumerate((
        {}, {"prompt": "cot"}, {"depth": 2}, {"depth": 2, "family": "f"}, {"depth": 4, "model": "x"})))  # fmt: skip
    run = _with(usual, cot, bins, both, own, Metric("other"))
    assert run.select("m") == [usual] and run.select("m", "prompt") == [cot]
    assert run.select("m", "depth") == [bins, own] and run.select("m", "family", "depth") == [both]
    assert (run.one("m"), run.one("m", depth=4), run.one("m", depth=3), run.one("gone")) == (usual, own, None, None)
    assert (run.one("m", depth=2, family="f"), run.one("m", depth=2, family="g")) == (both, None)
    assert _with(cot).select("m") == [cot], "where there is no other"
    shared = Metric("m", interval="exact", low=0.1, high=0.9, cluster_n=2, cluster_interval="t", cluster_low=0.2)
    (quoted,) = _with(shared).metrics
    assert (quoted.interval, quoted.low, quoted.high) == ("t", 0.2, None), "of cases that share facts"


def test_chance_is_the_mean_over_the_cases_that_state_one() -> None:
    run = RunData(Path("r"))
    run.__dict__["cases"] = {str(i): SimpleNamespace(chance=c) for i, c in enumerate((0.1, None, 0.4))}
    assert run.chance == pytest.approx(0.25)
    run.__dict__["cases"] = {"a": SimpleNamespace(chance=None)}
    assert run.chance is None


def test_a_study_tells_of_the_runs_that_it_names_only(made: Path, tmp_path: Path, synthetic: ModuleType) -> None:
    for name in ("a", "b"):
        synthetic.make_run(tmp_path / name, n=2, probes=(), model="organism:twin")
    about = {"a": {"label": "large", "size": 7}, "b": {"label": "small"}}
    (tmp_path / "study.json").write_text(json.dumps({"schema": 1, "runs": ["a"], "about": about}))
    first, second = (RunData(tmp_path / name) for name in "ab")
    assert (first.model, first.about["size"], second.about, second.model) == ("large", 7, {}, "twin (50 %)")


def test_numbers_of_a_table_are_numbers_and_words_stay_words() -> None:
    cells = {"quantity": "1", "n": "3", "value": "0.5", "layer": "2", "p": "1e-3", "low": "", "note": "0.5"}
    found = {k: reader._value(k, v) for k, v in {**cells, "flag": "yes"}.items()}
    assert found == {**cells, "n": 3, "value": 0.5, "layer": 2, "p": 0.001, "low": None, "flag": "yes"}
    assert isinstance(found["n"], int) and isinstance(found["value"], float)


def test_a_probe_is_found_under_either_spelling_with_its_tensors_by_prefix(tmp_path: Path) -> None:
    folder = tmp_path / "probes" / "min-k"
    folder.mkdir(parents=True)
    (folder / "table.csv").write_text("quantity,kind,n,value\nq,a,3,0.5\nq,b,4,\nr,a,5,1\n")
    tensors = {"map.a": np.ones((2, 2), np.float32), "mapped": np.zeros(1, np.float32)}
    save_file(tensors, folder / "tensors.safetensors")
    (tmp_path / "probes" / MEASURED).mkdir()
    run = RunData(tmp_path)
    assert run.probe("min_k") is run.probe("min-k") is not None
    assert run.probe("gone") is None and run.probe_names == ["min-k"]
    data = run.probe("min-k")
    assert data is not None and list(data.named("map")) == ["a"] and data.named("map")["a"].shape == (2, 2)
    assert [r["n"] for r in data.rows("q")] == [3, 4] and [r["n"] for r in data.rows("q", kind="b")] == [4]
    assert data.rows("q", kind="b")[0]["value"] is None and ProbeData("x", ()).rows("q") == []
    (folder / "tensors.safetensors").write_bytes(b"no")
    (folder / "result.json").write_text('{"schema": 1, "probe": "min-k", "warnings": ["few cases"]}')
    said = reader.read_probe(folder).warnings
    assert said[0] == "few cases" and "cannot be read" in said[1] and len(said) == 2


def test_graded_rows_of_one_ask_are_an_entry_for_each_case_and_reasons_are_counted() -> None:
    ask, said = Ask("a", "part:0", "q", "g", "text"), Response("k", "t", "stop", 1, 1)
    make: Any = Graded
    rows: list[Graded] = [make(c, r, o, ask=k, reason=why) for c, r, o, k, why in (
        ("a", "part:0", "correct", "k", None), ("b", "part:1", "invalid", "k", "no-answer"),
        ("b", "whole", "invalid", "gone", None),
        ("c", "whole", "invalid", None, "no-answer"))]  # fmt: skip
    sets = (CaseSet("x", "failure", (Entry("a", ()), Entry("b", ()))), CaseSet("y", "failure", (Entry("c", ()),)))
    found = Evaluated({}, {"k": ask}, {"k": said}, rows, Reduction((), sets, ()))
    asks, responses = found.per_case()
    assert [(a.case, a.role) for a in asks.values()] == [("a", "part:0"), ("b", "part:1")] and set(responses) == set(
        asks
    )
    assert found.n_invalid == 3 and found.ids("failure") == {"a", "b", "c"} and found.ids("success") == set()
    assert found.invalid_lines() == [
        "2 of 4 answers are invalid: no-answer (first: case 'b', role 'part:1')",
        "1 of 4 answers are invalid: unknown (first: case 'b', role 'whole')",
    ]
    many = [replace(rows[0], outcome="invalid", reason=reason) for reason in ("a", "a", "b", "b", "c", "c", "d", "e")]
    lines = replace(found, graded=many).invalid_lines()
    assert len(lines) == 4 and sum(int(line.split()[0]) for line in lines) == len(many), "none is left out in silence"


def test_probes_get_the_sets_and_roles_that_they_ask_for_and_those_of_the_run_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask, said = Ask("a", "whole", "q", "g", "text"), Response("k", "t", "stop", 1, 1)
    own, other = (CaseSet(name, name, (Entry("a", ()),)) for name in ("failure", "success"))
    cases: Any = {"a": "case"}
    found = Evaluated(cases, {"k": ask}, {"k": said}, [Graded("a", "whole", "correct", ask="k")], Reduction((), (own,)))
    monkeypatch.setattr(examples, "from_case_sets", lambda *given: given)
    asked: Any = (((), (own,), None), (([other], ["whole"]), [other], ["whole"]))
    for given, sets, roles in asked:
        got: Any = found.examples("tokenizer", *given)
        assert got == ("tokenizer", cases, {"k/a/whole": ask}, {"k/a/whole": said}, sets, roles)


def test_the_cases_of_a_probe_are_its_own_and_those_chosen_last_where_it_names_none(tmp_path: Path) -> None:
    assert probed_cases(tmp_path) == {} == probed_cases(tmp_path, "lookback")
    last, own = ({"note": note, "contrast": True, "groups": {"failure": [note]}} for note in ("last", "own"))
    write_json(tmp_path / "probes" / "examples.json", last)
    write_json(tmp_path / "probes" / "lookback" / "inputs.json", own)
    write_json(tmp_path / "probes" / "min-k" / "inputs.json", {"inputs": "of an older version"})
    names = ("lookback", "min-k", "neurons", "")
    assert [probed_cases(tmp_path, name)["note"] for name in names] == ["own", "last", "last", "last"]
    write_json(tmp_path / "probes" / "neurons" / "inputs.json", {"groups": {"failure": 3}})
    with pytest.raises(InputError, match=r"neurons/inputs\.json: groups: field 'failure' is 3, not a list"):
        probed_cases(tmp_path, "neurons")
    (tmp_path / "probes" / "neurons" / "inputs.json").unlink()
    write_json(tmp_path / "probes" / "lookback" / "cases" / "index.json", {"entries": [3]})
    with pytest.raises(InputError, match=r"cases/index\.json: entries: field 0 is 3, not an object"):
        read_single_cases(tmp_path, "lookback")
    run = bare_run(path=tmp_path, probe_names=["lookback", "min-k", "neurons"])
    assert matching_notes([run]) == ["m (lookback): own", "m (min-k, neurons): last"]
    run.probe_names = ["min-k", "neurons"]
    assert matching_notes([run]) == ["m: last"]


def test_an_answer_that_came_later_stands_in_place_of_the_failure_before(tmp_path: Path) -> None:
    failed, again, answered = (Response(k, k, "stop", 1, 1) for k in ("failed", "again", "answered"))
    journal = SimpleNamespace(failures={"a": failed, "b": failed}, responses={"b": again, "c": answered})
    (run := RunData(tmp_path)).__dict__["journal"] = journal
    assert run.responses == {"a": failed, "b": again, "c": answered}


def test_runs_of_a_study_stand_in_its_order_and_others_behind_them_as_they_were_made(
    tmp_path: Path, synthetic: ModuleType
) -> None:
    for name, made in (("a", "3"), ("b", "1"), ("c", "2"), ("d", "4")):
        file = synthetic.make_run(tmp_path / name, n=2, probes=()) / "manifest.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "created": made}))
    assert [r.name for r in load([tmp_path])] == ["b", "c", "a", "d"]
    (tmp_path / "study.json").write_text(json.dumps({"schema": 1, "runs": ["d", "a"]}))
    assert [r.name for r in load([tmp_path])] == ["d", "a", "b", "c"]


def test_what_a_result_was_made_with_has_no_path_in_it() -> None:
    identity = {"model": "m", "benchmark": "b", "data": "h", "protocol": "p", "seed": 3, "format": "plain"}
    manifest = Manifest(identity=identity, run="r", model={"weights": "w", "name": "/a/b", "revision": "1"},
                        versions={"torch": "2"}, numerics={"dtype": "float32"}, command="composcope /home/x",
                        engine=Answerer(identity={"model": "m"}, provenance={"engine": "vllm"}))  # fmt: skip
    assert manifest.made_with() == {
        "run": "r", "model": {"name": "m", "weights": "w", "revision": "1"}, "data": {"benchmark": "b", "data": "h"},
        "protocol": "p", "format": "plain", "prompting": None, "seed": 3, "composcope": None,
        "versions": {"torch": "2"},
        "numerics": {"dtype": "float32"}, "engine": {"engine": "vllm"}}  # fmt: skip


def test_wrong_fields_are_told_with_their_place_and_kind() -> None:
    wrong: list[tuple[Any, str]] = [
        ({"identity": {}, "n_cases": "x"}, "field 'n_cases' is 'x', not a whole number"),
        ({}, "field 'identity' is missing"),
        ({"identity": []}, "field 'identity' is [], not an object"),
        ({"identity": {}, "invocations": 3}, "field 'invocations' is 3, not a list"),
        ({"identity": {}, "timings": {"a": "b"}}, "timings: field 'a' is 'b', not a number"),
    ]
    for document, said in wrong:
        with pytest.raises(InputError) as error:
            reader.checked(Manifest, document, "m.json", "mend it")
        assert str(error.value) == f"m.json: {said}; mend it"
    row = Metric("gap", n=3).to_dict()
    rows: list[Any] = [row, {**row, "n": "x" * 70}]
    with pytest.raises(InputError) as error:
        reader.checked(Metrics, {"protocol": "p", "metrics": rows, "warnings": []}, "m.json", "mend it")
    assert str(error.value).startswith(f"m.json: metrics[1]: field 'n' is '{'x' * 59}..., not a whole number")


def test_runs_of_two_studies_with_one_name_are_told_apart_wherever_they_are_named(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    gap = synthetic.make_run(tmp_path / "gap" / "control", n=12, probes=(), protocol="compositionality-gap")
    gate = synthetic.make_run(tmp_path / "gate" / "control", n=12, probes=())
    alone = synthetic.make_run(tmp_path / "gate" / "low", n=12, probes=(), model="organism:low")
    runs = load([tmp_path / "gap", tmp_path / "gate"])
    assert [r.name for r in runs] == ["gap/control", "gate/control", "low"]
    assert {r["run"] for r in FIGURES["collapse-curve"](runs).rows} == {"gate/control", "low"}, "not those of the gap"
    assert load(runs) == runs and all(a is b for a, b in zip(load(runs), runs, strict=True)), "what is open stays open"
    assert [r.name for r in load([gate, alone])] == ["control", "low"]
    for copy in ("x", "y"):  # studies of one name, too
        shutil.copytree(gap.parent, tmp_path / copy / "gap")
    folders = [tmp_path / copy / "gap" / "control" for copy in ("x", "y")]
    assert [r.name for r in load(folders)] == list(map(str, folders))
    study = {"schema": 1, "runs": ["control", "low"], "about": {"control": {"label": "mine", "size": 7}}}
    (tmp_path / "gate" / "study.json").write_text(json.dumps(study))
    other, named, _ = load([gap, tmp_path / "gate"])
    assert (
        named.study and (named.name, named.model, named.about["size"]) == ("gate/control", "mine", 7) != other.about
    ), "a study knows its runs by their folders"
