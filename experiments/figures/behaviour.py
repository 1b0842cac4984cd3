"""Figures of behavior from ``metrics.json``: curves over depth, steps against the whole, gaps."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ...evaluation.metrics import Metric
from ...evaluation.protocols import counting
from ..run.reader import Row, RunData
from . import style
from .drawing import Drawing, curves, drawn, need
from .figure import GAP, GATE, figure
from .grouping import grouped, having, labels, labels_by_benchmark
from .heatmaps import table
from .scatters import marks

STEPS = {"both": "both", "composition": "whole"}


def point(run: RunData, label: str, metric: Metric, **keys: Any) -> Row:
    """One row of a figure from one metric."""
    fields = ("n", "n_invalid", "count", "value", "interval", "low", "high", "bound_low", "bound_high")
    return {"run": run.name, "model": label, **keys, **{k: getattr(metric, k) for k in fields}}


@figure("collapse-curve", "Residual failure over depth", GATE, "first", 1)
def collapse_curve(runs: Sequence[RunData], bands: Sequence[int] | None = None) -> Drawing:
    """Residual failure P(whole wrong | both gates) over depth, one line per model (Composition collapse, Fig. 2).

    ``bands`` gives trained depths to shade (Fig. 3); an empty ``bands`` shades the ``trained_depths`` that the study
    gives for its models. With ``bands``, models that the study marks as ``baseline`` are dotted.
    """
    rows = _over_depth(runs)
    need(rows, "No run here has residual failure over depth; the protocol double-gate measures it.")
    runs = having(runs, "residual_failure")
    fig, ax = style.one_panel(6.2, 3.9)
    shaded = _shaded(runs, bands)
    dotted = {m for r, m in labels(runs).items() if bands is not None and _find(runs, r).about.get("baseline")}
    _depth_panel(ax, rows, "Wrong although every part is known", dotted=dotted)
    for i, depth in enumerate(shaded):
        ax.axvspan(depth - 0.45, depth + 0.45, color=style.MUTED, alpha=0.14, linewidth=0, zorder=0,
                   label="trained depth" if i == 0 else "_nolegend_")  # fmt: skip
    style.shared_legend(fig)
    text = "Residual failure: share of wholes answered wrong among cases that passed both gates, by depth." + _bins(
        runs
    )
    if shaded:
        text += f" Shaded: trained depths ({', '.join(map(str, shaded))}){'; dotted: baseline' if dotted else ''}."
    elif bands is not None:
        text += " The study gives no trained depths for any model."
    chart = curves("depth", "model", xlabel="depth", ylabel="residual failure", percent=True)
    return drawn(fig, rows, text, runs, "{model}, depth {depth}", chart)


@figure("family-curves", "Residual failure over depth, by family", GATE, "first", 5)
def family_curves(runs: Sequence[RunData]) -> Drawing:
    """The collapse curve with one panel per family (Composition collapse, Fig. 6)."""
    rows = _over_depth(runs, "family")
    families = sorted({r["family"] for r in rows})
    need(families, "No run here has residual failure by family and depth.")
    runs = having(runs, "residual_failure")
    fig, panels = style.grid_of(1, len(families), 3.3, 3.3, sharey=True)
    for i, (ax, family) in enumerate(zip(panels[0], families, strict=True)):
        _depth_panel(
            ax, [r for r in rows if r["family"] == family], family, y="" if i else "residual failure", runs=rows
        )
    style.shared_legend(fig)
    text = "Residual failure by depth, one panel per family; all panels have the same axes." + _bins(runs)
    chart = curves(
        "depth", "model", panel="family", xlabel="depth", ylabel="residual failure", percent=True, shared=True
    )
    return drawn(fig, rows, text, runs, "{model}, {family}, depth {depth}", chart)


@figure("family-heatmap", "Residual failure by family and depth", GATE, "behavior", 8)
def family_heatmap(runs: Sequence[RunData]) -> Drawing:
    """Residual failure by model x family x depth as a colored table (Composition collapse, Fig. 5)."""
    rows = _over_depth(runs, "family")
    need(rows, "No run here has residual failure by family and depth.")
    runs = having(runs, "residual_failure")
    columns = sorted({(r["family"], r["depth"]) for r in rows})
    models = list(dict.fromkeys(r["model"] for r in rows))
    fig, ax = style.one_panel(1.6 + 0.62 * len(columns), 1.5 + 0.42 * len(models))
    table(ax, rows, models, columns, lambda r: (r["model"], (r["family"], r["depth"])))
    ax.set_yticks(range(len(models)), [style.plain(m, 30) for m in models])
    style.dress(ax, "Residual failure, %", "depth, family", grid=None)
    _depths_of_families(ax, columns)
    text = "Residual failure in percent." + _bins(runs)
    return drawn(fig, rows, text, runs, "{model}, {family}, depth {depth}", mark="Starred")


def _depths_of_families(ax: Axes, columns: Sequence[tuple[str, int]]) -> None:
    """Write depths below the columns, and each family's full name once below its depths, on several lines if needed."""
    ax.set_xticks(range(len(columns)), [str(depth) for _, depth in columns])
    places: dict[str, list[int]] = {}
    for x, (family, _) in enumerate(columns):
        places.setdefault(family, []).append(x)
    names = [style.broken(family, 8 * len(xs)) for family, xs in places.items()]
    ax.xaxis.remove_overlapping_locs = False
    ax.set_xticks([sum(xs) / len(xs) for xs in places.values()], names, minor=True)
    ax.tick_params(axis="x", which="minor", length=0, pad=16, labelsize=8, labelcolor=style.MUTED)
    for xs in list(places.values())[1:]:
        ax.axvline(xs[0] - 0.5, color=style.GRID, linewidth=0.8)


