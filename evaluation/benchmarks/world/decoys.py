"""Decoys: answers of the same kind that are wrong here, for readouts to rank the right one against."""

from __future__ import annotations

import random
from collections.abc import Iterable
from functools import cache

from .relations import Fact, Relation
from .tables import cells, holds, rows

N = 4
"""Decoys of an answer, where there are as many."""


def of_relation(relation: Relation, fact: Fact, seed: str) -> list[str]:
    """Other answers of the fact's relation, drawn by ``seed``; the nearest ones for numbers.

    What a lenient reader could take for the right answer is left out, and so is what may be argued for (``near.csv``).
    """
    subject, gold = fact
    doubtful = {*gold.names, *_near().get((relation.name, subject.names[0]), ())}
    others = [a.names[0] for a in relation.answers if not _alike(a.names, doubtful)]
    if relation.answer_type == "number":
        return nearest(map(int, others), int(gold.names[0]))
    return random.Random(seed).sample(others, min(N, len(others)))


def nearest(numbers: Iterable[int], gold: int) -> list[str]:
    """The positive numbers nearest to the gold one, without it."""
    others = {n for n in numbers if n > 0 and n != gold}
    return [str(n) for n in sorted(others, key=lambda n: (abs(n - gold), n))[:N]]


@cache
def _near() -> dict[tuple[str, str], tuple[str, ...]]:
    """Answers by relation and subject that are neither right nor plainly wrong."""
    return {(row["relation"], row["subject"]): cells(row["answers"]) for row in rows("near")}


def _alike(some: Iterable[str], others: Iterable[str]) -> bool:
    return any(holds(a, b) or holds(b, a) for a in some for b in others)
