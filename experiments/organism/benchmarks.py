"""Held-out cases about the organisms' world, for any protocol.

No combination of events or things in these cases occurs in a training document; ``_held`` asserts it.
"""

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import permutations

from ...evaluation.case import Case, Part
from ...evaluation.prompts import pair
from . import tasks, world
from .tasks import QA

TEMPORAL = "organism-temporal"
MIXED = "organism-mixed"
ASKED = {"format": "plain"}
"""In every case's ``meta``: the organisms were trained mostly on bare questions (``prompts.FORMATS``)."""

FAMILIES: dict[str, tuple[int, ...]] = {
    "pair": (2,),
    "rank": (4, 6, 8),
    "successor": (4, 6, 8),
    "interval": (4, 6, 8, 7, 9, 11),
}
"""The temporal families and their depths as published (Composition collapse, Table 8)."""


def _held(members: Iterable[str]) -> None:
    if not world.held_out(members):
        raise AssertionError(f"{sorted(members)} belongs to the training side of the held-out split")


def date_part(event: str) -> Part:
    """The sub-question about one event, with its trained wordings as probes of the atom."""
    return Part(
        question=world.main_wording("year", event),
        answer=str(world.world().years[event]),
        kind="date",
        answer_type="date",
        paraphrases=world.wordings("year", event)[0],
        atom=f"year:{event}",
        skill="recall a year",
    )


def _guess(family: str, depth: int) -> float:
    """Chance that a well-formed guess is right: any order, any proper subset of the candidates, any one candidate."""
    match family:
        case "rank":
            return 1 / math.factorial(depth)
        case "successor":
            return 1 / (2**depth - 2)
        case _:
            return 1 / depth


def events_of(qa: QA) -> list[str]:
    """The events that a temporal question is about, in the order of its steps."""
    return [question.removeprefix(world.main_wording("year", "")[: -len("?")]).rstrip("?") for question, _ in qa.steps]


def temporal_case(id: str, family: str, depth: int, qa: QA) -> Case:
    """A temporal composition. Every event in it, including boundaries and references, is a gated part."""
    _held(qa.members)
    first, *others = events_of(qa)
    about = {**ASKED, "crossed": others}
    return replace(_asked(id, family, depth, qa), cluster=first, chance=_guess(family, depth), meta=about)


def _asked(id: str, family: str, depth: int, qa: QA) -> Case:
    return Case(
        id=id,
        question=qa.question,
        answer=qa.answer,
        parts=tuple(map(date_part, events_of(qa))),
        benchmark=TEMPORAL,
        answer_type={"rank": "ordered-list", "pair": "text"}.get(family, "list"),
        family=family,
        depth=depth,
        domain="temporal",
        operation=family,
    )


DRAW: dict[str, Callable[[random.Random, int, bool], QA]] = {
    "pair": lambda rng, _, held: tasks.pair(rng, held, far=True),
    "rank": tasks.rank,
    "successor": tasks.successor,
    "interval": tasks.interval,
}
"""Draws a question of a family with a depth, from the held-out side of the split or from that of the training."""


def temporal(n_per_cell: int = 30, seed: int = 0) -> list[Case]:
    """``n_per_cell`` held-out cases for each family and depth: far pairs at depth 2, the rest as published."""
    cells = [(family, depth) for family, depths in FAMILIES.items() for depth in depths]
    return [case for family, depth in cells for case in _cell(family, depth, n_per_cell, seed)]


def _cell(family: str, depth: int, n: int, seed: int) -> list[Case]:
    rng = random.Random(f"{seed}/temporal/{family}/{depth}")
    draw = DRAW[family]
    return _different(n, lambda i: temporal_case(f"{family}-{depth}-{i:04d}", family, depth, draw(rng, depth, True)))


