"""A judge model decides what the grading rules cannot decide, and checks wordings that they do not accept.

``second_opinions`` serves evaluations. The judge sees invalid answers of every type, and texts and lists that the
rules call incorrect; for all other types the rules decide. It also sees a sample of decided answers, which measures
how often judge and rules agree and changes no grade. The judge is greedy and its replies go into the journal. A reply
without a verdict makes the grade invalid, never wrong.

``agree`` serves builders: it says for each answer whether it is the gold answer, by the rules and then by a judge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from .asks import Ask, Grade, Response
from .engines.base import Engine, ReplayEngine, ask_all
from .grading import judge as judging
from .grading.grade import grade
from .grading.view import visible
from .journal import Journal, ask_identity

JUDGED = frozenset({"text", "list", "ordered-list"})
"""Answer types whose incorrect answers may be right in other words."""
SAMPLE = 50
"""Decided answers per round that the judge sees beside the open ones."""
_NOTHING = ("error", "empty", "unclosed-thinking")
"""Reasons of invalid grades that leave no answer to judge."""


@dataclass(frozen=True)
class JudgedGrades:
    """The grades after the judge, and how far it agrees with the rules on a sample of what these decided."""

    grades: list[Grade]
    agreed: int
    compared: int
    unseen: int
    """Open answers that a recorded judge was never asked about: they stay as the rules graded them."""


def second_opinions(graded: Sequence[tuple[Ask, Response, Grade]], judge: Engine, journal: Journal) -> JudgedGrades:
    """The grades after the judge has seen every open answer, in the same order, and its agreement with the rules."""
    open_ = [i for i, (ask, response, grade) in enumerate(graded) if _is_open(ask, response, grade)]
    sampled = _sample([i for i in range(len(graded)) if i not in {*open_}], graded)
    wanted = {i: _question(*graded[i]) for i in (*open_, *sampled)}
    if isinstance(judge, ReplayEngine):
        known = {*judge.failures}
        keys = {i: ask_identity(ask, judge.identity) for i, ask in wanted.items()}
        wanted = {i: ask for i, ask in wanted.items() if keys[i] in known or journal.get(keys[i]) is not None}
    replies = dict(zip(wanted, ask_all(judge, list(wanted.values()), journal), strict=True))
    said = {i: None if reply.finish_reason == "error" else reply.text for i, reply in replies.items()}
    final = [grade for _, _, grade in graded]
    for i in open_:
        if i in said:
            final[i] = judging.apply(final[i], said[i])
    verdicts = [(judging.verdict(said[i] or ""), final[i].outcome == "correct") for i in sampled if i in said]
    decided = [(theirs, ours) for theirs, ours in verdicts if theirs is not None]
    unseen = sum(i not in said for i in open_)
    return JudgedGrades(final, sum(theirs == ours for theirs, ours in decided), len(decided), unseen)


def _question(ask: Ask, response: Response, grade: Grade) -> Ask:
    asked = ask.question or ask.prompt
    if grade.outcome == "invalid" or ask.answer_type not in JUDGED:
        shown = judging.shortened(visible(response.text) or response.text)
        return judging.ask(ask.case, ask.role, asked, ask.gold, shown, aliases=ask.aliases, open_ended=True)
    answer = judging.shortened(grade.answer or "")
    return judging.ask(ask.case, ask.role, asked, ask.gold, answer, aliases=ask.aliases)


def _is_open(ask: Ask, response: Response, grade: Grade) -> bool:
    reason = grade.reason or ""
    if grade.outcome == "invalid":
        return bool(response.text.strip()) and not reason.startswith(_NOTHING)
    # where the rules say why (an answer to what nobody can know, a mere step, a paper's own rule), they decide
    decided = reason.startswith(("unknowable", "stops at", "compat"))
    return ask.answer_type in JUDGED and grade.outcome == "incorrect" and bool(grade.answer) and not decided


def _sample(decided: Sequence[int], graded: Sequence[tuple[Ask, Response, Grade]]) -> list[int]:
    """As many right as wrong answers, the same ones whenever the same answers are judged."""
    chosen: list[int] = []
    for outcome in ("correct", "incorrect"):
        alike = {graded[i][1].ask: i for i in decided if graded[i][2].outcome == outcome and graded[i][2].answer}
        chosen += [alike[key] for key in sorted(alike, key=lambda key: hashlib.sha256(key.encode()).digest())][
            : SAMPLE // 2
        ]
    return chosen


@dataclass(frozen=True)
class AnswerToJudge:
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
class JudgeVerdict:
    """A verdict and where it comes from."""

    right: bool | None
    """None: nobody could tell."""
    why: str


def agree(rows: Sequence[AnswerToJudge], judge: Engine | None, journal: Journal | None = None) -> list[JudgeVerdict]:
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
            verdicts[i] = JudgeVerdict(None, f"judge error: {response.error}")
        else:
            said = judging.verdict(response.text)
            verdicts[i] = JudgeVerdict(said, f"judge: {' '.join(response.text.split())[:500]}")
    return [verdicts[i] for i in range(len(rows))]


def _answer(row: AnswerToJudge, grade: Grade) -> str:
    """What the judge sees: the extracted answer, or the end of a response in which none was found."""
    if row.finish_reason in ("error", "length"):
        return ""
    return grade.answer or row.response.strip()[-1000:]


def _by_rules(grade: Grade) -> JudgeVerdict:
    right = {"correct": True, "incorrect": False, "abstained": False}.get(grade.outcome)
    return JudgeVerdict(right, f"rules: {grade.match or grade.reason or grade.outcome}")
