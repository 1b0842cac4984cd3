"""Mixed-type cases about counts: how many legs, strings, days something has, then one operation."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ...cases import Case, Part
from .arithmetic import fair, math_part, mixed_case, slips
from .decoys import nearest
from .tables import rows, sentence, slug

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
