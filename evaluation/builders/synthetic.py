"""In-context families about made-up entities: kinship, numerical, spatial (Composition collapse, section 4 and App. P).

No model can know these facts, so they are given in the prompt as numbered evidence among distractors, and there is one
gate only: whether every constituent fact is read off correctly (the parts). Parts have no paraphrases and no atoms
shared over cases. A case of depth d chains d facts of the evidence.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...errors import InputError
from ..case import Case, Part

DEPTHS = (2, 3, 4, 5, 6)
PER_CELL = 11
"""Three families at five depths with 11 cases each are 165 cases, the paper's number."""

_ONSETS = "B D F G H J K L M N P R S T V Z Br Dr Gl Kr Pl St Tr Th".split()
_NUCLEI = "a e i o u ai ei or an el im".split()
_CODAS = "b d k l m n r s t v x nd rn sk th".split()
_THINGS = "lamp coin map flute mask seed stone key scroll ring cup bell".split()
_CONTAINERS = "box chest sack barrel drawer crate basket trunk jar case".split()
_GOODS = "coins shells beads tokens pearls feathers".split()
_DIRECTIONS = "north south east west".split()


@dataclass(frozen=True)
class Puzzle:
    """Facts that chain, what they ask and answer one by one, and the question over all of them."""

    chain: tuple[str, ...]
    parts: tuple[Part, ...]
    question: str
    answer: str
    answer_type: str
    worked: str
    operation: str
    distractors: tuple[str, ...]
    n_choices: int
    """Answers of the right form in the evidence: guessing one has chance 1/n."""


def build(
    families: Sequence[str] = ("kinship", "numerical", "spatial"),
    depths: Sequence[int] = DEPTHS,
    per_cell: int = PER_CELL,
    seed: int = 0,
    *,
    distractors: int = 4,
    benchmark: str = "synthetic",
) -> list[Case]:
    """Make ``per_cell`` cases for each family and depth, each with its own entities and ``distractors`` idle facts.

    Equal arguments give equal cases. Raises ``InputError`` for an unknown family, a depth under 2, and a number of
    distractors that is negative or more than a family has.
    """
    if unknown := [f for f in families if f not in FAMILIES]:
        raise InputError(f"families: {unknown[0]!r} is unknown; use {', '.join(FAMILIES)}")
    if min(depths, default=0) < 2 or max(depths, default=0) > 9 or distractors < 0:
        raise InputError(
            f"depths {tuple(depths)} and distractors {distractors}: depths are 2 to 9, distractors 0 or more"
        )
    if "spatial" in families and distractors >= len(_THINGS):
        raise InputError(f"distractors {distractors}: a spatial case has at most {len(_THINGS) - 1}; give fewer")
    rng = random.Random(seed)
    return [
        _case(FAMILIES[family](depth, rng, distractors), f"{family}-d{depth}-{n:03d}", family, depth, rng, benchmark)
        for family in families
        for depth in depths
        for n in range(per_cell)
    ]


def _case(puzzle: Puzzle, name: str, family: str, depth: int, rng: random.Random, benchmark: str) -> Case:
    facts = [*puzzle.chain, *puzzle.distractors]
    rng.shuffle(facts)
    return Case(
        id=name,
        question=puzzle.question,
        answer=puzzle.answer,
        parts=puzzle.parts,
        benchmark=benchmark,
        answer_type=puzzle.answer_type,
        worked=puzzle.worked,
        family=family,
        depth=depth,
        operation=puzzle.operation,
        evidence=tuple(f"[Evidence {i}] {fact}" for i, fact in enumerate(facts, 1)),
        chance=1 / puzzle.n_choices,
        meta={"gates": 1},
    )


def _names(n: int, rng: random.Random) -> list[str]:
    """Different made-up names."""
    found: dict[str, None] = {}
    while len(found) < n:
        found[f"{rng.choice(_ONSETS)}{rng.choice(_NUCLEI)}{rng.choice(_CODAS)}{rng.choice('aeio')}"] = None
    return list(found)


def _kinship(depth: int, rng: random.Random, idle: int) -> Puzzle:
    """Who is the father of the mother of ... of A?"""
    names = _names(depth + 1 + 2 * idle, rng)
    people, others = names[: depth + 1], names[depth + 1 :]
    kinds = [rng.choice(("mother", "father")) for _ in range(depth)]
    steps = list(zip(people, people[1:], kinds, strict=False))
    facts = tuple(f"{parent} is the {kind} of {child}." for child, parent, kind in steps)
    parts = tuple(_read(f"Who is the {kind} of {child}?", parent) for child, parent, kind in steps)
    path = " of ".join(f"the {kind}" for kind in reversed(kinds))
    idle_facts = [
        # Half of the idle facts hang on the chain, so that a name in the question is not enough to find the way.
        f"{people[rng.randrange(depth + 1)] if i % 2 else others[2 * i]} is the {rng.choice(('uncle', 'aunt'))} of "
        f"{others[2 * i + 1]}."
        for i in range(idle)
    ]
    seen = {n for n in names if any(n in f for f in (*facts, *idle_facts))}
    question, worked = f"Who is {path} of {people[0]}?", " ".join(facts) + f" So it is {people[-1]}."
    return Puzzle(facts, parts, question, people[-1], "text", worked, "ancestor", tuple(idle_facts), len(seen) - 1)


def _numerical(depth: int, rng: random.Random, idle: int) -> Puzzle:
    goods = rng.choice(_GOODS)
    names = _names(depth + idle, rng)
    make = rng.choice((_offsets, _extreme, _ordering))
    return make(names[:depth], names[depth:], goods, rng)


