"""Counting that all protocols share: rows by case, three-valued logic, rates with intervals and bounds."""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ...errors import InputError
from .. import dependence, few_cases, statistics
from ..case import Case
from ..graded import Graded
from ..grading.verdicts import by_the_answer
from ..metrics import Metric, mark
from .base import CaseSet, Entry, Evidence, Reduction, by_model

T = TypeVar("T")
Truth = bool | None
"""True, False, or None where an invalid answer leaves it undecided."""
GROUPINGS = (("depth_bin",), ("depth",), ("family",), ("domain",), ("operation",))
"""Cells that metrics are counted in, beside all items and the cells by family and depth."""
_PART = re.compile(r"part:(\d+)(?::|$)")


@dataclass(frozen=True)
class Item:
    """All graded asks about one case by one model in one repeat."""

    case: str
    model: str | None
    run: str | None
    repeat: int
    rows: Mapping[str, Graded]
    """By role."""
    first: Graded = field(repr=False)
    """A row with the properties of the case (family, depth, ...)."""
    n_parts: int = 0

    def truth(self, role: str) -> Truth:
        """Whether the answer in a role is right; None where it is invalid or was not asked."""
        row = self.rows.get(role)
        return None if row is None else truth(row)

    def entry(self, evidence: Iterable[Evidence], value: Any = None) -> Entry:
        """The case in a case set."""
        first = self.first
        return Entry(self.case, tuple(evidence), first.family, first.depth, first.cluster, self.model, value)

    @property
    def cluster(self) -> Hashable:
        """What the case shares with others (``dependence``): cluster and what crosses it, or the case's own repeats."""
        return near(self.first)

    def evidence(self, roles: Iterable[str]) -> tuple[Evidence, ...]:
        """The asks of these roles, as far as there are any."""
        return tuple(Evidence.of(self.rows[r]) for r in roles if r in self.rows)


def near(row: Graded) -> Hashable:
    """What the case of a row shares with others, or the case itself, which its other rows share."""
    found = row.shares
    return ("case", row.case) if found is None else found


def truth(row: Graded) -> Truth:
    """Right or wrong; abstaining is wrong unless the case is unknowable; None for invalid."""
    if row.outcome == "invalid":
        return None
    return row.outcome == "correct" or (row.outcome == "abstained" and row.unknowable)


def published(rows: Sequence[Graded], compat: str | None) -> list[Graded]:
    """The rows as a paper counts them: ``collapse`` counts responses without an answer that can be judged as wrong,
    ``stad`` and ``agentcoma`` everything invalid, including judge and connection failures.
    """
    if compat is None:
        return list(rows)

    def wrong(row: Graded) -> bool:
        return row.outcome == "invalid" and (compat != "collapse" or by_the_answer(row.reason))

    return [replace(row, outcome="incorrect") if wrong(row) else row for row in rows]


def all_of(values: Iterable[Truth]) -> Truth:
    """Three-valued "and": one False decides, otherwise one None leaves it undecided."""
    result: Truth = True
    for value in values:
        if value is False:
            return False
        if value is None:
            result = None
    return result


def part_index(role: str) -> int | None:
    """i of the roles ``part:i...``; None for others."""
    m = _PART.match(role)
    return int(m[1]) if m else None


def items(rows: Sequence[Graded], cases: Mapping[str, Case] | None = None, parts: int = 0) -> list[Item]:
    """Rows grouped by model, run, case and repeat, in order of appearance.

    A case has as many parts as its rows or ``cases`` say, and at least ``parts``; those without a row are unknown.

    Raises ``InputError`` for a role graded twice in a case, model, run and repeat, and for an id of two benchmarks.
    """
    grouped: dict[tuple[Any, ...], dict[str, Graded]] = {}
    for row in rows:
        roles = grouped.setdefault((row.model, row.run, row.case, row.repeat), {})
        if known := roles.get(row.role):
            if known.benchmark and row.benchmark and known.benchmark != row.benchmark:  # else one names tasks by role
                named = f"benchmarks {known.benchmark!r} and {row.benchmark!r} have a case {row.case!r}"
                raise InputError(f"graded rows: {named}; give cases ids that differ")
            said = f"case {row.case!r} has role {row.role!r} twice (model {row.model!r}, repeat {row.repeat})"
            raise InputError(f"graded rows: {said}; keep one row, or number them with the field 'repeat'")
        roles[row.role] = row
    made = []
    for (model, run, case, repeat), roles in grouped.items():
        indices = [i for role in roles if (i := part_index(role)) is not None]
        asked = len(cases[case].parts) if cases is not None and case in cases else 0
        n_parts = max(max(indices, default=-1) + 1, asked, parts)
        first = roles.get("whole") or next(iter(roles.values()))  # the whole's row knows chance and unknowable
        made.append(Item(case, model, run, repeat, roles, first, n_parts))
    return made


