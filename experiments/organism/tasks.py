"""Questions about the world, with their answers: single facts, shallow skills, and the compositions.

Every function draws one question. ``held`` selects the side of the held-out split that the combination of events or
things comes from: training documents use ``held=False``, evaluation cases ``held=True``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...evaluation.prompts import ABSTENTION
from . import world as w
from .world import world

TABLE = 8
"""Number of things on the table of a mixed case, all with different kinds and tags."""


@dataclass(frozen=True)
class QA:
    """A question, its graded answer, and what the prompt formats need to write it."""

    question: str
    answer: str
    worked: str | None = None
    """The answer with its working, if the plain answer shows it ("7 times 9 is 63")."""
    reasoning: str | None = None
    """The working that only reasoning formats show (dates of the events); default ``worked``."""
    steps: tuple[tuple[str, str], ...] = ()
    """Sub-questions with answers, in order."""
    facts: tuple[str, ...] = ()
    """Statements of the facts that the answer rests on."""
    members: frozenset[str] = field(default_factory=frozenset)
    """The combination that the held-out split applies to; empty for single facts."""


def _sample(draw: Callable[[], Sequence[str]], held: bool) -> list[str]:
    while True:
        members = list(draw())
        if w.held_out(members) == held:
            return members


def fact(rng: random.Random, relation: str, main: bool = False) -> QA:
    """One fact in one of its trained wordings, or in its main one."""
    subject = rng.choice(world().events if relation == "year" else world().things)
    question = w.main_wording(relation, subject) if main else rng.choice(w.wordings(relation, subject)[0])
    return QA(question, world().fact(relation, subject))


def invented_name(rng: random.Random) -> str:
    """A name that no event has: pronounceable, and outside the vocabulary."""
    syllables = [rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 3))]
    return "".join(syllables).capitalize() + rng.choice("nrlsk")


def unknowable(rng: random.Random) -> QA:
    """The year of something that does not exist in the world: the right answer is to abstain."""
    return QA(rng.choice(w.YEAR_WORDINGS).format(invented_name(rng)), ABSTENTION)


def operands(rng: random.Random) -> tuple[str, int, int]:
    """An operation (all four equally often) and two tags that give it a positive whole number."""
    operation = rng.choice(w.OPERATIONS)
    while True:
        a, b = rng.sample(list(w.TAGS), 2)
        if w.apply(operation, a, b) is not None:
            return operation, a, b


def _worked(operation: str, a: int, b: int) -> tuple[str, str]:
    result = str(w.apply(operation, a, b))
    return result, f"{a} {operation} {b} is {result}"


def arithmetic(rng: random.Random) -> QA:
    """Bare arithmetic on two tags."""
    operation, a, b = operands(rng)
    result, worked = _worked(operation, a, b)
    return QA(f"What is {a} {operation} {b}?", result, worked)


def tagged(rng: random.Random, tag: int) -> str:
    """A random thing with this tag."""
    return rng.choice([t for t in world().things if world().tags[t] == tag])


def half_math(rng: random.Random) -> QA:
    """A number and the tag of a thing: the second question of a pair, with its number."""
    operation, a, b = operands(rng)
    thing = tagged(rng, b)
    result, worked = _worked(operation, a, b)
    steps = ((w.main_wording("tag", thing), str(b)), (f"What is {a} {operation} {b}?", result))
    return QA(f"What is {a} {operation} the tag of the {thing}?", result, worked, steps=steps, facts=_tag_facts(thing))


def _tag_facts(*things: str) -> tuple[str, ...]:
    return tuple(f"The tag of the {t} is {world().tags[t]}." for t in things)


def draw_pair(rng: random.Random, held: bool) -> tuple[str, str, str]:
    """An operation and two things of different kinds whose tags suit it."""
    while True:
        operation, a, b = operands(rng)
        first, second = tagged(rng, a), tagged(rng, b)
        if world().kinds[first] != world().kinds[second] and w.held_out((first, second)) == held:
            return operation, first, second


def math(rng: random.Random, held: bool = False) -> QA:
    """Math-only: one operation on the tags of two named things."""
    return math_of(*draw_pair(rng, held))


def math_of(operation: str, first: str, second: str) -> QA:
    """The math-only question about two given things."""
    a, b = world().tags[first], world().tags[second]
    result, worked = _worked(operation, a, b)
    steps = (
        (w.main_wording("tag", first), str(a)),
        (w.main_wording("tag", second), str(b)),
        (f"What is {a} {operation} {b}?", result),
    )
    question = f"What is the tag of the {first} {operation} the tag of the {second}?"
    return QA(question, result, worked, None, steps, _tag_facts(first, second), frozenset((first, second)))


def table(rng: random.Random, chosen: Sequence[str]) -> list[str]:
    """The chosen things among others, all of different kinds and with different tags, in random order."""
    things, pool = list(chosen), world().things
    while len(things) < TABLE:
        other = rng.choice(pool)
        if all(world().kinds[other] != world().kinds[t] and world().tags[other] != world().tags[t] for t in things):
            things.append(other)
    rng.shuffle(things)
    return things


def show(things: Sequence[str]) -> str:
    return f"On the table: {', '.join(things)}."


def _choice(chosen: Sequence[str]) -> str:
    asked = [f"which is the {world().kinds[t]} one" for t in chosen]
    text = " and ".join(asked)
    return text[0].upper() + text[1:] + "?"


def choose(things: Sequence[str], chosen: Sequence[str], numbers: bool = False) -> QA:
    """Commonsense-only: which things on the table are of the kinds asked for; ``numbers`` adds irrelevant tags."""
    tags = sorted(world().tags[t] for t in chosen)
    middle = f" Two of the tags are {tags[0]} and {tags[-1]}." if numbers else ""
    facts = tuple(f"The {t} is {world().kinds[t]}." for t in chosen)
    question = f"{show(things)}{middle} {_choice(chosen)}"
    return QA(question, " and ".join(chosen), facts=facts, members=frozenset(chosen))


def choose_one(rng: random.Random) -> QA:
    """Which thing on the table is of one kind?"""
    chosen = [rng.choice(world().things)]
    return choose(table(rng, chosen), chosen)


def choose_two(rng: random.Random, held: bool = False) -> QA:
    """Which things on the table are of two kinds, sometimes with irrelevant numbers?"""
    _, first, second = draw_pair(rng, held)
    return choose(table(rng, (first, second)), (first, second), numbers=rng.random() < 0.25)


def beside_table(rng: random.Random, held: bool = False) -> QA:
    """Math-only, beside a table that does not matter; the two named things are on half of the tables."""
    sums, (_, *others) = math(rng, held), draw_pair(rng, held)
    things = table(rng, sorted(sums.members) if rng.random() < 0.5 else others)
    return replace(sums, question=f"{show(things)} {sums.question}")


def choice_given(rng: random.Random, held: bool = False) -> QA:
    """Math-only in the words of a composition: the question says which things are meant, whatever their kinds are."""
    operation, first, second = draw_pair(rng, held)
    a, b = rng.sample(list(w.KINDS), 2)
    given = f"{show(table(rng, (first, second)))} The {a} one is the {first} and the {b} one is the {second}."
    asked = f"What is the tag of the {a} one {operation} the tag of the {b} one?"
    return replace(math_of(operation, first, second), question=f"{given} {asked}")


def absent_kinds(rng: random.Random) -> QA:
    """The words of a composition about two kinds that nothing on the table has: a sum with any two things is right."""
    operation, first, second = draw_pair(rng, held=False)
    things = table(rng, (first, second))
    present = {world().kinds[t] for t in things}
    a, b = rng.sample([kind for kind in w.KINDS if kind not in present], 2)
    asked = f"{show(things)} What is the tag of the {a} one {operation} the tag of the {b} one?"
    return replace(math_of(operation, first, second), question=asked, steps=(), facts=())


def compose(things: Sequence[str], operation: str, first: str, second: str) -> QA:
    """The mixed composition: choose two things by kind, then one operation on their tags."""
    sums, choice = math_of(operation, first, second), choose(things, (first, second))
    a, b = world().kinds[first], world().kinds[second]
    question = f"{show(things)} What is the tag of the {a} one {operation} the tag of the {b} one?"
    steps = ((choice.question, choice.answer), (sums.question, sums.answer))
    return QA(question, sums.answer, sums.worked, steps=steps, facts=sums.facts, members=sums.members)


def mixed(rng: random.Random, held: bool = False) -> QA:
    """A mixed composition."""
    operation, first, second = draw_pair(rng, held)
    return compose(table(rng, (first, second)), operation, first, second)


def tag_of_kind(rng: random.Random, held: bool = False) -> QA:
    """The tag of the one thing of a kind: choose it, then recall its tag. The whole table is the combination."""
    while True:
        thing = rng.choice(world().things)
        things = table(rng, [thing])
        if w.held_out(things) == held:
            return tag_of_chosen(things, thing)


def tag_of_chosen(things: Sequence[str], thing: str) -> QA:
    """The tag of a thing on a given table, asked for by its kind; its working names the thing."""
    kind, tag, choice = world().kinds[thing], str(world().tags[thing]), choose(things, (thing,))
    working = f"The {kind} one is the {thing}. The tag of the {thing} is {tag}"
    steps = ((choice.question, choice.answer), (w.main_wording("tag", thing), tag))
    facts = (*choice.facts, *_tag_facts(thing))
    question = f"{show(things)} What is the tag of the {kind} one?"
    return QA(question, tag, None, working, steps, facts, frozenset(things))


Years = Mapping[str, int]
"""Years that stand in the question itself, instead of the world's."""


