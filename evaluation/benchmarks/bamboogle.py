"""Bamboogle with sub-questions: two-hop questions with both hops and their accepted answers.

The file is a JSON list of ``{Question, Answer, Q1, A1: [...], Q2, A2: [...]}`` (Press et al. 2023, extended with
sub-questions).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..case import Case, Part
from ..reading import answers_field, objects, text_field
from .catalog import benchmark

WHAT = "Bamboogle with sub-questions: a JSON list of {Question, Answer, Q1, A1, Q2, A2}"


@benchmark("bamboogle")
def read_bamboogle(path: str | Path) -> list[Case]:
    """Read the cases; where the second sub-question is the question itself, ``meta`` says so.

    A case whose last hop is its own question tells nothing about composition: ``meta["part_is_whole"]`` marks it, and
    it stays in, because the published counts hold it. Raises ``InputError`` naming item and field.
    """
    return [_case(row, i, where) for i, (where, row) in enumerate(objects(path, WHAT))]


def _case(row: dict[str, Any], index: int, where: str) -> Case:
    question = text_field(row, "Question", where)
    answer, aliases = answers_field(row, "Answer", where)
    parts = tuple(_part(row, hop, where) for hop in (1, 2))
    # The last hop's answer is the whole's: its accepted spellings hold for both.
    accepted = {answer.casefold(), *(a.casefold() for a in aliases)}
    last = (parts[1].answer, *parts[1].aliases)
    if accepted & {a.casefold() for a in last}:
        aliases += tuple(a for a in last if a.casefold() not in accepted)
    same = any(p.question.casefold() == question.casefold() for p in parts)
    return Case(
        id=f"bamboogle-{index:03d}",
        question=question,
        answer=answer,
        aliases=aliases,
        parts=parts,
        benchmark="bamboogle",
        depth=2,
        meta={"part_is_whole": True} if same else {},
    )


def _part(row: dict[str, Any], hop: int, where: str) -> Part:
    answer, aliases = answers_field(row, f"A{hop}", where)
    return Part(text_field(row, f"Q{hop}", where), answer, kind=f"hop-{hop}", aliases=aliases)
