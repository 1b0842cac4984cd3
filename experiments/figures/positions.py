"""At which layer and position of the prompt does a success's activation mend a failure? Means over pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..run.reader import Array, Row, RunData
from ..run.single_cases import SavedEntry, read_single_cases
from . import style
from .drawing import PATCHING, Drawing, drawn, figure
from .grouping import labels
from .heatmaps import color_bar, few_marks, heat, number
from .mechanism import missing

SITES = {"resid_post": "residual stream", "attn_out": "attention", "mlp_out": "MLP"}
"""What is put in, and how a figure calls it."""
LONGEST = 9
"""Letters of a token below a column."""
NAMED = 18
"""Columns that have a name below them; the csv has all."""


@dataclass(frozen=True)
class Sweeps:
    """The sweeps of one run over prompts of one length."""

    layers: Sequence[int]
    positions: Sequence[int]
    tokens: Sequence[str]
    """The token at each position; empty if the prompts differ there."""
    maps: dict[str, Array]
    """By site: pair, layer, position."""
    left_out: int
    """The number of pairs whose prompts have another length."""


def sweeps_of(run: RunData) -> Sweeps | None:
    """Read the sweeps of a run over prompts of the most common length; None if the run has no sweep."""
    saved = read_single_cases(run.path, "patching")
    entries = [e for e in saved.entries if "sweep_positions" in e.about] if saved else []
    if not entries:
        return None

    def grid(entry: SavedEntry) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        e = entry.about
        return len(e["tokens"]), tuple(e["sweep_layers"]), tuple(e["sweep_positions"])

    (chosen, n), *_ = Counter(map(grid, entries)).most_common(1)
    mine = [e for e in entries if grid(e) == chosen]
    maps = {s: np.stack([np.asarray(e.arrays[f"{s}.recovered"], dtype=float) for e in mine]) for s in SITES
            if all(f"{s}.recovered" in e.arrays for e in mine)}  # fmt: skip
    said = [{e.about["tokens"][p] for e in mine} for p in chosen[2]]
    tokens = [found.pop().strip() if len(found) == 1 else "" for found in said]
    return Sweeps(chosen[1], chosen[2], tokens, maps, len(entries) - n)


@figure("patching-positions", "Patching, layer by position", PATCHING, "patching", 47)
def patching_positions(runs: Sequence[RunData]) -> Drawing:
    """How far one activation of a success moves a failure towards the success's answer, layer x position."""
    names = labels(runs)
    found = [(run, names[run.path], s) for run in runs if (s := sweeps_of(run)) is not None and s.maps]
    missing(found, "sweeps over positions", "patching", runs)
    rows: list[Row] = []
    fig, grid = style.grid_of(len(found), len(SITES), 3.6, 2.3)
    for line, (run, label, swept) in zip(grid, found, strict=True):
        for ax, (site, called) in zip(line, SITES.items(), strict=True):
            if site not in swept.maps:
                style.note(ax, f"no {called}")
                continue
            n, mean = len(swept.maps[site]), _mean(swept.maps[site])
            about = {"run": run.name, "model": label, "site": called, "n": n}
            for i, layer in enumerate(swept.layers):
                rows += [{**about, "layer": layer, "position": p, "token": token or None, "value": number(v)}
                         for p, token, v in zip(swept.positions, swept.tokens, mean[i], strict=True)]  # fmt: skip
            heat(ax, mean, style.DIVERGING, -1, 1, counts=n)
            named = _named(len(swept.positions))
            ax.set_xticks(named, [_columns(swept)[i] for i in named], rotation=90)
            ax.set_yticks(range(len(swept.layers)), [str(layer) for layer in swept.layers])
            style.dress(ax, f"{called}, {style.counted(n)}", grid=None)
            ax.tick_params(axis="x", labelsize=5.5)
        style.name_row(line, label, "layer")
    color_bar(fig, [ax for line in grid for ax in line], style.DIVERGING, -1, 1, "share of the way to the success")
    others = sum(s.left_out for _, _, s in found)
    text = (
        "One activation of a success is put into a failure whose prompt is as long, at one layer and position. "
        "Colors show the share of the way from the failure's logit difference to the success's (1: all the way, 0: no "
        "effect, below 0: the other way), mean over pairs. Columns show tokens, or positions if the tokens differ."
        f"{f' Left out: {others} pairs of another length.' if others else ''}"
    )
    few_marks(rows)
    chart = {"kind": "heatmap", "x": "position", "y": "layer", "facet": "model", "panel": "site",
             "diverging": list(SITES.values()), "reach": 1, "low": 0, "high": 1}  # fmt: skip
    cell = "{model}, {site}"
    return drawn(fig, rows, text, runs, cell, chart, intervals="Cells without intervals.", mark="Starred")


def _mean(maps: Array) -> Array:
    """Average over the pairs for which a cell is defined; NaN if it is defined for none."""
    return np.ma.masked_invalid(maps).mean(axis=0).filled(np.nan)


def _named(n: int) -> list[int]:
    """Evenly spaced columns, and always the last, where the answer is predicted."""
    step = -(-n // NAMED)
    return [*(i for i in range(0, n - 1, step) if i <= n - 1 - step), n - 1]


def _columns(swept: Sweeps) -> list[str]:
    found = zip(swept.positions, swept.tokens, strict=True)
    return [style.plain(token, LONGEST) if token else str(position) for position, token in found]
