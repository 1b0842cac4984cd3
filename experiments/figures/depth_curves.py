"""Figures of the double gate: residual failure over depth (curves, families, atoms), and two models over channels."""

from collections.abc import Collection, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from ...errors import InputError
from ...evaluation.protocols.compare import compare
from ..run.compare import shared_cases
from ..run.reader import Row, RunData
from ..run.summary import counted_rows
from . import style
from .accuracies import matched, names_in_pairs
from .drawing import GATE, VERSUS, Drawing, curves, drawn, figure, need, point
from .grouping import having, labels, of_largest_families, table
from .scatters import marks


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
    names = labels(runs)
    dotted = {names[r.path] for r in runs if bands is not None and r.about.get("baseline")}
    _depth_panel(ax, rows, "Residual failure over depth", dotted=dotted)
    for i, depth in enumerate(shaded):
        ax.axvspan(depth - 0.45, depth + 0.45, color=style.MUTED, alpha=0.14, linewidth=0, zorder=0,
                   label="trained depth" if i == 0 else "_nolegend_")  # fmt: skip
    text = "Residual failure: share of wholes answered wrong among cases that passed both gates, by depth."
    text += _bins(runs)
    if shaded:
        text += f" Shaded: trained depths ({', '.join(map(str, shaded))}){'; dotted: baseline' if dotted else ''}."
    elif bands is not None:
        text += " The study gives no trained depths for any model."
    chart = curves("depth", "model", xlabel="depth", ylabel="residual failure", percent=True)
    return drawn(fig, rows, text, runs, "{model}, depth {depth}", chart)


ABREAST = 6
"""Panels side by side."""


