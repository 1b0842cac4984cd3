"""Mixed-type families in AgentCoMa's shape: a step of common sense, then one operation on numbers.

The first step is a count (how many legs, strings or days something has) or a choice (which of three things belongs to a
kind).
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from ...case import Case, Part
from .two_hop import entity, nearest, rows, sentence, slug

_WORDINGS = {
    "has": ("How many {unit} does {one} have?", "What is the number of {unit} of {one}?", "{one} has how many {unit}?"),
    "holds": (
        "How many {unit} are there in {one}?",
        "What is the number of {unit} in {one}?",
        "{one} is made up of how many {unit}?",
    ),
}


@dataclass(frozen=True)
class Thing:
    """Something of which everybody knows how many units it has."""

    one: str
    """With its article: "a spider"."""
    many: str
    unit: str
    """In the plural: "legs"."""
    count: int
    form: str
    """Things that suit the same scenes: animal, vehicle, instrument, shape, time, measure."""

    @property
    def noun(self) -> str:
        return self.one.split(" ", 1)[1]

    @property
    def id(self) -> str:
        """The same as in the two-hop families."""
        return f"{'animal' if self.form == 'animal' else 'thing'}:{slug(self.noun)}"

    def part(self) -> Part:
        """The count as a sub-question."""
        wordings = _WORDINGS["holds" if self.form in ("time", "measure") else "has"]
        question, *paraphrases = (sentence(w.format(unit=self.unit, one=self.one)) for w in wordings)
        return Part(
            question=question,
            answer=str(self.count),
            kind="commonsense",
            answer_type="number",
            paraphrases=tuple(paraphrases),
            atom=f"{self.unit}:{slug(self.noun)}",
            skill="count",
        )

    def decoys(self) -> list[str]:
        """Counts of things with the same unit; where those are few also of like things, and those that are one off."""
        same = {t.count for t in things() if t.unit == self.unit} - {self.count}
        if len(same) < 3:
            same |= {t.count for t in things() if t.form == self.form} | {self.count - 1, self.count + 1}
        return nearest(same, self.count)


@cache
def things() -> tuple[Thing, ...]:
    """All things of ``counts.csv``."""
    return tuple(Thing(row["one"], row["many"], row["unit"], int(row["count"]), row["form"]) for row in rows("counts"))


def with_a_number(family: str, operation: str, each: int) -> Iterator[Case]:
    """A count and a number that is given; ``each`` cases for every thing that the family's scenes suit."""
    for thing in things():
        scene = _scenes(family).get(thing.form)
        if scene is None:
            continue
        suits = [n for n in _numbers(thing, operation) if fair(operation, *_operands(thing, operation, n))]
        drawn = random.Random(f"{family}/{thing.one}/{thing.unit}").sample(suits, min(each, len(suits)))
        for a, b in (_operands(thing, operation, n) for n in sorted(drawn)):
            given = b if operation in ("addition", "subtraction") else a
            text = scene.format(n=given, thing=thing.noun, one=thing.one, many=thing.many, unit=thing.unit)
            math = math_part(operation, a, b)
            yield mixed_case(
                f"{family}-{slug(thing.noun)}-{given}",
                sentence(text),
                (thing.part(), math),
                shared=(thing.id, str(math.atom)),
                decoys=(thing.decoys(), slips(operation, a, b)),
            )


def with_each_other(family: str, operation: str, each: int) -> Iterator[Case]:
    """Two counts; every thing comes first in up to ``each`` cases, and no two things come together twice."""
    paired: set[frozenset[str]] = set()
    for first in things():
        scene = _scenes(family).get(first.form)
        if scene is None:
            continue
        others = [t for t in things() if (t.form, t.unit) == (first.form, first.unit) and t.count != first.count]
        others = [t for t in others if fair(operation, first.count, t.count)]
        others = [t for t in others if frozenset((first.id, t.id)) not in paired]
        for second in random.Random(f"{family}/{first.one}").sample(others, min(each, len(others))):
            paired.add(frozenset((first.id, second.id)))
            text = scene.format(one=first.one, other=second.one, unit=first.unit)
            yield mixed_case(
                f"{family}-{slug(first.noun)}-{slug(second.noun)}",
                sentence(text),
                (first.part(), second.part(), math_part(operation, first.count, second.count)),
                shared=(first.id, second.id),
                decoys=(first.decoys(), second.decoys(), slips(operation, first.count, second.count)),
            )


def _scenes(family: str) -> dict[str, str]:
    """Wordings of a family's wholes by form of thing."""
    return {row["form"]: row["question"] for row in rows("scenes") if row["family"] == family}


