"""Rules of the figures, each with the values that they give: what enters a statistic, who comes first, what is said."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.evaluation.graded import Graded
from composcope.evaluation.metrics import Metric
from composcope.evaluation.protocols import counting
from composcope.experiments import figures
from composcope.experiments.figures import (
    accuracies,
    catalog,
    depth_curves,
    drawing,
    gates,
    grouping,
    heatmaps,
    layers,
    mechanism,
    scatters,
    skills,
    steps_and_whole,
    style,
    training,
)
from composcope.experiments.figures.look import Look, _fit
from composcope.experiments.run.diagnosis import CauseShare
from composcope.experiments.run.provenance import beside
from composcope.experiments.run.reader import ProbeData


def _run(**about: Any) -> Any:
    given = {"name": "r", "model": "m", "benchmark": "b", "protocol": "double-gate", "path": Path("r"), "about": {},
             "study": {}, "commands": [], "seed": 7, "metrics": [], "graded": [], "cases": {},
             "probe": lambda _: None}  # fmt: skip
    return SimpleNamespace(**given | about)


def _rows(*outcomes: str, roles: str = "whole part:0 part:1 code", cluster: str | None = None) -> list[Graded]:
    named: dict[str, Any] = {"1": "correct", "0": "incorrect", "?": "invalid"}
    asked = [(i, *of) for i, letters in enumerate(outcomes) for of in zip(roles.split(), letters, strict=True)]
    return [Graded(f"c{i}", role, named[one], cluster=cluster and f"{cluster}{i // 2}") for i, role, one in asked]


def test_statistics_of_figures_take_the_seed_of_the_run_and_what_its_cases_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a figure computes itself: resampling with another seed, or over cases, would be another interval."""
    given: list[tuple[Any, Any]] = []
    real, paired = counting.statistic, counting.statistics.paired_difference

    def statistic(*args: Any, **options: Any) -> Metric:
        of = options.get("of")
        given.append((options.get("seed"), options.get("clusters") if of is None else counting.clusters_of(of)))
        return real(*args, **options)

    def difference(*args: Any, **options: Any) -> Any:
        given.append((7, options.get("clusters")))  # two runs: no one's seed
        return paired(*args, **options)

    monkeypatch.setattr(counting, "statistic", statistic)
    monkeypatch.setattr(counting.statistics, "paired_difference", difference)
    rows = _rows(*["1111", "0101", "1011", "0111"], cluster="k")
    run = _run(graded=rows, protocol="compositionality-gap")
    accuracies._gains(run, "m")
    steps_and_whole._root_interval(run)
    accuracies.step_gains(run, run)
    assert len(given) == 5 and {seed for seed, _ in given} == {7}
    assert all(clusters is not None and [*map(str, clusters)] == ["k0", "k0", "k1", "k1"] for _, clusters in given)