@figure("family-curves", "Residual failure over depth, by family", GATE, "first", 5)
def family_curves(runs: Sequence[RunData]) -> Drawing:
    """The collapse curve with one panel per family (Composition collapse, Fig. 6)."""
    rows = _over_depth(runs, "family")
    need(rows, "No run here has residual failure by family and depth.")
    shown, left_out = of_largest_families(rows)
    families = sorted({r["family"] for r in shown})
    runs = having(runs, "residual_failure")
    across = min(len(families), ABREAST)
    fig, grid = style.grid_of(-(-len(families) // across), across, 3.3, 3.3, sharey=True)
    panels = [ax for line in grid for ax in line]
    for ax in panels[len(families) :]:
        ax.set_axis_off()
    for i, (ax, family) in enumerate(zip(panels, families, strict=False)):
        mine = [r for r in rows if r["family"] == family]
        _depth_panel(ax, mine, style.broken(family, 30), y="" if i % across else "residual failure", runs=rows)
    text = "Residual failure by depth, one panel per family; all panels have the same axes." + _bins(runs) + left_out
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
    shown, left_out = of_largest_families(rows)
    columns = sorted({(r["family"], r["depth"]) for r in shown})
    models = list(dict.fromkeys(r["model"] for r in rows))
    fig, ax = style.one_panel(1.6 + 0.62 * len(columns), 1.5 + 0.42 * len(models))
    table(ax, shown, models, columns, lambda r: (r["model"], (r["family"], r["depth"])))
    ax.set_yticks(range(len(models)), [style.plain(m, 30) for m in models])
    style.dress(ax, "Residual failure, %", "depth, family", grid=None)
    _depths_of_families(ax, columns)
    text = "Residual failure in percent." + _bins(runs) + left_out
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
    marks(ax, rows, "Failure against atom stability", "atoms right in every paraphrase", "residual failure at depth 4")
    text = (
        "Residual failure at depth 4 against the share of atoms answered right in every paraphrase. On the right and "
        "high up: the model knows the atoms and does not compose them."
    )
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
    looks = {m: (shade, ":" if m in dotted else line) for m, (shade, line) in style.looks(models).items()}
    style.abreast(ax, rows, lambda r: r["model"], looks, lambda r: r["depth"], 0.07)
    ax.set_xticks(depths)
    ax.set_xlim(min(depths) - 0.6, max(depths) + 0.6)
    style.percent(ax)
    style.dress(ax, title, "depth", y)


def _shaded(runs: Sequence[RunData], bands: Sequence[int] | None) -> list[int]:
    if bands is None:
        return []
    return sorted(set(bands) or {int(d) for r in runs for d in r.about.get("trained_depths") or ()})


CHANNELS = {"delta_atom": "Δatom: atoms stable", "delta_comp": "Δcomp: residual failure", "delta_depth": "Δdepth: d50"}


@figure("channels", "Three channels between matched models", GATE + " (for two models)", "optional", 30)
def channels(runs: Sequence[RunData]) -> Drawing:
    """Δatom, Δcomp and Δdepth of every matched pair, A − B (Composition collapse, section 4.1)."""
    gated = [r for r in runs if r.protocol == "double-gate"]
    called = names_in_pairs(gated)
    several = len({r.benchmark for r in gated}) > 1  # two models may be a pair on each of them
    rows = [
        row
        for _, a, b in matched(gated)
        for row in _rows(a, b, f"{called[a.path]} − {called[b.path]}{f' ({a.benchmark})' if several else ''}")
    ]
    need(rows, "No two double-gate runs here share cases; give two models on one benchmark.")
    pairs = list(dict.fromkeys(r["pair"] for r in rows))
    places = {c: list(dict.fromkeys((r["pair"], r["cell"]) for r in rows if r["channel"] == c)) for c in CHANNELS}
    most = max(map(len, places.values()))
    fig, panels = style.grid_of(1, len(CHANNELS), 3.9, 1.4 + 0.27 * most)
    for ax, (channel, title) in zip(panels[0], CHANNELS.items(), strict=True):
        for i, pair in enumerate(pairs):
            mine = [r for r in rows if r["channel"] == channel and r["pair"] == pair]
            where = [places[channel].index((r["pair"], r["cell"])) for r in mine]
            style.points(ax, mine, where, style.color(i), pair, line=False, horizontal=True)
        if all(r["drawn"] == "undefined" for r in rows if r["channel"] == channel):
            style.note(ax, f"{title}: undefined (see the caption)" if places[channel] else f"{title}: not measured")
            continue
        ax.axvline(0, color=style.MUTED, linewidth=1)
        names = [p if len(places[channel]) == len(pairs) else c for p, c in places[channel]]
        style.names(ax, names, 48)
        if channel == "delta_depth":
            ax.xaxis.set_major_locator(MaxNLocator(5))
            style.dress(ax, title, "steps", grid="x")
        else:
            style.signed_points(ax)
            style.dress(ax, title, "points", grid="x")
    notes = " ".join(dict.fromkeys(f"{r['pair']}: {r['why']}." for r in rows if r["value"] is None and r["why"]))
    text = (
        "Differences A − B between matched models. Δatom above 0: A knows more. Δcomp below 0: A composes better "
        f"what both know. Δdepth above 0: A succeeds at greater depth. {notes}"
    ).strip()
    return drawn(fig, rows, text, gated, "{pair}, {channel} {cell}")


def _rows(a: RunData, b: RunData, name: str) -> list[Row]:
    try:
        same = shared_cases(a, b)
        found = compare(same.of(counted_rows(a)), same.of(counted_rows(b)), {**b.cases, **a.cases}, a.seed)
    except InputError:  # no case in common: not a pair
        return []
    rows: list[Row] = []
    for m in found.metrics:
        if m.metric in CHANNELS and set(m.group) <= {"per", "depth_bin", "depth"}:
            depth = m.group.get("depth_bin", m.group.get("depth"))
            cell = "all" if depth is None else f"depth {depth}"
            why = (m.note or "").split(";")[0] if m.value is None else ""
            rows.append({"run": f"{a.name}{VERSUS}{b.name}", "pair": name, "benchmark": a.benchmark,
                         "channel": m.metric, "cell": cell, "n": m.n, "n_invalid": m.n_invalid, "value": m.value,
                         "interval": m.interval, "low": m.low, "high": m.high, "why": why})  # fmt: skip
    return rows