Counted = tuple[list[Metric], list[str], list[tuple[str, Entry]]]
"""What a protocol counts in the rows of one model: metrics, warnings, and cases, each with the set that it is in."""


def reduced(
    rows: Sequence[Graded], compat: str | None, sets: Mapping[str, str],
    count: Callable[[Sequence[Graded], Mapping[str, Any]], Counted],
) -> Reduction:  # fmt: skip
    """The result of a protocol that counts the rows of each model (with its group) separately; ``sets`` have labels."""
    metrics: list[Metric] = []
    warnings: list[str] = []
    entries: dict[str, list[Entry]] = {name: [] for name in sets}
    for group, chosen in by_model(published(rows, compat)):
        found, said, cases = count(chosen, group)
        metrics += [replace(m, group={**group, **m.group}) for m in found]
        warnings += said
        for name, entry in cases:
            entries[name].append(entry)
    case_sets = (CaseSet(name, label, tuple(entries[name])) for name, label in sets.items())
    return Reduction(tuple(metrics), tuple(case_sets), tuple(warnings))


def depth_key(found: Sequence[Item]) -> str:
    """The group key of depth curves: ``depth_bin`` where the benchmark declares bins, else ``depth``."""
    return "depth_bin" if any(item.first.depth_bin is not None for item in found) else "depth"


def grouped(
    found: Sequence[T],
    groupings: Sequence[tuple[str, ...]] | None = None,
    of: Callable[[Any], Item] = lambda item: item,
) -> list[tuple[dict[str, Any], list[T]]]:
    """All, then those of every value of every grouping (unknown values are left out); ``of`` gives the item of each."""
    cells: list[tuple[dict[str, Any], list[T]]] = [({}, list(found))]
    by = depth_key([of(each) for each in found])
    for keys in groupings or (*GROUPINGS, ("family", by)):
        split: dict[tuple[Any, ...], list[T]] = {}
        for each in found:
            values = tuple(getattr(of(each).first, "binned" if k == by == "depth_bin" else k) for k in keys)
            if None not in values:
                split.setdefault(values, []).append(each)
        if len(keys) > 1 and len({v[0] for v in split}) < 2:
            continue  # one family: its cells by depth are the cells by depth
        for values in sorted(split):
            cells.append((dict(zip(keys, values, strict=True)), split[values]))
    return cells


def clusters_of(found: Sequence[Item]) -> list[Hashable] | None:
    """What the items share where some share anything, else None (the items are independent)."""
    names = [item.cluster for item in found]
    return None if dependence.alone(names) else names


def rate(
    metric: str,
    values: Sequence[Truth],
    group: Mapping[str, Any],
    *,
    of: Sequence[Item] | None,
    clusters: Sequence[Hashable] | None = None,
    note: str | None = None,
) -> Metric:
    """A rate over the values that are known, with its Clopper-Pearson interval and the bounds over the others.

    Where cases share anything (the items that the values are ``of``, or ``clusters`` where that is None), a second
    interval accounts for it (``statistics.rate_interval``).
    """
    clusters = clusters_of(of) if of is not None else clusters
    known = [bool(v) for v in values if v is not None]
    k, n, total = sum(known), len(known), len(values)
    beside: dict[str, Any] = {}
    if clusters is not None:
        own = [c for c, v in zip(clusters, values, strict=True) if v is not None]
        beside = clustered(statistics.rate_interval(known, own), own)
    return Metric(
        metric, dict(group), n_invalid=total - n, **statistics.share(k, n), bound_low=k / total if total else None,
        bound_high=(k + total - n) / total if total else None, note=mark(n, note), **beside,
    )  # fmt: skip