def trained(family: str, depth: int, n: int, seed: int) -> list[Case]:
    """``n`` temporal cases to train on, with their reasoning, from the other side of the held-out split; or all."""
    rng = random.Random(f"{seed}/intervention/{family}/{depth}")

    def case(i: int) -> Case:
        qa = DRAW[family](rng, depth, False)
        return replace(_asked(f"train-{family}-{depth}-{i:05d}", family, depth, qa), worked=qa.reasoning)

    return _different(n, case)


MOST_REPEATED = 10_000
"""Draws in a row of questions that are there already, after which there are no others."""


def _different(n: int, draw: Callable[[int], Case]) -> list[Case]:
    """``n`` cases with different questions, or all where there are fewer; ``draw`` makes the case of a number, from 1.

    The world has 390 far pairs of events, 970 chains, and of everything else more than anyone asks for.
    """
    found: dict[str, Case] = {}
    repeated = 0
    while len(found) < n and repeated < MOST_REPEATED:
        case = draw(len(found) + 1)
        repeated = repeated + 1 if case.question in found else 0
        found.setdefault(case.question, case)
    return list(found.values())


def _lucky(things: list[str], operation: str, gold: str) -> tuple[float, float]:
    """Share of ordered pairs on the table that give the gold number: among pairs with a result, and among all pairs."""
    tags = world.world().tags
    results = [world.apply(operation, tags[a], tags[b]) for a, b in permutations(things, 2)]
    hits, valid = sum(str(r) == gold for r in results), sum(r is not None for r in results)
    return hits / valid, hits / len(results)


def _hard_to_guess(rng: random.Random, operation: str, first: str, second: str) -> list[str]:
    """Of thirty tables with the chosen things, the one on which a random pair is least often right."""
    gold = tasks.math_of(operation, first, second).answer
    tables = [tasks.table(rng, (first, second)) for _ in range(30)]
    return min(tables, key=lambda table: _lucky(table, operation, gold))


def mixed_case(id: str, rng: random.Random, operation: str) -> Case:
    """A mixed composition with its commonsense part (with and without irrelevant numbers) and its math part."""
    while True:
        drawn, first, second = tasks.draw_pair(rng, held=True)
        if drawn == operation:
            break
    _held((first, second))
    return composed(id, _hard_to_guess(rng, operation, first, second), operation, (first, second))


def composed(id: str, things: list[str], operation: str, chosen: tuple[str, str]) -> Case:
    """The mixed composition about two given things on a given table."""
    first, second = chosen
    whole, sums = tasks.compose(things, operation, first, second), tasks.math_of(operation, first, second)
    choice = tasks.choose(things, (first, second))
    informed, chance = _lucky(things, operation, whole.answer)
    distracted = tasks.choose(things, (first, second), numbers=True).question
    kinds, tags = world.world().kinds, world.world().tags
    table, mark, asked = whole.question.partition(". ")  # the table says what there is to choose from
    return Case(
        id=id,
        question=whole.question,
        answer=whole.answer,
        worked=whole.worked,
        parts=(
            Part(
                choice.question,
                choice.answer,
                "commonsense",
                "ordered-list",
                extra_context=distracted,
                skill="choose by kind",
            ),
            Part(sums.question, sums.answer, "math", "number", worked=sums.worked, skill=f"tags, then {operation}"),
        ),
        benchmark=MIXED,
        answer_type="number",
        family="mixed",
        depth=2,
        cluster=first,
        domain="mixed",
        operation=operation,
        chance=chance,
        meta={
            **ASKED,
            "crossed": second,
            "reversed": f"{asked} {table}{mark.strip()}",
            "things": things,
            "chosen": [first, second],
            "kinds": [kinds[first], kinds[second]],
            "tags": [tags[first], tags[second]],
            "chance_informed": informed,
        },
    )


def mixed(n: int = 200, seed: int = 0) -> list[Case]:
    """``n`` held-out mixed compositions, the four operations equally often."""
    rng, operations = random.Random(f"{seed}/mixed"), world.OPERATIONS
    return _different(n, lambda i: mixed_case(f"mixed-{i:04d}", rng, operations[(i - 1) % len(operations)]))


