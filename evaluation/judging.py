"""A model as judge: its prompt and verdict, and which answers it sees. It decides what the grading rules cannot decide.

``second_opinions`` serves evaluations. The judge sees invalid answers of every type, and texts and lists that the
rules call incorrect; for all other types, and for programs, the rules decide. It also sees a sample of decided answers,
which measures how often judge and rules agree and changes no grade. The judge is greedy and its replies go into the
journal. A reply without a clear verdict makes the grade invalid, never wrong.

``agree`` serves builders: it says for each answer whether it is the gold answer, by the rules and then by a judge.
``agreement`` compares a judge's verdicts with people's labels.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from .asks import Ask, Grade, Response
from .engines.base import Engine, ReplayEngine, ask_all, with_thinking_open
from .grading.extract import CODE, PAIR_Q1
from .grading.grade import grade
from .grading.view import visible
from .journal import Journal, ask_identity
from .text_files import literal

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
# One point of ten, or a choice of words, says neither.
_LABELLED = re.compile(
    r"\b(?:final\s+)?(?:verdict|judge?ment|score|decision)\b[\"'*\s]*(?:is\b|:|=)[\"'*\s:]*"
    r"(?P<word>not\s+(?:correct|equivalent)|incorrect|correct|wrong|right|true|false|yes"
    r"|no(?![ \t]+answer)|[01](?:\.0)?)\b(?!\.?\d|[ \t]*(?:/|out of)(?![ \t]*1\b))",
    re.IGNORECASE,
)


def ask_judge(
    case: str,
    role: str,
    question: str,
    gold: str,
    answer: str,
    *,
    aliases: Sequence[str] = (),
    open_ended: bool = False,
) -> Ask:
    """The judge's ask about one answer; its role is the judged role with ``judge:`` before it.

    ``open_ended`` lets the judge say that there is no answer.
    """
    right = f"{gold} (also accepted: {'; '.join(aliases)})" if aliases else gold
    prompt = PROMPT.format(question=question, gold=right, answer=answer) + (_UNDECIDED if open_ended else "")
    return Ask(case, f"judge:{role}", prompt, gold="1", answer_type="number", max_tokens=256)


def without_thinking(reply: str) -> str:
    """The reply after its thinking; empty if the thinking never ended."""
    if "</think>" in reply:
        return reply.rsplit("</think>", 1)[1]
    return "" if reply.lstrip().startswith("<think>") else reply


def shortened(answer: str) -> str:
    """An answer as the judge sees it: the middle of a long one is replaced by a note of its length."""
    if len(answer) <= 2 * _SHOWN:
        return answer
    return f"{answer[:_SHOWN]}\n[... {len(answer) - 2 * _SHOWN} characters left out ...]\n{answer[-_SHOWN:]}"


def verdict(reply: str) -> bool | None:
    """True for right, False for wrong, None where a reply does not say, or says both.

    Three forms are read: a JSON object (also fenced, single-quoted, or broken after the score), a labelled verdict
    ("Verdict: correct"), and a line that consists of the verdict alone. Prose that mentions such words is not read.
    """
    text = without_thinking(reply)
    for found in (_objects(text), _fields(text), [word(m["word"]) for m in _LABELLED.finditer(text)]):
        if found:
            return found[0] if len(set(found)) == 1 else None
    lines = [re.sub(r"[\"'`*.!\s]+", " ", line).strip() for line in text.splitlines() if line.strip()]
    # a line with a number alone may be a mark of a list
    alone = {word(line) for line in lines if len(lines) == 1 or not line.isdigit()} - {None}
    return alone.pop() if len(alone) == 1 else None


def word(value: object) -> bool | None:
    """What one word of a judge or a person says: right or wrong; None for any other."""
    text = " ".join(str(value).strip().casefold().split())
    return True if text in _YES else False if text in _NO else None


def _objects(text: str) -> list[bool | None]:
    found: list[bool | None] = []
    for m in re.finditer(r"\{[^{}]*\}", text, re.DOTALL):
        loaded = literal(m[0], dict)
        if loaded is not None:
            found += [word(loaded[k]) for k in loaded if str(k).casefold() in _FIELDS]
    return found


def _fields(text: str) -> list[bool | None]:
    """Scores of an object that is broken elsewhere (quotes or braces inside its justification)."""
    pattern = rf"[\"'](?:{'|'.join(_FIELDS)})[\"']\s*:\s*[\"']?([A-Za-z0-9. ]+?)[\"']?\s*(?=[,}}\n]|$)"
    return [word(v) for v in re.findall(pattern, text, re.IGNORECASE)]


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


JUDGED = frozenset({"text", "list", "ordered-list"})
"""Answer types whose incorrect answers may be right in other words."""
ROOM = 2048
"""Tokens for the second try of a judge whose first reply was cut off: room to think."""
SAMPLE = 50
"""Decided answers per round that the judge sees beside the open ones."""
_NOTHING = ("error", "empty", "unclosed-thinking")
"""Reasons of invalid grades that leave no answer to judge."""


@dataclass(frozen=True)
class JudgedGrades:
    """The grades after the judge, and how far it agrees with the rules on a sample of what these decided."""

    grades: list[Grade]
    sample: tuple[tuple[str, bool], ...]
    """The case of each answer of the sample on which the judge has a verdict, and whether this is that of the rules."""
    unseen: int
    """Open answers that a recorded judge was never asked about: they stay as the rules graded them."""


def second_opinions(graded: Sequence[tuple[Ask, Response, Grade]], judge: Engine, journal: Journal) -> JudgedGrades:
    """The grades after the judge has seen every open answer, in the same order, and its agreement with the rules."""
    open_ = [i for i, (ask, response, grade) in enumerate(graded) if _is_open(ask, response, grade)]
    of_rules = [i for i in range(len(graded)) if i not in {*open_} and graded[i][0].format != CODE]
    sampled = _sample(of_rules, graded)
    replies = put(judge, {i: _question(*graded[i]) for i in (*open_, *sampled)}, journal)
    said = {i: None if reply.finish_reason == "error" else reply.text for i, reply in replies.items()}
    final = [grade for _, _, grade in graded]
    for i in open_:
        if i in said:
            final[i] = apply(final[i], said[i])
    verdicts = {i: verdict(said[i] or "") for i in sampled if i in said}
    decided = [
        (graded[i][0].case, theirs == (final[i].outcome == "correct"))
        for i, theirs in verdicts.items()
        if theirs is not None
    ]
    return JudgedGrades(final, tuple(decided), sum(i not in said for i in open_))


def put(judge: Engine, wanted: Mapping[int, Ask], journal: Journal | None = None) -> dict[int, Response]:
    """The judge's replies by number. One that was cut off before its verdict is asked for again, with room to think."""
    found = _put(judge, wanted, journal)
    cut = [i for i, reply in found.items() if reply.finish_reason == "length" and verdict(reply.text) is None]
    again = _put(judge, {i: replace(wanted[i], max_tokens=ROOM) for i in cut}, journal)
    # a judge whose context has no such room has answered: without a verdict
    return found | {i: reply for i, reply in again.items() if reply.finish_reason != "error"}