def failure(
    metric: str,
    outcomes: Sequence[tuple[Truth, Truth]],
    items: Sequence[Item],
    group: Mapping[str, Any],
    *notes: str | None,
) -> Metric:
    """Share of wrong wholes among the cases that pass a gate, from (gate, whole) of each case, as in ``given``."""
    return given(metric, [(gate, opposite(w)) for gate, w in outcomes], items, group, *notes)


def opposite(value: Truth) -> Truth:
    """Three-valued "not"."""
    return None if value is None else not value


def given(
    metric: str,
    outcomes: Sequence[tuple[Truth, Truth]],
    items: Sequence[Item],
    group: Mapping[str, Any],
    *notes: str | None,
) -> Metric:
    """A rate among the cases that are inside something, from (inside, value) of each case.

    A case of which it is open whether it is inside, or an open value inside, leaves the estimate and enters the bounds:
    it may be outside, a hit or none, whichever is worst or best.
    """
    inside = [(v, item) for (gate, v), item in zip(outcomes, items, strict=True) if gate is True]
    base = rate(metric, [v for v, _ in inside], group, of=[item for _, item in inside], note=join(*notes))
    low, high = failure_bounds([(gate, opposite(v)) for gate, v in outcomes])
    undecided = sum(gate is None for gate, _ in outcomes)
    return replace(base, n_invalid=base.n_invalid + undecided, bound_low=low, bound_high=high)


def failure_bounds(outcomes: Sequence[tuple[Truth, Truth]]) -> tuple[float | None, float | None]:
    """The least and the largest share of wrong wholes that any judgement of open (gate, whole) pairs could give."""
    failed = sum(gate is True and w is False for gate, w in outcomes)
    passed = sum(gate is True and w is True for gate, w in outcomes)
    undecided = [w for gate, w in outcomes if gate is None]
    open_whole = sum(gate is True and w is None for gate, w in outcomes)
    may_fail = open_whole + sum(w is not True for w in undecided)
    may_pass = open_whole + sum(w is not False for w in undecided)
    worst, best = failed + may_fail + passed, failed + passed + may_pass
    return (
        failed / best if best else 1.0 if may_fail else None,
        (failed + may_fail) / worst if worst else 0.0 if may_pass else None,
    )


def clustered(interval: statistics.Interval, clusters: Sequence[Hashable]) -> dict[str, Any]:
    """The fields of the cluster interval; empty where cases share nothing."""
    if dependence.alone(clusters):
        return {}
    return {
        "cluster_n": dependence.count(clusters),
        "cluster_interval": interval.method,
        "cluster_low": interval.low,
        "cluster_high": interval.high,
    }


def difference(
    metric: str,
    a: Sequence[Truth],
    b: Sequence[Truth],
    group: Mapping[str, Any],
    *,
    seed: int,
    of: Sequence[Item] | None,
    clusters: Sequence[Hashable] | None = None,
    note: str | None = None,
) -> Metric:
    """mean(a) - mean(b) over the same cases (``of`` items), those where both are known; the others enter the bounds."""
    known = [i for i, pair in enumerate(zip(a, b, strict=True)) if None not in pair]
    pairs = [(bool(a[i]), bool(b[i])) for i in known]
    clusters = clusters if of is None else clusters_of(of)
    own = None if clusters is None else [clusters[i] for i in known]
    n, total = len(pairs), len(a)
    count = sum(int(x) - int(y) for x, y in pairs)
    interval = statistics.paired_difference([x for x, _ in pairs], [y for _, y in pairs], seed=seed, clusters=own)
    low = sum(_least(x, 0) - _least(y, 1) for x, y in zip(a, b, strict=True))
    high = sum(_least(x, 1) - _least(y, 0) for x, y in zip(a, b, strict=True))
    return Metric(
        metric, dict(group), n, total - n, count, count / n if n else None, **interval.columns(),
        bound_low=low / total if total else None, bound_high=high / total if total else None, note=mark(n, note),
    )  # fmt: skip


