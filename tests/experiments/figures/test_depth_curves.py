"""Figures over depth: the cells of a channel, trained depths, and knowledge that is counted once per fact."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from composcope.evaluation.cases import Case
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.experiments import figures
from composcope.experiments.figures import depth_curves, grouping
from composcope.experiments.figures.drawing import NothingToDraw
from composcope.experiments.run.reader import RunData

from ..bare_runs import answers, bare_run


def test_two_runs_are_compared_in_the_cells_of_a_channel_and_in_no_other_group(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [{}, {"per": "fact"}, {"depth_bin": 4}, {"depth": 6}, {"family": "rank"}]
    found = [Metric("delta_comp", g, n=4 + i, n_invalid=i, value=i / 10, low=-0.1, high=0.9, interval="t")
             for i, g in enumerate(groups)]  # fmt: skip
    found += [replace(found[0], metric="other"), replace(found[0], metric="delta_atom")]
    seen: list[Any] = []
    monkeypatch.setattr(
        depth_curves, "compare", lambda *args: seen.append(args) or SimpleNamespace(metrics=found, warnings=[])
    )
    cases = {n: {c: Case(c, n if c == "y" else c, "1", family=n) for c in f"xy{n}"} for n in "ab"}
    graded = {n: [Graded(c, "whole", "correct") for c in cases[n]] for n in "ab"}
    a, b = (bare_run(name=n, model=n.upper(), graded=graded[n], cases=cases[n]) for n in "ab")
    rows = depth_curves._rows(a, b, "A − B")
    assert [[r.case for r in side] for side in seen[0][:2]] == [["x", "a"], ["x", "b"]], "y asks two questions"
    assert seen[0][2:] == ({**cases["b"], **cases["a"]}, 7), "A's cases are kept where both have one"
    assert [(r["channel"], r["cell"], r["n"], r["n_invalid"], r["value"]) for r in rows] == [
        ("delta_comp", "all", 4, 0, 0), ("delta_comp", "all", 5, 1, 0.1), ("delta_comp", "depth 4", 6, 2, 0.2),
        ("delta_comp", "depth 6", 7, 3, 0.3), ("delta_atom", "all", 4, 0, 0)]  # fmt: skip
    assert {(r["run"], r["pair"], r["low"], r["high"], r["interval"]) for r in rows} == {
        ("a − b", "A − B", -0.1, 0.9, "t")}  # fmt: skip


def test_many_families_have_panels_in_lines_for_those_with_the_most_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "FAMILIES", 8)
    sizes = {"few": 3, **{f"f{i:02}": 20 for i in range(8)}, "most": 50}
    found = [Metric("residual_failure", {"family": name, "depth": 2}, n=n, value=0.5) for name, n in sizes.items()]
    run = bare_run(metrics=found)
    run.select = lambda *by: RunData.select(run, *by)
    drawing = figures.FIGURES["family-curves"]([run])
    axes = [ax for ax in drawing.figure.axes if ax.axison]
    assert [ax.get_title(loc="left") for ax in axes] == [*(f"f{i:02}" for i in range(7)), "most"]
    assert [bool(ax.get_ylabel()) for ax in axes] == [i % depth_curves.ABREAST == 0 for i in range(8)]
    assert {r["family"] for r in drawing.rows} == {*sizes}, "the csv has all"
    assert {r["family"] for r in drawing.rows if r["drawn"] == "no"} == {"f07", "few"}
    table = figures.FIGURES["family-heatmap"]([run])
    assert len(table.figure.axes[0].get_xticks()) == 8
    assert {r["family"] for r in table.rows if r["drawn"] == "no"} == {"f07", "few"}
    for one in (drawing, table):
        assert "8 families with the most cases; the csv has 2 more" in one.caption


def test_a_pair_of_models_has_its_own_lines_on_each_benchmark(synthetic: ModuleType, tmp_path: Path) -> None:
    for i, (model, benchmark) in enumerate((m, b) for b in ("temporal", "ours") for m in ("control", "twin")):
        run = synthetic.make_run(tmp_path / f"{model}-{benchmark}", model=f"organism:{model}", probes=(), seed=i, n=24)
        for name in ("config.yaml", "manifest.json"):
            text = (run / name).read_text().replace("organism:temporal", benchmark)
            (run / name).write_text(text)
    drawn = figures.draw("channels", [tmp_path])
    pairs = {(r["pair"], r["benchmark"]) for r in drawn.rows}
    assert len(pairs) == len({pair for pair, _ in pairs}) == 2
    said = [label.get_text() for label in drawn.figure.axes[0].get_yticklabels()]
    assert sorted(said) == sorted(pair for pair, _ in pairs) and all(b in pair for pair, b in pairs)
    assert "nothing to draw" not in drawn.caption, "each run is one of a pair"
    rows = answers("11", roles="whole part:0")
    gaps = [bare_run(name=n, model=n, path=Path(n), protocol="compositionality-gap", graded=rows) for n in "ab"]
    with pytest.raises(NothingToDraw):
        depth_curves.channels.draw(gaps)
    one = figures.draw("channels", [tmp_path / "control-ours", tmp_path / "twin-ours"])
    assert "ours" not in one.rows[0]["pair"]


@pytest.mark.parametrize(
    ("bands", "shaded", "dotted"), [(None, [], False), ((), [2, 4], True), ((6,), [6], True), ((6, 2), [2, 6], True)]
)
def test_bands_are_the_given_depths_or_those_of_the_study_and_dot_the_baseline(
    bands: Any, shaded: list[int], dotted: bool, synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "a", n=160, probes=(), failure=0.5)
    about = {"a": {"label": "a", "trained_depths": [4, 2], "baseline": True}}
    (tmp_path / "study.json").write_text(json.dumps({"schema": 1, "runs": ["a"], "about": about}))
    found = figures.draw("collapse-curve", [run.parent], bands=bands)
    (ax,) = found.figure.axes
    spans = sorted(round(p.get_x() + p.get_width() / 2) for p in ax.patches)  # type: ignore[attr-defined]
    assert spans == shaded == depth_curves._shaded(figures.load([run.parent]), bands)
    lines = {str(line.get_linestyle()) for line in ax.lines if len(np.ravel(line.get_xdata())) > 1}
    assert (":" in lines) == dotted
    words = f"Shaded: trained depths ({', '.join(map(str, shaded))}); dotted: baseline."
    assert (words in found.caption) == bool(shaded)


def test_the_scatter_over_knowledge_counts_facts_once_where_the_run_does() -> None:
    facts, asks = (Metric("atom_stability", g, n=n, count=n // 2, value=v, low=v - 0.1, high=v + 0.1)
                   for g, n, v in (({"per": "fact"}, 30, 0.5), ({}, 90, 0.7)))  # fmt: skip
    failed = Metric("residual_failure", {"depth": 4}, n=12, count=3, value=0.25)
    known = [asks, facts, failed]

    def one(name: str, **group: Any) -> Metric | None:
        return next((m for m in known if m.metric == name and m.group == group), None)

    run = bare_run(metrics=known, one=one)
    (row,) = depth_curves.stability_scatter.draw([run]).rows
    assert [row[k] for k in ("x", "n_x", "x_low", "x_high", "value", "n")] == [0.5, 30, 0.4, 0.6, 0.25, 12]
    known.remove(facts)
    (row,) = depth_curves.stability_scatter.draw([run]).rows
    assert (row["x"], row["n_x"]) == (0.7, 90)


def test_depths_that_a_benchmark_counts_in_another_bin_are_said() -> None:
    def run(benchmark: str, *depths: int) -> Any:
        cases = {str(d): Case(str(d), "q", "a", benchmark=benchmark, depth=d) for d in depths}
        return SimpleNamespace(cases=cases)

    binned = depth_curves._bins([run("organism-temporal", 2, 4, 7), run("organism-temporal", 9, 7)])
    assert "4 includes 7; 6 includes 9" in binned
    assert depth_curves._bins([run("mine", 2, 4, 7)]) == ""


def test_a_difference_that_is_not_known_says_why_in_one_clause(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = [Metric("delta_depth", {}, n=4, count=None, value=value, note="no d50; more") for value in (None, 0.5)]
    monkeypatch.setattr(depth_curves, "compare", lambda *_: SimpleNamespace(metrics=metrics))
    assert [row["why"] for row in depth_curves._rows(bare_run(), bare_run(), "")] == ["no d50", ""]


def test_depths_are_bins_where_a_benchmark_has_them_and_stand_in_their_order() -> None:
    def run(name: str, *groups: dict[str, Any]) -> Any:
        found = [Metric("residual_failure", g, n=9, value=i / 10) for i, g in enumerate(groups)]
        made = bare_run(name=name, model=name, path=Path(name), metrics=found)
        made.select = lambda metric, *by: [m for m in found if m.metric == metric and set(m.group) == set(by)]
        return made

    bins = run("a", {"depth_bin": 8}, {"depth_bin": 4}, {"depth": 5}, {}, {"depth_bin": 4, "family": "f"})
    plain = run("b", {"depth": 3}, {"depth": 2, "family": "g"}, {"family": "f", "depth": 6})
    rows = depth_curves._over_depth([bins, plain, bare_run(metrics=[Metric("gap", n=1)])])
    assert [(r["model"], r["depth"], r["value"]) for r in rows] == [("b", 3, 0), ("a", 4, 0.1), ("a", 8, 0)]
    rows = depth_curves._over_depth([bins, plain], "family")
    assert [(r["model"], r["family"], r["depth"]) for r in rows] == [("a", "f", 4), ("b", "f", 6), ("b", "g", 2)]
