"""What the failing cases of a run, and of a family, show together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from . import rule, thresholds
from .evidence import Behaviour, Behind, Inside, Tally
from .readings import Held


def together(found: Mapping[str, Behaviour], families: Mapping[str, str | None] | None = None) -> dict[str, Behaviour]:
    """The evidence of every case, with what all failing cases of the run, and of its family, show."""
    family = families or dict.fromkeys(found)
    written = [one.from_case for one in found.values()]
    failing = [one for one in found.values() if one.fails]
    count = Counter(sign for one in failing for sign in rule.signs(one))
    whole = Counter(sign for one in failing for sign in rule.throughout(one))
    sums = frozenset[str]().union(*(one.sums for one in failing if rule.other_results(one)))
    every = Tally(sum(t.k for t in written), sum(t.n for t in written))

    of_family = Counter(family[id] for id, one in found.items() if one.fails)
    before = {id: one for id, one in found.items() if one.fails and not one.own_operands_right}

    def of_families(shows: Callable[[Behind], bool]) -> dict[str, Tally]:
        """For each case with such a part, how many of its family have one."""
        some = [id for id, one in before.items() if any(map(shows, one.behind.values()))]
        counted = Counter(family[id] for id in some)
        return {id: Tally(counted[family[id]], of_family[family[id]]) for id in some}

    bad, same = of_families(rule.spoilt), of_families(rule.as_the_whole)

    def of_all(shown: set[str], counted: Counter[str], one: Behaviour) -> dict[str, Tally]:
        return {sign: Tally(counted[sign], len(failing)) for sign in sorted(shown) if one.fails}

    return {
        id: replace(one, from_cases=every, sums=sums if rule.other_results(one) else one.sums,
                    shared=of_all(rule.signs(one), count, one), throughout=of_all(rule.signs(one), whole, one),
                    spoilt=bad.get(id, Tally()), as_whole=same.get(id, Tally()))
        for id, one in found.items()
    }  # fmt: skip


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
    verdicts = {id: rule.from_inside(one, seen[id], held.get(id, ())) for id, one in found.items()}
    named = {id: verdict[0] if verdict is not None else "" for id, verdict in verdicts.items()}
    missing = {id for id, cause in named.items() if cause == "bridge-not-computed"}
    other = {id for id, cause in named.items() if cause not in ("", "fragile", "bridge-not-computed")}
    lacking, every = Counter(families[id] for id in missing), Counter(families[id] for id in found)
    without = Counter(families[id] for id in found if id not in other)
    tally = {f: Tally(lacking[f], max(without[f], min(thresholds.COMPARED, n))) for f, n in every.items()}
    shown = {id: replace(one, uncomputed=tally[families[id]]) for id, one in found.items()}
    return {id: shown[id] if id in missing or rule.usual(shown[id]) else one for id, one in found.items()}
