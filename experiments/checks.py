"""What a run is checked for beside its protocol's metrics: math-verify's second opinion on numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..evaluation import statistics
from ..evaluation.asks import Ask
from ..evaluation.grading import mathematics
from ..evaluation.metrics import Metric, mark
from ..evaluation.protocols.base import Graded

MOST = 1000
"""Different answers that are judged again: each one takes about a millisecond."""
SHOWN = 3


def second_opinion(rows: Sequence[Graded], asks: Mapping[str, Ask], most: int = MOST) -> tuple[list[Metric], list[str]]:
    """``math_verify_disagreement``: share of the different numeric answers on which math-verify's verdict is another.

    Over the first ``most`` different (answer, gold) pairs of asks for a number. Nothing outside the main thread, where
    math-verify cannot limit its time, and for runs without numbers.
    """
    numeric = [row for row in rows if row.ask in asks and asks[str(row.ask)].answer_type == "number"]
    numeric = [row for row in numeric if not (row.reason or "").startswith("compat")]
    different = list({(row.answer, row.gold, row.outcome): row for row in numeric}.values())
    if not different or not mathematics.available_here():
        return [], []
    found = mathematics.second_opinion_on(different[:most])
    k, n = len(found.disagreements), found.n
    interval = statistics.clopper_pearson(k, n)
    notes = ["of different answers"]
    if found.n_unread:
        notes.append(f"{found.n_unread} that math-verify cannot read")
    if len(different) > most:
        notes.append(f"the first {most} of {len(different)}")
    metric = Metric(
        "math_verify_disagreement",
        n=n,
        count=k,
        value=found.rate,
        interval=interval.method,
        low=interval.low,
        high=interval.high,
        note=mark(n, "; ".join(notes)),
    )
    if not k:
        return [metric], []
    shown = ", ".join(_shown(*d) for d in found.disagreements[:SHOWN])
    return [metric], [f"math-verify disagrees on {k} of {n} different numeric answers: {shown}"]


def _shown(answer: str, gold: str, ours: bool) -> str:
    return f"{answer!r} for {gold!r} (ours: {'right' if ours else 'wrong'})"
