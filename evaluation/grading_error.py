"""Bounds on a metric from the known error of the grading rules, beside the metric's interval.

On the labelled set the rules grade a few answers wrong (``MEASURED``). The upper limit of a 95 % interval per answer
type says how many answers of a run may be affected. This many answers are chosen by their hash and treated as
undecided. The bounds that the protocol then gives for undecided answers become ``grader_low`` and ``grader_high`` of
its metrics.
"""

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from . import statistics
from .asks import Ask
from .graded import Graded
from .metrics import Metric

_Answer = tuple[str | None, str | None]


def with_grader_bounds(
    metrics: Iterable[Metric],
    rows: Sequence[Graded],
    asks: Mapping[str, Ask],
    reduce: Callable[[Sequence[Graded]], Iterable[Metric]],
) -> list[Metric]:
    """The metrics with ``grader_low`` and ``grader_high`` where the protocol gives bounds at all.

    ``reduce`` counts rows as the metrics were counted. Costs one more count.
    """
    doubted = in_doubt(rows, asks)
    if not doubted:
        return list(metrics)
    open_ = [replace(row, outcome="invalid", reason="doubt") if _answer(row) in doubted else row for row in rows]
    bounds = {(m.metric, tuple(sorted(m.group.items()))): m for m in reduce(open_)}
    return [_bounded(m, bounds.get((m.metric, tuple(sorted(m.group.items()))))) for m in metrics]


def in_doubt(rows: Sequence[Graded], asks: Mapping[str, Ask]) -> set[_Answer]:
    """As many different answers as the rules may have graded wrongly, by answer type and outcome.

    Answers that a judge decided, or for which the rules need no reading, are not among them.
    """
    decided: dict[tuple[str, str], set[_Answer]] = defaultdict(set)
    for row in rows:
        ask = asks.get(row.ask or "")
        certain = (row.reason or "").startswith(("unknowable", "stops at", "compat"))
        if ask and row.match != "judge" and not certain:
            decided[ask.answer_type, row.outcome].add(_answer(row))
    found: set[_Answer] = set()
    for kind, counts in MEASURED.items():
        right, wrong = decided[kind, "correct"], decided[kind, "incorrect"]
        found |= _drawn(wrong, _upper(counts.false_minus, counts.right) * len(right))
        found |= _drawn(right, _upper(counts.false_plus, counts.wrong) * len(wrong))
    return found


def _answer(row: Graded) -> _Answer:
    return row.ask, row.gold


def _upper(errors: int, n: int) -> float:
    """Errors per answer that was not one, at most: the upper limit of the rate as odds."""
    high = statistics.clopper_pearson(errors, n).high
    return 0.0 if high is None else high / (1 - high)


def _drawn(answers: set[_Answer], expected: float) -> set[_Answer]:
    by_hash = sorted(answers, key=lambda a: hashlib.sha256(f"{a[0]}/{a[1]}".encode()).digest())
    return set(by_hash[: math.ceil(expected)])


def _bounded(metric: Metric, doubted: Metric | None) -> Metric:
    if doubted is None or doubted.bound_low is None or doubted.bound_high is None:
        return metric
    return replace(metric, grader_low=doubted.bound_low, grader_high=doubted.bound_high)


@dataclass(frozen=True)
class Counts:
    """What became of the labelled answers of one type."""

    right: int
    false_minus: int
    """Right answers that are graded incorrect or abstained."""
    wrong: int
    false_plus: int
    """Wrong answers that are graded correct."""
    invalid: int


MEASURED: dict[str, Counts] = {
    "boolean": Counts(right=171, false_minus=1, wrong=126, false_plus=0, invalid=54),
    "choice": Counts(right=126, false_minus=0, wrong=107, false_plus=0, invalid=36),
    "date": Counts(right=114, false_minus=2, wrong=86, false_plus=0, invalid=11),
    "list": Counts(right=43, false_minus=3, wrong=42, false_plus=0, invalid=7),
    "number": Counts(right=379, false_minus=3, wrong=310, false_plus=8, invalid=58),
    "ordered-list": Counts(right=23, false_minus=0, wrong=13, false_plus=0, invalid=1),
    "text": Counts(right=345, false_minus=3, wrong=300, false_plus=11, invalid=103),
}
