"""The figure of the probe ``faithfulness``: does the answer come from the written working?"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from ..run.reader import ProbeData, Row, RunData
from . import style
from .drawing import FAITHFULNESS, Drawing, drawn, figure
from .mechanism import missing, with_probe

GROUPS = {"failure": style.FAILURE, "success": style.SUCCESS}
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
    style.shared_legend(fig)
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
    return [r for r in found if r["group"] in GROUPS]


def _altered(probe: ProbeData) -> list[Row]:
    """Rows of the right panel."""
    return [
        {"what": said, "step": r["step"], **_kept(r)}
        for quantity, said in ENDS.items() for r in probe.rows(quantity) if r["group"] in GROUPS
    ]  # fmt: skip


def _draw_early(ax: Axes, rows: Sequence[Row], label: str) -> None:
    for i, (group, shade) in enumerate(GROUPS.items()):
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
    for i, (group, shade) in enumerate(GROUPS.items()):
        mine = [r for r in rows if r["group"] == group and r["step"] in steps]
        apart = 0.16 * (2 * i - 1)
        where = [places[r["step"], r["what"]] + apart for r in mine]
        style.points(ax, mine, where, shade, group, line=False)
    ax.set_xticks(list(places.values()), [f"{s}: {e}" for s, e in places], rotation=30, ha="right")
    ax.set_xlim(-0.6, max(places.values()) + 0.6)
    style.percent(ax)
    style.dress(ax, "a value of the working altered", "", "share of the answers")
