"""Temporal benchmarks from any file of dated facts: D4v2's shape (Composition collapse, section 4, App. B) and others.

With 79 facts in 4 wordings the published plan gives 390 cases with 2,490 sub-questions. As published, the events that
only bound a question (the reference of a successor case, the two ends of an interval) are not atoms: successor cases
name their reference, interval cases print the bounds' dates. With ``gate_boundaries`` they are atoms like the others,
their dates are not shown, and a case that asks about d candidates has d + 1 or d + 2 parts; its depth stays d.

Options have letters, and the question asks for letters; the names of events are accepted as well. Beside D4v2's kinds
there are the cross-domain ones for dated facts (App. L: betweenness, timeline binding) and ``HARDER`` (App. M: temporal
binding, overlapping intervals, several constraints). The paper prints only counts of the last: 160 cases, 751 rows with
their sub-questions. The three kinds here are this project's own; the plan gives 160 cases with 590 sub-questions. Every
event named in such a case is a gated atom, and no date is shown.
"""

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from ...errors import InputError
from ..case import COLLAPSE_BINS, Case
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
    if (n := len(draw.options)) > len(ascii_uppercase):
        raise InputError(f"plan: a question would have {n} options, which is more than letters; give a smaller depth")
    return dict(zip(ascii_uppercase, draw.options, strict=False))


def _listing(
    draw: DrawnFacts, question: str, right: list[tuple[str, Fact]], chance: float, anchor: Fact, kind: str
) -> Wording:
    answer = ", ".join(letter for letter, _ in right)
    asked = f"{question} {', '.join(f'({letter}) {f.event}' for letter, f in _letters(draw).items())}."
    # by events' names, with and without the letters
    accepted = "; ".join(f.event for _, f in right), "; ".join(f"({letter}) {f.event}" for letter, f in right)
    ask_for = {
        "text": "Answer with one letter.",
        "list": "Answer with the letters, separated by commas.",
        "ordered-list": "Answer with the letters in order, separated by commas.",
    }[kind]
    dated = [f"({letter}) {f.date}" for letter, f in _letters(draw).items()]
    dates = "; ".join([*dated, *(f"{f.event}: {f.date}" for f in draw.bounds)])
    return Wording(f"{asked} {ask_for}", answer, kind, accepted, f"{dates}. So: {answer}", chance, anchor)


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


def _draw_nearest(facts: Sequence[Fact], depth: int, rng: random.Random, gap: float) -> DrawnFacts | None:
    """A reference and ``depth - 1`` options whose distances to it differ by ``gap`` years."""
    options: list[Fact] = []
    for fact in facts[1:]:
        far = abs(fact.years - facts[0].years)
        if far >= gap and all(abs(far - abs(o.years - facts[0].years)) >= gap for o in options):
            options.append(fact)
            if len(options) == depth - 1:
                return DrawnFacts(tuple(options), (facts[0],))
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


FAMILIES: dict[str, TemporalFamily] = {
    "temporal_rank": TemporalFamily(_spread(), _word_rank),
    "temporal_successor": TemporalFamily(_around(1, 1), _word_successor, 1),
    "temporal_interval_decoy": TemporalFamily(_draw_interval, _word_interval, 2),
    "pair_far_control": TemporalFamily(_spread(2, 50.0 + 1e-9), _word_pair),
    "event_betweenness": TemporalFamily(_spread(3), _word_between),
    "timeline_binding": TemporalFamily(_spread(), _word_binding),
    "nearest_binding": TemporalFamily(_draw_nearest, _word_nearest, 1),
    "overlapping_intervals": TemporalFamily(_draw_intervals, _word_intervals, 4),
    "constrained_ranking": TemporalFamily(_around(0, 2), _word_constrained, 1),
}
Plan = Sequence[tuple[str, int, int]]

D4V2: Plan = (
    *(("temporal_rank", d, 30) for d in (4, 6, 8)),
    *(("temporal_successor", d, 30) for d in (4, 6, 8)),
    *(("temporal_interval_decoy", d, 30) for d in (4, 6, 7, 8, 9, 11)),
    ("pair_far_control", 2, 30),
)
"""(family, depth, cases) as published."""
CROSS_DOMAIN: Plan = (("event_betweenness", 3, 30), ("timeline_binding", 3, 30), ("timeline_binding", 5, 30))
"""Short chains over dated facts of any domain (App. L has no counts per kind)."""

