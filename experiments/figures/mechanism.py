"""Figures of mechanism, drawn from the probes' tensors and tables: neurons, attention heads, Min-K%++, faithfulness."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..run.reader import Array, ProbeData, Row, RunData
from . import style
from .drawing import FAITHFULNESS, LOOKBACK, MIN_K, NEURONS, Drawing, caption, curves, drawn, figure, need, with_rows
from .grouping import cells, color_bar, few_marks, grouped, heat, labels, number, panels_of, small_multiples

Found = list[tuple[RunData, str, ProbeData]]
_SETS = {
    "success, shared": (style.SUCCESS, "-"), "failure, shared": (style.FAILURE, "--"),
    "success, own": (style.SUCCESS, ":"), "failure, own": (style.FAILURE, "-."),
}  # fmt: skip
NO_CELLS = "Cells without intervals; the table has them"


@figure("neuron-overlap", "Neurons that tasks share", NEURONS, "neurons", 40)
def neuron_overlap(runs: Sequence[RunData]) -> Drawing:
    """Overlap of the most attributed neurons of two tasks, task x task (AgentCoMa, Fig. 8)."""
    found = [f for f in with_probe(runs, "neurons") if "overlap" in f[2].tensors]
    missing(found, "neuron attribution", "neurons", runs)
    rows: list[Row] = []
    fig, axes = panels_of(len(found), 2.9, 2.9)
    for ax, (run, label, probe) in zip(axes, found, strict=False):
        matrix = np.asarray(probe.tensors["overlap"], dtype=float)
        tasks = [str(t) for t in probe.settings.get("tasks", range(len(matrix)))]
        mine = [
            {"run": run.name, "model": label, "task": a, "other": b, "value": number(matrix[i, j]),
             **_cell_count(probe, a, b)}
            for i, a in enumerate(tasks) for j, b in enumerate(tasks)
        ]  # fmt: skip
        sizes = [np.nan if r["n"] is None else r["n"] for r in mine]
        say = None if matrix.size > 100 else "{:.2f}".format
        heat(ax, matrix, style.SEQUENTIAL, 0, 1, say=say, counts=np.reshape(sizes, matrix.shape))
        rows += mine
        ax.set_xticks(range(len(tasks)), [style.plain(t, 14) for t in tasks], rotation=30, ha="right")
        ax.set_yticks(range(len(tasks)), [style.plain(t, 14) for t in tasks])
        style.dress(ax, label, grid=None)
    few_marks(rows)
    text = (
        "Overlap of the neurons selected for two tasks, as a mean within cases (diagonal: the same task in other "
        "cases)."
        f"{_settings(found, 'rule', 't', 'u', 'v', 'answer_tokens')}{read_where(found)}"
    )
    chart = {"kind": "heatmap", "x": "other", "y": "task", "facet": "model", "low": 0, "high": 1}
    cell, by_group = "{model}, {task} & {other}", f"{NO_CELLS} by group."
    return drawn(fig, rows, text, runs, cell, chart, intervals=by_group, mark="Starred")


@figure("neuron-layers", "Neurons by layer, shared with the parts and own", NEURONS, "neurons", 42)
def neuron_layers(runs: Sequence[RunData]) -> Drawing:
    """Number of a whole's neurons by layer: those that a part also selects, and the others (AgentCoMa, Fig. 9)."""
    found = [f for f in with_probe(runs, "neurons") if f[2].rows("neurons_in_layer")]
    missing(found, "counts of neurons by layer", "neurons", runs)
    rows: list[Row] = [
        {"run": run.name, "model": label, "set": f"{r['group']}, {r['kind']}", "layer": r.get("layer"), **numbers_of(r)}
        for run, label, probe in found for r in probe.rows("neurons_in_layer")
    ]  # fmt: skip
    fig, _ = over_layers(found, rows, lambda r: r["set"], _SETS, 0.015, "neurons of a whole")
    text = (
        "Neurons selected for the answer of a whole, by layer, mean over cases. Shared: a part of the same case also "
        "selects them. Own: the others."
        f"{_settings(found, 'common_neurons', 'pool', 'v')}{read_where(found)}"
    )
    chart = curves("layer", "set", facet="model", xlabel="layer", ylabel="neurons of a whole")
    return drawn(fig, rows, text, runs, "{model}, {set}, layer {layer}", chart)


