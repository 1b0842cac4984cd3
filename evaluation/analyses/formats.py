"""Prompt formats compared on one fixed set of cases (Composition collapse, App. Q, table 19).

The set is the cases that pass the gates in one reference run. Every format is counted over the same cases, so that
differences are due to the format, not the gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from ...errors import InputError, NoCasesError
from .. import prompts
from ..graded import Graded
from ..grading.text import normalize
from ..metrics import Metric
from ..protocols import counting
from ..protocols.double_gate import gate_cases
from .base import Analysis, Source, distinct

Answers = Mapping[str, tuple[Graded, str | None]]
"""By case, the whole's row and the text of the response."""


def compare_formats(sources: Sequence[Source], reference: str | None = None) -> Analysis:
    """Accuracy, abstention and closing-tag rate of each format, how often two give the same answer, and all of them.

    A format is a separate run (one per format) or a further format of the reference run (roles ``whole:FORMAT``).
    ``reference`` names the run whose gates choose the cases (default: the first). Only cases with a whole in every
    format are compared; the others are counted. Abstaining is an answer, the same for all; a whole without a judgement
    leaves the comparisons of answers.

    Raises ``InputError`` where there are not two formats, ``NoCasesError`` where no case passes the gates.
    """
    distinct(sources, 1, "formats")
    by_name = {s.name: s for s in sources}
    if reference is not None and reference not in by_name:
        raise InputError(f"--reference {reference}: give one of {', '.join(by_name)}")
    gate = by_name[reference] if reference else sources[0]
    passing = [g.item.case for g in gate_cases(gate.rows, gate.cases or None) if g.double is True]
    formats = _formats(sources)
    if len(formats) < 2:
        raise InputError(f"formats: only {', '.join(formats)}; give runs in other formats of the same cases")
    shared = [c for c in passing if all(c in answers for answers in formats.values())]
    if not shared:
        raise NoCasesError(f"formats: none of the {len(passing)} gate-passing cases was asked in every format")
    metrics = [m for name, answers in formats.items() for m in _one(name, answers, shared)]
    metrics += [_agreement(pair, formats, shared) for pair in combinations(formats, 2)]
    if len(formats) > 2:
        metrics.append(_agreement(tuple(formats), formats, shared))
    left = len(passing) - len(shared)
    warnings = (f"{left} gate-passing cases were not asked in every format and are left out",) if left else ()
    return Analysis("formats", tuple(metrics), warnings=warnings)


def _formats(sources: Sequence[Source]) -> dict[str, Answers]:
    found: dict[str, dict[str, tuple[Graded, str | None]]] = {}
    for source in sources:
        for row in source.rows:
            role, _, named = row.role.partition(":")
            if role != "whole" or row.repeat:
                continue
            name = named or row.prompt or source.name
            if found.setdefault(name, {}).setdefault(row.case, (row, source.text(row)))[0] is not row:
                raise InputError(
                    f"formats: case {row.case!r} was asked twice in format {name!r}; give one run for each"
                )
    return dict(found)


def _one(name: str, answers: Answers, cases: Sequence[str]) -> list[Metric]:
    rows = [answers[c] for c in cases]
    group = {"prompt": name}
    right = [counting.truth(row) for row, _ in rows]
    abstained = [None if row.outcome == "invalid" else row.outcome == "abstained" for row, _ in rows]
    metrics = [
        counting.rate("composition", right, group),
        counting.rate("abstention", abstained, group),
    ]
    texts = [text for _, text in rows]
    if any(t is not None for t in texts):
        closed = [None if t is None else "</answer>" in t for t in texts]
        wanted = name in prompts.FORMATS and prompts.FORMATS[name].extract == "xml"
        note = None if wanted else "this format does not ask for tags"
        metrics.append(counting.rate("closing_tag", closed, group, note=note))
    return metrics


def answer_of(row: Graded) -> str | None:
    """The final answer as compared between formats; None where no answer can be compared."""
    if row.outcome == "abstained":
        return prompts.ABSTENTION
    if row.outcome == "invalid" or row.answer is None:
        return None
    return normalize(row.answer) or row.answer.strip()


def _agreement(names: Sequence[str], formats: Mapping[str, Answers], cases: Sequence[str]) -> Metric:
    values = []
    for case in cases:
        answers = [answer_of(formats[n][case][0]) for n in names]
        values.append(None if None in answers else len(set(answers)) == 1)
    metric = "agreement" if len(names) == 2 else "all_identical"
    return counting.rate(metric, values, {"prompts": " = ".join(names)})
