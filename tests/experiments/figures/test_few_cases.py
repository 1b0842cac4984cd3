"""Bars, cells and panels of few cases look like it; runs with nothing to draw are named; groups order models."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from composcope.errors import InputError
from composcope.evaluation.metrics import Metric
from composcope.experiments import figures
from composcope.experiments.figures import catalog, drawing, grouping, style
from composcope.experiments.figures.drawing import Drawing

from ..bare_runs import bare_run

GAP = "compositionality-gap"


def _bars(drawing: Drawing, panel: int = 0) -> list[Rectangle]:
    patches = drawing.figure.axes[panel].patches
    return [p for p in patches if isinstance(p, Rectangle) and p.get_width() and p.get_height()]


def _hollow(patch: Rectangle) -> bool:
    return to_rgba(patch.get_facecolor())[3] == 0


def _hatched(ax: Any) -> set[tuple[int, int]]:
    """Line and column of every hatched cell."""
    found = [c for c in ax.collections if isinstance(c, PolyCollection) and c.get_hatch()]
    return {
        (int(y), int(x)) for c in found for path in c.get_paths() for x, y in [np.asarray(path.vertices)[:4].mean(0)]
    }


def _texts(drawing: Drawing) -> str:
    return " ".join(t.get_text() for ax in drawing.figure.axes for t in (*ax.texts, ax.title, ax._left_title))  # type: ignore[attr-defined]


def test_words_in_place_of_a_first_panel_have_no_frame_and_keep_the_row_s_name() -> None:
    _, [[first, second]] = style.grid_of(1, 2, 2, 2)
    style.note(first, "no failure cases")
    style.name_row([first, second], "model", "layer")
    assert first.axison and "model" in first.get_ylabel() and not first.get_frame_on()
    assert not any(t.tick1line.get_visible() or t.label1.get_visible() for t in first.xaxis.get_major_ticks())


@pytest.mark.parametrize("name", ["outcomes", "gate-funnel"])
@pytest.mark.parametrize(("n", "drawn"), [(4, "hollow"), (12, "marked"), (24, "solid")])
def test_bars_of_few_cases_are_hatched_and_the_next_ones_starred(
    name: str, n: int, drawn: str, synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=n, probes=(), protocol=GAP)
    drawing = figures.draw(name, [run])
    mine = [r for r in drawing.rows if r["n"] == n]
    assert mine and {r["drawn"] for r in mine} == {drawn}
    first = _bars(drawing)[0]
    assert _hollow(first) == bool(first.get_hatch()) == (drawn == "hollow")
    assert (f"n={n}*" in _texts(drawing)) == (drawn == "marked")
    said = {"hollow": "Hatched, bars in a dashed outline (n < 5): ", "marked": "Starred (n < 15): ", "solid": None}[
        drawn
    ]
    assert said is None or said in drawing.caption
    assert said is not None or "n <" not in drawing.caption


def test_cells_of_few_cases_are_hatched_and_keep_their_color() -> None:
    ax = style.figure(3, 3).subplots()
    values, counts = np.array([[0.1, 0.9], [np.nan, 0.5], [0.2, 0.3]]), np.array([[4, 12], [2, np.nan], [5, 15]])
    image = grouping.heat(ax, values, style.SEQUENTIAL, 0, 1, counts=counts, say="{:.2f}".format)
    assert np.ma.getmaskarray(image.get_array()).tolist() == [[False, False], [True, False], [False, False]]
    assert _hatched(ax) == {(0, 0)}
    assert [t.get_text() for t in ax.texts] == ["0.10", "0.90*", "–", "0.50", "0.20*", "0.30"]


@pytest.mark.parametrize(("n", "grid"), [(1, (1, 1)), (4, (1, 4)), (5, (2, 4)), (9, (3, 4))])
def test_panels_stand_in_rows_of_four_and_the_rest_of_the_last_is_empty(n: int, grid: tuple[int, int]) -> None:
    fig, axes = grouping.panels_of(n, 2, 2)
    assert fig.axes[0].get_gridspec().get_geometry() == grid  # type: ignore[union-attr]
    assert [bool(ax.axison) for ax in axes] == [True] * n + [False] * (grid[0] * grid[1] - n)


def test_steps_that_few_cases_reach_are_hatched_and_named(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=24, probes=())
    steps = np.full((4, 3), 0.5, dtype=np.float32)
    tensors = {"step.failure": steps, "step_n.failure": np.array([20, 6, 3]), "step.success": steps,
               "step_n.success": np.array([20, 20, 20])}  # fmt: skip
    means = [{"quantity": "step_cosine", "group": g, "layer": i, "n": 20, "value": 0.5, "low": 0.4, "high": 0.6,
              "interval": "t"} for g in ("failure", "success") for i in range(4)]  # fmt: skip
    synthetic.write_probe(run / "probes" / "trajectory", "trajectory", means, tensors, {})
    drawing = figures.draw("cosine-trajectory", [run])
    failure, success, by_layer = drawing.figure.axes[:3]
    assert _hatched(failure) == {(layer, 2) for layer in range(4)} and not _hatched(success)
    assert (
        "control (0.45 %), failure, step 2 (n=3)" in drawing.caption
        and "control (0.45 %), failure, step 1" not in drawing.caption
    )
    # The published figure: a line a group over layers, with intervals.
    assert by_layer.get_xlabel() == "layer"
    assert len([line for line in by_layer.lines if line.get_marker() == "o"]) == 8
    assert [r["layer"] for r in drawing.rows if r.get("low") is not None] == [0, 1, 2, 3] * 2
    assert "Intervals: 95 %, t." in drawing.caption


def test_panels_of_heads_say_how_many_cases_they_rest_on(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=24, probes=("lookback",))
    table = run / "probes" / "lookback" / "table.csv"
    table.write_text(table.read_text().replace("lookback_ratio,failure,16", "lookback_ratio,failure,3"))
    drawing = figures.draw("lookback", [run])
    assert "failure, n=3" in _texts(drawing) and "success, n=16" in _texts(drawing)
    assert drawing.figure.axes[0].get_ylabel().replace("\n", " ") == "control (0.45 %) layer"
    assert [*dict.fromkeys(r["kind"] for r in drawing.rows)] == ["composition", "commonsense", "math"]
    drawn = {r["show"]: r["drawn"] for r in drawing.rows if r["kind"] == "composition"}
    assert drawn == {"failure": "hollow", "success": "solid", "difference": "hollow"}
    assert "control (0.45 %), failure (n=3)" in drawing.caption


def test_a_run_with_nothing_to_draw_is_named(synthetic: ModuleType, tmp_path: Path) -> None:
    synthetic.make_run(tmp_path / "a", probes=("min-k",), protocol=GAP, n=20)
    synthetic.make_run(tmp_path / "b", probes=(), protocol=GAP, n=20, model="organism:twin")
    synthetic.make_run(tmp_path / "c", probes=(), n=20)
    assert figures.draw("mink", [tmp_path]).caption.endswith("nothing to draw: b.")
    # Another protocol's run never has such a number, so nothing is missing.
    assert "nothing to draw" not in figures.draw("gap-slopes", [tmp_path]).caption


def test_runs_in_folders_of_one_name_are_told_apart(synthetic: ModuleType, tmp_path: Path) -> None:
    for folder, n, model in (("x", 20, "organism:control"), ("y", 30, "organism:twin")):
        synthetic.make_run(tmp_path / folder / "run", n=n, probes=(), protocol=GAP, model=model)
    drawing = figures.draw("gate-funnel", [tmp_path / "x" / "run", tmp_path / "y" / "run"])
    counts = [next(b.get_width() for b in _bars(drawing, panel)) for panel in (0, 1)]
    assert counts == [20, 30] and all(len(_bars(drawing, panel)) <= 5 for panel in (0, 1))


@pytest.mark.parametrize("name", ["step-bars", "failure-quadrants", "mink", "gaps"])
def test_figures_are_ordered_by_what_the_study_says(name: str, synthetic: ModuleType, tmp_path: Path) -> None:
    sizes = {"a": 70, "b": 8, "c": None}
    for i, run in enumerate(sizes):
        synthetic.make_run(tmp_path / run, probes=("min-k",), protocol=GAP, n=40, seed=i, model=f"org/{run}")
    about = {r: {"label": r, **({"size": s} if s else {})} for r, s in sizes.items()}
    (tmp_path / "study.json").write_text(json.dumps({"schema": 1, "runs": list(sizes), "about": about}))
    drawing = figures.draw(name, [tmp_path], group_by="size")
    assert list(dict.fromkeys(r["model"] for r in drawing.rows)) == ["8 · b", "70 · a", "c"]
    assert "Ordered by size. Without size: c." in drawing.caption
    with pytest.raises(InputError, match="--group-by cost: no model here has this field"):
        figures.draw(name, [tmp_path], group_by="cost")


def test_panels_of_families_share_their_depths(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=40, probes=())
    document: dict[str, Any] = json.loads((run / "metrics.json").read_text())
    document["metrics"].append(synthetic.rate("residual_failure", 3, 20, depth_bin=2, family="pair"))
    (run / "metrics.json").write_text(json.dumps(document))
    panels = [ax for ax in figures.draw("family-curves", [run]).figure.axes if ax.get_xlabel() == "depth"]
    assert len(panels) == 3 and len({ax.get_xlim() for ax in panels}) == 1


def test_another_way_to_ask_does_not_enter_the_quadrants_of_the_usual_one(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=60, probes=(), protocol=GAP)
    document: dict[str, Any] = json.loads((run / "metrics.json").read_text())
    usual = [m for m in document["metrics"] if m["metric"] == "quadrant" and set(m["group"]) == {"quadrant"}]
    document["metrics"] += [synthetic.rate("quadrant", 1, 2, **m["group"], prompt="self-ask") for m in usual]
    (run / "metrics.json").write_text(json.dumps(document))
    rows = figures.draw("failure-quadrants", [run]).rows
    assert sorted((r["quadrant"], r["n"]) for r in rows) == sorted((m["group"]["quadrant"], m["n"]) for m in usual)


def _models(synthetic: ModuleType, folder: Path, n: int, name: str, **made: Any) -> list[Path]:
    return [synthetic.make_run(folder / f"{name}-{i}", n=20, probes=(), model=f"org/{name}-{i}", seed=i, **made)
            for i in range(n)]  # fmt: skip


@pytest.mark.parametrize(("name", "made"), [("collapse-curve", {}), ("gap-scatter", {"protocol": GAP})])
def test_names_of_many_models_stand_beside_the_marks_and_within_the_figure(
    name: str, made: dict[str, Any], synthetic: ModuleType, tmp_path: Path
) -> None:
    runs = _models(synthetic, tmp_path, 9, "a-model-with-a-long-name-7B-Instruct", **made)
    figure = figures.draw(name, runs).figure
    figure.draw_without_rendering()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert len(legend.get_texts()) >= 9
    assert box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1
    assert not any(box.overlaps(ax.get_window_extent()) for ax in figure.axes)


def test_more_models_than_colors_have_other_lines(synthetic: ModuleType, tmp_path: Path) -> None:
    figure = figures.draw("collapse-curve", _models(synthetic, tmp_path, 9, "m")).figure
    handles = {str(line.get_label()): line for line in figure.axes[0].lines if str(line.get_label()).startswith("m-")}
    assert len({(str(line.get_color()), line.get_linestyle()) for line in handles.values()}) == 9


def test_long_names_of_families_stand_once_and_whole_below_their_depths(synthetic: ModuleType, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=80, probes=())
    document: dict[str, Any] = json.loads((run / "metrics.json").read_text())
    document["metrics"] += [synthetic.rate("residual_failure", 3, 20, depth_bin=d, family=f)
                            for f in ("temporal_interval_decoy", "temporal_successor") for d in (4, 6)]  # fmt: skip
    (run / "metrics.json").write_text(json.dumps(document))
    figure = figures.draw("family-heatmap", [run]).figure
    figure.draw_without_rendering()
    labels = figure.axes[0].get_xticklabels(minor=True)
    names = [t.get_text().replace("\n", "") for t in labels]
    assert names.count("temporal_interval_decoy") == names.count("temporal_successor") == 1
    boxes = [t.get_window_extent() for t in labels]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))


def test_few_rows_are_marked_and_cells_that_are_not_drawn_stay_so() -> None:
    rows = [{"n": n, "value": v, "drawn": d} for n, v, d in ((4, 0.1, None), (5, 0.1, None), (15, None, None),
                                                             (15, 0.2, "no"), (None, 0.2, None))]  # fmt: skip
    assert [r["drawn"] for r in grouping.few_marks(rows)] == ["hollow", "marked", "undefined", "no", None]
    assert [grouping.number(v) for v in (0.12345678, np.nan, np.inf)] == [0.123457, None, None]
    found = grouping.cells(np.array([[1, np.nan], [3, 4]]), ("layer", "head"), run="r")
    assert [(r["layer"], r["head"], r["value"]) for r in found] == [(0, 0, 1), (0, 1, None), (1, 0, 3), (1, 1, 4)]


def test_models_are_colored_by_their_group_in_the_figure_of_gaps(synthetic: ModuleType, tmp_path: Path) -> None:
    for i, name in enumerate("abc"):
        synthetic.make_run(tmp_path / name, n=40, probes=(), protocol="compositionality-gap", model=f"o/{name}", seed=i)
    about = {name: {"label": name, "family": "x" if name != "b" else "y"} for name in "abc"}
    (tmp_path / "study.json").write_text(json.dumps({"schema": 1, "runs": list("abc"), "about": about}))
    found = figures.draw("gaps", [tmp_path], group_by="family")
    shades = [str(line.get_color()) for line in found.figure.axes[0].lines if line.get_marker() in ("o", "D")]
    assert shades == [style.color(0), style.color(0), style.color(1)]


def test_a_figure_of_several_metrics_has_only_the_runs_with_all_of_them() -> None:
    all_of_them, one = (bare_run(metrics=[Metric(m) for m in names]) for names in ("abc", "b"))
    assert grouping.having([one, all_of_them], "a", "b") == [all_of_them]
    assert grouping.having([one, all_of_them], "b") == [one, all_of_them]


def test_runs_that_could_have_a_row_and_have_none_are_named() -> None:
    runs = [bare_run(name=n, protocol=p) for n, p in (("a", "gate"), ("b", "gate"), ("c", "gap"))]
    shown = drawing.Drawing(style.notice(""), [{"run": "a"}], "")
    assert catalog._not_shown(shown, runs) == ["b"]
    assert catalog._not_shown(drawing.Drawing(style.notice(""), [{"run": "a − b"}], ""), runs) == []
    assert catalog._not_shown(replace(shown, empty="why"), runs) == []
    assert [catalog._bands(text) for text in (None, "trained", "4, 2")] == [None, (), (4, 2)]
    names = [bare_run(model=m, benchmark=b, name=n, path=Path(f"{i}"))
             for i, (m, b, n) in enumerate((("m", "x", "r"), ("m", "y", "s")))]  # fmt: skip
    assert [*grouping.labels(names).values()] == ["m · x", "m · y"]
    assert [*grouping.labels_by_benchmark(names).values()] == ["m", "m"]
    assert [*grouping.labels([*names, names[0]]).values()] == ["r (3)", "s (2)"]
    fig, panels = grouping.small_multiples(names, 2, 2, "layer", "share")
    first, second = panels.values()
    shown = [[ax.xaxis.get_tick_params()["labelbottom"], ax.yaxis.get_tick_params()["labelleft"]] for ax in fig.axes]
    assert shown == [[False, True], [True, True]], "depths stand below the lowest panel"
    assert second.get_shared_x_axes().joined(first, second) and not first.get_shared_y_axes().joined(first, second)
    beside = [bare_run(model=m, name=m, path=Path(m)) for m in "pq"]
    _, panels = grouping.small_multiples(beside, 2, 2, "layer", "share")
    left, right = panels.values()
    assert [ax.yaxis.get_tick_params()["labelleft"] for ax in (left, right)] == [True, False]
    assert left.get_shared_y_axes().joined(left, right), "panels of one line have one axis"
    assert fig.get_supxlabel() == "layer" and (first.get_ylabel(), second.get_ylabel()) == ("x", "y")


@pytest.mark.parametrize("columns", [1, 2])
def test_a_color_bar_over_one_column_names_both_ends_and_the_middle_and_a_wider_one_more(columns: int) -> None:
    fig, axes = grouping.panels_of(columns, columns, 2)
    grouping.color_bar(fig, axes, style.DIVERGING, -0.5, 0.5, "difference")
    bar = fig.axes[-1]
    assert bar.get_xlabel() == "difference" and bar.get_xlim() == (-0.5, 0.5)
    ticks = [float(x) for x in bar.get_xticks()]
    assert (ticks == [-0.5, 0, 0.5]) == (columns == 1) and (len(ticks) > 3) == (columns == 2)