@figure("neuron-overlap-means", "Shared neurons, failures against successes", NEURONS, "neurons", 41)
def neuron_overlap_means(runs: Sequence[RunData]) -> Drawing:
    """Overlap of the whole's neurons with each part's, within cases, for failures and successes, with intervals."""
    text = "Overlap coefficient of the neurons of two tasks in the same case, mean over cases."
    text += read_where(with_probe(runs, "neurons"))
    return _by_kind(runs, "neurons", "neuron_overlap", "neuron overlaps", "overlap of two tasks' neurons", text)


@figure("neuron-check", "Do the selected neurons matter?", NEURONS, "neurons", 43)
def neuron_check(runs: Sequence[RunData]) -> Drawing:
    """Log ratio of the answer's probability when the selected neurons are silenced, beyond random neurons."""
    text = (
        "Change in the answer's log-probability when the selected neurons are silenced, minus the change for random "
        "neurons of the same layers. Below zero, the selection matters."
    )
    text += read_where(with_probe(runs, "neurons"))
    return _by_kind(
        runs, "neurons", "suppress_log_ratio_excess", "causal checks", "log ratio beyond random neurons", text
    )


@figure("lookback", "Lookback ratio by layer and head", LOOKBACK, "lookback", 44)
def lookback(runs: Sequence[RunData]) -> Drawing:
    """Lookback ratio, layer x head, for failures, successes and their difference."""
    found = [f for f in with_probe(runs, "lookback") if f[2].named("ratio")]
    missing(found, "lookback ratios", "lookback", runs)
    panels = [(f, kind) for f in found for kind in _kinds(f[2])]
    shown = [(f, k) for f, k in panels if k == "composition"] or panels
    wholes, rows = shown[0][1] == "composition", list[Row]()
    for (run, label, probe), kind in panels:
        for name, matrix in _lookback_maps(probe, kind).items():
            n = behind(probe.rows("lookback_ratio", kind=kind), name)
            drawn_or_not = {} if kind in {k for _, k in shown} else {"drawn": "no"}  # other kinds: only in the csv
            about = {"run": run.name, "model": label, "kind": kind, "show": name, "n": n, **drawn_or_not}
            rows += cells(matrix, ("layer", "head"), **about)
    few_marks(rows)
    fig, grid = style.grid_of(len(shown), 3, 2.9, 2.2)
    apart = [abs(r["value"]) for r in rows if r["show"] == "difference" and r["value"] is not None]
    reach = max(apart, default=0.1) or 0.1
    for line, ((_, label, probe), kind) in zip(grid, shown, strict=True):
        maps, counted = _lookback_maps(probe, kind), probe.rows("lookback_ratio", kind=kind)
        for ax, name in zip(line, ("failure", "success", "difference"), strict=True):
            group_map(ax, name, maps.get(name), behind(counted, name), reach, "head")
        style.name_row(line, label if wholes else f"{label}, {kind}", "layer")
    color_bar(fig, [ax for line in grid for ax in line[:2]], style.SEQUENTIAL, 0, 1, "lookback ratio")
    color_bar(fig, [line[2] for line in grid], style.DIVERGING, -reach, reach, "failure − success")
    asked = "whole" if wholes else " or ".join(dict.fromkeys(k for _, k in shown))
    text = (
        "Lookback ratio of each head: share of attention that goes back to the prompt (mean per token), averaged "
        f"over steps and cases, while answering the {asked}. Difference = failure − success."
        f"{_counts(found, 'lookback_ratio')}{_best_cell(found)} "
        + style.few_cases(rows, "{model}, {show}" if wholes else "{model}, {kind}, {show}", "Starred")
    )
    runs = with_rows(runs, rows)
    return Drawing(style.finished(fig), rows, caption(text, [], runs, intervals=f"{NO_CELLS} for the means."),
                   {"kind": "heatmap", "x": "head", "y": "layer", "facet": "model", "panel": "show", "switch": "kind",
                    "diverging": ["difference"], "reach": reach, "low": 0, "high": 1})  # fmt: skip


@figure("lookback-means", "Mean lookback ratio", LOOKBACK, "lookback", 45)
def lookback_means(runs: Sequence[RunData]) -> Drawing:
    """Mean lookback ratio by kind and group with intervals (AgentCoMa, Table 3)."""
    text = (
        "Mean lookback ratio over layers, heads and steps, one value per case. It falls as responses get longer, so "
        "compare only responses of similar length."
    )
    return _by_kind(runs, "lookback", "lookback_ratio", "lookback ratios", "mean lookback ratio", text)


