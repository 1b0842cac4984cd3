"""Figures of the probe ``readout``: what states hold of the bridge and the answer, by layer and place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from ..run.reader import ProbeData, Row, RunData
from . import style
from .drawing import Drawing, caption
from .figure import READOUT, figure
from .heatmaps import color_bar, few_marks, heat, number
from .mechanism import NO_CELLS, missing, with_probe

SHOWN = ("failure", "success", "difference")
FOILS = ("absent", "in-prompt")


@figure("readout", "What states hold, by layer and place", READOUT, "optional", 48)
def readout(runs: Sequence[RunData]) -> Drawing:
    """Whether states hold the bridge, an operand or the answer: maps of layer x place, and curves over layers."""
    found = [f for f in with_probe(runs, "readout") if f[2].tensors]
    missing(found, "readouts", "readout", runs)
    rows: list[Row] = []
    for run, label, probe in found:
        rows += [{"run": run.name, "model": label, **r} for r in _rows(probe)]
    few_marks(rows)
    panels = list(dict.fromkeys((r["run"], r["model"], r["kind"], r["reader"]) for r in rows))
    fig, grid = style.grid_of(len(panels), 4, 2.7, 2.4)
    for line, (run, model, kind, reader) in zip(grid, panels, strict=True):
        mine = [r for r in rows if (r["run"], r["kind"], r["reader"]) == (run, kind, reader)]
        for ax, show in zip(line, SHOWN, strict=False):
            shown = [r for r in mine if r["show"] == show and r["foils"] == "absent"]
            _map(ax, shown, show, f"{model} · {kind}, {reader}")
        _curves(line[3], mine)
    color_bar(fig, [ax for line in grid for ax in line[:2]], style.SEQUENTIAL, 0, 1)
    color_bar(fig, [line[2] for line in grid], style.DIVERGING, -0.5, 0.5)
    text = (
        "Share of foils that score below the right name at a layer and place (chance 0.5), from before block 0 (-1) to "
        "the last block. Maps: the foils are similar names that are not in the question; difference = failure − "
        "success. Curves: the last place of the maps; dashed curves use names in the question as foils. Values that "
        "are high already at layer 0 may come from the text itself. "
    )
    said = style.few_cases(rows, "{model}, {kind}, {show}", "Starred")
    return Drawing(style.finished(fig), rows, caption(text + said, [], runs, intervals=f"{NO_CELLS} by place."),
                   {"kind": "heatmap", "x": "place", "y": "layer", "facet": "model", "panel": "show", "switch": "kind",
                    "diverging": ["difference"], "reach": 0.5, "low": 0, "high": 1})  # fmt: skip


def _rows(probe: ProbeData) -> list[Row]:
    """One row per reader, foils, kind, group, layer and place."""
    places = [str(p) for p in probe.settings.get("places", ())]
    out: list[Row] = []
    for name, tensor in probe.tensors.items():
        reader, foils, *rest = name.split(".")
        kind, show = (rest[1], "difference") if rest[0] == "difference" else (rest[0], rest[1])
        if rest[0] == "p" or show not in SHOWN:
            continue
        n, maps = _count(probe, reader, foils, kind, show), foils == FOILS[0]
        out += [
            {"reader": reader, "foils": foils, "kind": kind, "show": show, "layer": layer - 1, "place": places[p],
             "value": number(x), "n": n, "drawn": None if maps or (show != SHOWN[2] and p == len(places) - 1) else "no"}
            for (layer, p), x in np.ndenumerate(np.asarray(tensor, dtype=float))
        ]  # fmt: skip
    return out


def _count(probe: ProbeData, reader: str, foils: str, kind: str, show: str) -> int | None:
    """Number of cases behind a map; for a difference, the number in the smaller group."""
    rows = [r for r in probe.rows(f"held_{reader}", kind=kind, foils=foils) if r.get("group") in SHOWN]
    known = [r["n"] for r in rows if r.get("n") is not None and (show == "difference" or r["group"] == show)]
    return min(known, default=None)


def _map(ax: Axes, rows: Sequence[Row], show: str, title: str) -> None:
    if not rows:
        style.note(ax, f"no {show} cases" if show != "difference" else "no contrast possible")
        return
    places, layers = (list(dict.fromkeys(r[k] for r in rows)) for k in ("place", "layer"))
    matrix = np.full((len(layers), len(places)), np.nan)
    for r in rows:
        if r["value"] is not None:
            matrix[layers.index(r["layer"]), places.index(r["place"])] = r["value"]
    scale = (style.DIVERGING, -0.5, 0.5) if show == "difference" else (style.SEQUENTIAL, 0, 1)
    heat(ax, matrix, *scale, counts=rows[0]["n"])
    ax.set_xticks(range(len(places)), places, rotation=30, ha="right")
    step = max(1, -(-len(layers) // 8))
    ax.set_yticks(range(0, len(layers), step), [str(x) for x in layers[::step]])
    n = rows[0]["n"]
    said = "" if n is None or show == "difference" else f", {style.counted(n)}"
    style.dress(ax, f"{title}\n{show}{said}", "", "layer", grid=None)


def _curves(ax: Axes, rows: Sequence[Row]) -> None:
    last = rows[-1]["place"]
    for group, shade in style.GROUP_COLORS.items():
        for foils, dash in zip(FOILS, ("-", "--"), strict=True):
            mine = [r for r in rows if (r["show"], r["foils"], r["place"]) == (group, foils, last)]
            known = [(r["layer"], r["value"]) for r in mine if r["value"] is not None]
            if known:
                ax.plot(*zip(*known, strict=True), dash, color=shade, label=f"{group}, {foils}")
    ax.axhline(0.5, color=style.MUTED, linewidth=0.8)
    ax.set_ylim(0, 1.02)
    style.legend(ax)
    style.dress(ax, last, "layer", "share of foils below")
