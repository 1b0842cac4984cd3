"""Generates a benchmark of D4v2's shape from any file of dated facts (Composition collapse, section 4 and App. B).

With 79 facts in 4 wordings the published plan gives 390 cases with 2,490 sub-questions. As published, the events that
only bound a question (the reference of a successor case, the two ends of an interval) are not atoms: successor cases
name their reference, interval cases print the bounds' dates. With ``gate_boundaries`` they are atoms like the others,
their dates are not shown, and a case that asks about d candidates has d + 1 or d + 2 parts; its depth stays d.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...errors import InputError
from ..case import COLLAPSE_BINS, Case
from . import temporal_families
from .facts import Fact
from .temporal_families import DrawnFacts

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

HARDER: Plan = temporal_families.PLAN
"""Short chains that need tighter reasoning (App. M); to be built with ``gate_boundaries``."""
FAMILIES = {**temporal_families.FAMILIES, **temporal_families.HARDER}

_TRIES = 400


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

    Raises ``InputError`` for an unknown family or facts too few for the plan.
    """
    rng = random.Random(seed)
    uses: Counter[str] = Counter()
    cases: list[Case] = []
    for family, depth, count in plan:
        if family not in FAMILIES:
            raise InputError(f"plan: family is {family!r}; use one of {', '.join(FAMILIES)}")
        seen: set[frozenset[str]] = set()
        for n in range(count):
            draw = _draw(facts, family, depth, rng, uses, seen, min_gap)
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