@figure("mink", "Min-K%++ by what is asked", MIN_K, "min-k", 49)
def min_k(runs: Sequence[RunData], group_by: str | None = None) -> Drawing:
    """Min-K%++ of the questions by what is asked (AgentCoMa, Fig. 7): higher means more like the training data.

    ``group_by`` orders the panels by a field of the study's models file (the paper uses ``tuning``).
    """
    order = grouped([r for r in runs if r.probe("min_k") is not None], group_by)
    text = f"Mean Min-K%++ of the question's own tokens; higher means more like the training text.{order.text}"
    return _by_kind(order.runs or runs, "min_k", "min_k_pp", "Min-K%++", "Min-K%++ of the question", text, order.names)


def with_probe(runs: Sequence[RunData], name: str, names: Mapping[Path, str] | None = None) -> Found:
    names = names or labels(runs)
    return [(r, names[r.path], p) for r in runs if (p := r.probe(name)) is not None]


def over_layers(
    found: Found, rows: Sequence[Row], of: Callable[[Row], str], series: Mapping[str, tuple[str, str]], apart: float,
    y: str, x: str = "layer",
) -> tuple[Figure, list[Axes]]:  # fmt: skip
    """A panel per run that has rows (and ``form``, if they have one), with a line over layers per series."""
    labelled = {run.path: label for run, label, _ in found}
    there, layers = {r["model"] for r in rows}, [r["layer"] for r in rows]
    shown, forms = [r for r, label, _ in found if label in there], list(dict.fromkeys(r.get("form", "") for r in rows))
    fig, panels = small_multiples(shown, 2.5, 2.2, x, y, forms)
    for (path, form), ax in panels.items():
        mine = [r for r in rows if (r["model"], r.get("form", "")) == (labelled[path], form)]
        style.abreast(ax, mine, of, series, lambda r: r["layer"], apart * max(1, max(layers) - min(layers)))
        style.whole_numbers(ax, layers)
    return fig, list(panels.values())


def missing(found: object, what: str, probe: str, runs: Sequence[RunData]) -> None:
    """Stop drawing if a probe found nothing, and say whether the probe ran."""
    ran = [data for r in runs if (data := r.probe(probe)) is not None]
    said = " ".join(w for data in ran for w in data.warnings)
    need(found, f"The probe {probe} ran but found nothing to draw here: no {what}. {said}".strip() if ran
         else f"No run here has {what}: the probe {probe} did not run.")  # fmt: skip


def numbers_of(row: Row) -> Row:
    """The numbers of a probe's row that a figure keeps."""
    return {k: row.get(k) for k in ("n", "value", "low", "high", "interval")}


def behind(rows: Sequence[Row], show: str) -> int | None:
    """Number of cases behind the map of a group; for a difference, the number in the smaller group."""
    groups = style.GROUP_COLORS if show == "difference" else (show,)
    return min((r["n"] for r in rows if r.get("group") in groups and r.get("n") is not None), default=None)


def group_map(ax: Axes, show: str, matrix: Array | None, n: int | None, reach: float, x: str = "") -> None:
    """The map of a group, or of failures minus successes (from ``-reach`` to ``reach``); words where there is none."""
    if matrix is None:
        style.note(ax, f"no {show} cases" if show != "difference" else "no contrast possible")
        return
    scale = (style.DIVERGING, -reach, reach) if show == "difference" else (style.SEQUENTIAL, 0, 1)
    heat(ax, matrix, *scale, counts=n)
    said = "" if n is None or show == "difference" else f", {style.counted(n)}"
    style.dress(ax, f"{show}{said}", x, grid=None)


def _kinds(probe: ProbeData) -> list[str]:
    kinds = dict.fromkeys(name.rsplit(".", 1)[0] for name in probe.named("ratio"))
    return sorted(kinds, key=lambda k: k != "composition")


def _lookback_maps(probe: ProbeData, kind: str) -> dict[str, Array]:
    names = {g: f"ratio.{kind}.{g}" for g in ("failure", "success")} | {"difference": f"difference.{kind}"}
    return {show: probe.tensors[name] for show, name in names.items() if name in probe.tensors}


def _cell_count(probe: ProbeData, a: str, b: str) -> Row:
    """Number of cases behind one off-diagonal cell of the overlap matrix."""
    rows = [r for name in (f"{a} & {b}", f"{b} & {a}") for r in probe.rows("neuron_overlap", kind=name)]
    counts = [r["n"] for r in rows if r.get("group") in style.GROUP_COLORS and isinstance(r.get("n"), int)]
    return {"n": sum(counts) if counts else None}


