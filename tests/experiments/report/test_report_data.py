"""The data behind the views: checks, two runs compared, JSON of a page, and when a page is written anew."""

from __future__ import annotations

import html
import itertools
import json
import math
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.experiments.report import comparison, landing, pictures, sections, view
from composcope.experiments.report.sections import number_text
from composcope.experiments.run.compare import compare_runs, differing_settings
from composcope.experiments.run.reader import ProbeData, RunData, load
from composcope.experiments.run.schema import Manifest
from composcope.files import finite
from composcope.probes.catalog import PROBES
from composcope.probes.verdicts import MATCHED
from composcope.terminal import no_bar

from ..bare_runs import bare_run, spaced


def test_a_check_is_of_its_probe_whatever_the_quantity_and_says_what_speaks_against_it() -> None:
    verdicts = ("yes", "explained by the length", "yes, reversed", "no", "cannot say")
    assert [sections.check({"verdict": v})["kind"] for v in verdicts] == ["yes", "reversed", "reversed", "no", "open"]
    assert [sections.check({"low": 0.1, "high": high})["interval"] for high in (0.2, None)] == ["[0.1, 0.2]", ""]
    assert [sections.about(name, "min_k") for name in ("min-k", "min_k:0.2", "min-k.x", "min")] == [True] * 3 + [False]


