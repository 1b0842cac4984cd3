"""A second opinion on answers in words: what the rules do not accept is put to a judge model.

Only texts and lists are judged: for numbers, dates and yes or no the rules decide. The judge is greedy, its replies go
into the journal, and a reply without a verdict makes the grade invalid, never wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from .asks import Ask, Grade
from .builders.asking import ask_all
from .engines.base import Engine
from .grading import judge as judging
from .journal import Journal

JUDGED = frozenset({"text", "list", "ordered-list"})


def second_opinions(graded: Sequence[tuple[Ask, Grade]], judge: Engine, journal: Journal) -> list[Grade]:
    """The grades after the judge has seen every answer that the rules call incorrect, in the same order."""
    open_ = [i for i, (ask, grade) in enumerate(graded) if _is_open(ask, grade)]
    wanted = [
        judging.ask(ask.case, ask.role, ask.question or ask.prompt, ask.gold, grade.answer or "")
        for ask, grade in (graded[i] for i in open_)
    ]
    final = [grade for _, grade in graded]
    for i, reply in zip(open_, ask_all(judge, wanted, journal), strict=True):
        final[i] = judging.apply(final[i], None if reply.finish_reason == "error" else reply.text)
    return final


def _is_open(ask: Ask, grade: Grade) -> bool:
    # where the rules say why (an answer to what nobody can know, a mere step, a paper's own rule), they decide
    decided = (grade.reason or "").startswith(("unknowable", "stops at", "compat"))
    return ask.answer_type in JUDGED and grade.outcome == "incorrect" and bool(grade.answer) and not decided