def _put(judge: Engine, asks: Mapping[int, Ask], journal: Journal | None) -> dict[int, Response]:
    """The replies; of a recorded judge those that there are."""
    if isinstance(judge, ReplayEngine):
        keys = {i: ask_identity(ask, judge.identity) for i, ask in asks.items()}
        asks = {i: a for i, a in asks.items() if keys[i] in judge.failures or (journal and journal.get(keys[i]))}
    return dict(zip(asks, ask_all(judge, list(asks.values()), journal), strict=True))


def _question(ask: Ask, response: Response, grade: Grade) -> Ask:
    whole = grade.outcome == "invalid" or ask.answer_type not in JUDGED
    shown = shortened(visible(response.text) or response.text if whole else grade.answer or "")
    return ask_judge(ask.case, ask.role, asked_of(ask), ask.gold, shown, aliases=ask.aliases, open_ended=whole)


def asked_of(ask: Ask) -> str:
    """The question; of two in one prompt, with a word about the one whose answer is graded."""
    asked = ask.question or ask.prompt
    graded = "Q1" if ask.format == PAIR_Q1 else "Q2" if ask.role.endswith("co-presented") else None
    return asked if graded is None else f"{asked}\n(The right answer is that of {graded}; compare no other answer.)"


def _is_open(ask: Ask, response: Response, grade: Grade) -> bool:
    reason = grade.reason or ""
    if ask.format == CODE:  # what a program comes to is not to be seen from its text
        return False
    if grade.outcome == "invalid":
        thought = visible(with_thinking_open(ask, response)) is None
        return bool(response.text.strip()) and not thought and not reason.startswith(_NOTHING)
    # where the rules say why (an answer to what nobody can know, a mere step, a paper's own rule), they decide
    decided = reason.startswith(("unknowable", "stops at", "compat"))
    return ask.answer_type in JUDGED and grade.outcome == "incorrect" and bool(grade.answer) and not decided


