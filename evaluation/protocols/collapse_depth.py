"""The depth at which composition collapses: d50 over all families and per family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import statistics
from ..metrics import HOLLOW_BELOW, Metric

if TYPE_CHECKING:
    from .double_gate import Gated

CONTROL_DEPTH = 2


def metrics(gated: Sequence[Gated]) -> list[Metric]:
    """d50 over all cases, then for each family (with the depth-2 control as first bin where it has none itself)."""
    binned = [g for g in gated if g.item.first.depth_bin is not None]
    if not binned:
        return []
    found = [_row(_curve(binned), {}, None)]
    families = sorted({g.item.first.family for g in binned if g.item.first.family is not None})
    if len(families) < 2:
        return found + [_row(_curve(binned), {"family": f}, None) for f in families]
    for family in families:
        curve = _curve([g for g in binned if g.item.first.family == family])
        note = None
        if CONTROL_DEPTH not in curve:
            if all(depth < CONTROL_DEPTH for depth in curve):
                continue
            control = [g for g in binned if g.item.first.depth_bin == CONTROL_DEPTH]
            if control:
                names = sorted({str(g.item.first.family) for g in control})
                curve |= _curve(control)
                note = f"depth {CONTROL_DEPTH} from {', '.join(names)}"
        elif len(curve) == 1:
            continue  # the control itself has one depth and no curve
        found.append(_row(curve, {"family": family}, note))
    return found


def _curve(gated: Sequence[Gated]) -> dict[int, tuple[int, int]]:
    """(failures, gated cases) by depth bin; bins whose cases all fail a gate have n = 0."""
    curve: dict[int, tuple[int, int]] = {}
    for g in gated:
        depth = g.item.first.depth_bin
        if depth is None:
            continue
        failed, n = curve.get(depth, (0, 0))
        inside = g.double is True and g.whole is not None
        curve[depth] = (failed + (inside and g.whole is False), n + inside)
    return curve


def _row(curve: dict[int, tuple[int, int]], group: dict[str, Any], note: str | None) -> Metric:
    depths = sorted(curve)
    found = statistics.d50(depths, [curve[d][0] for d in depths], [curve[d][1] for d in depths])
    few = [str(d) for d in depths if 0 < curve[d][1] < HOLLOW_BELOW]
    band = [f"{end} {c}" for end, c in (("low", found.low_censored), ("high", found.high_censored)) if c]
    notes = [found.censored, found.note, note, *band, f"n < {HOLLOW_BELOW} at depth {', '.join(few)}" if few else None]
    return Metric(
        "d50",
        group,
        n=sum(n for _, n in curve.values()),
        value=found.value,
        interval="clopper-pearson band",
        low=found.low,
        high=found.high,
        note="; ".join(n for n in notes if n) or None,
    )