HARDER: Plan = (("nearest_binding", 3, 50), ("overlapping_intervals", 4, 55), ("constrained_ranking", 4, 55))
"""Short chains that need tighter reasoning (App. M); to be built with ``gate_boundaries``."""
_TRIES = 400
_SAME_DATE = 1e-9
"""Years: events of one date have no order, whatever gap is asked for."""


def build(
    facts: Sequence[Fact],
    plan: Plan = D4V2,
    seed: int = 0,
    *,
    gate_boundaries: bool = False,
    min_gap: float = 2.0,
    benchmark: str = "d4v2",
) -> list[Case]:
    """Make the cases of ``plan`` from ``facts``. Equal arguments give equal cases.

    Facts are used about equally often; no two cases of a family and depth compare the same facts; dates in one case are
    at least ``min_gap`` years apart, because graders may accept a year too many or too few. Cases that use a fact
    marked ``unknowable`` are marked so too.

    Raises ``InputError`` for an unknown family, more options than letters or facts too few for the plan.
    """
    rng = random.Random(seed)
    uses: Counter[str] = Counter()
    cases: list[Case] = []
    for family, depth, count in plan:
        if family not in FAMILIES:
            raise InputError(f"plan: family is {family!r}; use one of {', '.join(FAMILIES)}")
        seen: set[frozenset[str]] = set()
        for n in range(count):
            draw = _draw(facts, family, depth, rng, uses, seen, max(min_gap, _SAME_DATE))
            if draw is None:
                raise InputError(
                    f"{len(facts)} facts do not make {count} different cases of {family} at depth {depth} (made {n}) "
                    f"with dates {min_gap} years apart; give more facts or a smaller plan"
                )
            cases.append(_case(draw, family, depth, n, rng, gate_boundaries, benchmark))
    return cases


def _draw(
    facts: Sequence[Fact],
    family: str,
    depth: int,
    rng: random.Random,
    uses: Counter[str],
    seen: set[frozenset[str]],
    min_gap: float,
) -> DrawnFacts | None:
    """Facts not drawn together before, rarely used ones first."""
    for _ in range(_TRIES):
        shuffled = sorted(facts, key=lambda f: (uses[f.id] + 1) * rng.random())
        draw = FAMILIES[family].draw(shuffled, depth, rng, min_gap)
        if draw is None:
            continue
        chosen = [*draw.options, *draw.bounds]
        key = frozenset(f.id for f in chosen)
        if key not in seen:
            seen.add(key)
            uses.update(key)
            return DrawnFacts(tuple(rng.sample(draw.options, len(draw.options))), draw.bounds)
    return None


def _case(
    draw: DrawnFacts, family: str, depth: int, n: int, rng: random.Random, gate_boundaries: bool, benchmark: str
) -> Case:
    shown = not gate_boundaries and FAMILIES[family].n_bounds == 2
    wording = FAMILIES[family].word(draw, rng, shown)
    gated = (*draw.options, *draw.bounds) if gate_boundaries else draw.options
    return Case(
        id=f"{family}-d{depth}-{n:03d}",
        question=wording.question,
        answer=wording.answer,
        parts=tuple(f.as_part() for f in gated),
        benchmark=benchmark,
        answer_type=wording.answer_type,
        aliases=wording.aliases,
        worked=wording.worked,
        family=family,
        depth=depth,
        depth_bin=COLLAPSE_BINS.get(depth, depth),
        cluster=wording.anchor.id,
        unknowable=any(f.unknowable for f in (*draw.options, *draw.bounds)),
        chance=wording.chance,
        meta={"crossed": [f.id for f in (*draw.options, *draw.bounds) if f.id != wording.anchor.id]}
        | ({"bounds": [f.id for f in draw.bounds]} if draw.bounds else {}),
    )


def shape(cases: Sequence[Case]) -> dict[str, Any]:
    """Counts to compare with the published ones: cases, sub-questions, atoms, probes, rows, and cases per cell."""
    atoms = {p.atom: len(p.paraphrases) for c in cases for p in c.parts if p.atom}
    sub_questions = sum(len(c.parts) for c in cases)
    cells = Counter(f"{c.family} d{c.depth}" for c in cases)
    return {
        "cases": len(cases),
        "sub_questions": sub_questions,
        "atoms": len(atoms),
        "probes": sum(atoms.values()),
        "rows": len(cases) + sub_questions + sum(atoms.values()),
        "cells": dict(cells),
        "depth_bins": dict(Counter(c.depth_bin for c in cases)),
    }