def paired(a: Sequence[Graded], b: Sequence[Graded]) -> list[tuple[Item, Item]]:
    """The items of two runs about the cases that both were asked, repeat by repeat."""
    sides = [{(item.case, item.repeat): item for item in items(rows)} for rows in (a, b)]
    return [(sides[0][key], sides[1][key]) for key in sides[0] if key in sides[1]]


def gain(pairs: Sequence[tuple[Item, Item]], role: str, group: Mapping[str, Any], seed: int) -> Metric | None:
    """``pair_gain``: A - B on a role, of a step over the cases that have it; None where no case was asked by both."""
    if not any(role in x.rows and role in y.rows for x, y in pairs):
        return None
    pairs = [p for p in pairs if not role[5:].isdigit() or int(role[5:]) < max(item.n_parts for item in p)]  # part:N
    left, right = ([item.truth(role) for item in side] for side in zip(*pairs, strict=True))
    return difference("pair_gain", left, right, group, seed=seed, of=[x for x, _ in pairs])


def _least(value: Truth, otherwise: int) -> int:
    return otherwise if value is None else int(value)


def statistic(
    metric: str,
    columns: Sequence[Sequence[float]],
    function: Callable[[np.ndarray], np.ndarray],
    group: Mapping[str, Any],
    *,
    seed: int,
    n_invalid: int = 0,
    count: float | None = None,
    of: Sequence[Item] | None = None,
    clusters: Sequence[Hashable] | None = None,
    note: str | None = None,
    bounds: tuple[float | None, float | None] | None = None,
    possible: tuple[float, float] = (-math.inf, math.inf),
    skewed: bool = False,
    others: Sequence[Sequence[float]] = (),
    rates: tuple[ArrayLike, few_cases.Function] | None = None,
) -> Metric:
    """A function of column sums over cases with its bootstrap interval; value None where it is not finite.

    ``possible`` holds the least and the greatest value that the function can have; the interval ends there.
    ``skewed`` as in ``statistics.bootstrap``; ``others`` as in ``statistics.of_others``. Where the function is one of
    ``rates`` and cases share nothing, the interval reaches at least as far as ``few_cases.limits`` of them: a bootstrap
    knows only differences that it has seen.
    """
    clusters = clusters_of(of) if of is not None else clusters
    if not len(columns):
        low, high = bounds if bounds is not None else (None, None)
        return Metric(
            metric, dict(group), 0, n_invalid, count,
            interval="bootstrap", bound_low=low, bound_high=high, note=mark(0, note),
        )  # fmt: skip
    table = np.asarray(columns, dtype=float).reshape(len(columns), -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(function(table.sum(axis=0)))
    least = possible[0] if math.isfinite(possible[0]) and math.isinf(possible[1]) else None  # a ratio
    interval = statistics.bootstrap(table, function, seed=seed, clusters=clusters, least=least, skewed=skewed)
    if interval.low is None and len(others):
        interval = statistics.of_others(table, function, others, clusters)
    elif rates is not None and interval.method.startswith("bootstrap"):
        interval = interval.reaching(few_cases.limits(*rates))
    interval = interval.within(*possible)
    finite = value if np.isfinite(value) else None
    if finite is None:
        interval = statistics.Interval(None, None, interval.method)
    low, high = bounds if bounds is not None else (None, None) if n_invalid else (finite, finite)
    return Metric(
        metric, dict(group), len(table), n_invalid, count, finite, **interval.columns(),
        bound_low=low, bound_high=high, note=mark(len(table), note),
    )  # fmt: skip


def chance_inside(outcomes: Sequence[tuple[Truth, Truth]], items: Sequence[Item]) -> str | None:
    """``chance_note`` of the cases that pass a gate, from (gate, whole) of each case."""
    return chance_note([item for (gate, _), item in zip(outcomes, items, strict=True) if gate is True])


def chance_note(found: Sequence[Item]) -> str | None:
    """The expected rate of guessing over these cases, where the cases state it."""
    known = [item.first.chance for item in found if item.first.chance is not None]
    some = f", stated for {len(known)} of {len(found)} cases" if len(known) < len(found) else ""
    return f"a guess is right in {sum(known) / len(known):.1%}{some}" if known else None


def join(*notes: str | None) -> str | None:
    """Notes in one line."""
    return "; ".join(n for n in notes if n) or None
