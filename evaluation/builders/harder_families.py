"""Short chains that need tighter reasoning over dates (Composition collapse, App. M: the harder set).

The paper names temporal binding, multi-fact ranking, overlapping intervals and several constraints, and prints counts:
160 cases, 751 rows with their sub-questions. The three kinds here are ours; in the plan's numbers they make 160 cases
with 590 sub-questions. Every event named in a case is a gated atom, and no date is shown.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from .facts import Fact
from .temporal_families import Draw, Family, Wording, _first_spread, _letters, _listing


def _draw_nearest(facts: Sequence[Fact], depth: int, rng: random.Random, gap: float) -> Draw | None:
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
                return Draw(tuple(options), (reference,))
    return None


def _word_nearest(draw: Draw, rng: random.Random, shown: bool) -> Wording:
    (reference,) = draw.bounds
    right = min(_letters(draw).items(), key=lambda p: abs(p[1].years - reference.years))
    question = f"Which of these events is closest in time to {reference.event}?"
    return _listing(draw, question, [right], 1 / len(draw.options), reference, "text")


def _draw_intervals(facts: Sequence[Fact], depth: int, rng: random.Random, gap: float) -> Draw | None:
    """The four ends of two intervals; every second time these overlap."""
    chosen = _first_spread(facts, 4, gap)
    if chosen is None:
        return None
    a, b, c, d = sorted(chosen, key=lambda f: f.years)
    pairs = [(a, c), (b, d)] if rng.random() < 0.5 else [(a, b), (c, d)]
    rng.shuffle(pairs)
    return Draw((), (*pairs[0], *pairs[1]))


def _word_intervals(draw: Draw, rng: random.Random, shown: bool) -> Wording:
    a, c, b, d = draw.bounds
    answer = "yes" if max(a.years, b.years) < min(c.years, d.years) else "no"
    question = (
        f"Does the time between {a.event} and {c.event} overlap with the time between {b.event} and {d.event}? "
        "Answer yes or no."
    )
    worked = "; ".join(f"{f.event}: {f.date}" for f in draw.bounds)
    return Wording(question, answer, "boolean", (), f"{worked}. So: {answer}", 0.5, a)


def _draw_constrained(facts: Sequence[Fact], depth: int, rng: random.Random, gap: float) -> Draw | None:
    """A reference with at least one of ``depth - 1`` options before it and two after it."""
    chosen = _first_spread(facts, depth, gap)
    if chosen is None or depth < 4:
        return None
    in_order = sorted(chosen, key=lambda f: f.years)
    reference = in_order[rng.randrange(1, depth - 2)]
    return Draw(tuple(f for f in chosen if f is not reference), (reference,))


def _word_constrained(draw: Draw, rng: random.Random, shown: bool) -> Wording:
    (reference,) = draw.bounds
    after = [(k, f) for k, f in _letters(draw).items() if f.years > reference.years]
    right = sorted(after, key=lambda p: p[1].years)
    # A guess: any ordered choice of at least two of the options.
    n = len(draw.options)
    chance = 1 / sum(math.perm(n, k) for k in range(2, n + 1))
    question = f"Leave out the events before {reference.event} and rank the others from earliest to latest:"
    return _listing(draw, question, right, chance, reference, "ordered-list")


HARDER: dict[str, Family] = {
    "nearest_binding": Family(_draw_nearest, _word_nearest, 1),
    "overlapping_intervals": Family(_draw_intervals, _word_intervals, 4),
    "constrained_ranking": Family(_draw_constrained, _word_constrained, 1),
}
PLAN = (("nearest_binding", 3, 50), ("overlapping_intervals", 4, 55), ("constrained_ranking", 4, 55))
