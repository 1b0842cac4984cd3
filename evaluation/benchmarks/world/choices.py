"""Mixed-type cases about choices: which of three things is of a kind, then one operation on how many there are."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from ...cases import Case, Part
from .arithmetic import OPERATIONS, fair, math_part, mixed_case
from .decoys import nearest
from .tables import entity, rows, sentence, slug

Member = dict[str, str]
"""A row of ``kinds.csv``."""

_ACTS = {
    "addition": "Mia puts in {n} more {kinds}. How many {kinds} are in the box now?",
    "subtraction": "Mia takes out {n} {kinds}. How many {kinds} are left in the box?",
}


def cases(family: str, operation: str, each: int) -> Iterator[Case]:
    """``each`` cases for every member of a kind, beside members of two other kinds."""
    for member in rows("kinds"):
        rng = random.Random(f"{family}/{member['one']}")
        for n in range(each):
            yield _case(f"{family}-{_noun(member)}{f'-{n + 1}' if each > 1 else ''}", member, operation, rng)


def _case(id: str, member: Member, operation: str, rng: random.Random) -> Case:
    trio = _beside(member, rng)
    counts, n = _counts(trio.index(member), operation, rng)
    count = counts[trio.index(member)]
    held = [f"{c} {m['many']}" for c, m in zip(counts, trio, strict=True)]
    math = math_part(operation, count, n)
    # what comes out for the other things, for everything, and with the operation left out
    slips = nearest([*(OPERATIONS[operation](c, n) for c in counts), sum(counts), count, n], int(math.answer))
    return mixed_case(
        id,
        f"A toy box holds {held[0]}, {held[1]} and {held[2]}. {_ACTS[operation].format(n=n, kinds=member['kinds'])}",
        (_choice(member, [m["one"] for m in trio]), math),
        shared=(f"kind:{slug(member['kinds'])}", str(math.atom)),
        decoys=([_noun(m) for m in trio if m is not member], slips),
        chance=1 / len(trio),
    )


def _beside(member: Member, rng: random.Random) -> list[Member]:
    """The member among members of two other kinds, in any order."""
    others = [m for m in rows("kinds") if m["kind"] != member["kind"]]
    first = rng.choice(others)
    second = rng.choice([m for m in others if m["kind"] != first["kind"]])
    return rng.sample([member, first, second], 3)


def _counts(position: int, operation: str, rng: random.Random) -> tuple[list[int], int]:
    """How many there are of each thing, and how many come or go; the result is none of these numbers."""
    while True:
        *counts, n = rng.sample(range(2, 10), 4)
        count = counts[position]
        if fair(operation, count, n) and OPERATIONS[operation](count, n) not in counts:
            return counts, n


def _choice(member: Member, options: Sequence[str]) -> Part:
    """The choice as a sub-question."""
    a, b, c = options
    kind = member["kind"]
    return Part(
        question=f"Which of these is {kind}: {a}, {b} or {c}?",
        answer=_noun(member),
        kind="commonsense",
        aliases=(member["many"],),
        paraphrases=(
            f"Only one of these is {kind}: {a}, {b} or {c}. Which one?",
            f"{sentence(a)}, {b}, {c}: which of them is {kind}?",
        ),
        atom=f"{slug(kind)}:{'-'.join(slug(o) for o in options)}",
        skill="choice",
    )


def _noun(member: Member) -> str:
    return entity("", member["one"]).names[0]