def test_a_runs_own_controls_are_its_evidence(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.make_run(tmp_path / "run", n=4, probes=("neurons", "lookback"))
    rows = [{"quantity": "unchanged_rate", "group": "identity", "layer": i, "n": 16, "value": v, "low": 0.8,
             "high": 1.0, "interval": "clopper-pearson"} for i, v in enumerate((1.0, 0.75))]  # fmt: skip
    rows.append({"quantity": "kl_from_donor", "group": "positive", "layer": 0, "n": 4, "value": 1e-7, "low": 0.0,
                 "high": 1e-6, "interval": "t"})  # fmt: skip
    synthetic.write_probe(folder / "probes" / "patching", "patching", rows, {}, {})
    runs = load([folder])
    identity, positive = sections.own_checks(runs, PROBES["patching"])
    other = synthetic.make_run(tmp_path / "other", n=4, probes=(), model="organism:twin")
    synthetic.write_probe(other / "probes" / "patching", "patching", rows[:1], {}, {})
    checked = sections.own_checks(load([folder, other]), PROBES["patching"])
    assert [(c["model"][:4], c["answer"]) for c in checked] == [("cont", "no"), ("cont", "yes"), ("twin", "yes")]
    assert (identity["answer"], identity["value"], positive["answer"]) == ("no", "0.75", "yes")
    rows.append({**rows[-1], "layer": 1, "value": 0.5})
    unknown: Any = [{**r, "layer": 2, "value": None} for r in rows]
    shutil.rmtree(folder / "probes" / "patching")
    synthetic.write_probe(folder / "probes" / "patching", "patching", [*unknown, *rows], {}, {})
    assert [c["answer"] for c in sections.own_checks(load([folder]), PROBES["patching"])] == ["no", "no"]
    flips = [{"quantity": "flip_rate", "group": "positive", "layer": i, "n": 4, "value": v, "low": 0.0, "high": 0.7,
              "interval": "clopper-pearson"} for i, v in enumerate((0.0, 0.25))]  # fmt: skip
    for share, trusted in ((0.25, "partly"), (0.75, "yes")):
        shutil.rmtree(folder / "probes" / "patching")
        flips[1]["value"] = share
        kept = [{**r, "value": 1.0} if r["group"] == "identity" else r for r in rows[:3]]
        synthetic.write_probe(folder / "probes" / "patching", "patching", [*kept, *flips], {}, {})
        found = sections.own_checks(load([folder]), PROBES["patching"])
        assert [c["kind"] for c in found] == ["yes", "yes", "yes" if trusted == "yes" else "open"]
        badge = landing._trust(found)  # what was checked, and that the whole answer was not
        assert badge.startswith(f"{trusted}: ") and "next token" in badge
        assert badge.endswith("cannot say (whole answer)") == (trusted == "partly")
    neurons = sections.own_checks(runs, PROBES["neurons"])
    assert len(neurons) == 6 and {n["answer"] for n in neurons} == {"yes"}
    answer = sections.check({
        "probe": "neurons", "question": "q", "model": "m", "quantity": "x: more", "statement": "s", "n": 7, "count": 3,
        "verdict": "yes", "measure": "AUROC", "value": 0.25, "low": 0.1, "high": 0.5, "interval": "t", "about": "a",
    })  # fmt: skip
    assert answer == {
        "probe": "neurons", "question": "q", "model": "m", "quantity": "x", "statement": "s", "n": 7, "answer": "yes",
        "kind": "yes", "measure": "AUROC", "value": "0.25", "interval": "[0.1, 0.5]", "method": "t", "headline": True,
        "about": "a",
    }  # fmt: skip
    assert sections.tests_of([answer], runs, PROBES["neurons"]) == [answer, *neurons]
    assert sections.own_checks(runs, PROBES["lookback"]) == [] and PROBES["lookback"].unchecked
    answers = [{"probe": p} for p in ("min-k", "min_k:twin", "min-k.own", "lookback", "min")]
    assert sections.tests_of(answers, [], PROBES["min-k"]) == answers[:3]


def test_a_page_depends_on_what_it_shows_of_a_run_and_not_on_journal_log_or_pictures(tmp_path: Path) -> None:
    shown = ["graded.jsonl", "casesets/a.jsonl", "probes/neurons/table.csv"]
    for name in (*shown, "log.txt", ".lock", "journal/a.jsonl", "figures/a.png", "probes/.measured/a", "report.html"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert sorted(str(p.relative_to(tmp_path)) for p in view._files(tmp_path)) == sorted(shown)
    known = [path for path, _, _ in view._state([tmp_path / "gone", tmp_path / "log.txt", tmp_path / "study.json"])]
    assert known == [str(tmp_path / "log.txt")]


def test_an_error_is_said_once_until_a_page_was_written_and_the_page_before_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    results = iter([InputError("a"), InputError("a"), False, InputError("a"), InputError("b"), True])
    pages = view.Pages([], tmp_path, said.append)

    def refresh() -> bool:
        if isinstance(found := next(results), InputError):
            raise found
        return bool(found)

    monkeypatch.setattr(pages, "refresh", refresh)
    waits = iter([False] * 6 + [True])
    pages.keep_fresh(SimpleNamespace(wait=lambda _: next(waits)))  # type: ignore[arg-type]
    assert [line.rpartition(": ")[2] for line in said] == ["a", "a", "b", "0 runs"]

    monkeypatch.undo()
    monkeypatch.setattr(view, "write", lambda _, folder, **__: folder.mkdir())
    states = itertools.count()
    for name in ("_state", "_read"):
        monkeypatch.setattr(pages, name, lambda: [SimpleNamespace(path=str(next(states)))])
    assert all(pages.refresh() for _ in range(3)) and sorted(p.name for p in tmp_path.iterdir()) == ["2", "3"]


def test_the_share_of_an_export_is_what_was_counted_of_all_of_it() -> None:
    page: Any = SimpleNamespace(progress=no_bar, exported=None)
    with view.Pages._counted(page, "drawing", 4) as advance:
        seen = [page.exported]
        for n in (1, 2, 5):
            advance(n)
            seen.append(page.exported)
    assert seen == [0, 0.25, 0.75, 1]


def test_two_runs_are_compared_in_their_own_numbers(synthetic: ModuleType) -> None:
    both, one = synthetic.rate("composition", 30, 40), synthetic.rate("press_gap", 5, 40, family="a: b", depth=2)
    found = comparison._metrics(
        {"a": {"metrics": [both, one]}, "b": {"metrics": [{**both, "count": 10, "value": 0.25}]}}
    )
    assert [r["name"] for r in found] == ["composition", "press_gap family a: b depth 2"]
    assert "75.0 %" in found[0]["a"] and "n=40" in found[0]["a"] and "25.0 %" in found[0]["b"]
    assert "75.0 %" not in found[0]["b"] and found[1]["b"] == "not measured" and found[1]["a"].startswith("12.5 %")
    channel = {"metric": "delta_comp", "group": {"per": "fact", "depth_bin": 4}, "n": 9, "interval": "t", "note": None}
    found_channel = comparison._channel({**channel, "value": -0.25, "low": -0.5, "high": None})
    assert (found_channel["where"], found_channel["value"], found_channel["span"]) == ("depth_bin 4", "−25.0", "")
    steps = comparison._channel({**channel, "metric": "delta_depth", "value": -0.049, "low": -1.0, "high": 2.0})
    assert (steps["value"], steps["span"], steps["unit"]) == ("−0.05", "[−1.00, +2.00]", "steps"), "as depths are shown"
    assert [comparison._p(p) for p in (None, 0.0004, 0.004, 0.5)] == ["undefined", "< 0.001", "0.004", "0.5"]


def test_the_page_of_two_runs_has_their_numbers_side_by_side_and_the_cases_that_are_not_the_same(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    a = synthetic.make_run(tmp_path / "a", n=12, failure=0.9, seed=1, probes=())
    b = synthetic.make_run(tmp_path / "b", model="organism:twin", n=8, failure=0.2, seed=2, probes=())
    cases = [json.loads(line) for line in (b / "cases.jsonl").read_text().splitlines()]
    cases[3]["question"] = "Quite another question?"
    cases[4]["parts"][1]["question"] = "Another part?"
    (b / "cases.jsonl").write_text("".join(json.dumps(c) + "\n" for c in cases))
    old = tmp_path / "out" / "data" / "compared" / "old.js"
    old.parent.mkdir(parents=True)
    old.write_text(pictures.script("old", {}))
    (own := old.with_name("own.csv")).write_text("mine")
    counted, graded = b / "metrics.json", (b / "graded.jsonl").read_text().splitlines()
    counted.write_text(json.dumps({**json.loads(counted.read_text()), "warnings": ["(--compat agentcoma)"]}))
    changed: dict[int, Any] = {1: {"outcome": "invalid"}, 2: {"outcome": "abstained", "unknowable": True}}
    rows = [json.loads(line) | changed.get(i, {}) for i, line in enumerate(graded)]
    again = {**rows[0], "repeat": 1, "outcome": "invalid"}  # the list shows the first answer
    (b / "graded.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (*rows, again)))
    page = comparison.write_comparison(a, b, tmp_path / "out")
    assert own.read_text() == "mine"
    said, found = spaced(page.read_text(encoding="utf-8")), compare_runs(a, b)
    index = (old.parent / "index.js").read_text(encoding="utf-8")
    assert not old.exists() and f'"changed":["{cases[3]["id"]}"]' in index.replace(": ", ":")
    (apart,) = re.findall(rf'"{cases[4]["id"]}": ?\[([^]]*)\]', index)
    assert {re.sub(":paraphrase:.*", "", role) for role in json.loads(f"[{apart}]")} == {"part:1"}, "only this part"
    counted_so: dict[str, Any] = {}
    for row in rows:
        if row["outcome"] == "invalid" or row.get("unknowable"):
            counted_so.setdefault(row["case"], {})[row["role"]] = bool(row.get("unknowable"))
    assert json.loads(re.findall(r'"counted": ?(\[.*?\}\}\])', index)[0]) == [{}, counted_so]
    first, second = (re.search(rf">{side}</span> <span[^>]*>([^<]*)<", said) for side in "AB")
    assert first and second and [first[1], second[1]] == [load([r])[0].model for r in (a, b)]
    assert f"{len(cases) - 1} cases are the same in both runs (A has 12, B {len(cases)})" in said
    with pytest.MonkeyPatch.context() as patched:  # nothing is compared twice
        patched.setattr(comparison, "compare_runs", lambda *_: pytest.fail("compared again"))
        assert spaced(comparison.write_comparison(a, b, tmp_path / "again", found).read_text(encoding="utf-8")) == said
    for m in comparison._metrics(found):
        cells = [spaced(html.escape(m[k], quote=False)) for k in ("name", "a", "b")]
        assert '<th scope="row">{}</th><td dir="auto">{}</td><td dir="auto">{}</td>'.format(*cells) in said
    assert said.index(">A: a <") < said.index(">B: b <") and "Not compared, of all asks" in said


def test_a_comparison_does_not_replace_a_page_of_another_program(synthetic: ModuleType, tmp_path: Path) -> None:
    a, b = (synthetic.make_run(tmp_path / name, n=4, probes=(), seed=i) for i, name in enumerate("ab"))
    (page := tmp_path / "compare.html").write_text("<h1>My thesis</h1>")
    with pytest.raises(InputError, match=r"compare\.html"):
        comparison.write_comparison(a, b, tmp_path)
    assert page.read_text() == "<h1>My thesis</h1>"


def test_settings_that_differ_are_named_and_the_model_is_none_of_them() -> None:
    def run(**identity: Any) -> Any:
        return SimpleNamespace(manifest=SimpleNamespace(identity=identity), config=None, counted=None)

    a, b = (
        run(model="a", weights="1", seed=0, format="cot"),
        run(model="b", weights="2", seed=1, format="cot", k="x" * 41, name="y" * 40),
    )
    assert differing_settings(a, b) == [
        ("seed", "0", "1"), ("k", "not stated", "x" * 39 + "…"), ("name", "not stated", "y" * 40),
    ]  # fmt: skip


def test_a_table_of_validity_counts_its_headline_answers_by_probe_and_question() -> None:
    rows = [sections.check({"probe": p, "quantity": "q:0.2", "question": q, "model": m, "verdict": v, "headline": h})
            for p, q, m, v, h in (("a", "x", "", "yes", True), ("a", "y", "m", "no", True), ("b", "x", "", "yes", True),
                                  ("b", "y", "m", "cannot say", True), ("c", "x", "", "no", False))]  # fmt: skip
    found = sections.matrix(rows)
    assert (found["n"], found["said"]) == (4, "2 yes, 1 no, 1 undecided")
    assert [(c["question"], c["model"]) for c in found["columns"]] == [("x", ""), ("y", "m")]
    assert [(one["probe"], one["quantity"], [c and c["answer"] for c in one["cells"]]) for one in found["lines"]] == [
        ("a", "q", ["yes", "no"]), ("b", "q", ["yes", "cannot say"])]  # fmt: skip
    told = [{"kind": "yes", "about": "t"}, {"kind": "no"}, {"kind": "yes", "about": "t"}, {"kind": "reversed"}]
    assert sections.counted(told, "yes") == (2, " (t)") and sections.counted(told, *sections.FAILS) == (2, "")


def test_json_of_a_page_has_null_for_what_is_not_finite_and_keeps_everything_else() -> None:
    value = {"a": [math.nan, math.inf, 1.5], 2: np.float32(0.5), "s": {1}}
    value["t"] = (np.array([1, np.nan]), Path("x"), None)  # type: ignore[assignment]
    found = finite(value)
    assert found == {"a": [None, None, 1.5], "2": 0.5, "s": [1], "t": [[1.0, None], Path("x"), None]}
    assert json.loads(pictures._json(value)) == {**found, "t": [[1.0, None], "x", None]}
    assert json.loads(pictures._json({"plain": [1, "ü", True, None]})) == {"plain": [1, "ü", True, None]}


def test_a_live_page_keeps_the_one_before_and_is_written_only_when_a_file_changed(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=2, probes=())
    written: list[tuple[list[str], bool]] = []

    def page(runs: Sequence[RunData], folder: Path, *, live: bool, progress: Any) -> None:
        written.append(([r.name for r in runs], live))
        folder.mkdir(parents=True)

    monkeypatch.setattr(view, "write", page)
    pages = view.Pages([run], tmp_path / "pages", lambda _: None)
    assert [pages.refresh(), pages.refresh()] == [True, False]
    for i in range(3):
        (run / "log.txt").write_text(str(i))  # no part of the page
        assert not pages.refresh()
        (run / "metrics.json").write_text((run / "metrics.json").read_text() + " ")
        assert pages.refresh()
    assert pages.number == 4 and written == [(["run"], True)] * 4
    assert sorted(p.name for p in (tmp_path / "pages").iterdir()) == ["3", "4"]
    drawn: list[tuple[str, str]] = []

    def figure(name: str, runs: Sequence[RunData], out: Path) -> None:
        drawn.append((name, out.name))
        (out / "data" / f"figure-{name}.js").write_text("")

    monkeypatch.setattr(view, "write_figure_data", figure)
    for number in (3, 4):
        (tmp_path / "pages" / str(number) / "data").mkdir()
        for name in ("outcomes", "outcomes", "../x", "no-figure"):
            pages.draw(number, name)
    pages.draw(1, "outcomes")
    assert drawn == [("outcomes", "3"), ("outcomes", "4")]
    (tmp_path / "validity.json").write_text("{}")  # of the run's study
    assert [pages.refresh(), pages.refresh()] == [True, False]
    synthetic.make_run(tmp_path / "other" / "y", n=2, probes=())
    pages = view.Pages([run, tmp_path / "other"], tmp_path / "more", lambda _: None)
    assert pages.refresh()
    synthetic.make_run(tmp_path / "other" / "run", n=2, probes=())
    assert pages.refresh() and [r.name for r in pages._loaded[2]] == [f"{tmp_path.name}/run", "other/run", "y"]


@pytest.mark.parametrize("name", ["outcomes", "my_Figure", "eine Übersicht"])
def test_a_figure_of_any_name_is_drawn_when_a_page_asks_for_it(name: str, tmp_path: Path) -> None:
    def draw(number: int, asked: str) -> None:
        (tmp_path / str(number) / "data").mkdir(parents=True)
        (tmp_path / str(number) / "data" / f"figure-{asked}.js").write_text(asked)

    pages: Any = SimpleNamespace(number=1, folder=tmp_path, draw=draw)
    client = pytest.importorskip("starlette.testclient").TestClient(view.application(pages), "http://127.0.0.1")
    assert client.get(f"/1/data/figure-{name}.js").text == name


def test_a_comparison_leaves_out_what_it_counts_and_shows_each_side_in_its_own_place() -> None:
    found = {"left_out_invalid": 2, "changed": 0, "only_a": 3, "only_b": 4}
    assert comparison._left_out(found) == (
        "Not compared, of all asks: 2 could not be judged in A or B, 3 were asked only in A, 4 were asked only in B."
    )
    assert comparison._left_out(dict.fromkeys(found, 0)) == "Every ask was judged in both runs."
    row = {"role": "whole", "n": 40, "a": 0.5, "b": 0.25, "difference": 0.25, "low": -0.05, "high": 0.5,
           "interval": "t", "a_only": 12, "b_only": 2, "p": 0.0004, "p_adjusted": 0.03, "test": "mcnemar",
           "note": None}  # fmt: skip
    shown = {k: spaced(str(v)) for k, v in comparison._role(row).items()}
    assert shown == {"role": "whole", "n": "40", "a": "50.0 %", "b": "25.0 %", "difference": "+25.0 [−5.0, +50.0]",
                     "method": "t", "a_only": "12", "b_only": "2", "p": "< 0.001", "p_adjusted": "0.03",
                     "test": "mcnemar", "note": ""}  # fmt: skip
    said = spaced(comparison.lead({"roles": [{**row, "role": "part"}, row]}, ["x", "y"]))
    assert said == (
        "Of 40 wholes judged in both, A (“x”) has 50.0 % right and B (“y”) 25.0 %: a difference of +25.0 "
        "[−5.0, +50.0] points. They disagree on 14: 12 only A has right, 2 only B (mcnemar: p < 0.001)."
    )
    parts, nothing = (comparison.lead({"roles": some}, ["a", "b"]) for some in ([{**row, "role": "part:0"}], []))
    assert [said.startswith("No whole was judged") for said in (parts, nothing)] == [True, True]
    assert "parts are compared" in parts and "parts are compared" not in nothing
    assert spaced(comparison._role({**row, "low": None, "difference": -0.25})["difference"]).strip() == "−25.0"
    both = {"metric": "composition", "group": {"depth": 2}, "n": 4, "count": 2, "value": 0.5}
    sides = {"a": {"metrics": [both]}, "b": {"metrics": [{**both, "group": {}}]}}
    lines = comparison._metrics(sides)
    assert [(r["name"], r["a"] == "not measured", r["b"] == "not measured") for r in lines] == [
        ("composition depth 2", False, True), ("composition", True, False)]  # fmt: skip


# --- sections of probes: their tables, notes, columns and tensors ---------------------------------------------------


def test_tables_of_probes_have_contrasts_only_a_value_with_its_interval_and_the_number_of_all() -> None:
    rows = [{"quantity": f"q{i}", "group": MATCHED, "n": i, "value": 0.5, "low": 0.25, "high": 0.75, "effect": 0.1,
             "p_adjusted": 0.5} for i in range(70)]  # fmt: skip
    rows += [{"quantity": "mean", "group": "failure", "value": 1.0}]
    found = sections.probe_rows([bare_run(probe=lambda _: ProbeData("p", rows))], "p")
    assert (found["total"], len(found["rows"])) == (70, sections._SUMMARY_LIMIT)
    shown = dict(zip(found["columns"], found["rows"][0], strict=True))
    assert shown["value [95 % interval]"] == "0.5 [0.25, 0.75]"
    assert shown["effect [95 % interval]"] == "0.1 (no interval)"
    assert [sections.cell(c, {"n": 3}) for c in ("value", "effect", "n")] == ["undefined", "", "3"]
    assert [sections.number_text("x", v) for v in (None, 0.12345, 7, "t")] == ["", "0.123", "7", "t"]


def test_contrasts_of_all_runs_stand_by_their_size_with_the_model_of_each() -> None:
    def run(name: str, *effects: float) -> Any:
        rows = [{"quantity": "q", "group": MATCHED, "n": 50, "value": e, "effect": e, "p_adjusted": 0.5}
                for e in effects]  # fmt: skip
        return bare_run(name=name, model=name, path=Path(name), probe=lambda _: ProbeData("p", rows))

    found = sections.probe_rows([run("a", 0.25, -2.0), run("b", 1.5), run("c")], "p")
    assert [(row[0], row[-2].split()[0]) for row in found["rows"]] == [("a", "-2"), ("b", "1.5"), ("a", "0.25")]


def test_notes_that_all_runs_share_are_said_once_and_others_with_their_run() -> None:
    def run(name: str, data: ProbeData | None) -> Any:
        return bare_run(name=name, model=name, path=Path(name), probe=lambda _: data)

    same = {"k": 0.2, "cases": [1], "none": None}
    runs = [run("a", ProbeData("p", (), settings=same, warnings=["w"])), run("b", ProbeData("p", (), settings=same))]
    assert sections.probe_notes(runs, "p") == ["settings: k = 0.2", "a: w"]
    both = run("d", ProbeData("p", (), settings=same, warnings=["w", "v"]))
    assert sections.probe_notes([runs[0], both], "p") == ["settings: k = 0.2", "w", "d: v"]
    assert sections.probe_notes([*runs, run("c", None)], "p") == ["a, b: settings: k = 0.2", "a: w", "c: did not run"]
    assert sections.probe_notes(runs[1:], "p") == ["b: settings: k = 0.2"]
    assert sections._flat({"a": {"b": 1, "c": None}, "d": [1, {"e": 2}]}) == "a: (b: 1), d: (1; e: 2)"
    made = {"identity": {"model": "m"}, "numerics": {"tf32": False}, "run": "r", "command": "c", "versions": {}}
    assert sections.provenance_rows(bare_run(manifest=Manifest(**made))) == [
        ("identity", "model: m"), ("numerics", "tf32: False")]  # fmt: skip
    taken: set[str] = set()
    assert [sections._anchor(n, taken) for n in ("A b!", "a-b", "!")] == ["probe-a-b", "probe-a-b-2", "probe-other"]


def test_columns_stand_in_reading_order_and_ends_of_intervals_inside_their_value() -> None:
    row = {"note": "x", "p": 0.1, "n": 3, "value": 1, "low": 0, "high": 2, "own": 1, "quantity": "q", "group": None}
    assert sections._columns([row]) == (["quantity", "own", "n", "value", "note"], ["p"])
    assert sections._columns([{"quantity": "q", "low": 0, "high": 2}]) == (["quantity", "low", "high"], [])
    data = ProbeData("p", (), {"a": np.zeros((2, 3)), "b": np.zeros(())}, axes={"a": ("layer", "head")})
    assert sections._tensors("m", data) == [("m", "a", "layer 2 × head 3"), ("m", "b", "one number")]
    short = ProbeData("p", (), {"a": np.zeros((2, 3))}, axes={"a": ("layer",)})
    assert sections._tensors("m", short) == [("m", "a", "2 × 3")], "axes of another number name nothing"


def test_figures_of_a_plugins_probe_declare_it_or_begin_with_its_name_as_a_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Catalog(dict[str, Any]):
        own = ("mine-shipped",)

    names = ("mineral", "mine-by-layer", "mine-shipped", "mine", "other")
    found = {n: SimpleNamespace(name=n, section="mine" if n == "other" else "x") for n in names}
    monkeypatch.setattr(sections, "FIGURES", Catalog(found))
    assert sections.figures_of("mine") == ["other", "mine-by-layer", "mine"]


def test_a_small_p_is_not_rounded_to_nothing() -> None:
    shown = [number_text("p_adjusted", p) for p in (0.0004, 0.001, 0.0049, 0.2, 1)]
    assert shown == ["< 0.001", "0.001", "0.0049", "0.2", "1"]
