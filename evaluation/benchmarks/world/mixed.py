"""Mixed-type cases in AgentCoMa's shape: counts or choices of common sense, then one operation on numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from ...cases import Case, Part
from .decoys import nearest
from .tables import entity, plain, rows, slug

Numbers = tuple[int, int, int]
"""Operands and result."""

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "addition": lambda a, b: a + b,
    "subtraction": lambda a, b: a - b,
    "multiplication": lambda a, b: a * b,
    "division": lambda a, b: a // b,
}
_COUNTED = {
    "has": ("How many {unit} does {one} have?", "What is the number of {unit} of {one}?", "{one} has how many {unit}?"),
    "in": (
        "How many {unit} are there in {one}?",
        "What is the number of {unit} in {one}?",
        "{one} is made up of how many {unit}?",
    ),
}
"""Wordings of a count, by whether a thing has its units or consists of them."""


@dataclass(frozen=True)
class Thing:
    """Something of which everybody knows how many units it has."""

    one: str
    """With its article: "a spider"."""
    many: str
    unit: str
    """In the plural."""
    count: int
    form: str
    """Group of things that the same scenes suit: animal, vehicle, instrument, shape, time, measure."""

    @property
    def noun(self) -> str:
        return self.one.split(" ", 1)[1]

    @property
    def id(self) -> str:
        return f"thing:{slug(self.noun)}"

    def part(self) -> Part:
        """The count as a sub-question."""
        wordings = _COUNTED["in" if self.form in ("time", "measure") else "has"]
        question, *paraphrases = (_sentence(w.format(unit=self.unit, one=self.one)) for w in wordings)
        return Part(
            question=question,
            answer=str(self.count),
            kind="commonsense",
            answer_type="number",
            paraphrases=tuple(paraphrases),
            atom=f"count:{slug(self.noun)}-{self.unit}",
            skill="count",
        )


def things() -> list[Thing]:
    """All things of ``counts.csv``."""
    return [Thing(**{**row, "count": int(row["count"])}) for row in rows("counts")]  # type: ignore[arg-type]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _scenes(family: str) -> dict[str, str]:
    """Wordings of a family's wholes by form of thing."""
    return {row["form"]: row["question"] for row in rows("scenes") if row["family"] == family}


def math_part(operation: str, a: int, b: int) -> Part:
    """One operation on two numbers as a sub-question."""
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


def _slips(operation: str, a: int, b: int) -> list[str]:
    """Results near the right one: of other operations on the same numbers, and of operands that are one off."""
    right = OPERATIONS[operation](a, b)
    found = {run(a, b) for run in OPERATIONS.values()} | {
        OPERATIONS[operation](a + i, b + j) for i, j in ((-1, 0), (1, 0), (0, -1), (0, 1)) if b + j > 0
    }
    return nearest(found | {right - 1, right + 1}, right)


def _fair(operation: str, a: int, b: int) -> bool:
    """Whether the result is more than 1 and neither operand: a question must not hold its own answer."""
    result = OPERATIONS[operation](a, b)
    return result > 1 and result not in (a, b)


def _second(count: int, operation: str) -> list[int]:
    """Numbers that go well with a count under an operation; round ones beside large counts."""
    if operation in ("multiplication", "division"):
        return [n for n in range(2, 10) if n != count]
    step = 1 if count < 30 else 10 ** (len(str(count)) - 2) * 5 if count < 1000 else 100
    return [n for n in range(step, count, step) if n > 1 or operation == "subtraction"]


def _of_one(family: str, operation: str, each: int = 1) -> Iterator[Case]:
    """One count, then an operation with a number that is given."""
    for thing in things():
        scene = _scenes(family).get(thing.form)
        if scene is None:
            continue
        suits = [n for n in _second(thing.count, operation) if _suits(thing, operation, n)]
        chosen = random.Random(f"{family}/{thing.noun}/{thing.unit}").sample(suits, min(each, len(suits)))
        for n in sorted(chosen):
            a, b = _operands(thing.count, operation, n)
            given = a if operation == "division" else n
            text = scene.format(n=given, thing=thing.noun, one=thing.one, many=thing.many, unit=thing.unit)
            yield _case(
                family,
                f"{family}-{slug(thing.noun)}-{given}",
                _sentence(text),
                (thing.part(), math_part(operation, a, b)),
                (thing.id, f"sum:{operation}:{a},{b}"),
                {"part:0": _counts_like(thing), "part:1": _slips(operation, a, b)},
            )


def _operands(count: int, operation: str, n: int) -> tuple[int, int]:
    return {"multiplication": (n, count), "division": (n * count, count)}.get(operation, (count, n))


def _suits(thing: Thing, operation: str, n: int) -> bool:
    if n == 1 and thing.form == "time":
        return False
    return _fair(operation, *_operands(thing.count, operation, n))


def _counts_like(thing: Thing) -> list[str]:
    """Counts of things with the same unit; of all like things where those are few."""
    known = [other for other in things() if other.count != thing.count]
    same = {other.count for other in known if other.unit == thing.unit}
    return nearest(same if len(same) > 2 else {o.count for o in known if o.form == thing.form} | same, thing.count)


