"""Figures by layer and by step: patching sweeps, cosines of the residual stream, and what states hold (``readout``)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from ...errors import InputError
from ..run.reader import Array, ProbeData, Row, RunData
from ..run.single_cases import SavedEntry, read_single_cases
from . import style
from .drawing import PATCHING, READOUT, TRAJECTORY, Drawing, caption, curves, drawn, figure, with_rows
from .grouping import cells, color_bar, few_marks, heat, labels, number
from .mechanism import NO_CELLS, behind, group_map, missing, numbers_of, over_layers, read_where, with_probe

COSINES = {"dd": "within successes", "rr": "within failures", "dr": "across"}
MEASURES = {
    "flip_rate": "takes the donor's answer",
    "corrected_rate": "becomes right",
    "kl": "next token moves (KL, nats)",
    "answer_log_prob": "log-probability of the right answer",
    "logit_difference": "logit of the donor's answer − the own answer's",
}
_COSINE_COLORS = {"dd": style.SUCCESS, "rr": style.FAILURE, "dr": "#8C8C8C"}


@figure("patching", "Patching, layer by layer", PATCHING, "patching", 46)
def patching(runs: Sequence[RunData], measure: str = "flip_rate") -> Drawing:
    """Effect of a success's state put into a failure, by layer, with controls (Composition collapse, App. I).

    ``measure``: ``flip_rate``, ``corrected_rate``, ``kl``, ``answer_log_prob`` or ``logit_difference``.
    """
    if measure not in MEASURES:
        raise InputError(f"measure {measure!r}: unknown; use one of {', '.join(MEASURES)}")
    found = with_probe(runs, "patching")
    rows = [row for f in found for row in _patch_rows(*f, measure)]
    missing(rows, "patching sweeps", "patching", runs)
    series = {_called(patch): look for patch, look in style.looks(dict.fromkeys(r["patch"] for r in rows)).items()}
    fig, panels = over_layers(found, rows, lambda r: _called(r["patch"]), series, 0.012, MEASURES[measure],
                              "layer of the patch")  # fmt: skip
    for ax in panels if measure.endswith("rate") else ():
        style.percent(ax)
    text = (
        f"One position of a failing case gets the state of a successful case (donor): {MEASURES[measure]}, by layer of "
        "the patch. Controls: identity puts the case's own state back; random uses another failure's state; noise uses "
        "a random state of the same size; positive uses the donor's states at all prompt positions (up to 4 pairs of "
        "equal length): the next token is then the donor's, the rest need not be, as it is written from the case's own "
        f"keys and values up to that layer.{read_where(found)}"
    )
    chart = curves("layer", "patch", facet="model", xlabel="layer of the patch", ylabel=MEASURES[measure],
                   percent=measure.endswith("rate"))  # fmt: skip
    return drawn(fig, rows, text, runs, "{model}, {patch}, layer {layer}", chart)


@figure(
    "cosine-prompt-end", "States where the answer is decided: failures against successes", TRAJECTORY, "trajectory", 47
)
def cosine_prompt_end(runs: Sequence[RunData]) -> Drawing:
    """Cosines between states within successes, within failures and across groups, per layer, centered and plain."""
    found = with_probe(runs, "trajectory")
    rows = [row for f in found for row in _cosine_rows(*f)]
    missing(rows, "prompt-end cosines", "trajectory", runs)
    series = {name: (_COSINE_COLORS[key], style.dash(i)) for i, (key, name) in enumerate(COSINES.items())}
    fig, _ = over_layers(found, rows, lambda r: r["pairs"], series, 0.02, "cosine")
    text = (
        "Cosine between residual states, one state per case, by layer. A few large dimensions dominate plain cosines; "
        f"centered ones subtract the layer's mean.{read_where(found)} n counts pairs of cases."
    )
    chart = curves("layer", "pairs", panel="form", facet="model", xlabel="layer", ylabel="cosine")
    return drawn(fig, rows, text, runs, "{model}, {form}, {pairs}, layer {layer}", chart)


@figure("cosine-trajectory", "Movement from step to step", TRAJECTORY, "trajectory", 48)
def cosine_trajectory(runs: Sequence[RunData]) -> Drawing:
    """Step-to-step cosine of the residual stream, successes against failures (Composition collapse, Fig. 7)."""
    found = [f for f in with_probe(runs, "trajectory") if any(m.size for m in f[2].named("step").values())]
    missing(found, "step-to-step cosines", "trajectory", runs)
    rows: list[Row] = []
    for run, label, probe in found:
        for group, matrix in probe.named("step").items():
            known = _step_counts(probe, group)
            for row in cells(matrix, ("layer", "step"), run=run.name, model=label, group=group):
                rows.append({**row, "n": known[row["step"]] if row["step"] < len(known) else None})
    few_marks(rows)
    means = [row for f in found for row in _step_rows(*f)]
    models = list(dict.fromkeys(r["model"] for r in rows))
    there = {r["group"] for r in rows}
    groups = [g for g in ("failure", "success") if g in there] or sorted(there)
    values = [r["value"] for r in rows if r["value"] is not None]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    fig, grid = style.grid_of(len(models), len(groups) + 1, 3.4, 2.4)
    for line in grid[1:]:
        line[-1].sharey(grid[0][-1])
    for line, (_, label, probe) in zip(grid, found, strict=True):
        _step_means(line[-1], [r for r in means if r["model"] == label])
        for ax, group in zip(line, groups, strict=False):
            if f"step.{group}" not in probe.tensors:
                style.note(ax, f"no {group} cases")
                continue
            known = _step_counts(probe, group)
            heat(ax, probe.tensors[f"step.{group}"], style.SEQUENTIAL, low, high, counts=known or None)
            style.dress(ax, group, "response step", grid=None)
        style.name_row(line, label, "layer")
    color_bar(fig, [ax for line in grid for ax in line[:-1]], style.SEQUENTIAL, low, high, "cosine")
    style.shared_legend(fig)
    hatched = [r for r in rows if r.get("drawn") == "hollow"]
    text = (
        "Cosine between consecutive residual states in the response: by step (mean over cases) and by layer (mean over "
        "each case's steps). Later steps have fewer cases (n of each step is in the csv); steps with fewer than 5 "
        f"cases are hatched. {style.counts(rows)} "
        f"{style.few_cases(hatched, '{model}, {group}, step {step}', 'Starred')} "
        f"By layer: {style.few_cases(means, '{model}, {group}, layer {layer}')} {style.interval_methods(means)}"
    ).replace("By layer:  ", "By layer: ")
    runs = with_rows(runs, rows)
    return Drawing(style.finished(fig), [*rows, *means], caption(text, [], runs, intervals="No intervals by step."),
                   {"kind": "heatmap", "x": "step", "y": "layer", "facet": "model", "panel": "group",
                    "low": low, "high": high})  # fmt: skip


def _step_counts(probe: ProbeData, group: str) -> list[int]:
    """Number of cases that reach each step."""
    counts = probe.tensors.get(f"step_n.{group}")
    return [] if counts is None else [int(c) for c in counts]


def _step_rows(run: RunData, label: str, probe: ProbeData) -> list[Row]:
    """Mean step-to-step cosine per group and layer, with its interval over cases."""
    return [
        {"run": run.name, "model": label, "group": r["group"], "layer": r["layer"], **numbers_of(r)}
        for r in probe.rows("step_cosine")
        if r.get("layer") is not None
    ]


def _step_means(ax: Axes, rows: list[Row]) -> None:
    if not rows:
        return style.note(ax, "no means by layer")
    groups = list(dict.fromkeys(r["group"] for r in rows))
    apart = 0.01 * max(1, max(r["layer"] for r in rows))
    series = {group: (style.GROUP_COLORS.get(group, style.color(i)), "-") for i, group in enumerate(groups)}
    style.abreast(ax, rows, lambda r: r["group"], series, lambda r: r["layer"], apart)
    style.whole_numbers(ax, [r["layer"] for r in rows])
    style.dress(ax, "mean over steps", "layer", "cosine")


def _called(patch: str) -> str:
    return patch if patch == "donor" else f"control: {patch}"


def _patch_rows(run: RunData, label: str, probe: ProbeData, measure: str) -> list[Row]:
    """One row per source of the state (the donor or a control) and layer."""
    fields = ("n", "count", "value", "low", "high", "interval")
    found = [r for r in probe.rows(measure) if r.get("layer") is not None]
    return [
        {"run": run.name, "model": label, "measure": measure, "patch": r["group"], "layer": r["layer"],
         **{k: r.get(k) for k in fields}}
        for r in sorted(found, key=lambda r: r["group"] != "donor")
        if " - " not in str(r["group"])  # differences are not curves
    ]  # fmt: skip


def _cosine_rows(run: RunData, label: str, probe: ProbeData) -> list[Row]:
    rows = []
    for form, name in (("plain", "prompt_end"), ("centered", "centered")):
        for key, words_ in COSINES.items():
            tensor = probe.tensors.get(f"{name}.{key}")
            if tensor is None:
                continue
            table = {r.get("layer"): r for r in probe.rows(f"{name}_cosine", group=words_)}
            for layer, value in enumerate(tensor):
                known = {k: table.get(layer, {}).get(k) for k in ("n", "low", "high", "interval")}
                rows.append({"run": run.name, "model": label, "form": form, "pairs": words_, "layer": layer,
                             "value": number(value), **known})  # fmt: skip
    return rows


SHOWN = ("failure", "success", "difference")
FOILS = ("absent", "in-prompt")


@figure("readout", "What states hold, by layer and place", READOUT, "readout", 51)
def readout(runs: Sequence[RunData]) -> Drawing:
    """Whether states hold the bridge, an operand or the answer: maps of layer x place, and curves over layers."""
    found = [f for f in with_probe(runs, "readout") if f[2].tensors]
    missing(found, "readouts", "readout", runs)
    rows: list[Row] = []
    for run, label, probe in found:
        rows += [{"run": run.name, "model": label, **r} for r in _rows(probe)]
    few_marks(rows)
    panels = list(dict.fromkeys((r["model"], r["kind"], r["reader"]) for r in rows))
    fig, grid = style.grid_of(len(panels), 4, 2.7, 2.4)
    for line, (model, kind, reader) in zip(grid, panels, strict=True):
        mine = [r for r in rows if (r["model"], r["kind"], r["reader"]) == (model, kind, reader)]
        for ax, show in zip(line, SHOWN, strict=False):
            shown = [r for r in mine if r["show"] == show and r["foils"] == "absent"]
            _map(ax, shown, show)
        style.name_row(line, f"{model} · {kind}, {reader}", "layer")
        _curves(line[3], mine)
    color_bar(fig, [ax for line in grid for ax in line[:2]], style.SEQUENTIAL, 0, 1, "share of foils below")
    color_bar(fig, [line[2] for line in grid], style.DIVERGING, -0.5, 0.5, "failure − success")
    style.shared_legend(fig)
    text = (
        "Share of foils that score below the right name at a layer and place (chance 0.5), from before block 0 (-1) to "
        "the last block. Maps: the foils are similar names that are not in the question; difference = failure − "
        "success. Curves: the last place of the maps; dashed curves use names in the question as foils. Values that "
        "are high already at layer 0 may come from the text itself. "
    )
    said = style.few_cases(rows, "{model}, {kind}, {show}", "Starred")
    runs = with_rows(runs, rows)
    return Drawing(style.finished(fig), rows, caption(text + said, [], runs, intervals=f"{NO_CELLS} by place."),
                   {"kind": "heatmap", "x": "place", "y": "layer", "facet": "model", "panel": "show",
                    "switch": ["kind", "reader"], "only": {"foils": FOILS[0]}, "diverging": ["difference"],
                    "reach": 0.5, "low": 0, "high": 1})  # fmt: skip


def _rows(probe: ProbeData) -> list[Row]:
    """One row per reader, foils, kind, group, layer and place."""
    places = [str(p) for p in probe.settings.get("places", ())]
    out: list[Row] = []
    for name, tensor in probe.tensors.items():
        reader, foils, *rest = name.split(".")
        if len(rest) != 2:  # what each whole holds, token by token
            continue
        kind, show = (rest[1], "difference") if rest[0] == "difference" else (rest[0], rest[1])
        if show not in SHOWN:
            continue
        n, maps = behind(probe.rows(f"held_{reader}", kind=kind, foils=foils), show), foils == FOILS[0]
        out += [
            {"reader": reader, "foils": foils, "kind": kind, "show": show, "layer": layer - 1, "place": places[p],
             "value": number(x), "n": n, "drawn": None if maps or (show != SHOWN[2] and p == len(places) - 1) else "no"}
            for (layer, p), x in np.ndenumerate(np.asarray(tensor, dtype=float))
        ]  # fmt: skip
    return out


def _map(ax: Axes, rows: Sequence[Row], show: str) -> None:
    if not rows:
        group_map(ax, show, None, None, 0.5)
        return
    places, layers = (list(dict.fromkeys(r[k] for r in rows)) for k in ("place", "layer"))
    matrix = np.full((len(layers), len(places)), np.nan)
    for r in rows:
        if r["value"] is not None:
            matrix[layers.index(r["layer"]), places.index(r["place"])] = r["value"]
    group_map(ax, show, matrix, rows[0]["n"], 0.5)
    ax.set_xticks(range(len(places)), places, rotation=30, ha="right")
    step = max(1, -(-len(layers) // 8))
    ax.set_yticks(range(0, len(layers), step), [str(x) for x in layers[::step]])


def _curves(ax: Axes, rows: Sequence[Row]) -> None:
    last = rows[-1]["place"]
    for group, shade in style.GROUP_COLORS.items():
        for foils, dash in zip(FOILS, ("-", "--"), strict=True):
            mine = [r for r in rows if (r["show"], r["foils"], r["place"]) == (group, foils, last)]
            known = [(r["layer"], r["value"]) for r in mine if r["value"] is not None]
            if known:
                where = "not in the question" if foils == FOILS[0] else "in the question"
                ax.plot(*zip(*known, strict=True), dash, color=shade, label=f"{group}, foils {where}")
    ax.axhline(0.5, color=style.MUTED, linewidth=0.8)
    ax.set_ylim(0, 1.02)
    style.dress(ax, last, "layer", "share of foils below")


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
