"""Figures of the steps against the whole: accuracy on each, and the gaps between them."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...evaluation.metrics import Metric
from ...evaluation.protocols import counting
from ..run.reader import Row, RunData
from ..run.summary import counted_rows
from . import style
from .drawing import GAP, Drawing, curves, drawn, figure, need, point
from .grouping import grouped, having, labels, labels_by_benchmark, steps_of
from .scatters import marks

STEPS = {"both": "both", "composition": "whole"}


@figure("step-bars", "Accuracy on steps and whole", GAP, "behavior", 11)
def step_bars(runs: Sequence[RunData], group_by: str | None = None) -> Drawing:
    """Accuracy on each step, on both and on the whole, per model, ordered by ``group_by`` (AgentCoMa, Fig. 3)."""
    order = grouped(having(runs, "step:0"), group_by)
    rows = _steps(order.runs, order.names)
    need(rows, "No run here has step accuracies; the protocol compositionality-gap measures them.")
    runs = order.runs
    models = list(dict.fromkeys(r["model"] for r in rows))
    steps = _in_order(rows)
    fig, ax = style.one_panel(6.4, 1.2 + 0.27 * len(models) * (len(steps) + 1))
    style.bars(ax, rows, "step", steps, models, [style.plain(m, 30) for m in models])
    style.percent(ax, "x", low=0.03)
    style.dress(ax, "Accuracy on the parts and on the whole", grid="x")
    text = f"Accuracy per step, on both steps and on the whole.{order.text}{_chance(runs)}"
    return drawn(fig, rows, text, runs, "{model}, {step}", mark="Starred")


@figure("gap-slopes", "From the steps to the whole", GAP, "first", 2)
def gap_slopes(runs: Sequence[RunData]) -> Drawing:
    """One line per model over step 1, step 2, both and the whole; one panel per benchmark (AgentCoMa, Fig. 4)."""
    rows = _steps(runs, labels_by_benchmark(having(runs, "step:0")))
    need(rows, "No run here has step accuracies; the protocol compositionality-gap measures them.")
    runs = having(runs, "step:0")
    benchmarks = list(dict.fromkeys(r["benchmark"] for r in rows))
    steps = _in_order(rows)
    fig, panels = style.grid_of(1, len(benchmarks), 5.2, 3.8, sharey=True)
    models = list(dict.fromkeys(r["model"] for r in rows))
    for ax, benchmark in zip(panels[0], benchmarks, strict=True):
        for i, model in enumerate(models):
            mine = [r for r in rows if r["model"] == model and r["benchmark"] == benchmark]
            nudge = (i - (len(models) - 1) / 2) * 0.05
            places = [steps.index(r["step"]) + nudge for r in mine]
            style.points(ax, mine, places, style.color(i), model, style=style.dash(i))
        ax.set_xticks(range(len(steps)), steps)
        style.percent(ax)
        style.dress(ax, benchmark, y="accuracy")
    text = f"Accuracy on the single steps, on both steps and on the whole.{_chance(runs)}{_gaps(runs)}"
    cell_name = "{model}, {step}" if len(benchmarks) == 1 else "{model}, {benchmark}, {step}"
    chart = curves("step", "model", panel="benchmark", xlabel="", ylabel="accuracy", percent=True)
    return drawn(fig, rows, text, runs, cell_name, chart)


@figure("gap-scatter", "The whole against independent steps", GAP, "behavior", 10)
def gap_scatter(runs: Sequence[RunData]) -> Drawing:
    """The whole against the geometric mean of the steps, with y = x^2 (Compositional GSM, Fig. 1)."""
    chosen = having(runs, "step:0", "step:1", "composition")
    names = labels(chosen)
    rows = []
    for run in chosen:
        first, second, whole = (run.one(m) for m in ("step:0", "step:1", "composition"))
        if first and second and whole and None not in (first.value, second.value, whole.value):
            root = math.sqrt((first.value or 0) * (second.value or 0))
            rows.append({**point(run, names[run.path], whole), "root_s1_s2": root, "x": root, **_root_interval(run)})
    need(rows, "No run here has accuracies on two steps and on the whole.")
    fig, ax = style.one_panel(4.4, 4.2)
    grid = [i / 50 for i in range(51)]
    ax.plot(grid, [g * g for g in grid], "--", color=style.MUTED, linewidth=1.2, label="independent steps: y = x²")
    marks(ax, rows, "The whole against independent steps", "√(S1 · S2)", "accuracy on the whole")
    text = (
        "Accuracy on the whole against the geometric mean of both steps. The curve shows independent steps; below it, "
        "the whole is harder than its steps taken independently."
    )
    return drawn(fig, rows, text, chosen, "{model}")


def _root_interval(run: RunData) -> dict[str, Any]:
    """Bootstrap interval of sqrt(S1 S2) over the cases with both steps judged."""
    items = counting.items(counted_rows(run))
    steps = [(i, i.truth("part:0"), i.truth("part:1")) for i in items]
    known = [(i, bool(a), bool(b)) for i, a, b in steps if a is not None and b is not None]

    def root(sums: np.ndarray) -> np.ndarray:
        return np.sqrt(sums[..., 1] * sums[..., 2]) / sums[..., 0]

    seed, columns = run.seed, [(1, a, b) for _, a, b in known]
    found = counting.statistic("root", columns, root, {}, seed=seed,
                               clusters=counting.clusters_of([i for i, _, _ in known]))  # fmt: skip
    return {"x_low": found.low, "x_high": found.high, "n_x": found.n}


@figure("gaps", "Three gaps on the same answers", GAP, "behavior", 9)
def gaps(runs: Sequence[RunData], group_by: str | None = None) -> Drawing:
    """The published gaps side by side, one row of panels per benchmark: comp - both, comp - S1*S2, P(fail | both).

    ``group_by`` (``family``, ``size``, ``cost``, ``tuning``, ...) orders the models by this field of their study, with
    one color per group (Compositional GSM, Fig. 4-6).
    """
    order = grouped(having(runs, "gap"), group_by)
    metrics = {"gap": "whole − both", "independence_gap": "whole − S1·S2", "press_gap": "P(whole wrong | both right)"}
    rows = [
        point(r, order.names[r.path], m, benchmark=r.benchmark, gap=k)
        for k in metrics for r in order.runs if (m := r.one(k))
    ]  # fmt: skip
    need(rows, "No run here has a compositionality gap.")
    benchmarks = {b: list(dict.fromkeys(r["model"] for r in rows if r["benchmark"] == b))
                  for b in dict.fromkeys(r["benchmark"] for r in rows)}  # fmt: skip
    tall = [1.1 + 0.3 * len(models) for models in benchmarks.values()]
    fig, grid = style.grid_of(len(benchmarks), len(metrics), 2.9, sum(tall) / len(tall), sharex="col", sharey="row",
                              height_ratios=tall)  # fmt: skip
    for line, (benchmark, models) in zip(grid, benchmarks.items(), strict=True):
        for ax, (key, title) in zip(line, metrics.items(), strict=True):
            for row in (r for r in rows if (r["gap"], r["benchmark"]) == (key, benchmark)):
                shade = style.color(order.places[row["model"]])
                style.points(ax, [row], [models.index(row["model"])], shade, "", line=False, horizontal=True)
            ax.axvline(0, color=style.MUTED, linewidth=1)
            style.percent(ax, "x") if key == "press_gap" else style.signed_points(ax)
            last = line is grid[-1]
            style.dress(ax, title if line is grid[0] else "", ("share" if key == "press_gap" else "points") * last,
                        benchmark if ax is line[0] else "", grid="x")  # fmt: skip
        style.names(line[0], models, 28)
    text = f"Three published gaps on the same answers; each compares the whole with another baseline.{order.text}"
    return drawn(fig, rows, text, order.runs, "{model}, {gap}")


def _steps(runs: Sequence[RunData], names: Mapping[Path, str] | None = None) -> list[Row]:
    runs = having(runs, "step:0")
    names = names or labels(runs)
    rows = []
    for run in runs:
        single = [f"step:{i}" for i in steps_of(run)]
        for metric in (*single, *STEPS):
            name = STEPS.get(metric) or f"step {int(metric.split(':')[1]) + 1}"
            if single and (m := run.one(metric)):
                rows.append(point(run, names[run.path], m, benchmark=run.benchmark, step=name))
    return rows


def _in_order(rows: Sequence[Row]) -> list[str]:
    """The names of all steps, then both and the whole, also if the first run has fewer steps than another."""
    found = {r["step"] for r in rows}
    steps = sorted(found - set(STEPS.values()), key=lambda name: int(name.removeprefix("step ")))
    return [*steps, *(name for name in STEPS.values() if name in found)]


def _chance(runs: Sequence[RunData]) -> str:
    levels = {(r.benchmark, c) for r in having(runs, "step:0") if (c := r.chance) is not None}
    return "".join(f" Chance level of the whole on {b}: {100 * c:.3g} %." for b, c in sorted(levels))


def _gaps(runs: Sequence[RunData]) -> str:
    chosen = having(runs, "gap")
    names = labels(chosen)
    found = [(names[r.path], m) for r in chosen if (m := r.one("gap")) and m.value is not None]
    return "".join(
        f" Gap (whole − both) of {style.plain(n)}: {100 * (m.value or 0):+.1f} points{_span(m)}, n={m.n}."
        for n, m in found
    )


def _span(m: Metric) -> str:
    return "" if m.low is None or m.high is None else f" [{100 * m.low:+.1f}, {100 * m.high:+.1f}]"
