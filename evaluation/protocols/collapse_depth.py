"""The depth at which composition collapses: d50 over all families and per family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import statistics
from ..metrics import HOLLOW_BELOW, Metric
from . import counting
from .base import Evidence
from .counting import Item, Truth

CONTROL_DEPTH = 2
Curve = dict[int, list[tuple[Truth, Truth]]]
"""(gate, whole) of every case by depth, or by depth bin where the benchmark declares bins."""


@dataclass(frozen=True)
class Gated:
    """A case with the results of its gates and its whole."""

    item: Item
    atom: Truth
    """True also where it has no atoms (see ``has_atoms``)."""
    has_atoms: bool
    sub: Truth
    whole: Truth
    evidence: tuple[Evidence, ...] = field(repr=False, default=())

    @property
    def double(self) -> Truth:
        """Both gates; the sub-question gate alone where there are no atoms."""
        return counting.all_of([self.atom, self.sub])


def metrics(gated: Sequence[Gated]) -> list[Metric]:
    """d50 over all cases, then for each family (with the depth-2 control as first bin where it has none itself)."""
    binned = [g for g in gated if _depth(g) is not None]
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
            control = [g for g in binned if _depth(g) == CONTROL_DEPTH]
            if control:
                names = sorted({str(g.item.first.family) for g in control})
                curve |= _curve(control)
                note = f"depth {CONTROL_DEPTH} from {', '.join(names)}"
        elif len(curve) == 1:
            continue  # the control itself has one depth and no curve
        found.append(_row(curve, {"family": family}, note))
    return found


def _curve(gated: Sequence[Gated]) -> Curve:
    found: Curve = {}
    for g in gated:
        if (depth := _depth(g)) is not None:
            found.setdefault(depth, []).append((g.double, g.whole))
    return found


def _depth(g: Gated) -> int | None:
    first = g.item.first
    return first.depth if first.depth_bin is None else first.depth_bin


def _counts(outcomes: Sequence[tuple[Truth, Truth]]) -> tuple[int, int]:
    """Failures and cases of which both is known; 0 of 0 where all fail a gate."""
    known = [whole for gate, whole in outcomes if gate is True and whole is not None]
    return sum(not whole for whole in known), len(known)


def _row(curve: Curve, group: dict[str, Any], note: str | None) -> Metric:
    depths = sorted(curve)
    counts = [_counts(curve[d]) for d in depths]
    found = statistics.d50(depths, [k for k, _ in counts], [n for _, n in counts])
    few = [str(d) for d, (_, n) in zip(depths, counts, strict=True) if 0 < n < HOLLOW_BELOW]
    band = [f"{end} {c}" for end, c in (("low", found.low_censored), ("high", found.high_censored)) if c]
    n_open = sum(gate is None or (gate is True and whole is None) for d in depths for gate, whole in curve[d])
    # A rate that is higher at every depth crosses one half earlier: the worst rates give the least depth.
    rates = [counting.failure_bounds(curve[d]) for d in depths]
    low, high = (statistics.crossing([float(d) for d in depths], [r[end] for r in rates]) for end in (1, 0))
    said = [f"{name} {c or why}" for name, (_, c, why) in (("bound_low", low), ("bound_high", high)) if c or why]
    few_at = f"n < {HOLLOW_BELOW} at depth {', '.join(few)}" if few else None
    notes = [found.censored, found.note, note, *band, few_at, *(said if n_open else [])]
    return Metric(
        "d50",
        group,
        n=sum(n for _, n in counts),
        n_invalid=n_open,
        value=found.value,
        interval="clopper-pearson band",
        low=found.low,
        high=found.high,
        bound_low=low[0],
        bound_high=high[0],
        note="; ".join(n for n in notes if n) or None,
    )
