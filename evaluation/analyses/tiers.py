"""One run counted under several definitions of a right answer (Composition collapse, App. M, table 14).

``semantic``: right in substance (the grades as they are). ``exact``: only literal matches count. ``strict``: right and
well-formed. ``adjudicated``: semantic, without failures that a person or the rules call artefacts. Exact and strict
change the gates as well as the wholes; the adjudicated tier keeps the semantic gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..graded import Graded
from ..metrics import Metric
from ..protocols import counting
from ..protocols.double_gate import gate_cases
from .base import Analysis, Source
from .taxonomy import ARTEFACTS, rule_label

LITERAL = ("exact", "alias", "numeric", "date", "set", "list", "boolean")
_TAGGED = ("xml", "xml-answer")


def tiers(source: Source, annotations: Mapping[str, str] | None = None) -> Analysis:
    """Gate-passers and residual failure under each tier; ``annotations`` as for the taxonomy.

    The strict tier needs the responses' texts (a run folder); without them it is left out and said.
    """
    metrics = _tier("semantic", source.rows, source)
    metrics += _tier("exact", [_demoted(r, _literal) for r in source.rows], source)
    warnings = []
    if source.texts:
        formed = [_demoted(r, lambda row: _well_formed(row, source.text(row))) for r in source.rows]
        metrics += _tier("strict", formed, source)
    else:
        warnings.append(f"{source.name}: no responses at hand; the strict tier needs a run folder")
    metrics += _adjudicated(source, dict(annotations or {}))
    return Analysis("tiers", tuple(metrics), warnings=tuple(warnings))


def _literal(row: Graded) -> bool:
    return row.match in LITERAL


def _well_formed(row: Graded, text: str | None) -> bool:
    """Whether the response is complete and has exactly one answer."""
    if text is None:
        return False
    return row.prompt not in _TAGGED or (text.count("<answer>") == 1 and text.rstrip().endswith("</answer>"))


def _demoted(row: Graded, keeps: Callable[[Graded], bool]) -> Graded:
    return row if row.outcome != "correct" or keeps(row) else replace(row, outcome="incorrect")


def _tier(name: str, rows: Sequence[Graded], source: Source) -> list[Metric]:
    gated = gate_cases(rows, source.cases or None)
    group = {"tier": name}
    items = [g.item for g in gated]
    return [
        counting.rate("double_gate", [g.double for g in gated], group, clusters=counting.clusters_of(items)),
        counting.failure("residual_failure", [(g.double, g.whole) for g in gated], items, group),
    ]


def _adjudicated(source: Source, annotations: Mapping[str, str]) -> list[Metric]:
    gated = gate_cases(source.rows, source.cases or None)
    outcomes = []
    artefacts = 0
    for g in gated:
        whole = g.whole
        if g.double is True and whole is False:
            label = annotations.get(g.item.case)
            if label is None:
                label = rule_label(g, source.cases.get(g.item.case), source.text(g.item.rows["whole"]))
            artefacts += label in ARTEFACTS
            whole = label in ARTEFACTS
        outcomes.append((g.double, whole))
    items = [g.item for g in gated]
    note = f"{artefacts} artefacts counted as right"
    return [counting.failure("residual_failure", outcomes, items, {"tier": "adjudicated"}, note)]