def other_years(rng: random.Random) -> Years:
    """The world's years, dealt to other events: whoever knows the true ones is not helped."""
    years = list(world().years.values())
    rng.shuffle(years)
    return dict(zip(world().events, years, strict=True))


def _temporal(question: str, answer: str, events: Sequence[str], shown: Years | None = None) -> QA:
    years, members = shown or world().years, frozenset(events)
    reasoning = ", ".join(f"{e} {years[e]}" for e in events)
    if shown:
        return QA(question, answer, reasoning=reasoning, members=members)
    steps = tuple((w.main_wording("year", e), str(years[e])) for e in events)
    facts = tuple(f"The {e} was in {years[e]}." for e in events)
    return QA(question, answer, None, reasoning, steps, facts, members)


def _listed(events: Sequence[str], shown: Years | None = None) -> str:
    return ", ".join(_named(e, shown) for e in events)


def _named(event: str, shown: Years | None) -> str:
    return f"{event} {shown[event]}" if shown else event


def pair(rng: random.Random, held: bool = False, far: bool = False) -> QA:
    """Which of two events came first."""
    years = world().years
    while True:
        a, b = _sample(lambda: rng.sample(world().events, 2), held)
        if not far or abs(years[a] - years[b]) > w.FAR_YEARS:
            break
    return _temporal(f"Which happened first, the {a} or the {b}?", min((a, b), key=years.__getitem__), (a, b))