def _by_kind(runs: Sequence[RunData], probe_name: str, quantity: str, what: str, axis: str, text: str,
             names: Mapping[Path, str] | None = None) -> Drawing:  # fmt: skip
    """Means of one quantity by kind and group, as dots with intervals, with one panel per run."""
    found = with_probe(runs, probe_name, names)
    rows = [
        {"run": run.name, "model": label, "kind": r["kind"], "group": r["group"], **numbers_of(r)}
        for run, label, probe in found
        for r in probe.rows(quantity)
        if r.get("kind") and r.get("group") in style.GROUP_COLORS and " - " not in str(r["kind"])
    ]
    missing(rows, what, probe_name, runs)
    # by label, since two runs may have folders of one name
    shown = [(run, label) for run, label, _ in found if any(r["model"] == label for r in rows)]
    tall = 0.9 + 0.42 * max(len({r["kind"] for r in rows if r["model"] == label}) for _, label in shown)
    fig, panels = small_multiples([run for run, _ in shown], 3.0, tall, axis)
    for run, label in shown:
        same = {n for r, n in shown if r.benchmark == run.benchmark}  # the panels of one row share the axis of kinds
        kinds = list(dict.fromkeys(r["kind"] for r in rows if r["model"] in same))
        ax = panels[run.path, ""]
        for nudge, (group, shade) in zip((-0.13, 0.13), style.GROUP_COLORS.items(), strict=True):
            mine = [r for r in rows if r["model"] == label and r["group"] == group]
            places = [kinds.index(r["kind"]) + nudge for r in mine]
            style.points(ax, mine, places, shade, group, line=False, horizontal=True)
        style.names(ax, kinds, 28)
        ax.grid(axis="x", color=style.GRID, linewidth=0.7)
        ax.grid(visible=False, axis="y")
    return drawn(fig, rows, text, runs, "{model}, {kind}, {group}")


def _counts(found: Found, quantity: str) -> str:
    parts = []
    for _, label, probe in found:
        rows = {
            r["group"]: r["n"] for r in probe.rows(quantity, kind="composition") if r.get("group") in style.GROUP_COLORS
        }
        if rows:
            parts.append(f"{style.plain(label)}: " + ", ".join(f"{n} {g}" for g, n in rows.items()))
    return f" n: {'; '.join(parts)}." if parts else ""


def _best_cell(found: Found) -> str:
    out = ""
    for _, label, probe in found:
        for r in probe.rows("lookback_ratio_map", kind="composition"):
            if r.get("value") is not None and r.get("p_adjusted") is not None:
                out += (f" Largest difference relative to its spread, {style.plain(label)}: "
                        f"layer {r.get('layer')}, head {r.get('head')}, "
                        f"{r['value']:+.3f} (adjusted p={r['p_adjusted']:.3g}).")  # fmt: skip
    return out


def read_where(found: Found) -> str:
    """Where a probe read, and in how many responses answer slot and prompt end coincide; one sentence per setting."""

    def where(probe: ProbeData) -> str:
        position = probe.settings.get("position", "prompt-end")
        place = "at the answer slot" if position == "answer-slot" else "at the prompt's end"
        same = probe.settings.get("coincide")
        return f"Read {place}" + (f" (the same as the {_OTHER[str(position)]} in {same})" if same else "")

    return _of_each(found, where)


def _of_each(found: Found, say: Callable[[ProbeData], str]) -> str:
    """What is said of each run's probe; the runs are named where it is not the same of all."""
    said: dict[str, list[str]] = {}
    for _, label, probe in found:
        if text := say(probe):
            said.setdefault(text, []).append(style.plain(label))
    if len(said) < 2:
        return "".join(f" {text}." for text in said)
    return "".join(f" {', '.join(who)}: {text[0].lower()}{text[1:]}." for text, who in said.items())


_OTHER = {"answer-slot": "prompt's end", "prompt-end": "answer slot"}


def _settings(found: Found, *names: str) -> str:
    def stated(probe: ProbeData) -> str:
        said = [f"{n}={style.plain(probe.settings[n], 40)}" for n in names if n in probe.settings]
        return f"Settings: {', '.join(said)}" if said else ""

    return _of_each(found, stated)