def _offsets(people: Sequence[str], others: Sequence[str], goods: str, rng: random.Random) -> Puzzle:
    """How many does the last have, if each has so many more than the one before?"""
    amounts = [rng.randint(20, 60)]
    facts, parts = [f"{people[0]} has {amounts[0]} {goods}."], [_how_many(people[0], goods, amounts[0])]
    for before, name in pairwise(people):
        step = rng.randint(2, 9)
        more = rng.random() < 0.5 or amounts[-1] <= step  # nobody has fewer than one
        amounts.append(amounts[-1] + (step if more else -step))
        word = "more" if more else "fewer"
        facts.append(f"{name} has {step} {word} {goods} than {before}.")
        parts.append(_read(f"How many {word} {goods} than {before} does {name} have?", str(step), "number"))
    idle = tuple(f"{name} has {rng.randint(5, 95)} {goods}." for name in others)
    worked = "; ".join(f"{name} has {amount}" for name, amount in zip(people, amounts, strict=True))
    question = f"How many {goods} does {people[-1]} have?"
    return Puzzle(tuple(facts), tuple(parts), question, str(amounts[-1]), "number", worked + ".", "offset", idle, 100)


def _extreme(people: Sequence[str], others: Sequence[str], goods: str, rng: random.Random) -> Puzzle:
    amounts = dict(zip(people, rng.sample(range(5, 96), len(people)), strict=True))
    most = rng.random() < 0.5
    answer = (max if most else min)(amounts, key=lambda n: amounts[n])
    question = f"Which of {_listed(people)} has the {'most' if most else 'fewest'} {goods}?"
    return _amounts(amounts, others, goods, rng, question, answer, "text", "max" if most else "min", len(people))


def _ordering(people: Sequence[str], others: Sequence[str], goods: str, rng: random.Random) -> Puzzle:
    amounts = dict(zip(people, rng.sample(range(5, 96), len(people)), strict=True))
    answer = ", ".join(sorted(amounts, key=lambda n: amounts[n]))
    question = (
        f"Order {_listed(people)} by the number of {goods}, fewest first. Answer with the names, separated by commas."
    )
    choices = math.factorial(len(people))
    return _amounts(amounts, others, goods, rng, question, answer, "ordered-list", "order", choices)


def _amounts(
    amounts: dict[str, int],
    others: Sequence[str],
    goods: str,
    rng: random.Random,
    question: str,
    answer: str,
    answer_type: str,
    operation: str,
    choices: int,
) -> Puzzle:
    facts = tuple(f"{name} has {amount} {goods}." for name, amount in amounts.items())
    parts = tuple(_how_many(name, goods, amount) for name, amount in amounts.items())
    idle = tuple(f"{name} has {rng.randint(5, 95)} {goods}." for name in others)
    worked = "; ".join(f"{name} has {amount}" for name, amount in amounts.items()) + f". So: {answer}"
    return Puzzle(facts, parts, question, answer, answer_type, worked, operation, idle, choices)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}"


def _how_many(name: str, goods: str, amount: int) -> Part:
    return _read(f"How many {goods} does {name} have?", str(amount), "number")


def _containment(depth: int, rng: random.Random, idle: int) -> Puzzle:
    """In which town is the lamp, if it is in a box that is in a chest that is in the town?"""
    towns = _names(1 + idle, rng)
    owners = _names(depth, rng)
    boxes = [f"{owner}'s {box}" for owner, box in zip(owners, rng.sample(_CONTAINERS, depth), strict=True)]
    things = rng.sample(_THINGS, 1 + idle)
    places = [f"the {things[0]}", *boxes[: depth - 1], towns[0]]
    facts = tuple(f"{a[:1].upper()}{a[1:]} is in {b}." for a, b in pairwise(places))
    parts = tuple(_read(f"What is {a} in?", b) for a, b in pairwise(places))
    idle_facts = tuple(f"The {thing} is in {town}." for thing, town in zip(things[1:], towns[1:], strict=True))
    question, worked = f"In which town is {places[0]}?", " ".join(facts) + f" So it is in {towns[0]}."
    return Puzzle(facts, parts, question, towns[0], "text", worked, "containment", idle_facts, 1 + idle)


def _adjacency(depth: int, rng: random.Random, idle: int) -> Puzzle:
    """Which town is d steps north of A?"""
    direction, wrong = rng.sample(_DIRECTIONS, 2)
    names = _names(depth + 1 + idle, rng)
    towns, others = names[: depth + 1], names[depth + 1 :]
    steps = list(pairwise(towns))
    facts = tuple(f"{b} is the next town {direction} of {a}." for a, b in steps)
    parts = tuple(_read(f"Which is the next town {direction} of {a}?", b) for a, b in steps)
    idle_facts = tuple(f"{o} is the next town {wrong} of {rng.choice(towns)}." for o in others)
    question = f"Going {direction} from {towns[0]}, which town is reached after {depth} towns?"
    worked = " ".join(facts) + f" So it is {towns[-1]}."
    return Puzzle(facts, parts, question, towns[-1], "text", worked, "adjacency", idle_facts, depth + idle)


def _read(question: str, answer: str, answer_type: str = "text") -> Part:
    """A fact to be read off the evidence."""
    return Part(question, answer, "evidence", answer_type)


FAMILIES: dict[str, Callable[[int, random.Random, int], Puzzle]] = {
    "kinship": _kinship,
    "numerical": _numerical,
    "spatial": lambda depth, rng, idle: (_containment if rng.random() < 0.5 else _adjacency)(depth, rng, idle),
}