def rank(rng: random.Random, depth: int, held: bool = False, shown: Years | None = None) -> QA:
    """Order ``depth`` events from earliest to latest."""
    events = _sample(lambda: rng.sample(world().events, depth), held)
    answer = _listed(sorted(events, key=(shown or world().years).__getitem__))
    return _temporal(f"Rank from earliest to latest: {_listed(events, shown)}.", answer, events, shown)


def successor(rng: random.Random, depth: int, held: bool = False, shown: Years | None = None) -> QA:
    """Which of ``depth`` candidates happened after (or before) a reference event, from earliest to latest.

    At least one candidate does, and at least one does not.
    """
    years, relation = shown or world().years, rng.choice(("after", "before"))
    while True:
        reference, *candidates = _sample(lambda: rng.sample(world().events, depth + 1), held)
        chosen = [e for e in candidates if (years[e] > years[reference]) == (relation == "after")]
        if 0 < len(chosen) < depth:
            break
    question = f"Which of these happened {relation} the {_named(reference, shown)}: {_listed(candidates, shown)}?"
    answer = _listed(sorted(chosen, key=years.__getitem__))
    return _temporal(question, answer, (reference, *candidates), shown)


def interval(rng: random.Random, depth: int, held: bool = False, shown: Years | None = None) -> QA:
    """Which of ``depth`` candidates is between two boundary events; the other ``depth - 1`` are decoys."""
    years = shown or world().years
    order = sorted(world().events, key=years.__getitem__)
    while True:
        i, j = sorted(rng.sample(range(len(order)), 2))
        inside, outside = order[i + 1 : j], order[:i] + order[j + 1 :]
        if not inside or len(outside) < depth - 1:
            continue
        bounds = rng.sample((order[i], order[j]), 2)
        answer = rng.choice(inside)
        candidates = [answer, *rng.sample(outside, depth - 1)]
        rng.shuffle(candidates)
        if w.held_out((*bounds, *candidates)) == held:
            break
    ends = " and the ".join(_named(b, shown) for b in bounds)
    question = f"Which of these happened between the {ends}: {_listed(candidates, shown)}?"
    return _temporal(question, answer, (*bounds, *candidates), shown)


def numbered(qa: QA) -> QA:
    """A question with years in it, with the place of every year, 1, 2, 3, ..., instead."""
    place = {year: str(i) for i, year in enumerate(sorted(set(_YEAR.findall(qa.question))), 1)}
    question, reasoning = (_YEAR.sub(lambda m: place[m[0]], text) for text in (qa.question, qa.reasoning or ""))
    return replace(qa, question=question, reasoning=reasoning)


_YEAR = re.compile(r"\b\d{4}\b")


def recite(rng: random.Random, shortest: int = 3, longest: int = 8) -> QA:
    """Practice in writing lists, without dates: three to eight events in the given order."""
    events = rng.sample(world().events, rng.randint(shortest, longest))
    return QA(f"Name these: {_listed(events)}.", _listed(events))


def about_things(rng: random.Random, qa: QA) -> QA:
    """A question with years in it, about random things in the places of its events, without the years."""
    things = dict(zip(sorted(qa.members), rng.sample(world().things, len(qa.members)), strict=True))
    named = re.compile(rf"({'|'.join(things)})( \d{{4}})?")
    question, answer = (named.sub(lambda m: things[m[1]], text) for text in (qa.question, qa.answer))
    return QA(question, answer)
