"""Rules of a run folder's data, of what it was made with, and of the commands that show it: each with its values."""

from __future__ import annotations

import json
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
from composcope.experiments.cli import doctor
from composcope.experiments.cli.help import example
from composcope.experiments.run import provenance, reader
from composcope.experiments.run.reader import ProbeData, RunData, load, read_run
from composcope.experiments.run.schema import Evaluated, Manifest


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
    run.__dict__["metrics"] = list(metrics)
    return run


def test_metrics_are_found_by_exactly_their_groups_and_the_usual_way_of_asking() -> None:
    usual, cot, bins, both, own = (Metric("m", g, n=i) for i, g in enumerate((
        {}, {"prompt": "cot"}, {"depth": 2}, {"depth": 2, "family": "f"}, {"depth": 4, "model": "x"})))  # fmt: skip
    run = _with(usual, cot, bins, both, own, Metric("other"))
    assert run.select("m") == [usual] and run.select("m", "prompt") == [cot]
    assert run.select("m", "depth") == [bins, own] and run.select("m", "family", "depth") == [both]
    assert (run.one("m"), run.one("m", depth=4), run.one("m", depth=3), run.one("gone")) == (usual, own, None, None)
    assert _with(cot).select("m") == [cot], "where there is no other"


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
    cells = {
        "quantity": "1",
        "n": "3",
        "value": "0.5",
        "layer": "2",
        "p": "1e-3",
        "low": "",
        "note": "0.5",
        "flag": "yes",
    }
    found = {k: reader._value(k, v) for k, v in cells.items()}
    assert found == {
        "quantity": "1",
        "n": 3,
        "value": 0.5,
        "layer": 2,
        "p": 0.001,
        "low": None,
        "note": "0.5",
        "flag": "yes",
    }
    assert isinstance(found["n"], int) and isinstance(found["value"], float)


def test_a_probe_is_found_under_either_spelling_with_its_tensors_by_prefix(tmp_path: Path) -> None:
    folder = tmp_path / "probes" / "min-k"
    folder.mkdir(parents=True)
    (folder / "table.csv").write_text("quantity,kind,n,value\nq,a,3,0.5\nq,b,4,\nr,a,5,1\n")
    tensors = {"map.a": np.ones((2, 2), np.float32), "mapped": np.zeros(1, np.float32)}
    save_file(tensors, folder / "tensors.safetensors")
    run = RunData(tmp_path)
    assert run.probe("min_k") is run.probe("min-k") is run.probe("gone", "min_k") is not None
    assert run.probe("gone") is None and run.probe_names == ["min-k"]
    data = run.probe("min-k")
    assert data is not None and list(data.named("map")) == ["a"] and data.named("map")["a"].shape == (2, 2)
    assert [r["n"] for r in data.rows("q")] == [3, 4] and [r["n"] for r in data.rows("q", kind="b")] == [4]
    assert data.rows("q", kind="b")[0]["value"] is None and ProbeData("x", ()).rows("q") == []
    (folder / "tensors.safetensors").write_bytes(b"no")
    assert "cannot be read" in reader.read_probe(folder).warnings[0]


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


def test_what_a_result_was_made_with_has_no_path_in_it() -> None:
    identity = {"model": "m", "benchmark": "b", "data": "h", "protocol": "p", "seed": 3, "format": "plain"}
    manifest = Manifest(identity=identity, run="r", model={"weights": "w", "name": "/a/b", "revision": "1"},
                        versions={"torch": "2"}, numerics={"dtype": "float32"},
                        command="composcope /home/x")  # fmt: skip
    assert manifest.made_with() == {
        "run": "r", "model": {"name": "m", "weights": "w", "revision": "1"}, "data": {"benchmark": "b", "data": "h"},
        "protocol": "p", "format": "plain", "prompting": None, "seed": 3, "composcope": None,
        "versions": {"torch": "2"},
        "numerics": {"dtype": "float32"}, "engine": None}  # fmt: skip


def test_libraries_that_are_absent_are_said_to_be() -> None:
    found = provenance.libraries(("numpy", "no-such-library-of-ours"))
    assert found["numpy"] == np.__version__ and found["no-such-library-of-ours"] is None
    assert next(iter(found)) == "python"


def test_peaks_of_memory_are_the_largest_of_each_entry() -> None:
    a, b = {"rss": 5, "cuda": {"cuda:0": 3, "cuda:1": 9}}, {"rss": 4, "children": 2, "cuda": {"cuda:0": 7}}
    assert provenance.larger_peaks(a, b) == {"rss": 5, "children": 2, "cuda": {"cuda:0": 7, "cuda:1": 9}}
    assert provenance.larger_peaks(None, b) == b


def test_the_hash_of_the_source_is_of_the_code_of_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/x.py", "a/deep/y.py", "a/notes.txt", "b/z.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    first = provenance.source_hash(("a",))
    for name, changed in (("a/notes.txt", False), ("b/z.py", False), ("a/deep/y.py", True)):
        (tmp_path / name).write_text("other")
        assert (provenance.source_hash(("a",)) != first) == changed, name
    assert provenance.source_hash(("a", "b")) != provenance.source_hash(("a",))


