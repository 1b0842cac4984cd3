"""Whether answers are gold answers: by the rules first, and by a judge where the rules find no match."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..asks import Grade
from ..engines.base import Engine
from ..grading import judge as judging
from ..grading.grade import grade
from ..journal import Journal
from .asking import ask_all


@dataclass(frozen=True)
class Comparison:
    """One answer to compare with its gold answer."""

    case: str
    role: str
    question: str
    gold: str
    answer_type: str
    response: str
    format: str = "plain"
    finish_reason: str = "stop"


@dataclass(frozen=True)
class Agreement:
    """A verdict and where it comes from."""

    right: bool | None
    """None: nobody could tell."""
    why: str


def agree(rows: Sequence[Comparison], judge: Engine | None, journal: Journal | None = None) -> list[Agreement]:
    """A verdict for each row.

    What the rules call correct is right. Everything else that has an answer goes to the judge, if there is one; its
    replies without a verdict leave the row undecided. Without a judge the rules' "incorrect" is wrong.
    """
    grades = [grade(r.response, r.finish_reason, r.gold, r.answer_type, format=r.format) for r in rows]
    verdicts = {i: _by_rules(g) for i, g in enumerate(grades)}
    if judge is None:
        return [verdicts[i] for i in range(len(rows))]
    open_ = [i for i, g in enumerate(grades) if g.outcome in ("incorrect", "invalid") and _answer(rows[i], g)]
    asks = [
        judging.ask(rows[i].case, rows[i].role, rows[i].question, rows[i].gold, _answer(rows[i], grades[i]))
        for i in open_
    ]
    for i, response in zip(open_, ask_all(judge, asks, journal), strict=True):
        if response.finish_reason == "error":
            verdicts[i] = Agreement(None, f"judge error: {response.error}")
        else:
            said = judging.verdict(response.text)
            verdicts[i] = Agreement(said, f"judge: {' '.join(response.text.split())[:500]}")
    return [verdicts[i] for i in range(len(rows))]


def _answer(row: Comparison, grade: Grade) -> str:
    """What the judge sees: the extracted answer, or the end of a response in which none was found."""
    if row.finish_reason in ("error", "length"):
        return ""
    return grade.answer or row.response.strip()[-1000:]


def _by_rules(grade: Grade) -> Agreement:
    right = {"correct": True, "incorrect": False, "abstained": False}.get(grade.outcome)
    return Agreement(right, f"rules: {grade.match or grade.reason or grade.outcome}")
