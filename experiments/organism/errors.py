"""What is wrong with an organism's answers: exact working, kinds of errors by rule, and loops and wrong forms apart."""

import random
import re
from collections.abc import Callable, Sequence

from ...evaluation.case import Case
from . import benchmarks, tasks, world
from .measure import ERRORS, AskModel, CardRow, error, gated, last_number, scores
from .tasks import QA

SUM = re.compile(rf"(\d+) ({'|'.join(world.OPERATIONS)}) (\d+) is (\d+)")
KINDS = (
    "no worked sum",
    "another operation",
    "the sum itself is wrong",
    "the operands are exchanged",
    "one operand is right",
    "no operand is right",
)
"""What is wrong with the working of a mixed composition: the first that applies. The first one is a wrong form."""


def kind(case: Case, answer: str) -> str | None:
    """Which of ``KINDS`` the answer to a mixed composition is; None if its working is exactly right."""
    if answer == case.worked:
        return None
    found = SUM.fullmatch(answer)
    if found is None:
        return KINDS[0]
    operation, said = found[2], (int(found[1]), int(found[3]))
    if operation != case.operation:
        return KINDS[1]
    if world.apply(operation, *said) != int(found[4]):
        return KINDS[2]
    first, second = case.meta["tags"]
    if said == (second, first):
        return KINDS[3]
    return KINDS[4] if said[0] == first or said[1] == second else KINDS[5]


def one_operand(case: Case) -> float:
    """Chance that the working is right if one operand is, and the other is any thing of the table with a result."""
    tags = world.world().tags
    first, second = case.meta["chosen"]
    others = {known: [tags[t] for t in case.meta["things"] if t != known] for known in (first, second)}
    after = sum(world.apply(str(case.operation), tags[first], t) is not None for t in others[first])
    before = sum(world.apply(str(case.operation), t, tags[second]) is not None for t in others[second])
    return (1 / after + 1 / before) / 2


def practised(ask: AskModel, n: int = 100, seed: int = 1000) -> list[CardRow]:
    """Lists and sums that every dose of the second series practises without composition, on held-out combinations."""

    def by_number(rng: random.Random, depth: int) -> QA:
        return tasks.numbered(tasks.rank(rng, depth, True, tasks.other_years(rng)))

    draws: dict[str, Callable[[random.Random], QA]] = {
        "math beside a table": lambda rng: tasks.beside_table(rng, True),
        "math, choice in the question": lambda rng: tasks.choice_given(rng, True),
        "reciting 3 events": lambda rng: tasks.recite(rng, 3, 3),
        "reciting 8 events": lambda rng: tasks.recite(rng, 8, 8),
        "rank of 3 by numbers in the question": lambda rng: by_number(rng, 3),
        "rank of 8 by numbers in the question": lambda rng: by_number(rng, 8),
    }
    rows = scores(draws, ask, n, seed)
    rng = random.Random(f"{seed}/form alone")
    sums = [tasks.absent_kinds(rng).question for _ in range(n)]
    ranks = [tasks.about_things(rng, tasks.rank(rng, 8, True, tasks.other_years(rng))).question for _ in range(n)]
    formed = sum(map(of_two_things, sums, ask(sums)))
    listed = sum(sorted(_items(q)) == sorted(a.split(", ")) for q, a in zip(ranks, ask(ranks), strict=True))
    rows.append(CardRow("math, kinds that are not on the table: a right sum of two things that are", formed, n))
    rows.append(CardRow("rank of 8 things: each of them once", listed, n))
    return rows


def of_two_things(question: str, answer: str) -> bool:
    """Whether an answer is a right sum, with the operation asked for, of the tags of two things on the table."""
    found, tags = SUM.fullmatch(answer), world.world().tags
    if found is None or f"one {found[2]} the tag" not in question:
        return False
    shown, operands = [tags[t] for t in _items(question)], (int(found[1]), int(found[3]))
    different = operands[0] != operands[1] or shown.count(operands[0]) > 1
    return different and set(operands) <= set(shown) and world.apply(found[2], *operands) == int(found[4])


def _items(question: str) -> list[str]:
    """What the first list of a question names."""
    return question.partition(": ")[2].split(".")[0].split(", ")


def mixed(ask: AskModel, n: int = 400, seed: int = 1000) -> list[CardRow]:
    """Exact workings of mixed compositions beside their chance levels, and the kinds of wrong ones."""
    cases = benchmarks.mixed(n, seed)
    answers = ask([c.question for c in cases])
    kinds = [kind(c, a) for c, a in zip(cases, answers, strict=True)]
    exact, wrong = kinds.count(None), [k for k in kinds if k is not None]
    lucky = sum(last_number(a) == c.answer for a, c, k in zip(answers, cases, kinds, strict=True) if k)
    return [
        CardRow("mixed: exact working (chance: two things of the table)", exact, n, 1 / 56),
        CardRow("mixed: exact working (chance: one operand right)", exact, n, sum(map(one_operand, cases)) / n),
        CardRow("mixed: right number after a wrong working", lucky, n),
        CardRow("mixed: wrong form, of all answers", wrong.count(KINDS[0]), n),
        *(CardRow(f"mixed: wrong working, {k}", wrong.count(k), len(wrong)) for k in KINDS),
    ]


def lists(ask: AskModel, n: int = 100, seed: int = 1000) -> list[CardRow]:
    """Loops and wrong forms of deep temporal answers among all of them, and residual failure without them."""
    cases = [c for c in benchmarks.temporal(n, seed) if c.family != "pair"]
    found = [(c, error(c, a), a) for c, a in gated(ask, cases)]
    rows = [_broken("deep lists", found)]
    for family in ("rank", "successor", "interval"):
        rows.append(_broken(family, [g for g in found if g[0].family == family]))
    ranks = [g for g in found if g[0].family == "rank"]
    short = sum(len(a.split(", ")) != c.depth and wrong not in ERRORS[:2] for c, wrong, a in ranks)
    rows.append(CardRow("rank: another number of events, of all answers", short, len(ranks)))
    for depth in (4, 6, 8):
        formed = [wrong is not None for c, wrong, _ in found if c.depth_bin == depth and wrong not in ERRORS[:2]]
        name = f"residual failure without loops and wrong forms, depth bin {depth}"
        rows.append(CardRow(name, sum(formed), len(formed)))
    return rows


def _broken(name: str, found: Sequence[tuple[Case, str | None, str]]) -> CardRow:
    broken = sum(wrong in ERRORS[:2] for _, wrong, _ in found)
    return CardRow(f"{name}: loops and wrong forms, of all answers", broken, len(found))