def _sample(decided: Sequence[int], graded: Sequence[tuple[Ask, Response, Grade]]) -> list[int]:
    """As many right as wrong answers, the same ones whenever the same answers are judged."""
    chosen: list[int] = []
    for outcome in ("correct", "incorrect"):
        alike = {graded[i][1].ask: i for i in decided if graded[i][2].outcome == outcome and graded[i][2].answer}
        drawn = sorted(alike, key=lambda key: hashlib.sha256(key.encode()).digest())
        chosen += [alike[key] for key in drawn[: SAMPLE // 2]]
    return chosen


@dataclass(frozen=True)
class JudgeVerdict:
    """A verdict and where it comes from."""

    right: bool | None
    """None: nobody could tell."""
    why: str


def by_rules(ask: Ask, response: Response) -> Grade:
    """The grade of a response by the rules alone."""
    return grade(
        response.text, response.finish_reason, ask.gold, ask.answer_type, ask.aliases, ask.format, options=ask.options,
        question=ask.question,
    )  # fmt: skip


def agree(
    answers: Sequence[tuple[Ask, Response]], judge: Engine | None, journal: Journal | None = None
) -> list[JudgeVerdict]:
    """A verdict for each answer.

    What the rules call correct is right. Everything else that has an answer goes to the judge, if there is one; its
    replies without a verdict leave the answer undecided. Without a judge the rules' "incorrect" is wrong.
    """
    grades = [by_rules(ask, response) for ask, response in answers]
    right = {"correct": True, "incorrect": False, "abstained": False}
    verdicts = [JudgeVerdict(right.get(g.outcome), f"rules: {g.match or g.reason or g.outcome}") for g in grades]
    if judge is None:
        return verdicts
    asks = {}
    for i, (g, (ask, response)) in enumerate(zip(grades, answers, strict=True)):
        if g.outcome in ("incorrect", "invalid") and (shown := _answer(response, g)):
            asks[i] = ask_judge(ask.case, ask.role, asked_of(ask), ask.gold, shown, aliases=ask.aliases)
    for i, response in put(judge, asks, journal).items():
        if response.finish_reason == "error":
            verdicts[i] = JudgeVerdict(None, f"judge error: {response.error}")
        else:
            verdicts[i] = JudgeVerdict(verdict(response.text), f"judge: {' '.join(response.text.split())[:500]}")
    return verdicts


def _answer(response: Response, grade: Grade) -> str:
    """What the judge sees: the extracted answer, or the end of a response in which none was found."""
    return grade.answer or response.text.strip()[-1000:] if response.finish_reason == "stop" else ""