@figure("step-bars", "Accuracy on steps and whole", GAP, "behavior", 11)
def step_bars(runs: Sequence[RunData], group_by: str | None = None) -> Drawing:
    """Accuracy on each step, on both and on the whole, per model, ordered by ``group_by`` (AgentCoMa, Fig. 3)."""
    order = grouped(having(runs, "step:0"), group_by)
    rows = _steps(order.runs, order.names)
    need(rows, "No run here has step accuracies; the protocol compositionality-gap measures them.")
    runs = order.runs
    models = list(dict.fromkeys(r["model"] for r in rows))
    steps = list(dict.fromkeys(r["step"] for r in rows))
    fig, ax = style.one_panel(6.4, 1.2 + 0.27 * len(models) * (len(steps) + 1))
    style.bars(ax, rows, "step", steps, models, [style.plain(m, 30) for m in models])
    style.percent(ax, "x", low=0.03)
    style.dress(ax, "Accuracy on the parts and on the whole", grid="x")
    style.shared_legend(fig)
    text = f"Accuracy per step, on both steps and on the whole.{order.text}{_chance(runs)}"
    return drawn(fig, rows, text, runs, "{model}, {step}", mark="Starred")


@figure("gap-slopes", "From the steps to the whole", GAP, "first", 2)
def gap_slopes(runs: Sequence[RunData]) -> Drawing:
    """One line per model over step 1, step 2, both and the whole; one panel per benchmark (AgentCoMa, Fig. 4)."""
    rows = _steps(runs, labels_by_benchmark(having(runs, "step:0")))
    need(rows, "No run here has step accuracies; the protocol compositionality-gap measures them.")
    runs = having(runs, "step:0")
    benchmarks = list(dict.fromkeys(r["benchmark"] for r in rows))
    steps = list(dict.fromkeys(r["step"] for r in rows))
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
    style.shared_legend(fig)
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
    marks(ax, rows, "Below the curve: worse than independent steps", "√(S1 · S2)", "accuracy on the whole")
    style.shared_legend(fig)
    text = "Accuracy on the whole against the geometric mean of both steps. The curve shows independent steps."
    return drawn(fig, rows, text, chosen, "{model}")


def _root_interval(run: RunData) -> dict[str, Any]:
    """Bootstrap interval of sqrt(S1 S2) over the cases with both steps judged."""
    items = counting.items(run.graded)
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
            (style.percent if key == "press_gap" else style.signed_points)(ax, "x")
            last = line is grid[-1]
            style.dress(ax, title if line is grid[0] else "", ("share" if key == "press_gap" else "points") * last,
                        benchmark if ax is line[0] else "", grid="x")  # fmt: skip
        style.names(line[0], models, 28)
    text = f"Three published gaps on the same answers; each compares the whole with another baseline.{order.text}"
    return drawn(fig, rows, text, order.runs, "{model}, {gap}")