def _numbers(thing: Thing, operation: str) -> Sequence[int]:
    """Numbers that go well with a count: few times it, or a part of it, in round steps where it is large."""
    if operation in ("multiplication", "division"):
        return range(2, 10)
    step = next(step for most, step in ((30, 1), (100, 5), (1000, 50), (10_000, 100)) if thing.count < most)
    # "1 of its strings" can be said, "1 days" cannot
    return [n for n in range(step, thing.count, step) if n > 1 or thing.form not in ("time", "measure")]


def _operands(thing: Thing, operation: str, n: int) -> tuple[int, int]:
    match operation:
        case "multiplication":
            return n, thing.count
        case "division":
            return n * thing.count, thing.count
        case _:
            return thing.count, n


OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "addition": lambda a, b: a + b,
    "subtraction": lambda a, b: a - b,
    "multiplication": lambda a, b: a * b,
    "division": lambda a, b: a // b,
}


def fair(operation: str, a: int, b: int) -> bool:
    """Whether the result is more than 1 and neither operand: a question must not hold its own answer."""
    result = OPERATIONS[operation](a, b)
    return result > 1 and result not in (a, b)


def slips(operation: str, a: int, b: int) -> list[str]:
    """Results near the right one: of other operations on the same numbers, and of operands that are one off."""
    run, right = OPERATIONS[operation], OPERATIONS[operation](a, b)
    one_off = {run(a + i, b + j) for i, j in ((-1, 0), (1, 0), (0, -1), (0, 1)) if b + j > 0}
    return nearest({other(a, b) for other in OPERATIONS.values()} | one_off | {right - 1, right + 1}, right)


def math_part(operation: str, a: int, b: int) -> Part:
    """The operation as a sub-question."""
    row = next(row for row in rows("arithmetic") if row["operation"] == operation)
    question, *paraphrases = (row[name].format(a=a, b=b) for name in ("question", "paraphrase_1", "paraphrase_2"))
    return Part(
        question=question,
        answer=str(OPERATIONS[operation](a, b)),
        kind="math",
        answer_type="number",
        paraphrases=tuple(paraphrases),
        atom=f"{operation}:{a},{b}",
        skill=operation,
    )


def mixed_case(
    id: str,
    question: str,
    parts: tuple[Part, ...],
    *,
    shared: tuple[str, str],
    decoys: Sequence[list[str]],
    chance: float | None = None,
) -> Case:
    """A case whose last part computes the whole's answer; ``shared`` is its cluster and what crosses it."""
    cluster, crossed = shared
    by_role = {f"part:{i}": found for i, found in enumerate(decoys)}
    return Case(
        id=id,
        question=question,
        answer=parts[-1].answer,
        parts=parts,
        answer_type="number",
        depth=len(parts),
        cluster=cluster,
        chance=chance,
        meta={"first": cluster, "crossed": crossed, "decoys": {**by_role, "whole": decoys[-1]}},
    )


Member = dict[str, str]
"""A row of ``kinds.csv``."""
_ACTS = {
    "addition": "Mia puts in {n} more {kinds}. How many {kinds} are in the box now?",
    "subtraction": "Mia takes out {n} {kinds}. How many {kinds} are left in the box?",
}


def with_a_choice(family: str, operation: str, each: int) -> Iterator[Case]:
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


@dataclass(frozen=True)
class MixedFamily:
    """Cases of one kind: how they are made, with which operation, and how many of each thing."""

    name: str
    domain: str
    make: Callable[[str, str, int], Iterator[Case]]
    operation: str
    each: int = 1
    shape: str = "mixed"

    def cases(self) -> Iterator[Case]:
        """All cases of the family, in the order of its tables."""
        for case in self.make(self.name, self.operation, self.each):
            yield replace(case, family=self.name, domain=self.domain, operation=self.operation)


FAMILIES = (
    MixedFamily("count-times", "counting", with_a_number, "multiplication"),
    MixedFamily("count-minus", "counting", with_a_number, "subtraction"),
    MixedFamily("count-plus", "counting", with_a_number, "addition", 3),
    MixedFamily("count-share", "counting", with_a_number, "division"),
    MixedFamily("two-sum", "counting", with_each_other, "addition", 2),
    MixedFamily("two-difference", "counting", with_each_other, "subtraction", 3),
    MixedFamily("choice-more", "choosing", with_a_choice, "addition"),
    MixedFamily("choice-less", "choosing", with_a_choice, "subtraction"),
)
