"""Turns the outcomes of interventions on single decisions into evidence about a case.

Among many layers, one always looks best. So the other cases of the run choose the layer at which a case is judged. If
few cases were opened, all other variants choose it for each variant, and the rule names no cause from it. The failing
variants are then counted at that layer. ``together`` and ``uncomputed`` add what the failing cases show together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from . import rule, rule_inside, thresholds
from .evidence import Apart, Behaviour, Behind, Found, Inside, Tally
from .inside import Outcomes
from .readings import Held
from .thresholds import BROUGHT, CONTROL, MANY, MANY_OF_A_GROUP, mostly

ENOUGH = 3
"""With more opened cases than this, the other cases choose a case's layers."""
LIKE = 6
"""If at least this many variants of other cases decide the same operand, they choose the place."""


class Opened(NamedTuple):
    """The measurements on one failing variant."""

    outcomes: Outcomes
    operand: int = 0
    """The operand that is decided. The words about the second one are elsewhere in the question than those about the
    first."""
    worked: str = ""
    """The right working, or the right answer."""
    value: str = ""
    """The right value at the decision."""
    prompt: tuple[int, ...] = ()
    """The token ids up to the decision; () if not known."""


Group = Mapping[str, Sequence[Opened]]
"""The measurements on failing variants, by their original case."""


class _Test(NamedTuple):
    """One kind of intervention: the cells that it is made at, and those of its controls."""

    cells: str
    options: Sequence[str]
    noise: str = ""
    foreign: str = ""
    elsewhere: bool = False
    """Whether the cells are places in the prompt, which are chosen for each operand."""
    falls: bool = False
    """Whether the cells are layers at one place, of which the last one before the greatest fall counts."""


def weigh(groups: Group, fewest: int = MANY_OF_A_GROUP) -> dict[str, Inside]:
    """The evidence of every case. If a model has two causes, the cases of each choose their layers for each other."""
    cell, parted = halves(groups, fewest)
    return {id: replace(one, apart=Apart(cell, frozenset(some), len(groups)) if cell else None)
            for some in parted for id, one in _weigh(some).items()}  # fmt: skip


def halves(groups: Group, fewest: int = MANY_OF_A_GROUP) -> tuple[str, Sequence[Group]]:
    """The cases of two causes, and the change that mends nearly all variants of the one half, and few of the other.

    Only a left-out block and a moved state are tried; the change has to mend ``fewest`` variants. Without such a change
    there is one group, and no name.
    """
    tests = _tests(groups)
    found: tuple[str, Sequence[Group]] = "", [groups]
    most = 0.0
    for test, cell in ((tests[name].cells, cell) for name in ("skip", "move") if name in tests
                       for cell in tests[name].options):  # fmt: skip
        mended = {id: group for id, group in groups.items() if mostly(_tally(group, test, cell))}
        others = {id: group for id, group in groups.items() if id not in mended}
        of, beside = (_tally(_distinct([one for g in some.values() for one in g]), test, cell)
                      for some in (mended, others))  # fmt: skip
        enough = min(map(_n_opened, (mended, others))) > ENOUGH and of.n >= fewest and beside.n >= MANY
        if enough and of.share >= BROUGHT and beside.share <= CONTROL and of.share - beside.share > most:
            most, found = of.share - beside.share, (f"{test}:{cell}", [mended, others])
    return found


def _distinct(some: Iterable[Opened], but: Iterable[Opened] = ()) -> list[Opened]:
    """Every prompt once, without those of ``but``.

    A case may be a variant of several others. The same prompt has the same outcomes each time, and shows nothing new.
    """
    seen, out = {one.prompt for one in but}, list[Opened]()
    for one in some:
        if one.prompt not in seen or not one.prompt:
            out.append(one)
            seen.add(one.prompt)
    return out


def _n_opened(groups: Group) -> int:
    """How many cases have a variant that was measured."""
    return sum(map(bool, groups.values()))