@figure("stability-scatter", "Failure against atom stability", GATE, "behavior", 12)
def stability_scatter(runs: Sequence[RunData]) -> Drawing:
    """Residual failure at depth 4 against atom stability (Composition collapse, Fig. 4)."""
    chosen = having(runs, "atom_stability", "residual_failure")
    names = labels(chosen)
    rows = []
    for run in chosen:
        stable = run.one("atom_stability", per="fact") or run.one("atom_stability")
        failed = run.one("residual_failure", depth_bin=4) or run.one("residual_failure", depth=4)
        if stable and failed and stable.value is not None:
            known = {"atom_stability": stable.value, "x": stable.value, "n_x": stable.n}
            ends = {"x_low": stable.low, "x_high": stable.high}
            rows.append({**point(run, names[run.path], failed), **known, **ends})
    need(rows, "No run here has both atom stability and residual failure at depth 4.")
    fig, ax = style.one_panel(4.4, 3.8)
    marks(ax, rows, "Knowing is not composing", "atoms right in every wording", "residual failure at depth 4")
    style.shared_legend(fig)
    text = "Residual failure at depth 4 against the share of atoms answered right in every wording."
    return drawn(fig, rows, text, chosen, "{model}")


def _over_depth(runs: Sequence[RunData], *by: str) -> list[Row]:
    runs = having(runs, "residual_failure")
    names = labels(runs)
    rows = []
    for run in runs:
        metrics = run.select("residual_failure", "depth_bin", *by) or run.select("residual_failure", "depth", *by)
        for m in metrics:
            depth = m.group.get("depth_bin", m.group.get("depth"))
            keys = {k: m.group[k] for k in by}
            rows.append(point(run, names[run.path], m, **keys, depth=depth))
    return sorted(rows, key=lambda r: ([str(r[k]) for k in by], r["depth"]))


def _bins(runs: Sequence[RunData]) -> str:
    """A sentence on depths that share a bin, if the benchmark declares bins; begins with a space."""
    held: dict[int, set[int]] = {}
    for case in (case for run in runs for case in run.cases.values()):
        if case.depth is not None and case.depth_bin not in (None, case.depth):
            held.setdefault(int(case.depth_bin), set()).add(case.depth)
    if not held:
        return ""
    said = "; ".join(f"{at} includes {' and '.join(map(str, sorted(depths)))}" for at, depths in sorted(held.items()))
    return f" Depths are grouped in bins declared by the benchmark: {said}."


def _depth_panel(
    ax: Axes,
    rows: Sequence[Row],
    title: str,
    y: str = "residual failure",
    runs: Sequence[Row] = (),
    dotted: Collection[str] = (),
) -> None:
    models = list(dict.fromkeys(r["model"] for r in runs or rows))
    depths = sorted({r["depth"] for r in runs or rows})
    for i, model in enumerate(models):
        mine = [r for r in rows if r["model"] == model]
        nudge = (i - (len(models) - 1) / 2) * 0.07
        line = ":" if model in dotted else style.dash(i)
        style.points(ax, mine, [r["depth"] + nudge for r in mine], style.color(i), model, style=line)
    ax.set_xticks(depths)
    ax.set_xlim(min(depths) - 0.6, max(depths) + 0.6)
    style.percent(ax)
    style.dress(ax, title, "depth", y)


def _shaded(runs: Sequence[RunData], bands: Sequence[int] | None) -> list[int]:
    if bands is None:
        return []
    return sorted(set(bands) or {int(d) for r in runs for d in r.about.get("trained_depths") or ()})


def _find(runs: Sequence[RunData], path: Path) -> RunData:
    return next(r for r in runs if r.path == path)


def _steps(runs: Sequence[RunData], names: Mapping[Path, str] | None = None) -> list[Row]:
    runs = having(runs, "step:0")
    names = names or labels(runs)
    rows = []
    for run in runs:
        single = sorted({m.metric for m in run.metrics if m.metric.startswith("step:")})
        for metric in (*single, *STEPS):
            name = STEPS.get(metric) or f"step {int(metric.split(':')[1]) + 1}"
            if single and (m := run.one(metric)):
                rows.append(point(run, names[run.path], m, benchmark=run.benchmark, step=name))
    return rows


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