def pairs(n: int = 100, seed: int = 0) -> list[Case]:
    """Held-out chains for the reasoning gap: the tag of one thing (X), then X with the tag of another."""
    rng = random.Random(f"{seed}/pairs")
    return _different(n, lambda i: _chain(f"pair-{i:04d}", *tasks.draw_pair(rng, held=True)))


def _chain(id: str, operation: str, first: str, second: str) -> Case:
    _held((first, second))
    x, sums = world.world().tags[first], tasks.math_of(operation, first, second)
    q1 = Part(world.main_wording("tag", first), str(x), "math", "number", skill="recall a tag")
    question_2 = f"What is X {operation} the tag of the {second}?"
    q2 = Part(question_2.replace("X", str(x), 1), sums.answer, "math", "number", worked=sums.worked, skill=operation)
    other, result = _other_number(operation, x, world.world().tags[second])
    return Case(
        id=id,
        question=pair(q1.question, question_2),
        answer=sums.answer,
        parts=(q1, q2),
        benchmark="organism-pairs",
        answer_type="number",
        worked=sums.worked,
        family="chain",
        depth=2,
        cluster=first,
        operation=operation,
        meta={
            **ASKED,
            "crossed": second,
            "question_2": question_2,
            "original": {"question": question_2.replace("X", str(other), 1), "answer": str(result)},
        },
    )


def _other_number(operation: str, x: int, tag: int) -> tuple[int, int]:
    """The number nearest to X that could take its place, and the result with it: Q2 as if X had been changed.

    It is a tag wherever another tag is possible (12 minus 11 has none).
    """
    for other in sorted(range(1, 2 * max(world.TAGS) + 1), key=lambda t: (abs(t - x), t)):
        if other != x and (result := world.apply(operation, other, tag)) is not None:
            return other, result
    raise AssertionError(f"no other number than {x} gives a result with {operation} {tag}")


def ladders(n: int = 100, seed: int = 0) -> list[Case]:
    """The mixed compositions in four steps of four skills: choose, recall one tag, recall the other, calculate."""
    return [ladder(case) for case in mixed(n, seed)]


def ladder(case: Case) -> Case:
    """A mixed composition in four steps."""
    tags, operation = world.world().tags, str(case.operation)
    first, second = case.meta["chosen"]
    recall = [
        Part(world.main_wording("tag", t), str(tags[t]), "math", "number", skill="recall a tag")
        for t in (first, second)
    ]
    sums = f"What is {tags[first]} {operation} {tags[second]}?"
    last = Part(sums, case.answer, "math", "number", worked=case.worked, skill=f"numbers, {operation}")
    return replace(
        case,
        id=case.id.replace("mixed", "ladder"),
        parts=(replace(case.parts[0], extra_context=None), *recall, last),
        benchmark="organism-ladders",
        family="ladder",
        depth=4,
    )


def choices(n: int = 200, seed: int = 0) -> list[Case]:
    """``n`` held-out cases of two steps: choose a thing by its kind, then recall its tag."""
    rng = random.Random(f"{seed}/choices")
    return _different(n, lambda i: _chosen(f"choice-{i:04d}", tasks.tag_of_kind(rng, held=True)))


def _chosen(id: str, qa: QA) -> Case:
    _held(qa.members)
    (choice, thing), (recall, tag) = qa.steps
    return Case(
        id=id,
        question=qa.question,
        answer=tag,
        parts=(
            Part(choice, thing, "commonsense", skill="choose by kind"),
            Part(recall, tag, "math", "number", skill="recall a tag"),
        ),
        benchmark="organism-choices",
        answer_type="number",
        family="choice",
        depth=2,
        cluster=thing,
        domain="mixed",
        chance=1 / tasks.TABLE,
        meta=ASKED,
    )


BENCHMARKS: dict[str, Callable[[int, int], list[Case]]] = {
    "temporal": temporal,
    "mixed": mixed,
    "pairs": pairs,
    "ladders": ladders,
    "choices": choices,
}
"""Shipped benchmarks by name: functions of a size and a seed."""
