"""The three channels between matched models (double-gate runs): knowledge, composition of it, and depth."""

from __future__ import annotations

from collections.abc import Sequence

from ...errors import InputError
from ...evaluation.protocols.compare import compare
from ..run.reader import Row, RunData
from . import style
from .accuracies import matched
from .drawing import Drawing, drawn, need
from .figure import GATE, figure

CHANNELS = {"delta_atom": "Δatom: atoms stable", "delta_comp": "Δcomp: residual failure", "delta_depth": "Δdepth: d50"}


@figure("channels", "Three channels between matched models", GATE + " (for two models)", "optional", 30)
def channels(runs: Sequence[RunData]) -> Drawing:
    """Δatom, Δcomp and Δdepth of every matched pair, A − B (Composition collapse, section 4.1)."""
    gated = [r for r in runs if r.protocol == "double-gate"]
    rows = [row for pair in matched(gated) for row in _rows(*pair)]
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
        names = [f"{p if len(places[channel]) == len(pairs) else ''} {c}".strip() for p, c in places[channel]]
        style.names(ax, names, 30)
        if channel == "delta_depth":
            style.dress(ax, title, "steps", grid="x")
        else:
            style.signed_points(ax)
            style.dress(ax, title, "points", grid="x")
    style.shared_legend(fig)
    notes = " ".join(dict.fromkeys(f"{r['pair']}: {r['why']}." for r in rows if r["value"] is None and r["why"]))
    text = (
        "Differences A − B between matched models. Δatom above 0: A knows more. Δcomp below 0: A composes better "
        f"what both know. Δdepth above 0: A succeeds at greater depth. {notes}"
    ).strip()
    return drawn(fig, rows, text, gated, "{pair}, {channel} {cell}")


def _rows(pair: object, a: RunData, b: RunData) -> list[Row]:
    try:
        found = compare(a.graded, b.graded, {**b.cases, **a.cases}, a.seed)
    except InputError:  # no case in common: not a pair
        return []
    name = f"{a.model} − {b.model}"
    rows: list[Row] = []
    for m in found.metrics:
        if m.metric in CHANNELS and set(m.group) <= {"per", "depth_bin", "depth"}:
            depth = m.group.get("depth_bin", m.group.get("depth"))
            cell = "all" if depth is None else f"depth {depth}"
            why = (m.note or "").split(";")[0] if m.value is None else ""
            rows.append({"run": f"{a.name} − {b.name}", "pair": name, "benchmark": a.benchmark, "channel": m.metric,
                         "cell": cell, "n": m.n, "n_invalid": m.n_invalid, "value": m.value, "interval": m.interval,
                         "low": m.low, "high": m.high, "why": why})  # fmt: skip
    return rows
