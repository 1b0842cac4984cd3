"""The depth at which composition collapses: d50 over all families and per family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .. import dependence, statistics
from ..metrics import HOLLOW_BELOW, Metric
from . import counting
from .base import Evidence
from .counting import Item, Truth

CONTROL_DEPTH = 2


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


Curve = dict[int, list[Gated]]
"""Every case by depth, or by depth bin where the benchmark declares bins."""


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
            found.setdefault(depth, []).append(g)
    return found


def _depth(g: Gated) -> int | None:
    first = g.item.first
    return first.depth if first.depth_bin is None else first.depth_bin


def _shared(known: Sequence[Sequence[Gated]], depths: Sequence[int]) -> dict[str, Any]:
    """The band by what the cases share, as cluster fields; empty where they share nothing."""
    labels = [[g.item.cluster for g in some] for some in known]
    flat = [label for some in labels for label in some]
    if dependence.alone(flat):
        return {}
    failed = [[not g.whole for g in some] for some in known]
    limits = [statistics.rate_interval(f, near) for f, near in zip(failed, labels, strict=True)]
    band = statistics.d50(depths, list(map(sum, failed)), list(map(len, failed)), limits)
    return counting.clustered(statistics.Interval(band.low, band.high, "korn-graubard band"), flat)


def _row(curve: Curve, group: dict[str, Any], note: str | None) -> Metric:
    depths = sorted(curve)
    passed = ((g for g in curve[d] if g.double is True) for d in depths)
    known = [[g for g in some if g.whole is not None] for some in passed]
    counts = [(sum(not g.whole for g in some), len(some)) for some in known]
    found = statistics.d50(depths, [k for k, _ in counts], [n for _, n in counts])
    few = [str(d) for d, (_, n) in zip(depths, counts, strict=True) if 0 < n < HOLLOW_BELOW]
    band = [f"{end} {c}" for end, c in (("low", found.low_censored), ("high", found.high_censored)) if c]
    outcomes = [[(g.double, g.whole) for g in curve[d]] for d in depths]
    n_open = sum(gate is None or (gate is True and whole is None) for some in outcomes for gate, whole in some)
    # A rate that is higher at every depth crosses one half earlier: the worst rates give the least depth.
    rates = [counting.failure_bounds(some) for some in outcomes]
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
        **_shared(known, depths),
    )