def _of_two(family: str, operation: str, each: int) -> Iterator[Case]:
    """Two counts, then an operation on them; every thing comes first in up to ``each`` cases."""
    known = things()
    for first in known:
        scene = _scenes(family).get(first.form)
        others = [t for t in known if (t.form, t.unit) == (first.form, first.unit) and t.count != first.count]
        others = [t for t in others if _fair(operation, first.count, t.count)]
        if scene is None or not others:
            continue
        rng = random.Random(f"{family}/{first.noun}")
        for second in rng.sample(others, min(each, len(others))):
            text = scene.format(one=first.one, other=second.one, unit=first.unit)
            yield _case(
                family,
                f"{family}-{slug(first.noun)}-{slug(second.noun)}",
                _sentence(text),
                (first.part(), second.part(), math_part(operation, first.count, second.count)),
                (first.id, second.id),
                {
                    "part:0": _counts_like(first),
                    "part:1": _counts_like(second),
                    "part:2": _slips(operation, first.count, second.count),
                },
            )


def _choices(family: str, operation: str) -> Iterator[Case]:
    """Which of three things is of a kind? Then some of that kind are put in or taken out."""
    acts = {
        "addition": "Mia puts in {n} more {kinds}. How many {kinds} are in the box now?",
        "subtraction": "Mia takes out {n} {kinds}. How many {kinds} are left in the box?",
    }
    members = rows("kinds")
    for row in members:
        rng = random.Random(f"{family}/{row['one']}")
        others = rng.sample([m for m in members if _apart(m, row)], 8)
        first = others[0]
        second = next(m for m in others[1:] if m["kind"] != first["kind"])
        trio = rng.sample([row, first, second], 3)
        while True:
            *counts, n = rng.sample(range(2, 10), 4)
            a = counts[trio.index(row)]
            if _fair(operation, a, n) and OPERATIONS[operation](a, n) not in counts:
                break
        held = [f"{c} {m['many']}" for c, m in zip(counts, trio, strict=True)]
        act = acts[operation].format(n=n, kinds=row["kinds"])
        options = [m["one"] for m in trio]
        slips = [OPERATIONS[operation](c, n) for c in counts] + [sum(counts), a, n]
        yield _case(
            family,
            f"{family}-{slug(entity('', row['one']).names[0])}",
            f"A toy box holds {held[0]}, {held[1]} and {held[2]}. {act}",
            (_choice_part(row, options), math_part(operation, a, n)),
            (f"kind:{slug(row['kinds'])}", f"sum:{operation}:{a},{n}"),
            {
                "part:0": [entity("", o).names[0] for o in options if o != row["one"]],
                "part:1": nearest(slips, OPERATIONS[operation](a, n)),
            },
            1 / len(trio),
        )


def _apart(member: dict[str, str], row: dict[str, str]) -> bool:
    """Whether a thing may stand beside another as one that is not of its kind."""
    return member["kind"] != row["kind"]


def _choice_part(row: dict[str, str], options: Sequence[str]) -> Part:
    a, b, c = options
    gold = entity("", row["one"]).names[0]
    return Part(
        question=f"Which of these is {row['kind']}: {a}, {b} or {c}?",
        answer=gold,
        kind="commonsense",
        aliases=(row["many"],),
        paraphrases=(
            f"Only one of these is {row['kind']}: {a}, {b} or {c}. Which one?",
            f"{_sentence(a)}, {b}, {c}: which of them is {row['kind']}?",
        ),
        atom=f"{slug(row['kind'])}:{'-'.join(slug(o) for o in options)}",
        skill="choice",
    )


def _case(
    family: str,
    id: str,
    question: str,
    parts: tuple[Part, ...],
    shared: tuple[str, str],
    decoys: dict[str, list[str]],
    chance: float | None = None,
) -> Case:
    """A case whose last part computes the whole's answer; ``shared`` is its cluster and what crosses it."""
    cluster, crossed = shared
    return Case(
        id=id,
        question=question,
        answer=parts[-1].answer,
        parts=parts,
        answer_type="number",
        family=family,
        depth=len(parts),
        cluster=cluster,
        domain="counting",
        operation=parts[-1].skill,
        chance=chance,
        meta={"first": cluster, "crossed": crossed, "decoys": {**decoys, "whole": list(decoys.values())[-1]}},
    )


FAMILIES: dict[str, Callable[[], Iterator[Case]]] = {
    "count-times": lambda: _of_one("count-times", "multiplication"),
    "count-minus": lambda: _of_one("count-minus", "subtraction"),
    "count-plus": lambda: _of_one("count-plus", "addition", each=3),
    "count-share": lambda: _of_one("count-share", "division"),
    "two-sum": lambda: _of_two("two-sum", "addition", each=2),
    "two-difference": lambda: _of_two("two-difference", "subtraction", each=3),
    "choice-more": lambda: _choices("choice-more", "addition"),
    "choice-less": lambda: _choices("choice-less", "subtraction"),
}
"""Families by name."""
