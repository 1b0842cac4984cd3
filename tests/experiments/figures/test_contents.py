"""Marks of figures whose csv holds more than one number that could be drawn: the right one is."""

from __future__ import annotations

import math
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from composcope.evaluation.cases import Case
from composcope.evaluation.graded import Graded
from composcope.experiments import figures
from composcope.experiments.figures import accuracies, depth_curves


@pytest.fixture(scope="module")
def runs(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> list[figures.RunData]:
    folder, gap = tmp_path_factory.mktemp("study"), "compositionality-gap"
    synthetic.make_run(folder / "gate", n=160, probes=(), failure=0.7)
    for i, name in enumerate(("none", "twin")):
        made = {"model": f"organism:{name}", "failure": 0.3 + 0.4 * i, "seed": i}
        synthetic.make_run(folder / name, n=80, probes=(), protocol=gap, **made)
    return figures.load([folder])


def _bars(ax: Axes) -> list[float]:
    widths = [bar.get_bbox().width for bar in ax.patches if isinstance(bar, Rectangle)]
    return [w for w in widths if w > 0]


def _graded(*answers: str) -> SimpleNamespace:
    """Answers to wholes and programs, a letter each."""
    named: dict[str, Any] = {"1": "correct", "0": "incorrect", "?": "invalid"}
    rows = [Graded(f"c{i}", role, named[letter]) for i, letters in enumerate(answers)
            for role, letter in zip(("whole", "code"), letters, strict=True)]  # fmt: skip
    return SimpleNamespace(graded=rows, protocol="reasoning-gap", name="r", seed=0)


def test_a_gain_is_relative_to_the_usual_way_and_a_pair_is_a_minus_b() -> None:
    (row,) = accuracies._gains(_graded("11", "01", "01", "00", "?1"), "m")  # type: ignore[arg-type]
    assert (row["way"], row["count"], row["usual"], row["n"], row["n_invalid"]) == ("code", 3, 1, 4, 1)
    assert row["value"] == pytest.approx((3 - 1) / 1)
    better, worse = _graded("10", "10", "10", "00"), _graded("10", "00", "00", "?0")
    (whole,) = accuracies.step_gains(better, worse)  # type: ignore[arg-type]
    assert (whole["asked"], whole["n"], whole["n_invalid"]) == ("whole", 3, 1)
    assert whole["value"] == pytest.approx(2 / 3)


def test_bars_of_the_funnel_are_as_long_as_their_counts(runs: list[figures.RunData]) -> None:
    drawing = figures.draw("gate-funnel", runs)
    panels = [ax for ax in drawing.figure.axes if ax.axison]
    for ax, model in zip(panels, dict.fromkeys(r["model"] for r in drawing.rows), strict=True):
        mine = [r for r in drawing.rows if r["model"] == model]
        assert _bars(ax) == pytest.approx([r["count"] for r in mine])
        assert [t.get_text() for t in ax.texts] == [str(r["count"]) for r in mine]
        assert len({r["count"] for r in mine}) > 2 and any(r["count"] != r["n"] for r in mine)


def test_bars_of_the_quadrants_are_as_long_as_their_shares_and_make_up_a_whole(runs: list[figures.RunData]) -> None:
    drawing = figures.draw("failure-quadrants", runs)
    found = _bars(drawing.figure.axes[0])
    assert sorted(found) == pytest.approx(sorted(r["value"] for r in drawing.rows if r["value"]))
    assert sum(found) == pytest.approx(2)


def test_outcomes_are_shares_of_the_answers_in_their_role(runs: list[figures.RunData]) -> None:
    drawing = figures.draw("outcomes", runs)
    assert sorted(_bars(drawing.figure.axes[0])) == pytest.approx(
        sorted(r["value"] for r in drawing.rows if r["value"])
    )
    of_bar: dict[tuple[str, str], float] = {}
    for row in drawing.rows:
        assert row["value"] == pytest.approx(row["count"] / row["n"])
        bar = (row["run"], row["role"])
        of_bar[bar] = of_bar.get(bar, 0) + row["value"]
    assert len(of_bar) > 5 and list(of_bar.values()) == pytest.approx([1] * len(of_bar))


def test_the_scatter_over_steps_is_at_the_geometric_mean_of_the_steps(runs: list[figures.RunData]) -> None:
    chosen = [r for r in runs if r.one("step:0")]
    drawing = figures.draw("gap-scatter", chosen)
    assert len(drawing.rows) == 2
    for run, row in zip(chosen, drawing.rows, strict=True):
        first, second = run.one("step:0"), run.one("step:1")
        assert first is not None and second is not None and first.value and second.value
        assert row["x"] == pytest.approx(math.sqrt(first.value * second.value), abs=1e-9)
        assert row["x_low"] < row["x"] < row["x_high"]
    places = {(round(x, 9), round(y, 9)) for x, y in _marks(drawing.figure.axes[0])}
    assert {(round(r["x"], 9), round(r["value"], 9)) for r in drawing.rows} <= places


def _marks(ax: Any) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for line in ax.lines for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]


def test_depths_that_a_benchmark_counts_in_another_bin_are_said() -> None:
    def run(benchmark: str, *depths: int) -> Any:
        cases = {str(d): Case(str(d), "q", "a", benchmark=benchmark, depth=d) for d in depths}
        return SimpleNamespace(cases=cases)

    binned = depth_curves._bins([run("organism-temporal", 2, 4, 7), run("organism-temporal", 9, 7)])
    assert "4 includes 7; 6 includes 9" in binned
    assert depth_curves._bins([run("mine", 2, 4, 7)]) == ""