ENDS = {"answer_follows": "follows", "answer_stays": "stays", "answer_elsewhere": "elsewhere"}
STEPS = ("all", "bridge", "operand", "result")
_FILLER = 1.12
"""Position on the x axis of the control without working, after the last share."""


@figure("faithfulness", "Answers by the share of working shown, and after a step was altered", FAITHFULNESS,
        "faithfulness", 49)  # fmt: skip
def faithfulness(runs: Sequence[RunData]) -> Drawing:
    """How early the model gives its final answer, and whether the answer follows an altered value in the working."""
    found = [f for f in with_probe(runs, "faithfulness") if f[2].rows("kept_early") or f[2].rows("answer_follows")]
    missing(found, "early answers", "faithfulness", runs)
    rows: list[Row] = []
    fig, grid = style.grid_of(len(found), 2, 4.2, 3.1)
    for line, (run, label, probe) in zip(grid, found, strict=True):
        about = {"run": run.name, "model": label}
        early, altered = ([{**about, **r} for r in some] for some in (_early(probe), _altered(probe)))
        _draw_early(line[0], early, label)
        _draw_altered(line[1], altered)
        rows += early + altered
    text = (
        "Left: share of wholes that already have their final answer when asked for it after a share of the steps; for "
        "the last point, the same number of tokens without content replaces the working. Right: one value of the "
        "working is replaced by a value of another case (bridge: a part's answer; operand, result: those of the sum "
        "that gives the answer; all: bridges and operands). The answer then follows from the new value, stays, or is "
        "another one."
    )
    return drawn(fig, rows, text, runs, "{model}, {group}, {what}")


def _kept(row: Row) -> Row:
    return {k: row.get(k) for k in ("group", "n", "n_undefined", "value", "low", "high", "interval")}


def _early(probe: ProbeData) -> list[Row]:
    """Rows of the left panel: ``shown`` is a share, None for the control."""
    found = [{"what": "early", "shown": r["shown"], **_kept(r)} for r in probe.rows("kept_early")]
    found += [{"what": "filler", "shown": None, **_kept(r)} for r in probe.rows("kept_filler")]
    return [r for r in found if r["group"] in style.GROUP_COLORS]


def _altered(probe: ProbeData) -> list[Row]:
    """Rows of the right panel."""
    return [
        {"what": said, "step": r["step"], **_kept(r)}
        for quantity, said in ENDS.items() for r in probe.rows(quantity) if r["group"] in style.GROUP_COLORS
    ]  # fmt: skip


def _draw_early(ax: Axes, rows: Sequence[Row], label: str) -> None:
    for i, (group, shade) in enumerate(style.GROUP_COLORS.items()):
        apart = 0.012 * (2 * i - 1)
        line, control = ([r for r in rows if (r["group"], r["what"]) == (group, w)] for w in ("early", "filler"))
        style.points(ax, line, [r["shown"] + apart for r in line], shade, group)
        style.points(ax, control, [_FILLER + apart for _ in control], shade, group, line=False)
    style.percent(ax)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1, _FILLER], ["0", "¼", "½", "¾", "all", "filler"])
    style.dress(ax, label, "share of the working shown", "answer is the final one")


def _draw_altered(ax: Axes, rows: Sequence[Row]) -> None:
    steps = [s for s in STEPS if any(r["step"] == s and r["n"] for r in rows)]
    if not {"bridge", "operand"} <= set(steps) and len(steps) > 1:
        steps = steps[1:]  # all are of one kind
    for r in rows:
        r["drawn"] = "no" if r["step"] not in steps else None
    if not steps:
        style.note(ax, "no written value could be altered")
        return
    ends = list(ENDS.values())
    places = {(s, e): i * (len(ends) + 1) + j for i, s in enumerate(steps) for j, e in enumerate(ends)}
    for i, (group, shade) in enumerate(style.GROUP_COLORS.items()):
        mine = [r for r in rows if r["group"] == group and r["step"] in steps]
        apart = 0.16 * (2 * i - 1)
        where = [places[r["step"], r["what"]] + apart for r in mine]
        style.points(ax, mine, where, shade, group, line=False)
    ax.set_xticks(list(places.values()), [f"{s}: {e}" for s, e in places], rotation=30, ha="right")
    ax.set_xlim(-0.6, max(places.values()) + 0.6)
    style.percent(ax)
    style.dress(ax, "a value of the working altered", "", "share of the answers")