def test_two_runs_are_compared_in_the_cells_of_a_channel_and_in_no_other_group(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = [{}, {"per": "fact"}, {"depth_bin": 4}, {"depth": 6}, {"family": "rank"}]
    found = [Metric("delta_comp", g, n=4 + i, n_invalid=i, value=i / 10, low=-0.1, high=0.9, interval="t")
             for i, g in enumerate(groups)]  # fmt: skip
    found += [replace(found[0], metric="other"), replace(found[0], metric="delta_atom")]
    seen: list[Any] = []
    monkeypatch.setattr(
        depth_curves, "compare", lambda *args: seen.append(args) or SimpleNamespace(metrics=found, warnings=[])
    )
    a, b = (_run(name=n, model=n.upper(), graded=n, cases={"x": n, n: n}) for n in "ab")
    rows = depth_curves._rows(None, a, b)
    assert seen == [("a", "b", {"x": "a", "a": "a", "b": "b"}, 7)], "A's cases are kept where both have one"
    assert [(r["channel"], r["cell"], r["n"], r["n_invalid"], r["value"]) for r in rows] == [
        ("delta_comp", "all", 4, 0, 0), ("delta_comp", "all", 5, 1, 0.1), ("delta_comp", "depth 4", 6, 2, 0.2),
        ("delta_comp", "depth 6", 7, 3, 0.3), ("delta_atom", "all", 4, 0, 0)]  # fmt: skip
    assert {(r["run"], r["pair"], r["low"], r["high"], r["interval"]) for r in rows} == {
        ("a − b", "A − B", -0.1, 0.9, "t")}  # fmt: skip


def test_matched_pairs_are_those_of_the_study_or_every_other_run_against_the_first() -> None:
    runs = [_run(name=n, model=n, benchmark=b) for b in ("x", "y") for n in ("first", "second", "third")]
    found = [(p["kind"], a.name, b.name, a.benchmark) for p, a, b in accuracies.matched(runs)]
    assert found == [("reference", n, "first", b) for b in "xy" for n in ("second", "third")]
    own = {"pairs": [{"kind": "cost", "a": "A", "b": "B"}, {"kind": "cost", "a": "A", "b": "gone"}]}
    labelled = [_run(name=n, about={"label": n.upper()}, study=own) for n in ("b", "a", "c")]
    assert [(a.name, b.name) for _, a, b in accuracies.matched(labelled)] == [("a", "b")]


def test_only_steps_are_paired_and_other_wordings_are_not() -> None:
    rows = _rows("1111", "0101", roles="part:0 part:0:paraphrase:0 part:1 whole")
    run = _run(graded=rows, protocol="compositionality-gap")
    assert [r["asked"] for r in accuracies.step_gains(run, run)] == ["step 1", "step 2", "whole"]
    assert [r["asked"] for r in accuracies.step_gains(*(_run(graded=rows) for _ in "ab"))] == ["whole"]


def test_the_ways_to_ask_are_those_of_the_whole_and_the_reversed_steps_are_none() -> None:
    roles = ["code", "self-ask", "whole:cot", "whole:reversed", "whole", "part:0"]
    assert [accuracies._way(role) for role in roles] == ["code", "self-ask", "cot", None, None, None]


def test_rows_beyond_the_most_frequent_skills_are_in_the_csv_and_not_drawn() -> None:
    found = [Metric("skill_accuracy", {"skill": s}, n=n, count=1, value=1 / n) for s, n in (("b", 20), ("a", 40))]
    run = _run(metrics=found, select=lambda *_: found)
    shown = accuracies.skill_heatmap.draw([run], top=1)
    assert {r["skill"]: r["drawn"] for r in shown.rows} == {"a": "solid", "b": "no"}
    assert "The 1 rarer ones are in the csv." in shown.caption


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

    run = _run(metrics=known, one=one)
    (row,) = depth_curves.stability_scatter.draw([run]).rows
    assert [row[k] for k in ("x", "n_x", "x_low", "x_high", "value", "n")] == [0.5, 30, 0.4, 0.6, 0.25, 12]
    known.remove(facts)
    (row,) = depth_curves.stability_scatter.draw([run]).rows
    assert (row["x"], row["n_x"]) == (0.7, 90)


def test_stages_of_the_gates_are_in_the_order_in_which_they_are_passed() -> None:
    counts = {"atom_gate": 70, "sub_question_gate": 60, "double_gate": 50, "residual_failure": 20}
    found = {name: Metric(name, n=50 if name == "residual_failure" else 80, count=k) for name, k in counts.items()}
    stages = [(r["stage"], r["count"], r["n"]) for r in gates._stages(_run(one=found.get))]
    assert stages == [("all cases", 80, 80), ("atoms stable", 70, 80), ("sub-questions right", 60, 80),
                      ("both gates", 50, 80), ("whole wrong, gated", 20, 80)]  # fmt: skip


def test_quadrants_have_their_own_order_and_names() -> None:
    order = sorted(["00", "01", "111", "10", "11", "some", "all"], key=lambda q: gates._quadrant_order((q, None)))  # type: ignore[arg-type]
    assert order == ["11", "10", "01", "00", "all", "some", "111"]
    names = {q: gates._right(q) for q in ("11", "10", "01", "00", "111", "101", "001", "000")}
    assert names == {"11": "both steps right", "10": "only step 1 right", "01": "only step 2 right",
                     "00": "no step right", "111": "every step right", "101": "step 2 wrong",
                     "001": "steps 1 and 2 wrong", "000": "steps 1, 2 and 3 wrong"}  # fmt: skip
    assert gates.role_class("part:0:paraphrase:2") == "part paraphrase" and gates.role_class("scaffold:1") == "scaffold"


def test_cases_without_scaffolds_are_unknown_unless_they_were_right_unaided() -> None:
    alone = [*_rows("1", "0", roles="whole"), *(replace(r, case=f"s{r.case}") for r in _rows("01", roles="whole x"))]
    alone[-1] = replace(alone[-1], role="scaffold:1")
    assert gates._min_k(_run(graded=alone)) == ({0: 1, 1: 1}, 1)
    assert gates._min_k(_run(graded=alone[:2])) == ({}, 0), "a run that asked no scaffold has no levels"


def test_causes_are_grouped_only_by_what_differs_between_the_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    def share(group: str, value: str) -> CauseShare:
        return CauseShare(group, value, "undetermined", 3, 6, 0.5, 0.1, 0.9, "clopper-pearson")

    shares = [share("all", ""), share("family", "rank"), share("depth", "2"), share("depth", "4")]
    told = SimpleNamespace(found=SimpleNamespace(shares=shares), left_out=lambda: "")
    monkeypatch.setattr(gates, "diagnosed_failures", lambda run: told)
    rows = gates.causes.draw([_run()]).rows
    assert [r["group"] for r in rows] == ["all", "depth 2", "depth 4"]
    assert {(r["count"], r["n"], r["value"], r["low"], r["high"]) for r in rows} == {(3, 6, 0.5, 0.1, 0.9)}


def test_numbers_are_left_out_of_a_narrow_axis_and_names_never() -> None:
    left = []
    for names in ([f"{i / 8}" for i in range(24)], [f"layer {i}" for i in range(24)], ["1", "all"] * 12):
        fig, ax = style.one_panel(1.2, 1.2)
        ax.set_xticks(range(len(names)), names)
        fig.draw_without_rendering()
        _fit(ax)
        left.append(len(ax.get_xticks()))
    assert left[0] < 24 and left[1:] == [24, 24]


def test_the_same_drawing_is_always_the_same_file_whatever_the_day(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = figures.draw("outcomes", [synthetic.make_run(tmp_path / "r", n=12, probes=())])
    texts = []
    for day in ("0", "86400000"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", day)
        files = drawing.write(found, "outcomes", tmp_path / day, pdf=True)
        texts.append([p.read_bytes() for p in files if p.suffix in (".svg", ".pdf", ".png")])
    assert texts[0] == texts[1] and len(texts[0]) == 3
    assert beside(tmp_path / "0" / "outcomes.csv").is_file(), "its provenance stands beside the csv"


def test_a_caption_counts_marks_names_methods_of_intervals_and_where_the_runs_come_from() -> None:
    rows = [{"n": 9, "interval": "t", "low": 0.1}, {"n": 40, "interval": "korn", "low": 0.1},
            {"n": 3, "interval": "none of this", "low": None}, {"x": 1}]  # fmt: skip
    assert style.counts(rows) == "n = 3 to 40 per mark." and style.counts(rows[:1]) == "n = 9 per mark."
    assert style.counts(rows[3:]) == "" and style.interval_methods(rows) == "Intervals: 95 %, korn, t."
    assert style.interval_methods(rows[2:]) == "No intervals."
    runs = [_run(name="a", commands=["go", "look"]), _run(name="b", commands=["go"]), _run(name="c")]
    assert drawing.source(runs) == "Runs: a, b, c. Made by: go ; look."
    assert [style.weight(n) for n in (None, 4, 5, 14, 15)] == ["hollow", "hollow", "marked", "marked", "solid"]
    assert [style.counted(n) for n in (None, 4, 5, 14, 15)] == ["n=0", "n=4", "n=5*", "n=14*", "n=15"]


def test_text_in_a_cell_is_dark_on_light_and_light_on_dark_over_any_range() -> None:
    cells = ((0, 1, 0.05), (0, 1, 0.95), (5, 9, 5.2), (5, 9, 8.9), (-1, 1, -0.9))
    found = [style.legible(v, low, high, style.SEQUENTIAL) for low, high, v in cells]
    assert found == [style.ON_LIGHT, style.ON_DARK, style.ON_LIGHT, style.ON_DARK, style.ON_LIGHT]


def test_the_words_beside_a_bar_stand_behind_its_interval_and_a_share_fits_its_axis() -> None:
    _, ax = style.one_panel(4, 3)
    style.bars(ax, [{"model": "m", "s": "a", "value": 0.3, "low": 0.1, "high": 0.6, "n": 9}], "s", ["a"], ["m"], ["m"])
    (said,) = ax.texts
    assert said.get_text() == "n=9*" and said.get_position()[0] > 0.6
    _, few = style.one_panel(4, 3)
    style.bars(few, [{"model": "m", "s": "a", "value": 0.3, "low": 0.1, "high": 0.6, "n": 4}], "s", ["a"], ["m"], ["m"])
    assert not few.lines and few.texts[0].get_text() == "n=4", "fewer than five cases have no interval"
    _, half = style.one_panel(4, 3)
    style.points(half, [{"value": 3.0, "low": None, "high": 5.0, "n": 40}], [0], style.color(0), "d50")
    assert len(half.lines) == 1, "an interval with one end is not drawn"
    names = [f"m{i} (n={n})" for i, n in enumerate((1, 1, 1, 1, 7, 9, 7))]
    assert style._listed(names).endswith("m3 (n=1); and 3 more (n=7, n=9; column “drawn” of the csv)")
    assert style._listed(names[:4]) == "; ".join(names[:4])
    style.percent_up_to(ax, 0.4)
    assert 0.4 < ax.get_ylim()[1] < 0.5


@pytest.mark.parametrize(("axis", "low"), [("x", 0.0), ("y", 0.0), ("x", 0.03)])
def test_a_rate_axis_says_percent_at_its_quarters(axis: str, low: float) -> None:
    _, ax = style.one_panel(3, 3)
    style.percent(ax, axis, low)
    own = ax.xaxis if axis == "x" else ax.yaxis
    assert [t.get_text() for t in own.get_ticklabels()] == ["0 %", "25 %", "50 %", "75 %", "100 %"]
    assert list(own.get_ticklocs()) == [0, 0.25, 0.5, 0.75, 1]
    assert tuple(own.get_view_interval()) == pytest.approx((low - 0.03, 1.03))


def test_signed_axes_show_points_and_percent_with_true_minus_signs() -> None:
    _, ax = style.one_panel(6, 3)
    for show, wanted in ((style.signed_points, ["−50", "0", "+50"]), (style.signed_percent, ["−50 %", "0 %", "+50 %"])):
        show(ax)
        assert [ax.xaxis.get_major_formatter()(v, None) for v in (-0.5, 0.0, 0.5)] == wanted


def test_one_colored_cell_has_the_number_of_cases_of_its_two_groups_together() -> None:
    rows = [{"quantity": "neuron_overlap", "kind": "a & b", "group": g, "n": n}
            for g, n in (("failure", 7), ("success", 4), ("failure - success", 11))]  # fmt: skip
    probe = ProbeData("neurons", rows)
    assert [mechanism._cell_count(probe, *pair)["n"] for pair in (("a", "b"), ("b", "a"), ("a", "a"))] == [11, 11, None]
    ratios = [{"quantity": "lookback_ratio", "kind": "k", "group": g, "n": n}
              for g, n in (("failure", 7), ("success", 4))]  # fmt: skip
    counts = [mechanism._ratio_count(ProbeData("lookback", ratios), "k", s)
              for s in ("failure", "success", "difference")]  # fmt: skip
    assert counts == [7, 4, 4], "a difference rests on the smaller group"


def test_the_caption_of_heads_names_the_largest_difference_with_its_adjusted_p() -> None:
    row = {"quantity": "lookback_ratio_map", "kind": "composition", "layer": 2, "head": 5, "value": -0.1254, "p": 0.01,
           "p_adjusted": 0.25}  # fmt: skip
    found: Any = [(None, "model", ProbeData("lookback", [row, {**row, "kind": "math", "head": 3}]))]
    assert mechanism._best_cell(found) == (
        " Largest difference relative to its spread, model: layer 2, head 5, -0.125 (adjusted p=0.25)."
    )
    settings = {"rule": "reference", "t": 0.2, "v": 20, "u": None}
    said = mechanism._settings([(None, "m", ProbeData("neurons", (), settings=settings))], "rule", "t", "v", "w")  # type: ignore[list-item]
    assert said == " Settings: rule=reference, t=0.2, v=20."


def test_rows_by_kind_leave_out_comparisons_and_other_groups(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "r", n=8, probes=())
    rows = [{"quantity": "min_k_pp", "kind": kind, "group": group, "n": 20, "value": 0.5, "low": 0.4, "high": 0.6,
             "interval": "t"}
            for kind in ("composition", "composition - math", None) for group in ("failure", "success", "matched")
            ]  # fmt: skip
    synthetic.write_probe(run / "probes" / "min-k", "min-k", rows, {}, {})
    found = figures.draw("mink", [run]).rows
    assert [(r["kind"], r["group"]) for r in found] == [("composition", "failure"), ("composition", "success")]


def test_a_step_has_the_number_of_cases_that_reach_it() -> None:
    tensors = {"step.failure": np.zeros((2, 3)), "step_n.failure": np.array([9, 6, 3])}
    probe = ProbeData("trajectory", [], tensors)
    found = layers.cosine_trajectory.draw([_run(probe=lambda name: probe)])
    assert [r["n"] for r in found.rows if r["layer"] == 1] == [9, 6, 3]


def test_curves_of_readouts_are_read_at_the_last_place_solid_for_foils_outside_the_question() -> None:
    rows = [{"show": g, "foils": foils, "place": place, "layer": layer, "value": value}
            for g, base in (("failure", 0.1), ("success", 0.3)) for foils, more in (("absent", 0), ("in-prompt", 0.4))
            for place, end in (("subject", 0), ("end", 0.05)) for layer in (-1, 0) for value in (base + more + end,)
            ]  # fmt: skip
    ax = style.figure(3, 3).subplots()
    layers._curves(ax, rows)
    drawn = {str(line.get_label()): (line.get_linestyle(), *np.ravel(line.get_ydata())) for line in ax.lines}
    assert {k: v for k, v in drawn.items() if "foils" in k} == {
        f"{g}, foils {where} the question": (dash, pytest.approx(base + more), pytest.approx(base + more))
        for g, base in (("failure", 0.15), ("success", 0.35))
        for where, dash, more in (("not in", "-", 0), ("in", "--", 0.4))
    }


def test_a_map_is_the_mean_over_the_pairs_that_have_its_cell_and_its_columns_end_where_the_answer_is() -> None:
    maps = np.array([[[0.2, np.nan, np.nan]], [[0.6, 0.5, np.nan]]])
    np.testing.assert_allclose(layers._mean(maps), [[0.4, 0.5, np.nan]])
    assert layers._named(4) == [0, 1, 2, 3] and layers._named(40) == [*range(0, 37, 3), 39]
    swept = layers.Sweeps((0,), (0, 3, 4), ["the", "", "a-very-long-token"], {}, 0)
    assert layers._columns(swept) == ["the", "3", "a-very-l…"]


def test_few_rows_are_marked_and_cells_that_are_not_drawn_stay_so() -> None:
    rows = [{"n": n, "value": v, "drawn": d} for n, v, d in ((4, 0.1, None), (5, 0.1, None), (15, None, None),
                                                             (15, 0.2, "no"), (None, 0.2, None))]  # fmt: skip
    assert [r["drawn"] for r in heatmaps.few_marks(rows)] == ["hollow", "marked", "undefined", "no", None]
    assert [heatmaps.number(v) for v in (0.12345678, np.nan, np.inf)] == [0.123457, None, None]
    found = heatmaps.cells(np.array([[1, np.nan], [3, 4]]), ("layer", "head"), run="r")
    assert [(r["layer"], r["head"], r["value"]) for r in found] == [(0, 0, 1), (0, 1, None), (1, 0, 3), (1, 1, 4)]


@pytest.mark.parametrize(
    ("k", "n", "said"), [(3, 2, "k is 3 and n is 2"), (-1, 2, "k is -1"), ("x", 2, "whole numbers"), (None, 2, "'k'")]
)
def test_a_checkpoint_that_cannot_be_is_refused_by_its_row(k: Any, n: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        training._checked({"recipe": "r", "step": 1, "metric": "m", "k": k, "n": n}, "f: row 1")


def test_lines_over_training_go_from_step_to_step_and_each_training_has_its_own() -> None:
    rows = [training._checked({"run": run, "recipe": "r", "step": step, "metric": "m", "k": k, "n": 20}, "f")
            for run in ("a", "b") for step, k in ((100, 12), (0, 3), (50, 7))]  # fmt: skip
    found = training.training_curve.draw([training.Checkpoints(Path("f"), rows)])
    lines = [np.ravel(line.get_xdata()) for line in found.figure.axes[0].lines if line.get_marker() == "None"]
    joined = [[round(float(x)) for x in xs] for xs in lines if len(xs) == 3]
    assert joined == [[0, 50, 100]] * 2 and "Runs: a, b." in found.caption
    assert [r["value"] for r in rows[:3]] == pytest.approx([0.6, 0.15, 0.35])


def test_skill_maps_are_read_with_their_clusters_and_skills_and_runs_count_every_part(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    line = {"n_clusters": 10, "n_skills": 3, "usage": {"add": 4, "other": 1}}
    (tmp_path / "granularity.jsonl").write_text(json.dumps(line) + "\n" + json.dumps({**line, "usage": None}) + "\n")
    (found,) = skills._maps(tmp_path)
    assert (found.clusters, found.n_skills, found.total, skills._name(found)) == (10, 3, 5, "M=10, N=3")
    for name, again in (("a", 0), ("b", 1)):
        path = synthetic.make_run(tmp_path / name, n=2, probes=(), protocol="compositionality-gap") / "cases.jsonl"
        first, second = (json.loads(text) for text in path.read_text().splitlines())
        first["parts"][0]["skill"], first["parts"][1]["skill"], second["parts"][again]["skill"] = "add", "sort", "add"
        second["parts"][1 - again]["skill"] = None if name == "a" else "other"
        path.write_text(json.dumps(first) + "\n" + json.dumps(second) + "\n")
    (used,) = skills._of_runs(figures.load([tmp_path / "a", tmp_path / "b"]))
    assert (used.source, used.clusters, dict(used.usage)) == ("mixed", None, {"add": 2, "sort": 1})
    maps = [skills.SkillUse("s", m, n, {"add": 6, "sort": 9, "other": 20}) for m in (5, 10) for n in (3, 2)]
    shown = skills.skill_granularity.draw(maps)
    assert [(r["clusters"], r["skills"], r["skill"], r["id"]) for r in shown.rows] == [
        (10, n, s, i) for n in (2, 3) for i, s in enumerate(("sort", "add", "other"), 1)]  # fmt: skip


def test_the_size_of_a_model_is_what_the_study_says_or_else_its_weights() -> None:
    counted = SimpleNamespace(model={"parameters": 3_000_000_000})
    found = [scatters._billions(_run(about=about, manifest=SimpleNamespace(model=model)))
             for about, model in (({"size": 7}, counted.model), ({}, counted.model), ({}, {}), ({}, {"parameters": 0}))
             ]  # fmt: skip
    assert found == [7.0, 3.0, None, None]
    assert [scatters._power_of_ten(e) for e in (-4, -3, 0, 4, 5)] == ["1e-4", "0.001", "1", "10000", "1e5"]
    assert [scatters._decades([{"x": x} for x in xs]) for xs in ((-0.5, 2.2), (3, 3), (0, 13))] == [
        [-1, 0, 1, 2, 3], [3, 4], [0, 2, 4, 6, 8, 10, 12]]  # fmt: skip
    assert [scatters.stacked(i) for i in (0, 1, 9)] == [9.0, 7.5, 4.0]


def test_captions_say_chance_and_gaps_in_percent_and_points() -> None:
    gap = Metric("gap", n=40, value=-0.125, low=-0.3, high=0.05)
    more = replace(gap, value=0.125, low=None)
    assert steps_and_whole._gaps([_run(metrics=[gap], one={"gap": more}.get)]).endswith(" of m: +12.5 points, n=40.")
    run = _run(metrics=[gap, Metric("step:0", n=40)], chance=0.04, one={"gap": gap}.get)
    assert steps_and_whole._chance([run]) == " Chance level of the whole on b: 4 %."
    assert steps_and_whole._gaps([run]) == " Gap (whole − both) of m: -12.5 points [-30.0, +5.0], n=40."


def test_models_are_colored_by_their_group_in_the_figure_of_gaps(synthetic: ModuleType, tmp_path: Path) -> None:
    for i, name in enumerate("abc"):
        synthetic.make_run(tmp_path / name, n=40, probes=(), protocol="compositionality-gap", model=f"o/{name}", seed=i)
    about = {name: {"label": name, "family": "x" if name != "b" else "y"} for name in "abc"}
    (tmp_path / "study.json").write_text(json.dumps({"schema": 1, "runs": list("abc"), "about": about}))
    found = figures.draw("gaps", [tmp_path], group_by="family")
    shades = [str(line.get_color()) for line in found.figure.axes[0].lines if line.get_marker() in ("o", "D")]
    assert shades == [style.color(0), style.color(0), style.color(1)]


def test_runs_that_could_have_a_row_and_have_none_are_named() -> None:
    runs = [_run(name=n, protocol=p) for n, p in (("a", "gate"), ("b", "gate"), ("c", "gap"))]
    shown = drawing.Drawing(style.notice(""), [{"run": "a"}], "")
    assert catalog._not_shown(shown, runs) == ["b"]
    assert catalog._not_shown(drawing.Drawing(style.notice(""), [{"run": "a − b"}], ""), runs) == []
    assert catalog._not_shown(replace(shown, empty="why"), runs) == []
    assert [catalog._bands(text) for text in (None, "trained", "4, 2")] == [None, (), (4, 2)]
    names = [_run(model=m, benchmark=b, name=n, path=Path(f"{i}"))
             for i, (m, b, n) in enumerate((("m", "x", "r"), ("m", "y", "s")))]  # fmt: skip
    assert [*grouping.labels(names).values()] == ["m · x", "m · y"]
    assert [*grouping.labels_by_benchmark(names).values()] == ["m", "m"]
    assert [*grouping.labels([*names, names[0]]).values()] == ["r (3)", "s (2)"]
    fig, panels = grouping.small_multiples(names, 2, 2, "layer", "share")
    first, second = panels.values()
    assert second.get_shared_x_axes().joined(first, second) and not first.get_shared_y_axes().joined(first, second)
    beside = [_run(model=m, name=m, path=Path(m)) for m in "pq"]
    _, panels = grouping.small_multiples(beside, 2, 2, "layer", "share")
    left, right = panels.values()
    assert left.get_shared_y_axes().joined(left, right), "panels of one line have one axis"
    assert fig.get_supxlabel() == "layer" and (first.get_ylabel(), second.get_ylabel()) == ("x", "y")


def test_quadrants_and_bottlenecks_are_drawn_in_order_and_without_what_never_happened() -> None:
    found = [Metric("quadrant", {"quadrant": q}, n=20, count=5, value=0.25) for q in ("00", "11", "01", "10")]
    run = _run(metrics=found, select=lambda *_: found)
    assert [r["quadrant"] for r in gates.failure_quadrants.draw([run]).rows] == ["11", "10", "01", "00"]
    skill = [Metric("bottleneck", {"skill": s}, n=9, count=k, value=k / 9) for s, k in (("never", 0), ("b", 2))]
    skill.append(Metric("bottleneck", {"combination": ["x", "y"]}, n=9, count=4, value=4 / 9))
    assert [r["skill"] for r in gates.bottlenecks.draw([_run(metrics=skill)]).rows] == ["x + y", "b"]


def test_a_patching_curve_is_in_percent_only_where_its_measure_is_a_rate(everything: Path) -> None:
    for measure, percent in (("flip_rate", True), ("kl", False)):
        found = figures.draw("patching", [everything / "runs" / "temporal-control"], measure=measure)
        assert found.chart is not None and found.chart["percent"] == percent
        labels = [t.get_text() for t in found.figure.axes[0].get_yticklabels()]
        assert any("%" in text for text in labels) == percent


def test_pairs_of_another_length_are_counted_over_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = {site: np.zeros((6, 1, 2)) for site in layers.SITES}
    monkeypatch.setattr(layers, "sweeps_of", lambda run: layers.Sweeps((0,), (0, 1), ("a", "b"), maps, 3))
    found = layers.patching_positions.draw([_run(name=n, model=n, path=Path(n)) for n in "ab"])
    assert "Left out: 6 pairs of another length." in found.caption
    assert {(r["n"], r["token"], r["position"]) for r in found.rows} == {(6, "a", 0), (6, "b", 1)}


def test_checkpoints_of_a_run_are_those_of_the_study_whose_runs_it_lies_among(tmp_path: Path) -> None:
    rows = [{"recipe": "r", "step": 1, "metric": "m", "k": 1, "n": 2}]
    (tmp_path / "bad.json").write_text(json.dumps([rows[0], {**rows[0], "k": 3}]))
    with pytest.raises(InputError, match=r"bad\.json: row 2: k is 3"):
        training._read(tmp_path / "bad.json")
    (tmp_path / "good.csv").write_text("recipe,step,metric,k,n,run\nr,1.0,m,1,2,x\n")
    (read,) = training._read(tmp_path / "good.csv")
    assert (read["run"], read["step"], read["count"], read["n"], read["value"]) == ("x", 1, 1, 2, 0.5)
    (tmp_path / "training_curve.json").write_text(json.dumps(rows))
    inside, beside = (_run(path=tmp_path / folder / "a") for folder in ("runs", "other"))
    assert [c.path for c in training._of_study([inside, inside])] == [tmp_path / "training_curve.json"]
    assert training._of_study([beside]) == []


def test_plot_gives_bands_group_and_look_to_the_figure(
    synthetic: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = synthetic.make_run(tmp_path / "r", n=24, probes=())
    seen: dict[str, Any] = {}
    real = catalog.draw

    def draw(name: str, runs: Any, **options: Any) -> Any:
        seen.update(options, runs=runs)
        return real(name, runs, bands=options["bands"])

    monkeypatch.setattr(catalog, "draw", draw)
    files = catalog.plot(
        "collapse-curve", [run], tmp_path / "out", bands="4,2", look=catalog.look("column", True, "color")
    )
    assert seen == {"bands": (4, 2), "group_by": None, "runs": [run]}
    assert "Shaded: trained depths (2, 4)." in (tmp_path / "out" / "collapse-curve.txt").read_text()
    (pdf,) = [p for p in files if p.suffix == ".pdf"]
    width = float(re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", pdf.read_bytes())[1])  # type: ignore[index]
    assert width == pytest.approx(72 * 3.35, abs=0.1)


def test_titles_of_several_panels_stay_and_ticks_shrink_with_the_width() -> None:
    for n, kept in ((1, ""), (2, "title")):
        fig, panels = style.grid_of(1, n, 5, 3)
        for ax in panels[0]:
            style.dress(ax, "title")
        before = panels[0][0].get_xticklabels()[0].get_fontsize()
        Look("column", title=False).apply(fig)
        assert panels[0][0].get_title(loc="left").replace("\n", "")[:5] == kept
        ax = panels[0][0]
        ax.set_xlim(0, 50)  # ticks that are made later
        assert ax.get_xticklabels()[-1].get_fontsize() == pytest.approx(float(before) * max(3.35 / (5 * n), 0.72))
