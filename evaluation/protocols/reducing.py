"""From graded rows to all that is reported of them: the protocol's metrics, per way of asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..cases import Case
from ..metrics import Metric
from .base import Graded, Protocol, Reduction
from .roles import BARE, uncounted


def reduce(protocol: Protocol, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
    """The protocol's reduction; rows of roles ``no-preamble/...`` are counted by themselves.

    Their metrics carry the group ``prompt: no-preamble``; case sets come from the other rows. Which of the two ways
    is better is not chosen: both are reported. Rows in roles that the protocol does not count are a warning.

    Raises ``InputError`` where no row is in a role that it counts.
    """
    unknown = uncounted(rows, protocol.name) if rows else []
    usual = [row for row in rows if not row.role.startswith(BARE)]
    bare = [replace(row, role=row.role.removeprefix(BARE)) for row in rows if row.role.startswith(BARE)]
    found = protocol.reduce(usual, cases)
    metrics, warnings = list(found.metrics), [*unknown, *found.warnings]
    if bare:
        other = protocol.reduce(bare, cases)
        metrics += [_without_preamble(m) for m in other.metrics]
        warnings += [f"without preamble: {w}" for w in other.warnings]
    return Reduction(tuple(metrics), found.case_sets, tuple(warnings))


def _without_preamble(metric: Metric) -> Metric:
    prompt = " ".join(str(p) for p in ("no-preamble", metric.group.get("prompt")) if p)
    return replace(metric, group={**metric.group, "prompt": prompt})
