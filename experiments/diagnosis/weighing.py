"""Turns the outcomes of interventions on single decisions into evidence about a case.

Among many layers one always looks best. So the layer at which a case is judged is chosen by the other cases of the run
(by all cases if there are few). The case's own failing variants are then counted at that layer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .evidence import Found, Inside, Tally
from .inside import Outcomes

ENOUGH = 3
"""The number of other cases needed to choose a layer without the case itself."""


Group = Mapping[str, Sequence[Outcomes]]
"""The measurements on failing variants, by their original case."""


def weigh(groups: Group) -> dict[str, Inside]:
    """The evidence of every case."""
    cells = {cell for group in groups.values() for one in group for cell in one}

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
            ("noise", "noise", "", "", [c for c in named("noise") if c in half]),
            ("own:entity", "own", "noise", "foreign", [c for c in named("own", "entity") if c in half]),
            ("own:decision", "own", "noise", "foreign", [c for c in named("own", "decision") if c in half]),
            ("scope:decision", "scope", "", "", named("scope", "decision")),
            ("scope:elsewhere", "scope", "", "", [c for c in named("scope") if not c.startswith("decision")]),
        ):
            if options and group:
                best = max(options, key=lambda c: (_share(pool, test, c) - _share(pool, noise, c), *_small(c)))
                wanted = "donor" if test == "own" else "gold"
                beside = [c for c in options if c != best and c.partition(":")[0] == best.partition(":")[0]]
                blocks = _sum(_tally(group, test, c) for c in beside)
                control = blocks if test == "skip" else _tally(group, noise, best)
                tests[name] = Found(
                    best, _tally(group, test, best), control,
                    _tally(group, foreign, best, wanted) if foreign else Tally(), _tally(pool, test, best),
                    _tally(group, foreign.replace("foreign", "same"), best) if foreign else Tally(),
                )  # fmt: skip
        seen = [any(v == "gold" for c, v in one.items() if c.startswith("exit:")) for one in group]
        out[id] = Inside(len(group), tests, Tally(sum(seen), len(group)))
    return out


def _small(cell: str) -> tuple[bool, str]:
    """The order of equal cells: a block left out at the decision alone comes first, then the later block."""
    return not cell.startswith("everywhere"), cell


def _layers(cells: set[str]) -> int:
    return 1 + max((int(c.rpartition(":")[2]) for c in cells if c.startswith("skip:")), default=0)


def _tally(some: Sequence[Outcomes], test: str, cell: str, outcome: str = "gold") -> Tally:
    found = [one.get(f"{test}:{cell}") for one in some]
    known = [f == outcome for f in found if f is not None]
    return Tally(sum(known), len(known))


def _sum(tallies: Iterable[Tally]) -> Tally:
    found = list(tallies)
    return Tally(sum(t.k for t in found), sum(t.n for t in found))


def _share(some: Sequence[Outcomes], test: str, cell: str) -> float:
    return _tally(some, test, cell).share
