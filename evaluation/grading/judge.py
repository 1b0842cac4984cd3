"""A model as judge: its prompt, its verdict, and its agreement with people.

A reply that gives no clear verdict makes the grade invalid; it is never read as "wrong".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..asks import Ask, Grade
from .view import object_in

PROMPT = """You compare a given answer with the right answer to a question.
Accept other wordings, formats and units of the same value, number words for numerals, and short forms of a name that \
can mean nothing else. Reject another value or entity, a part of what is asked, and more than one answer.

Question: {question}
Right answer: {gold}
Given answer: {answer}

Reply with one JSON object: {{"score": 1}} if the given answer is right, {{"score": 0}} if it is wrong."""
_UNDECIDED = ' Reply {"score": null} if it gives no answer, or ends before it gives one.'
_SHOWN = 1500
"""Characters at either end of a long answer that the judge sees."""

_YES = {"1", "1.0", "true", "yes", "correct", "right", "equivalent", "match"}
_NO = {"0", "0.0", "false", "no", "incorrect", "wrong", "not equivalent", "not correct"}
_FIELDS = ("score", "verdict", "correct", "judgement", "judgment", "decision", "result")
_LABELLED = re.compile(
    r"\b(?:final\s+)?(?:verdict|judge?ment|score|decision)\b[\"'*\s]*(?:is\b|:|=)[\"'*\s:]*"
    r"(?P<word>not\s+(?:correct|equivalent)|incorrect|correct|wrong|right|true|false|yes|no|1(?:\.0)?|0(?:\.0)?)\b(?!\.?\d)",
    re.IGNORECASE,
)


def ask(
    case: str,
    role: str,
    question: str,
    gold: str,
    answer: str,
    max_tokens: int = 256,
    *,
    aliases: Sequence[str] = (),
    open_ended: bool = False,
) -> Ask:
    """The judge's ask about one answer; its role is the judged role with ``judge:`` before it.

    ``open_ended`` lets the judge say that there is no answer.
    """
    right = f"{gold} (also accepted: {'; '.join(aliases)})" if aliases else gold
    prompt = PROMPT.format(question=question, gold=right, answer=answer) + (_UNDECIDED if open_ended else "")
    return Ask(case, f"judge:{role}", prompt, gold="1", answer_type="number", max_tokens=max_tokens)


def shortened(answer: str) -> str:
    """An answer as the judge sees it: the middle of a long one is replaced by a note of its length."""
    if len(answer) <= 2 * _SHOWN:
        return answer
    return f"{answer[:_SHOWN]}\n[... {len(answer) - 2 * _SHOWN} characters left out ...]\n{answer[-_SHOWN:]}"


def verdict(reply: str) -> bool | None:
    """True for right, False for wrong, None where a reply does not say, or says both.

    Three forms are read: a JSON object (also fenced, single-quoted, or broken after the score), a labelled verdict
    ("Verdict: correct"), and a reply that consists of the verdict alone. Prose that mentions such words is not read.
    """
    closed = reply.rfind("</think>")
    text = reply[closed + len("</think>") :] if closed >= 0 else reply
    if closed < 0 and text.lstrip().startswith("<think>"):
        return None
    for found in (_objects(text), _fields(text), [_word(m["word"]) for m in _LABELLED.finditer(text)]):
        if found:
            return found[0] if len(set(found)) == 1 else None
    return _word(re.sub(r"[\"'`*.!\s]+", " ", text))


def _word(value: object) -> bool | None:
    text = " ".join(str(value).strip().casefold().split())
    return True if text in _YES else False if text in _NO else None


def _objects(text: str) -> list[bool | None]:
    found: list[bool | None] = []
    for m in re.finditer(r"\{[^{}]*\}", text, re.DOTALL):
        loaded = object_in(m[0])
        if loaded is not None:
            found += [_word(loaded[k]) for k in loaded if str(k).casefold() in _FIELDS]
    return found


def _fields(text: str) -> list[bool | None]:
    """Scores of an object that is broken elsewhere (quotes or braces inside its justification)."""
    pattern = rf"[\"'](?:{'|'.join(_FIELDS)})[\"']\s*:\s*[\"']?([A-Za-z0-9. ]+?)[\"']?\s*(?=[,}}\n]|$)"
    return [_word(v) for v in re.findall(pattern, text, re.IGNORECASE)]


def apply(grade: Grade, reply: str | None) -> Grade:
    """The grade after a judge's reply; None stands for a missing reply.

    An invalid grade without a clear verdict stays unchanged, and so does every abstention.
    """
    if grade.outcome == "abstained":
        return grade
    said = None if reply is None else verdict(reply)
    if said is None and grade.outcome == "invalid":
        return grade
    if reply is None:
        return Grade("invalid", grade.answer, "judge", "judge-error")
    if said is None:
        return Grade("invalid", grade.answer, "judge", "judge-parse")
    return Grade("correct" if said else "incorrect", grade.answer, "judge")


@dataclass(frozen=True)
class JudgeAgreement:
    """A judge against human labels."""

    n: int
    n_unjudged: int
    both_right: int
    judge_only: int
    human_only: int
    both_wrong: int

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None where one of the two always says the same."""
        from sklearn.metrics import cohen_kappa_score

        cells = ((1, 1, self.both_right), (1, 0, self.judge_only), (0, 1, self.human_only), (0, 0, self.both_wrong))
        judge = [j for j, _, k in cells for _ in range(k)]
        human = [h for _, h, k in cells for _ in range(k)]
        return float(cohen_kappa_score(judge, human)) if len(set(judge)) > 1 and len(set(human)) > 1 else None


def agreement(pairs: Iterable[tuple[bool | None, bool]]) -> JudgeAgreement:
    """Confusion of (judge's verdict, human label) pairs; verdicts of None are counted as unjudged."""
    rows: Sequence[tuple[bool | None, bool]] = list(pairs)
    cells = {(j, h): sum(r == (j, h) for r in rows) for j in (True, False) for h in (True, False)}
    unjudged = sum(j is None for j, _ in rows)
    return JudgeAgreement(
        len(rows) - unjudged, unjudged, cells[True, True], cells[True, False], cells[False, True], cells[False, False]
    )
