"""The figure of causes of failure, as named by ``composcope diagnose``, by family and depth."""

from __future__ import annotations

from collections.abc import Sequence

from ..run.diagnosis import CAUSES, meaning
from ..run.failures import diagnosed_failures
from ..run.reader import Row, RunData
from . import style
from .drawing import Drawing, drawn, figure, need
from .grouping import labels


@figure("causes", "Causes of failure", "composcope diagnose RUN", "first", 30)
def causes(runs: Sequence[RunData]) -> Drawing:
    """Share of each cause among failures whose parts are all right, with a block per group and a panel per run."""
    found = {run.path: diagnosed for run in runs if (diagnosed := diagnosed_failures(run)) is not None}
    names = labels([run for run in runs if run.path in found])
    rows: list[Row] = []
    for run in runs:
        if run.path not in found:
            continue
        shares = found[run.path].found.shares
        groups = [g for g in ("family", "depth") if len({s.value for s in shares if s.group == g}) > 1]
        for s in shares:
            if s.group in ("all", *groups):
                group = s.group if s.group == "all" else f"{s.group} {s.value}"
                rows.append({
                    "run": run.name, "model": names[run.path], "group": group, "cause": s.cause, "value": s.share,
                    "low": s.low, "high": s.high, "count": s.count, "n": s.n, "interval": s.interval,
                })  # fmt: skip
    need(rows, "No run here was diagnosed; `composcope diagnose RUN` names the cause of each failure.")
    order = sorted({r["cause"] for r in rows}, key=lambda c: (CAUSES.index(c.partition(":")[0]), c))
    panels = list(dict.fromkeys(r["run"] for r in rows))
    most = max(len({r["group"] for r in rows if r["run"] == p}) for p in panels)
    fig, axes = style.grid_of(len(panels), 1, 5.6, 1.2 + 0.14 * most * (len(order) + 1))
    for (ax,), panel in zip(axes, panels, strict=True):
        mine = [r for r in rows if r["run"] == panel]
        groups = list(dict.fromkeys((r["group"], r["n"]) for r in mine))
        said = [f"{style.plain(group, 28)} (n={n})" for group, n in groups]
        style.dots(ax, mine, "cause", order, groups, said, lambda r: (r["group"], r["n"]))
        style.percent(ax, "x")
        style.dress(ax, style.plain(mine[0]["model"], 30), "share of the failures" * (panel == panels[-1]), grid="x")
    style.shared_legend(fig)
    text = (
        "Causes of the failures whose parts are all right, as shares of each group. A case without a demonstrated "
        "cause is undetermined. "
    ) + "; ".join(f"{cause}: {meaning(cause)}" for cause in order) + "."  # fmt: skip
    left = {names[path]: said for path, diagnosed in found.items() if (said := diagnosed.left_out())}
    text += "".join(f" {f'{name}: ' if len(found) > 1 else ''}{said}" for name, said in left.items())
    return drawn(fig, rows, text, [r for r in runs if r.path in found], "{group}, {cause}")
