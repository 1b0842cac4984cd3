"""Figures over layers: steps, readouts, patches and sweeps, each with the cases that it rests on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from composcope.experiments import figures
from composcope.experiments.figures import layers, mechanism, style
from composcope.experiments.figures.drawing import NothingToDraw
from composcope.experiments.run.reader import ProbeData

from ..bare_runs import bare_run


def test_a_step_has_the_number_of_cases_that_reach_it() -> None:
    tensors = {"step.failure": np.zeros((2, 3)), "step_n.failure": np.array([9, 6, 3])}
    probe = ProbeData("trajectory", [], tensors)
    found = layers.cosine_trajectory.draw([bare_run(probe=lambda name: probe)])
    assert [r["n"] for r in found.rows if r["layer"] == 1] == [9, 6, 3]


def test_responses_of_one_token_have_no_steps_and_the_figure_of_the_other_runs_is_drawn() -> None:
    short = ProbeData("trajectory", [], {"step.failure": np.zeros((2, 0))})
    long = ProbeData("trajectory", [], {"step.failure": np.zeros((2, 3))})
    runs = [bare_run(path=Path(name), name=name, model=name, probe=lambda _, p=p: p)
            for name, p in (("short", short), ("long", long))]  # fmt: skip
    with pytest.raises(NothingToDraw, match="trajectory ran"):
        layers.cosine_trajectory.draw(runs[:1])
    assert {r["run"] for r in layers.cosine_trajectory.draw(runs).rows} == {"long"}


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


def test_a_patching_curve_is_in_percent_only_where_its_measure_is_a_rate(everything: Path) -> None:
    for measure, percent in (("flip_rate", True), ("kl", False)):
        found = figures.draw("patching", [everything / "runs" / "temporal-control"], measure=measure)
        assert found.chart is not None and found.chart["percent"] == percent
        labels = [t.get_text() for t in found.figure.axes[0].get_yticklabels()]
        assert any("%" in text for text in labels) == percent


def test_pairs_of_another_length_are_counted_over_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = {site: np.zeros((6, 1, 2)) for site in layers.SITES}
    monkeypatch.setattr(layers, "sweeps_of", lambda run: layers.Sweeps((0,), (0, 1), ("a", "b"), maps, 3))
    found = layers.patching_positions.draw([bare_run(name=n, model=n, path=Path(n)) for n in "ab"])
    assert "Left out: 6 pairs of another length." in found.caption
    assert {(r["n"], r["token"], r["position"]) for r in found.rows} == {(6, "a", 0), (6, "b", 1)}


def test_the_donor_is_the_first_curve_and_a_contrast_has_as_many_cases_as_its_smaller_group() -> None:
    rows = [{"quantity": "flip_rate", "group": g, "layer": 0, "value": 0.5} for g in ("identity", "donor", "noise")]
    found = layers._patch_rows(bare_run(), "m", ProbeData("patching", rows), "flip_rate")
    assert [r["patch"] for r in found] == ["donor", "identity", "noise"]
    held = [{"group": g, "n": n} for g, n in (("failure", 7), ("success", 4), ("other", 2))]
    assert [mechanism.behind(held, show) for show in ("difference", "failure", "success")] == [4, 7, 4]


def test_sweeps_are_those_of_the_most_common_length_and_the_others_are_counted(everything: Path) -> None:
    (run,) = figures.load([everything / "runs" / "temporal-control"])
    swept = layers.sweeps_of(run)
    assert swept is not None and (swept.left_out, tuple(swept.positions)) == (1, (0, 2, 3))
    assert swept.tokens == ["", "", ":"] and {m.shape for m in swept.maps.values()} == {(5, 2, 3)}
