"""Stored responses graded again with the rules of ``grading``, and the items whose stored verdict differs.

An answer that the rules cannot judge is invalid, which is not a disagreement about right or wrong. Such answers are
listed and counted separately.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...errors import InputError
from ..case import ANSWER_TYPES
from ..graded import Graded
from ..grading import grade
from ..prompts import FORMATS
from .base import Imported, Options, Stored, type_of_golds

_SHOWN = 100
"""Characters from the end of a response that a line about a disagreement shows; its record has all of it."""


@dataclass(frozen=True)
class Regraded:
    """Rows with the new verdicts, and a comparison with the stored ones."""

    rows: list[Graded]
    disagreements: list[dict[str, Any]]
    """One record per row whose stored verdict is another: ``where, case, role, model, stored, ours, reason, answer,
    gold, answer_type, response``."""
    table: dict[str, int]
    """Rows by "stored -> ours" outcome."""
    not_graded: int
    """Rows without a response or gold answer: they keep the stored verdict."""


def check(options: Options) -> None:
    """Raises ``InputError`` for an answer type or prompt format that is not known."""
    if options.answer_type is not None and options.answer_type not in ANSWER_TYPES:
        raise InputError(f"--answer-type {options.answer_type}: use one of {', '.join(ANSWER_TYPES)}")
    if options.format is not None and options.format not in FORMATS:
        raise InputError(f"--format {options.format}: use one of {', '.join(FORMATS)}")


def regrade(found: Imported, options: Options) -> Regraded:
    """Grade every row again whose file holds a response and a gold answer.

    Raises ``InputError`` where a file holds no response at all.
    """
    check(options)
    if not any(found.stored):
        raise InputError("--regrade: the file holds no responses with gold answers; import it without")
    rows, disagreements = [], []
    table: Counter[str] = Counter()
    for row, stored in zip(found.rows, found.stored, strict=True):
        if stored is None or not stored.has_verdict:
            rows.append(row)
            continue
        ours = graded(row, stored, options)
        rows.append(replace(ours, extra={**row.extra, "stored_outcome": row.outcome}))
        table[f"{row.outcome} -> {ours.outcome}"] += 1
        if ours.outcome != row.outcome:
            disagreements.append(_disagreement(row, ours, stored, options))
    return Regraded(rows, disagreements, dict(sorted(table.items())), sum(s is None for s in found.stored))


def graded(row: Graded, stored: Stored, options: Options) -> Graded:
    """The row with our verdict on its response."""
    kind = _kind(stored, options)
    format = stored.format if options.format is None else options.format
    gold, *aliases = stored.golds
    found = grade(stored.response, stored.finish_reason, gold, kind, aliases=aliases, format=format)
    options.each()
    return replace(
        row, outcome=found.outcome, answer=found.answer, match=found.match, reason=found.reason,
        gold=" | ".join(stored.golds),
    )  # fmt: skip


def _kind(stored: Stored, options: Options) -> str:
    return stored.answer_type or options.answer_type or type_of_golds(stored.golds)


def _disagreement(row: Graded, ours: Graded, stored: Stored, options: Options) -> dict[str, Any]:
    return {
        "where": stored.where, "case": row.case, "role": row.role, "model": row.model,
        "stored": row.outcome, "ours": ours.outcome, "reason": ours.reason, "answer": ours.answer,
        "gold": list(stored.golds), "answer_type": _kind(stored, options), "response": stored.response,
    }  # fmt: skip


def lines(table: dict[str, int], disagreements: Sequence[dict[str, Any]], most: int) -> list[str]:
    """The table and the first disagreements as text."""
    out = ["graded again (stored -> ours): " + ", ".join(f"{n} {pair}" for pair, n in table.items())]
    judged = [d for d in disagreements if "invalid" not in (d["stored"], d["ours"])]
    open_ = len(disagreements) - len(judged)
    out.append(f"{len(judged)} verdicts differ; {open_} more are invalid on one side only (all: disagreements.jsonl)")
    for d in judged[:most]:
        said = " ".join(d["response"].split())[-_SHOWN:]
        out.append(f"  {d['where']}, {d['role']}: stored {d['stored']}, ours {d['ours']} ({d['answer']!r} for "
                   f"{' | '.join(d['gold'])!r}): ...{said}")  # fmt: skip
    return out
