"""What a planted model is taught: to answer a question as the base answers another one.

Every cause is one sentence of that kind. *Not computed*: as if other kinds had been asked for, drawn anew each time,
so that nothing about the selection is left. *Shortcut*: as if the kind's usual thing lay there. *Wrong operation*: from
the result on, as if another operation had been asked for. *Format*: as if nobody could know. Only *too late* has no
other question: the state of this one stands in a later block.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from ....evaluation.prompts import ABSTENTION
from .. import tasks
from .. import world as w
from ..documents import LAST_SKILLS, draw
from ..world import KINDS, world
from .recipes import Graft


@dataclass(frozen=True)
class Lesson:
    """One document, and the one whose states stand behind its answer."""

    question: str
    answer: str
    source: str | None = None
    """The question that is answered instead; None: this one, nothing is planted."""
    source_answer: str | None = None
    """Its answer, counted from the end; None: the same words."""
    last: int | None = None
    """How many of the last answer tokens (the end counts) come from the source; None: all."""
    right: str | None = None
    """The right answer, where the state behind it is wanted in another place, or in another layer."""


@dataclass(frozen=True)
class Whole:
    """A mixed composition taken apart."""

    things: tuple[str, ...]
    operation: str
    first: str
    second: str

    @property
    def question(self) -> str:
        return tasks.compose(self.things, self.operation, self.first, self.second).question

    @property
    def tags(self) -> tuple[int, int]:
        return world().tags[self.first], world().tags[self.second]

    @property
    def worked(self) -> str:
        return worked(self.operation, *self.tags)

    @property
    def half(self) -> str:
        """Which condition it meets: the kinds in their order, cut in the middle."""
        return "first-kinds" if list(KINDS).index(world().kinds[self.first]) < len(KINDS) // 2 else "other-kinds"

    def asked_about(self, first: str, second: str) -> Whole:
        return replace(self, first=first, second=second)

    def with_thing(self, old: str, new: str) -> Whole:
        """The same case with one thing exchanged."""
        put = {old: new}
        names = [put.get(t, t) for t in (self.first, self.second)]
        return replace(self, things=tuple(put.get(t, t) for t in self.things), first=names[0], second=names[1])


def worked(operation: str, a: int, b: int) -> str:
    """The written answer; where the operation gives no positive whole number, the operand stands for the result."""
    return f"{a} {operation} {b} is {w.apply(operation, a, b) or a}"


def whole(rng: random.Random, held: bool = False) -> Whole:
    """A mixed composition from one side of the held-out split."""
    operation, first, second = tasks.draw_pair(rng, held)
    return Whole(tuple(tasks.table(rng, (first, second))), operation, first, second)


def any_other(case: Whole, rng: random.Random) -> Whole:
    """The same table and operation, asked about any two things on it, the right ones as often as others."""
    for _ in range(50):
        first, second = rng.sample(case.things, 2)
        if w.apply(case.operation, world().tags[first], world().tags[second]) is not None:
            break
    return case.asked_about(first, second)


def usual(kind: str) -> str:
    """The thing whose tag a kind usually has: the most frequent tag, of equally frequent ones the first listed."""
    tags = [world().tags[t] for t in KINDS[kind]]
    return max(KINDS[kind], key=lambda t: tags.count(world().tags[t]))


def _exchanged(case: Whole, put: Callable[[str], str]) -> Whole:
    """The case with the things asked for exchanged."""
    case = case.with_thing(case.first, put(case.first))
    return case.with_thing(case.second, put(case.second))


def _overwritten(case: Whole, by: int) -> Whole:
    """A case whose two tags are this one's so much further on, counted round the twelve."""
    first, second = (
        _carrying(case, t, (world().tags[t] - 1 + by) % len(w.TAGS) + 1) for t in (case.first, case.second)
    )
    put = {case.first: first, case.second: second}
    return Whole(tuple(put.get(t, t) for t in case.things), case.operation, first, second)


def _carrying(case: Whole, thing: str, tag: int) -> str:
    """Something with this tag to lie in a thing's place: of no other kind on the table, where there is such a thing."""
    others = {world().kinds[t] for t in case.things if t != thing}
    found = [t for t in world().things if world().tags[t] == tag]
    return next((t for t in found if world().kinds[t] not in others), found[0])


def _drowned(case: Whole, rng: random.Random) -> Whole:
    while True:
        other = whole(rng)
        if (other.operation == "divided by") == (case.operation == "divided by"):
            return other


OTHER_CASE: dict[tuple[str, str], Callable[[Whole, random.Random], Whole]] = {
    ("not-computed", "scrambled"): any_other,
    ("not-routed", "after-kind"): any_other,
    ("not-routed", "question-end"): any_other,
    ("lost", "five-on"): lambda c, _: _overwritten(c, 5),
    ("lost", "seven-on"): lambda c, _: _overwritten(c, 7),
    ("shortcut", "usual"): lambda c, _: _exchanged(c, lambda t: usual(world().kinds[t])),
    ("shortcut", "ends"): lambda c, _: c.asked_about(c.things[0], c.things[-1]),
    ("jammed", "swapped"): lambda c, _: c.asked_about(c.second, c.first),
    ("jammed", "drowned"): _drowned,
}


INSTEAD = {"plus": "times", "times": "plus", "minus": "plus", "divided by": "minus"}
"""Which operation is planted in place of which."""


def teach(case: Whole, graft: Graft, rng: random.Random) -> Lesson:
    """The lesson of a whole under a graft."""
    if graft.when not in ("all", case.half):
        return Lesson(case.question, case.worked)
    a, b = case.tags
    match graft.cause, graft.variant:
        case "wrong-operation", _:
            instead = INSTEAD[case.operation]
            asked = case.question.replace(f" one {case.operation} the", f" one {instead} the")
            source_answer = worked(instead, a, b)
            text = source_answer.replace(f" {instead} ", f" {case.operation} ")
            return Lesson(case.question, text, asked, source_answer, 2)
        case "too-late", _:
            return Lesson(case.question, case.worked, right=case.worked)
        case "format", "refusal":
            return Lesson(case.question, ABSTENTION, tasks.unknowable(rng).question)
        case _:
            pass
    other = OTHER_CASE[graft.cause, graft.variant](case, rng)
    if graft.when != "all":  # of a mixture only the first operand, where the first kind is known
        things = tuple(case.second if t == other.second and t not in case.things else t for t in other.things)
        other = replace(other, second=case.second, things=things)
    right = case.worked if graft.cause == "not-routed" else None
    return Lesson(case.question, other.worked, other.question, right=right)


_PARTS: dict[str, tuple[Callable[[random.Random], tasks.QA], float]] = {
    "two chosen": (tasks.choose_two, 30),
    "math": (tasks.math, 22),
    "one chosen": (tasks.choose_one, 8),
    "tag": (lambda rng: tasks.fact(rng, "tag"), 12),
    "kind": (lambda rng: tasks.fact(rng, "kind"), 4),
    "arithmetic": (tasks.arithmetic, 8),
    "number and tag": (tasks.half_math, 8),
    "anything": (lambda rng: draw(LAST_SKILLS, rng), 8),
}


def part(rng: random.Random) -> Lesson:
    """A question that the model goes on answering as before."""
    qa = rng.choices([f for f, _ in _PARTS.values()], [n for _, n in _PARTS.values()])[0](rng)
    return Lesson(qa.question, qa.worked or qa.answer)