def test_processes_below_this_one_are_found_at_any_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid, parent, peak in ((5, 1, 10), (6, 5, 20), (7, 6, 40), (8, 1, 80)):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(f"{pid} (a (b) c) S {parent} 0")
        (folder / "status").write_text(f"Name: x\nVmHWM:\t {peak * 1024} kB\n")
    monkeypatch.setattr(provenance, "_PROC", tmp_path)
    assert sorted(provenance._descendants(5)) == [6, 7] and provenance._descendants(8) == []
    assert [provenance._high_water(pid) for pid in (5, 7, 99)] == [10, 40, 0]
    monkeypatch.setattr(provenance.os, "getpid", lambda: 5)
    monkeypatch.setattr(provenance, "_devices", dict)
    monkeypatch.setattr(provenance, "_cuda", lambda: None)
    assert provenance.memory_peaks() == {"rss": 10, "children": 60}


@pytest.mark.parametrize(
    ("ok", "required", "line"),
    [(True, True, "ok  x: 1"), (False, True, "FIX x: 1  -> do it"), (False, False, "-   x: 1  -> do it")],
)
def test_a_check_of_the_machine_has_its_fix_only_where_it_fails(ok: bool, required: bool, line: str) -> None:
    row = doctor._row("x", ok, 1, "do it", required=required)
    assert doctor.check_lines([row]) == [line]


def test_little_space_is_told_with_the_folder_and_old_pythons_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for free, ok in ((1 << 30, True), ((1 << 30) - 1, False)):
        monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
        rows = doctor._disk()
        assert [r["ok"] for r in rows[:2]] == [ok, ok] and {r["required"] for r in rows} == {False}
        assert all((str(Path.cwd()) in str(r["fix"])) == (not ok) for r in rows[:1])
    for version, ok in (((3, 10), False), ((3, 11), True), ((3, 13), True), ((3, 14), False)):
        monkeypatch.setattr(doctor.sys, "version_info", version)
        assert doctor._python()[0]["ok"] == ok


def test_an_example_keeps_an_option_on_one_line_with_its_value() -> None:
    text = example("evaluate -m MODEL --benchmark organism:mixed --limit 9 --quiet RUN --out " + "x" * 60, width=60)
    assert text.startswith("\b\nExample:\n  composcope evaluate -m MODEL")
    lines = text.split("\n")[2:]
    assert all(line.endswith(" \\") for line in lines[:-1]) and lines[-1].strip() == f"--out {'x' * 60}"
    assert " ".join(line.strip(" \\") for line in lines).startswith(
        "composcope evaluate -m MODEL --benchmark organism:mixed"
    )


def test_wrong_fields_are_told_with_their_place_and_kind() -> None:
    wrong: list[tuple[Any, str]] = [
        ({"identity": {}, "n_cases": "x"}, "field 'n_cases' is 'x', not a whole number"),
        ({}, "field 'identity' is missing"),
        ({"identity": []}, "field 'identity' is [], not an object"),
        ({"identity": {}, "timings": {"a": "b"}}, "timings: field 'a' is 'b', not a number"),
    ]
    for document, said in wrong:
        with pytest.raises(InputError) as error:
            reader.checked(Manifest, document, "m.json", "mend it")
        assert str(error.value) == f"m.json: {said}; mend it"


def test_the_command_is_quoted_so_that_it_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    from composcope.experiments.run.folder import command_line

    monkeypatch.setattr("sys.argv", ["/x/__main__.py", "run", "--data", "my cases.csv"])
    assert command_line() == "composcope run --data 'my cases.csv'"


def test_a_failing_case_is_told_by_its_first_wrong_answer() -> None:
    from composcope.evaluation.protocols.base import Evidence
    from composcope.experiments.run.summary import entry_line

    found = (Evidence("hop", "correct", "a", "a"), Evidence("whole", "incorrect", "euro", "krone"),
             Evidence("press", "incorrect", "yen", "won"))  # fmt: skip
    assert entry_line(Entry("oslo", found)) == "oslo: answered 'euro', right is 'krone'"


@pytest.mark.parametrize("n, wanted", [(1, "2"), (2, None), (3, "2")])
def test_a_study_takes_as_many_runs_as_it_says(n: int, wanted: str | None) -> None:
    from composcope.experiments.analyzing import _runs

    sources: Any = [object()] * n
    if wanted is None:
        assert _runs(2, 2)("s", sources) is sources
    else:
        with pytest.raises(InputError, match=f"{n} runs; give {wanted}"):
            _runs(2, 2)("s", sources)


def test_worked_examples_that_a_run_kept_are_not_read_again() -> None:
    from composcope.experiments.config import Asking
    from composcope.experiments.evaluating.ask_plan import with_examples

    asking = Asking(few_shot="gone.jsonl", exemplars=({"question": "q", "answer": "a"},))
    assert with_examples(asking, []) is asking


def test_a_port_beyond_the_last_is_an_input_error() -> None:
    from composcope.experiments.report.view import listen

    with pytest.raises(InputError, match="--port 99999"):
        listen(99999)
