"""Protocols: published ways to ask and to count, by command-line name.

A protocol says which prompts a case needs, and turns graded answers into metrics and sets of cases; it calls no model.
``compositionality_gap`` (AgentCoMa), ``reasoning_gap`` (Compositional GSM), ``scaffolding`` (STaD), ``double_gate`` and
``compare`` (two models under it; Composition collapse).
Common to all: ``base`` (the types, protocols by name), ``asking`` (prompts for parts and wholes), ``presenting``
(worked examples, chat or raw, thinking), ``counting`` (rates with intervals and bounds).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import InputError
from ..case import Case
from ..graded import Graded, check_rows
from ..grading.grade import MODES
from ..metrics import check_metrics
from .base import PROTOCOLS, About, CaseSet, Entry, Evidence, Protocol, Reduction, get, reduce

__all__ = ["About", "CaseSet", "Entry", "Evidence", "Graded", "Protocol", "Reduction", "PROTOCOLS", "get",
           "metrics_from_rows"]  # fmt: skip


def metrics_from_rows(
    rows: Iterable[Graded | Mapping[str, Any]],
    protocol: str,
    compat: str | None = None,
    seed: int = 0,
    cases: Mapping[str, Case] | None = None,
) -> Reduction:
    """A protocol's metrics, case sets and warnings from graded rows of any origin, without any model.

    ``compat`` counts as a paper does (``stad``, ``collapse``, ``agentcoma``). Contradictions inside the rows (see
    ``graded.check_rows``) come with the warnings. ``metrics.dumps`` writes the result as ``metrics.json``.

    Raises ``InputError`` for rows that cannot be used, and for an unknown protocol or mode.
    """
    if compat is not None and compat not in MODES:
        raise InputError(f"--compat {compat!r} is not known; use one of {', '.join(MODES)}")
    graded = [row if isinstance(row, Graded) else Graded.from_dict(row, f"row {n}") for n, row in enumerate(rows, 1)]
    if not graded:
        raise InputError("graded rows: there are none; give one object a row with case, role and outcome")
    # A protocol of one's own need not have an option that is not used.
    given = {name: value for name, value in (("compat", compat), ("seed", seed)) if value}
    found = reduce(get(protocol, **given), graded, cases)
    warnings = (*found.warnings, *check_rows(graded), *check_metrics(found.metrics))
    return Reduction(found.metrics, found.case_sets, warnings)
