"""The question families of temporal benchmarks: how facts are drawn and how the question is worded.

Options have letters, and the question asks for letters; the names of events are accepted as well. Three groups:

* D4v2 (Composition collapse, App. B): rank, successor, interval, and the far-pair control.
* The cross-domain kinds for dated facts (App. L): betweenness and timeline binding.
* ``HARDER`` (App. M): temporal binding, overlapping intervals, several constraints. The paper prints counts only: 160
  cases, 751 rows with their sub-questions. The three kinds here are this project's own; ``PLAN`` gives 160 cases with
  590 sub-questions. Every event named in such a case is a gated atom, and no date is shown.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from .facts import Fact


@dataclass(frozen=True)
class DrawnFacts:
    """The facts of one case: those compared, and those that only bound the comparison."""

    options: tuple[Fact, ...]
    bounds: tuple[Fact, ...] = ()


Draw = Callable[[Sequence[Fact], int, random.Random, float], DrawnFacts | None]


@dataclass(frozen=True)
class Wording:
    """A question over drawn facts, its answer and what the answer rests on."""

    question: str
    answer: str
    answer_type: str
    aliases: tuple[str, ...]
    worked: str
    chance: float
    anchor: Fact
    """The fact that the case is most about: cases with the same anchor form a cluster."""


@dataclass(frozen=True)
class TemporalFamily:
    """One kind of question."""

    draw: Draw
    """(facts in random order, depth, random, smallest distance in years) -> facts, or None if these do not do."""
    word: Callable[[DrawnFacts, random.Random, bool], Wording]
    """(draw, random, whether the bounds' dates are shown) -> question."""
    n_bounds: int = 0


def _first_spread(facts: Sequence[Fact], n: int, gap: float) -> tuple[Fact, ...] | None:
    """The first ``n`` facts that are ``gap`` years apart, so that answers within a grader's tolerance order them."""
    chosen: list[Fact] = []
    for fact in facts:
        if all(abs(fact.years - c.years) >= gap for c in chosen):
            chosen.append(fact)
            if len(chosen) == n:
                return tuple(chosen)
    return None


def _spread(n: int | None = None, apart: float = 0.0) -> Draw:
    """Draws ``n`` facts (None: as many as the depth) that are at least ``apart`` years apart."""

    def draw(facts: Sequence[Fact], depth: int, rng: random.Random, gap: float) -> DrawnFacts | None:
        chosen = _first_spread(facts, n or depth, max(gap, apart))
        return DrawnFacts(chosen) if chosen else None

    return draw


def _around(more: int, after: int) -> Draw:
    """Draws a reference with at least one option before it and ``after`` options after it: ``depth + more`` facts."""

    def draw(facts: Sequence[Fact], depth: int, rng: random.Random, gap: float) -> DrawnFacts | None:
        chosen = _first_spread(facts, depth + more, gap) or ()
        inner = sorted(chosen, key=lambda f: f.years)[1:-after]
        if not inner:
            return None
        reference = rng.choice(inner)
        return DrawnFacts(tuple(f for f in chosen if f is not reference), (reference,))

    return draw


def _draw_interval(facts: Sequence[Fact], depth: int, rng: random.Random, gap: float) -> DrawnFacts | None:
    chosen = _first_spread(facts, depth + 2, gap)
    if chosen is None:
        return None
    in_order = sorted(chosen, key=lambda f: f.years)
    # Exactly one candidate between the bounds: they are two places apart.
    low = rng.randrange(depth)
    bounds = (in_order[low], in_order[low + 2])
    return DrawnFacts(tuple(f for f in chosen if f not in bounds), bounds)


def _letters(draw: DrawnFacts) -> dict[str, Fact]:
    return dict(zip(ascii_uppercase, draw.options, strict=False))


def _options(draw: DrawnFacts) -> str:
    return ", ".join(f"({letter}) {f.event}" for letter, f in _letters(draw).items())


def _accepted(named: Sequence[tuple[str, Fact]]) -> tuple[str, ...]:
    """The answer by events' names, with and without the letters."""
    return "; ".join(f.event for _, f in named), "; ".join(f"({letter}) {f.event}" for letter, f in named)


def _dates(draw: DrawnFacts) -> str:
    dated = [f"({letter}) {f.date}" for letter, f in _letters(draw).items()]
    return "; ".join([*dated, *(f"{f.event}: {f.date}" for f in draw.bounds)])


def _listing(
    draw: DrawnFacts, question: str, right: list[tuple[str, Fact]], chance: float, anchor: Fact, kind: str
) -> Wording:
    answer = ", ".join(letter for letter, _ in right)
    asked = f"{question} {_options(draw)}."
    ask_for = {
        "text": "Answer with one letter.",
        "list": "Answer with the letters, separated by commas.",
        "ordered-list": "Answer with the letters in order, separated by commas.",
    }[kind]
    return Wording(
        f"{asked} {ask_for}", answer, kind, _accepted(right), f"{_dates(draw)}. So: {answer}", chance, anchor
    )


def _word_rank(draw: DrawnFacts, rng: random.Random, shown: bool) -> Wording:
    right = sorted(_letters(draw).items(), key=lambda p: p[1].years)
    chance = 1 / math.factorial(len(right))
    return _listing(draw, "Rank these events from earliest to latest:", right, chance, right[0][1], "ordered-list")


def _word_pair(draw: DrawnFacts, rng: random.Random, shown: bool) -> Wording:
    first = rng.random() < 0.5
    right = sorted(_letters(draw).items(), key=lambda p: p[1].years, reverse=not first)[:1]
    question = f"Which of these events happened {'first' if first else 'last'}?"
    return _listing(draw, question, right, 0.5, right[0][1], "text")


def _word_successor(draw: DrawnFacts, rng: random.Random, shown: bool) -> Wording:
    (reference,) = draw.bounds
    after = rng.random() < 0.5
    right = [(k, f) for k, f in _letters(draw).items() if (f.years > reference.years) == after]
    question = f"Which of these events happened {'after' if after else 'before'} {_dated(reference, shown)}?"
    return _listing(draw, question, right, 1 / (2 ** len(draw.options) - 2), reference, "list")


def _word_interval(draw: DrawnFacts, rng: random.Random, shown: bool) -> Wording:
    low, high = draw.bounds
    right = [(k, f) for k, f in _letters(draw).items() if low.years < f.years < high.years]
    question = f"Which of these events happened between {_dated(low, shown)} and {_dated(high, shown)}?"
    return _listing(draw, question, right, 1 / len(draw.options), right[0][1], "text")


def _dated(fact: Fact, shown: bool) -> str:
    return f"{fact.event} ({fact.date})" if shown else fact.event


def _word_between(draw: DrawnFacts, rng: random.Random, shown: bool) -> Wording:
    early, middle, late = sorted(draw.options, key=lambda f: f.years)
    asked, outer = (
        (middle, (early, late))
        if rng.random() < 0.5
        else rng.choice([(early, (middle, late)), (late, (early, middle))])
    )
    answer = "yes" if asked is middle else "no"
    question = f"Did {asked.event} happen between {outer[0].event} and {outer[1].event}? Answer yes or no."
    worked = "; ".join(f"{f.event}: {f.date}" for f in draw.options)
    return Wording(question, answer, "boolean", (), f"{worked}. So: {answer}", 0.5, asked)


def _word_binding(draw: DrawnFacts, rng: random.Random, shown: bool) -> Wording:
    letter, fact = rng.choice(list(_letters(draw).items()))
    question = f"Which of these events belongs to {fact.date} on a timeline?"
    return _listing(draw, question, [(letter, fact)], 1 / len(draw.options), fact, "text")


FAMILIES: dict[str, TemporalFamily] = {
    "temporal_rank": TemporalFamily(_spread(), _word_rank),
    "temporal_successor": TemporalFamily(_around(1, 1), _word_successor, 1),
    "temporal_interval_decoy": TemporalFamily(_draw_interval, _word_interval, 2),
    "pair_far_control": TemporalFamily(_spread(2, 50.0 + 1e-9), _word_pair),
    "event_betweenness": TemporalFamily(_spread(3), _word_between),
    "timeline_binding": TemporalFamily(_spread(), _word_binding),
}


def _draw_nearest(facts: Sequence[Fact], depth: int, rng: random.Random, gap: float) -> DrawnFacts | None:
    """A reference and ``depth - 1`` options whose distances to it differ by ``gap`` years."""
    chosen = _first_spread(facts, 1, gap)
    if not chosen:
        return None
    reference, options = chosen[0], []
    for fact in facts[1:]:
        far = abs(fact.years - reference.years)
        if far >= gap and all(abs(far - abs(o.years - reference.years)) >= gap for o in options):
            options.append(fact)
            if len(options) == depth - 1:
                return DrawnFacts(tuple(options), (reference,))
    return None


def _word_nearest(draw: DrawnFacts, rng: random.Random, shown: bool) -> Wording:
    (reference,) = draw.bounds
    right = min(_letters(draw).items(), key=lambda p: abs(p[1].years - reference.years))
    question = f"Which of these events is closest in time to {reference.event}?"
    return _listing(draw, question, [right], 1 / len(draw.options), reference, "text")


def _draw_intervals(facts: Sequence[Fact], depth: int, rng: random.Random, gap: float) -> DrawnFacts | None:
    """The four ends of two intervals; every second time these overlap."""
    chosen = _first_spread(facts, 4, gap)
    if chosen is None:
        return None
    a, b, c, d = sorted(chosen, key=lambda f: f.years)
    pairs = [(a, c), (b, d)] if rng.random() < 0.5 else [(a, b), (c, d)]
    rng.shuffle(pairs)
    return DrawnFacts((), (*pairs[0], *pairs[1]))


def _word_intervals(draw: DrawnFacts, rng: random.Random, shown: bool) -> Wording:
    a, c, b, d = draw.bounds
    answer = "yes" if max(a.years, b.years) < min(c.years, d.years) else "no"
    question = (
        f"Does the time between {a.event} and {c.event} overlap with the time between {b.event} and {d.event}? "
        "Answer yes or no."
    )
    worked = "; ".join(f"{f.event}: {f.date}" for f in draw.bounds)
    return Wording(question, answer, "boolean", (), f"{worked}. So: {answer}", 0.5, a)


def _word_constrained(draw: DrawnFacts, rng: random.Random, shown: bool) -> Wording:
    (reference,) = draw.bounds
    after = [(k, f) for k, f in _letters(draw).items() if f.years > reference.years]
    right = sorted(after, key=lambda p: p[1].years)
    # A guess: any ordered choice of at least two of the options.
    n = len(draw.options)
    chance = 1 / sum(math.perm(n, k) for k in range(2, n + 1))
    question = f"Leave out the events before {reference.event} and rank the others from earliest to latest:"
    return _listing(draw, question, right, chance, reference, "ordered-list")


HARDER: dict[str, TemporalFamily] = {
    "nearest_binding": TemporalFamily(_draw_nearest, _word_nearest, 1),
    "overlapping_intervals": TemporalFamily(_draw_intervals, _word_intervals, 4),
    "constrained_ranking": TemporalFamily(_around(0, 2), _word_constrained, 1),
}


PLAN = (("nearest_binding", 3, 50), ("overlapping_intervals", 4, 55), ("constrained_ranking", 4, 55))
