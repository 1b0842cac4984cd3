"""Figures by layer and by step: patching sweeps and cosines of the residual stream."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from ...errors import InputError
from ..run.reader import ProbeData, Row, RunData
from . import style
from .drawing import Drawing, caption, curves, drawn
from .figure import PATCHING, TRAJECTORY, figure
from .grouping import small_multiples
from .heatmaps import cells, color_bar, few_marks, heat, number
from .mechanism import missing, read_where, with_probe

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
    missing(rows, "a patching sweep", "patching", runs)
    shown = [r for r, _, _ in found if any(row["run"] == r.name for row in rows)]
    patches = list(dict.fromkeys(r["patch"] for r in rows))
    layers = [r["layer"] for r in rows]
    apart = 0.012 * max(
        1, max(layers) - min(layers)
    )  # equal values are drawn next to each other, not on top of each other
    fig, panels = small_multiples(shown, 2.5, 2.2, "layer of the patch", MEASURES[measure])
    for run in shown:
        for i, patch in enumerate(patches):
            mine = [r for r in rows if (r["run"], r["patch"]) == (run.name, patch)]
            places = [r["layer"] + (i - (len(patches) - 1) / 2) * apart for r in mine]
            name = patch if patch == "donor" else f"control: {patch}"
            style.points(panels[run.path], mine, places, style.color(i), name, style=style.dash(i))
        style.whole_numbers(panels[run.path], layers)
        if measure.endswith("rate"):
            style.percent(panels[run.path])
    style.shared_legend(fig)
    text = (
        f"One position of a failing case gets the state of a successful case (donor): {MEASURES[measure]}, by layer of "
        "the patch. Controls: identity puts the case's own state back; random uses another failure's state; noise uses "
        "a random state of the same size; positive uses the donor's states at all prompt positions (up to 4 pairs of "
        f"equal length).{read_where(found)}"
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
    models = list(dict.fromkeys(r["model"] for r in rows))
    forms = list(dict.fromkeys(r["form"] for r in rows))
    fig, grid = style.grid_of(len(models), len(forms), 3.4, 2.6)
    for line, model in zip(grid, models, strict=True):
        for ax, form in zip(line, forms, strict=True):
            for key, name in COSINES.items():
                mine = [r for r in rows if (r["model"], r["form"], r["pairs"]) == (model, form, name)]
                style.points(ax, mine, [r["layer"] for r in mine], _COSINE_COLORS[key], name)
            style.whole_numbers(ax, [r["layer"] for r in rows])
            style.dress(ax, f"{model} · {form}", "layer", "cosine")
    style.shared_legend(fig)
    text = (
        "Cosine between residual states, one state per case, by layer. A few large dimensions dominate plain cosines; "
        f"centered ones subtract the layer's mean.{read_where(found)} n counts pairs of cases."
    )
    chart = curves("layer", "pairs", panel="form", facet="model", xlabel="layer", ylabel="cosine")
    return drawn(fig, rows, text, runs, "{model}, {form}, {pairs}, layer {layer}", chart)


@figure("cosine-trajectory", "Movement from step to step", TRAJECTORY, "trajectory", 48)
def cosine_trajectory(runs: Sequence[RunData]) -> Drawing:
    """Step-to-step cosine of the residual stream, successes against failures (Composition collapse, Fig. 7)."""
    found = [f for f in with_probe(runs, "trajectory") if f[2].named("step")]
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
    groups = [g for g in ("failure", "success") if any(r["group"] == g for r in rows)] or sorted(
        {r["group"] for r in rows}
    )
    values = [r["value"] for r in rows if r["value"] is not None]
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    fig, grid = style.grid_of(len(models), len(groups) + 1, 3.4, 2.4)
    for line, (_, label, probe) in zip(grid, found, strict=True):
        _step_means(line[-1], label, [r for r in means if r["model"] == label])
        for ax, group in zip(line, groups, strict=False):
            if f"step.{group}" not in probe.tensors:
                style.note(ax, f"no {group} cases")
                continue
            known = _step_counts(probe, group)
            heat(ax, probe.tensors[f"step.{group}"], style.SEQUENTIAL, low, high, counts=known or None)
            style.dress(ax, f"{label} · {group}", "response step", "layer", grid=None)
    color_bar(fig, [ax for line in grid for ax in line[:-1]], style.SEQUENTIAL, low, high)
    hatched = [r for r in rows if r.get("drawn") == "hollow"]
    text = (
        "Cosine between consecutive residual states in the response: by step (mean over cases) and by layer (mean over "
        "each case's steps). Later steps have fewer cases (n of each step is in the csv); steps with fewer than 5 "
        f"cases are hatched. {style.counts(rows)} "
        f"{style.few_cases(hatched, '{model}, {group}, step {step}', 'Starred')} "
        f"By layer: {style.few_cases(means, '{model}, {group}, layer {layer}')} {style.interval_methods(means)}"
    ).replace("By layer:  ", "By layer: ")
    return Drawing(style.finished(fig), [*rows, *means], caption(text, [], runs, intervals="No intervals by step."),
                   {"kind": "heatmap", "x": "step", "y": "layer", "facet": "model", "panel": "group",
                    "low": low, "high": high})  # fmt: skip


def _step_counts(probe: ProbeData, group: str) -> list[int]:
    """Number of cases that reach each step."""
    counts = probe.tensors.get(f"step_n.{group}")
    return [] if counts is None else [int(c) for c in counts]


def _step_rows(run: RunData, label: str, probe: ProbeData) -> list[Row]:
    """Mean step-to-step cosine per group and layer, with its interval over cases."""
    fields = ("n", "value", "low", "high", "interval")
    return [
        {"run": run.name, "model": label, "group": r["group"], "layer": r["layer"], **{k: r.get(k) for k in fields}}
        for r in probe.rows("step_cosine")
        if r.get("layer") is not None
    ]


def _step_means(ax: Axes, label: str, rows: list[Row]) -> None:
    if not rows:
        return style.note(ax, "no means by layer")
    groups = list(dict.fromkeys(r["group"] for r in rows))
    apart = 0.01 * max(1, max(r["layer"] for r in rows))
    for i, group in enumerate(groups):
        mine = [r for r in rows if r["group"] == group]
        places = [r["layer"] + (i - (len(groups) - 1) / 2) * apart for r in mine]
        style.points(ax, mine, places, style.GROUP_COLORS.get(group, style.color(i)), group)
    style.whole_numbers(ax, [r["layer"] for r in rows])
    style.dress(ax, f"{label} · mean over steps", "layer", "cosine")
    style.legend(ax, loc="center left", bbox_to_anchor=(1.0, 0.5))


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
