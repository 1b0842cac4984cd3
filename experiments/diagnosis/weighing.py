"""From the outcomes of interventions on single decisions to evidence about a case.

Of many layers one always looks best, so the layer at which a case is judged is chosen by the other cases of the run
(of a run with few cases, by all). A case then counts its own failing variants there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...evaluation.cases import Case
from .evidence import Found, Inside, Tally
from .inside import Outcomes
from .places import Decision

ENOUGH = 3
"""Other cases that are needed to choose a layer without the case itself."""


@dataclass(frozen=True)
class Opened:
    """One failing variant with its measurements."""

    case: Case
    whole: Decision
    outcomes: Outcomes
    lens: Mapping[str, Tensor]
    """By place, ``layer name`` logits of the entities' names."""


Group = Mapping[str, Sequence[Opened]]
"""Failing variants by the case that they are variants of."""
Score = Callable[[Sequence[Opened], str], float]


def weigh(groups: Group, names: Sequence[str], foils: Callable[[Case, Decision], set[str]]) -> dict[str, Inside]:
    """The evidence of every case; ``names`` are the entities that were read, ``foils`` those that a case has."""
    reads = _readings(groups, names, foils)
    cells = {cell for group in groups.values() for one in group for cell in one.outcomes}

    def named(test: str, place: str = "") -> list[str]:
        found = {c.partition(":")[2] for c in cells if c.partition(":")[0] == test}
        return sorted(c for c in found if c.startswith(place))

    half = {c for c in named("own") if int(c.rpartition(":")[2]) < _layers(cells) / 2}
    out = {}
    for id, group in groups.items():
        others = [one for other, some in groups.items() if other != id for one in some]
        pool = others if len(groups) > ENOUGH else [*others, *group]
        tests = {}
        for name, test, noise, foreign, options in (
            ("skip", "skip", "", "", named("skip")),
            ("exit", "exit", "", "", [c for c in named("exit") if int(c.rpartition(":")[2]) < _layers(cells) - 1]),
            ("back", "back", "back-noise", "back-foreign", named("back")),
            ("move", "move", "", "", named("move")),
            ("own:entity", "own", "noise", "foreign", [c for c in named("own", "entity") if c in half]),
            ("own:decision", "own", "noise", "foreign", [c for c in named("own", "decision") if c in half]),
            ("scope:decision", "scope", "", "", named("scope", "decision")),
            ("scope:elsewhere", "scope", "", "", [c for c in named("scope") if not c.startswith("decision")]),
        ):
            if options and group:
                best = max(options, key=lambda c: (_share(pool, test, c) - _share(pool, noise, c), c))
                wanted = "donor" if test == "own" else "gold"
                beside = [c for c in options if c != best and c.partition(":")[0] == best.partition(":")[0]]
                blocks = _sum(_tally(group, test, c) for c in beside)
                control = blocks if test == "skip" else _tally(group, noise, best)
                tests[name] = Found(
                    best, _tally(group, test, best), control,
                    _tally(group, foreign, best, wanted) if foreign else Tally(), _tally(pool, test, best),
                )  # fmt: skip
        seen = [any(v == "gold" for c, v in one.outcomes.items() if c.startswith("exit:")) for one in group]
        readable = {}
        for where, chosen in (("decision", True), ("elsewhere", False)):
            found = sorted({cell for one in pool for cell in reads.get(id_of(one), {})})
            options = [c for c in found if c.startswith("decision") == chosen]
            if options:
                best = max(options, key=lambda c: (_hits(reads, pool, c).share, c))
                readable[where] = Found(best, _hits(reads, group, best), pool=_hits(reads, pool, best))
        out[id] = Inside(len(group), tests, Tally(sum(seen), len(group)), readable)
    return out


def id_of(one: Opened) -> str:
    return one.case.id


def _layers(cells: set[str]) -> int:
    return 1 + max((int(c.rpartition(":")[2]) for c in cells if c.startswith("skip:")), default=0)


def _tally(some: Sequence[Opened], test: str, cell: str, outcome: str = "gold") -> Tally:
    found = [one.outcomes.get(f"{test}:{cell}") for one in some]
    known = [f == outcome for f in found if f is not None]
    return Tally(sum(known), len(known))


def _sum(tallies: Iterable[Tally]) -> Tally:
    found = list(tallies)
    return Tally(sum(t.k for t in found), sum(t.n for t in found))


def _share(some: Sequence[Opened], test: str, cell: str) -> float:
    return _tally(some, test, cell).share


def _hits(reads: Mapping[str, Mapping[str, bool]], some: Sequence[Opened], cell: str) -> Tally:
    known = [reads[id_of(one)][cell] for one in some if cell in reads.get(id_of(one), {})]
    return Tally(sum(known), len(known))


def _readings(
    groups: Group, names: Sequence[str], foils: Callable[[Case, Decision], set[str]]
) -> dict[str, dict[str, bool]]:
    """By variant and cell, whether its entity has the highest logit of its foils, centred over the other entities."""
    every = [one for group in groups.values() for one in group if one.whole.entity in names and one.lens]
    out: dict[str, dict[str, bool]] = {id_of(one): {} for one in every}
    for place in dict.fromkeys(place for one in every for place in one.lens):
        here = [one for one in every if place in one.lens]
        values = torch.stack([one.lens[place] for one in here])  # variant layer name
        center = _center(values, [one.whole.entity for one in here])
        for one, own, mean in zip(here, values, center, strict=True):
            wanted = foils(one.case, one.whole) or names
            others = [names.index(n) for n in wanted if n in names and n != one.whole.entity]
            if not others:
                continue
            right = names.index(one.whole.entity)
            scores = own - mean
            for layer in range(1, len(scores)):
                top = bool(scores[layer, right] > scores[layer, others].max())
                out[id_of(one)][f"{place}:{layer - 1}"] = top
    return out


def _center(values: Tensor, entities: Sequence[str]) -> Tensor:
    """For each variant the mean over variants about other entities; zero where there are none."""
    out = torch.zeros_like(values)
    for i, entity in enumerate(entities):
        others = [j for j, e in enumerate(entities) if e != entity]
        if others:
            out[i] = values[others].mean(0)
    return out