def _weigh(groups: Group) -> dict[str, Inside]:
    tests = _tests(groups)
    every = [one for group in groups.values() for one in group]
    found: dict[str, dict[str, Found]] = {id: {} for id in groups}
    enough = _n_opened(groups) > ENOUGH
    for name, test in tests.items():
        if enough:
            for id, group in groups.items():
                if group:
                    others = [one for other, some in groups.items() if other != id for one in some]
                    found[id][name] = _judged(test, group, _distinct(others, group))
        else:
            each = {id: [_judged(test, [one], [o for o in every if o is not one]) for one in group]
                    for id, group in groups.items()}  # fmt: skip
            pool = _sum(f.own for some in each.values() for f in some)
            found |= {id: found[id] | {name: _together(some, pool)} for id, some in each.items() if some}
    out, cuts = {}, _cut(_distinct(every)).get("source", Tally())
    for id, group in groups.items():
        seen = [any(v == "gold" for c, v in one.outcomes.items() if c.startswith("exit:")) for one in group]
        worked = len({one.worked for one in group})
        out[id] = Inside(len(group), found[id], Tally(sum(seen), len(group)), _cut(group), cuts, worked, enough)
    return out


def _tests(groups: Group) -> dict[str, _Test]:
    """The tests that were made, by name."""
    cells = {cell for group in groups.values() for one in group for cell in one.outcomes}

    def options(test: str, place: str = "") -> list[str]:
        found = {c.partition(":")[2] for c in cells if c.partition(":")[0] == test}
        return sorted(c for c in found if c.startswith(place))

    n_layers = 1 + max((_layer(c) for c in cells if c.startswith("skip:")), default=0)
    early = {test: [c for c in options(test) if _layer(c) < n_layers / 2] for test in ("own", "noise")}
    later = [c for c in options("own", "decision") if _layer(c) >= n_layers / 2]
    found = {
        "skip": _Test("skip", options("skip")),
        "exit": _Test("exit", [c for c in options("exit") if _layer(c) < n_layers - 1], falls=True),
        "back": _Test("back", options("back"), "back-noise", "back-foreign"),
        "move": _Test("move", options("move"), elsewhere=True),
        "across": _Test("across", options("across"), elsewhere=True),
        "noise": _Test("noise", early["noise"]),
        "own:entity": _Test("own", [c for c in early["own"] if c.startswith("entity")], "noise", "foreign"),
        "own:decision": _Test("own", [c for c in early["own"] if c.startswith("decision")], "noise", "foreign"),
        "own:later": _Test("own", later, "noise", "foreign"),
        "scope:decision": _Test("scope", options("scope", "decision"), falls=True),
        "scope:elsewhere": _Test(
            "scope", [c for c in options("scope") if not c.startswith("decision")], elsewhere=True
        ),
    }
    return {name: test for name, test in found.items() if test.options}


def _judged(test: _Test, group: Sequence[Opened], pool: Sequence[Opened]) -> Found:
    """Some variants, at the cell that the pool chooses. A place is chosen by those that decide the same operand."""
    if not test.elsewhere:
        return _at_best(test, group, pool)
    found, own = [], sorted({one.operand for one in group})
    rest = [one for one in pool if one.operand not in own]
    for operand in own:
        like = [one for one in pool if one.operand == operand]
        some = [one for one in group if one.operand == operand]
        few = len(like) < LIKE
        found.append(_at_best(test, some, pool if few else like, [*like, *(rest if few else ())]))
        rest = [] if few else rest  # each of the pool counts once, though it may choose for two operands
    return found[0] if len(found) == 1 else _together(found, _sum(f.pool for f in found))


