"""Recovery by thinking: gate-passing failures of a plain run that another run of the same cases gets right.

Composition collapse, section 6 and App. S, T: the plain run fixes the set of failures, so the other run (chain of
thought, thinking mode) needs no gate. The loss rate on the plain run's successes is reported too.
"""

from __future__ import annotations

from collections.abc import Mapping

from .. import statistics
from ..graded import Graded
from ..metrics import Metric
from ..protocols import counting
from ..protocols.collapse_depth import Gated
from ..protocols.double_gate import gate_cases
from .base import Analysis, Source


def recovery(plain: Source, other: Source) -> Analysis:
    """Recovery rate of the plain run's gate-passing failures, by depth, family and both, and the loss rate.

    A case that the other run did not ask, or whose answer is invalid there, is unknown and enters the bounds. McNemar
    is over all gate-passing cases that both runs judged.
    """
    wholes = {(r.case, r.repeat): r for r in other.rows if r.role == "whole"}
    gated = [g for g in gate_cases(plain.rows, plain.cases or None) if g.double is True and g.whole is not None]
    metrics: list[Metric] = []
    for name, chosen in (
        ("recovery", [g for g in gated if not g.whole]),
        ("loss", [g for g in gated if g.whole]),
    ):
        metrics += _rates(name, chosen, wholes)
    both = [(bool(g.whole), after) for g in gated if (after := _after(g, wholes)) is not None]
    test = statistics.mcnemar([b for b, _ in both], [a for _, a in both])
    row = {
        "plain": plain.name, "other": other.name, "n": test.n, "recovered": test.b_only, "lost": test.a_only,
        "test": "exact McNemar", "p": test.p,
    }  # fmt: skip
    missing = sum((g.item.case, g.item.repeat) not in wholes for g in gated)
    warnings = (f"{missing} gate-passing cases of {plain.name} are not in {other.name}",) if missing else ()
    return Analysis("recovery", tuple(metrics), {"paired": [row]}, warnings=warnings)


def _after(g: Gated, wholes: Mapping[tuple[str, int], Graded]) -> bool | None:
    row = wholes.get((g.item.case, g.item.repeat))
    return None if row is None else counting.truth(row)


def _rates(name: str, gated: list[Gated], wholes: Mapping[tuple[str, int], Graded]) -> list[Metric]:
    by_item = {id(g.item): g for g in gated}
    metrics = []
    note = "of the gate-passing failures" if name == "recovery" else "of the gate-passing successes"
    for group, items in counting.grouped([g.item for g in gated]):
        after = [_after(by_item[id(item)], wholes) for item in items]
        values = after if name == "recovery" else [None if v is None else not v for v in after]
        clusters = counting.clusters_of(items)
        metrics.append(counting.rate(name, values, group, clusters=clusters, note=note))
    return metrics