def _at_best(
    test: _Test, group: Sequence[Opened], pool: Sequence[Opened], counted: Sequence[Opened] | None = None
) -> Found:
    """Some variants, at the cell where the pool shows most beyond its control, or beyond the next layer.

    ``counted`` are those of the pool that are counted there; the default is all of it.
    """
    counted = pool if counted is None else counted
    after = dict(pairwise(sorted(test.options, key=_layer))) if test.falls else {}

    def excess(cell: str) -> float:
        control = (test.cells, after[cell]) if cell in after else (test.noise, cell)
        found = _tally(pool, test.cells, cell)
        share = found.k / len(pool) if test.elsewhere and pool else found.share  # not every prompt has every place
        return share - _tally(pool, *control).share

    best = max(test.options, key=lambda c: (excess(c), *_small(c)))
    beside = [c for c in test.options if c != best and c.partition(":")[0] == best.partition(":")[0]]
    blocks, of_pool = (_sum(_tally(some, test.cells, c) for c in beside) for some in (group, pool))
    return Found(
        best,
        _tally(group, test.cells, best),
        blocks if test.cells == "skip" else _tally(group, test.noise, best),
        _tally(group, test.foreign, best, "donor" if test.cells == "own" else "gold") if test.foreign else Tally(),
        _tally(counted, test.cells, best),
        _tally(group, test.foreign.replace("foreign", "same"), best) if test.foreign else Tally(),
        noise_pool=of_pool if test.cells == "skip" else _tally(pool, test.noise, best),
        foreign_pool=_tally(pool, test.foreign, best, "donor") if test.cells == "own" else Tally(),
        values=_by_value(counted, test.cells, best),
        gone=_layer(after[best]) if best in after else None,
    )


def _together(some: Sequence[Found], pool: Tally) -> Found:
    """The variants of a case that were judged separately, at the cell where most of them were."""
    own, noise, foreign, same = (_sum(getattr(f, name) for f in some) for name in ("own", "noise", "foreign", "same"))
    cells = Counter[str]()
    for f in some:
        cells[f.cell] += f.own.n
    values = _sum(f.values for f in some)
    return Found(cells.most_common(1)[0][0], own, noise, foreign, pool, same, values=values)


def _cut(group: Sequence[Opened]) -> dict[str, Tally]:
    """What becomes of the wrong answers if the source of a shortcut, or other words, cannot be attended to."""
    if not any("cut:source:0" in one.outcomes for one in group):
        return {}
    kept = {place: _tally(group, "cut", f"{place}:0", "wrong") for place in ("source", "other")}
    gone = {place: Tally(t.n - t.k, t.n) for place, t in kept.items()}
    return {**gone, "mended": _tally(group, "cut", "source:0")}


def _layer(cell: str) -> int:
    return int(cell.rpartition(":")[2])


def _small(cell: str) -> tuple[bool, str, list[int]]:
    """The order of equal cells: a block left out at the decision alone comes first, then the later block."""
    place, colon, layers = cell.rpartition(":")
    return not cell.startswith("everywhere"), place + colon, [int(layer) for layer in layers.split(">")]


def _tally(some: Sequence[Opened], test: str, cell: str, outcome: str = "gold") -> Tally:
    found = [one.outcomes.get(f"{test}:{cell}") for one in some]
    known = [f == outcome for f in found if f is not None]
    return Tally(sum(known), len(known))


def _by_value(some: Sequence[Opened], test: str, cell: str) -> Tally:
    """For how many different right values an intervention mends most variants."""
    of = {value: _tally([one for one in some if one.value == value], test, cell) for value in {o.value for o in some}}
    known = [tally for tally in of.values() if tally.n]
    return Tally(sum(2 * tally.k > tally.n for tally in known), len(known))


def _sum(tallies: Iterable[Tally]) -> Tally:
    found = list(tallies)
    return Tally(sum(t.k for t in found), sum(t.n for t in found))


def together(found: Mapping[str, Behaviour], families: Mapping[str, str | None] | None = None) -> dict[str, Behaviour]:
    """The evidence of every case, with what all failing cases of the run, and of its family, show."""
    family = families or dict.fromkeys(found)
    failing = [one for one in found.values() if one.fails]
    counted = [one.once or one for one in failing]
    asked = _sum(one.asked for one in counted)
    # a part that is wrong behind the context of right wholes, too, says nothing about the failing ones
    telling = (b for one in counted for b in one.behind.values() if b.success.share <= CONTROL)
    behind = _sum(b.wrong for b in telling)
    fails = _sum(Tally(one.n, one.variants + 1 - one.unknown) for one in counted)
    count = Counter(sign for one in failing for sign in rule.signs(one))
    whole = Counter(sign for one in failing for sign in rule.throughout(one))
    sums = frozenset[str]().union(*(one.sums for one in failing if rule.other_results(one)))
    of_family = Counter(family[id] for id, one in found.items() if one.fails)
    before = {id: one for id, one in found.items() if one.fails and not one.own_operands_right}

    def of_families(shows: Callable[[Behind], bool]) -> dict[str, Tally]:
        """For each case with a part that its context spoils, how many of its family have one of which this holds."""
        some = {id for id, one in before.items() if any(map(shows, one.behind.values()))}
        counted = Counter(family[id] for id in some)
        spoilt = (id for id, one in before.items() if any(map(rule.spoilt, one.behind.values())))
        return {id: Tally(counted[family[id]], of_family[family[id]]) for id in spoilt}

    bad, same = of_families(rule.spoilt), of_families(rule.as_the_whole)

    def of_all(shown: set[str], counted: Counter[str], one: Behaviour) -> dict[str, Tally]:
        return {sign: Tally(counted[sign], len(failing)) for sign in sorted(shown) if one.fails}

    return {
        id: replace(one, asked_in_run=asked, sums=sums if rule.other_results(one) else one.sums,
                    shared=of_all(rule.signs(one), count, one), throughout=of_all(rule.signs(one), whole, one),
                    spoilt=bad.get(id, Tally()), as_whole=same.get(id, Tally()), behind_in_run=behind,
                    fails_in_run=fails)
        for id, one in within(found).items()
    }  # fmt: skip


def within(found: Mapping[str, Behaviour]) -> dict[str, Behaviour]:
    """The evidence of every case, with what these cases together write as operands."""
    counted = [one.once or one for one in found.values()]
    written, other = (_sum(getattr(one, name) for one in counted) for name in ("from_case", "other_operand"))
    of_items, luck = _of_items({id: (one.once or one).wrong_numbers for id, one in found.items()})
    return {
        id: replace(one, from_cases=written, other_operands=other, of_items=of_items, by_luck=luck)
        for id, one in found.items()
    }


def _of_items(wrong: Mapping[str, Sequence[tuple[str, frozenset[str]]]]) -> tuple[Tally, float | None]:
    """How many wrong numbers belong to an item of their own case, and the share that belongs to one of another case;
    None if no other case has any."""
    rows = [(id, said, items) for id, some in wrong.items() for said, items in some]
    every = Counter(number for _, _, items in rows for number in items)
    own = Counter((id, number) for id, _, items in rows for number in items)
    others = {id: len(rows) - len(some) for id, some in wrong.items()}
    luck = [(every[said] - own[id, said]) / others[id] for id, said, _ in rows if others[id]]
    share = None if rows and not luck else sum(luck) / max(1, len(luck))
    return Tally(sum(said in items for _, said, items in rows), len(rows)), share


def uncomputed(
    found: Mapping[str, Inside], seen: Mapping[str, Behaviour], held: Mapping[str, Sequence[Held]],
    families: Mapping[str, str | None],
) -> dict[str, Inside]:  # fmt: skip
    """The evidence of every opened case, with how many cases of its family lack the bridge too (without those that have
    another cause).

    That no state holds a bridge is shown only by a lack. In a model with some damage everywhere, a few cases lack their
    bridge. A bridge that the model does not compute is missing in more cases. If it is missing in most, the other cases
    get that count as well.
    """
    verdicts = {id: rule_inside.from_inside(one, seen[id], held.get(id, ())) for id, one in found.items()}
    named = {id: verdict[0] if verdict is not None else "" for id, verdict in verdicts.items()}
    missing = {id for id, cause in named.items() if cause == "bridge-not-computed"}
    other = {id for id, cause in named.items() if cause not in ("", "fragile", "bridge-not-computed")}
    measured = [id for id, one in found.items() if one.n]
    lacking, every = Counter(families[id] for id in missing), Counter(families[id] for id in measured)
    without = Counter(families[id] for id in measured if id not in other)
    tally = {f: Tally(lacking[f], max(without[f], min(thresholds.COMPARED, n))) for f, n in every.items()}
    shown = {id: replace(one, uncomputed=tally.get(families[id], Tally())) for id, one in found.items()}
    return {id: shown[id] if id in missing or rule_inside.usual(shown[id]) else one for id, one in found.items()}
