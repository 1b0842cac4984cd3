"""The working in a response: its steps, the values written in it, what introduces the final answer, and that answer.

    read_working(tokenizer, example, eos_ids, {"part:0": ["Norway", "Peru"]})

Every place is an offset in the generated ids, so a text that is cut or continued begins with exactly what the model
wrote. Nothing is guessed: if something cannot be found, the result is the reason, as text.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...errors import InputError
from ...evaluation.asks import Grade
from ...evaluation.engines.base import cut_after_stop
from ...evaluation.engines.text import decode, special_thinking_marks, verbatim
from ...evaluation.grading.extract import extract
from ...evaluation.grading.text import same
from ..answer_spans import Span, answer_span
from ..examples import Example, Gold
from ..slots import token_span

What = Literal["bridge", "operand", "result"]
Ids = tuple[int, ...]
NO_ANSWER, NO_PLACE, NO_WORKING = "no final answer", "the final answer was not located", "no written working"
THOUGHT = "the working is thinking in marks, which cannot be cut without closing them"
_STEP_END = re.compile(r"(?<=[.!?;])\s+(?=\S)|\n+|(?=</)|[。！？]")
_SUM = re.compile(
    r"(?<![\d.,])(?P<a>\d+)\s*(?P<operation>plus|minus|times|divided by|[-+*/×÷−])\s*(?P<b>\d+)\s*(?:is|equals|=)\s*"
    r"(?P<result>\d+)(?![\d]|[.,]\d)"
)
_CHAIN = re.compile(r"(?:[\w)\]%][^\S\n]*(?:plus|minus|times|divided by|[-+*/×÷−])\s*|[-−])$")
"""What stands before the last two numbers of a longer sum, and the sign of a negative one."""


@dataclass(frozen=True)
class Written:
    """A value in the working from which the answer may have been computed."""

    what: What
    """``bridge``: the answer of a part; ``operand``: of the sum that gives the answer; ``result``: the answer itself,
    written before it is given as the final one."""
    role: str
    """``part:0``, ...; of an operand ``a`` or ``b``; of a result ``whole``."""
    value: str
    first: int
    """Response tokens before it."""
    end: int
    """Response tokens through it."""
    lead: str
    """What its first token holds before it, white space mostly."""
    sum: tuple[str, str, str] | None = None
    """Of an operand: both operands with the operation between them."""


@dataclass(frozen=True)
class Working:
    """A response taken apart."""

    answer: str
    """The final answer, as it was graded."""
    steps: tuple[int, ...]
    """Response tokens through each step, in order; at least one."""
    closing: Ids
    """The model's own tokens between working and answer ("So the final answer is:")."""
    written: tuple[Written, ...]

    @property
    def through(self) -> int:
        """Response tokens through all of the working."""
        return self.steps[-1]


def said(tokenizer: Any, ids: Sequence[int], eos_ids: Collection[int], gold: Gold) -> tuple[str, str]:
    """The text of a response, and why it ended."""
    text = decode(tokenizer, ids, eos_ids, special_thinking_marks(tokenizer))
    kept, stopped = cut_after_stop(text, gold.stop, opened=gold.thinking)
    return kept, "stop" if stopped or (ids and ids[-1] in eos_ids) else "length"


def judged(text: str, reason: str, gold: Gold, wanted: str | None = None) -> Grade:
    """The grade of a response by its own gold answer, or by another answer of the same type."""
    other = {} if wanted is None else {"answer": wanted, "aliases": ()}
    try:
        return replace(gold, unknowable=False, **other).grade(text, reason)
    except InputError as e:  # an answer of another type than the gold one cannot be compared with
        return Grade("invalid", None, None, str(e))


def read_working(
    tokenizer: Any, e: Example, eos_ids: Collection[int], like: Mapping[str, Sequence[str]]
) -> Working | str:
    """A response taken apart, or why it cannot be.

    ``like``: for each part (``part:0``), the values that may be written for it, the case's own first; another value
    counts only if it is the only one that is written.
    """
    if e.gold is None:
        return "no gold answer to read the response by"
    text, reason = said(tokenizer, e.response_ids, eos_ids, e.gold)
    found = judged(text, reason, e.gold)
    if found.answer is None or found.outcome in ("invalid", "abstained"):
        return f"{NO_ANSWER} ({found.reason or found.outcome})"
    place = _answer_place(tokenizer, e, text, reason, found)
    if place is None:
        return NO_PLACE
    at, body = place
    if "</think>" in body:
        return THOUGHT
    full = decode(tokenizer, e.response_ids, eos_ids, special_thinking_marks(tokenizer))
    spans = _values(body, full, found.answer, like)
    ends = [m.end() for m in _STEP_END.finditer(body) if body[: m.start()].strip()]
    begins = max(ends, default=0)
    inside = [stop for (_, stop), *_ in spans if stop > begins]
    ends += inside
    begins = max(inside, default=begins)
    if begins == 0 or not re.search(r"\w", body[:begins]):
        return NO_WORKING
    steps = sorted({n for n in (_token_at(tokenizer, e.response_ids, full, c, at) for c in ends) if n})
    through = _token_at(tokenizer, e.response_ids, full, begins, at)
    if not through or through not in steps:
        return NO_PLACE
    written = [_written(tokenizer, e.response_ids, full, *one) for one in spans]
    closing = tuple(e.response_ids[through:at])
    kept = tuple(x for x in written if x is not None)
    return Working(found.answer, tuple(n for n in steps if n <= through), closing, kept)


def _answer_place(tokenizer: Any, e: Example, text: str, reason: str, found: Grade) -> tuple[int, str] | None:
    """Response tokens before the final answer, and their text."""
    assert e.gold is not None
    segments = extract(text, e.gold.format, reason)
    golds = (e.gold.answer, *e.gold.aliases) if found.outcome == "correct" else ()
    span = answer_span(
        text, found.answer, e.gold.answer_type, golds=golds, question=question_of(tokenizer, e),
        segments=segments.segments, cued=segments.cued,
    )  # fmt: skip
    tokens = None if span is None else token_span(tokenizer, e.response_ids, span, special_thinking_marks(tokenizer))
    return None if tokens is None else (tokens.first, text[: tokens.characters])


def question_of(tokenizer: Any, e: Example) -> str:
    """The question's own text."""
    return verbatim(tokenizer, e.prompt_ids[slice(*e.question_span)]).strip()


def every(value: str, text: str) -> list[Span]:
    """All places where a value stands as words of its own; one letter (of an option) only as it is."""
    value = value.strip()
    if not value:
        return []
    case = re.NOFLAG if len(value) == 1 else re.IGNORECASE
    found = re.finditer(rf"(?<!\w)(?<!\d[.,]){re.escape(value)}(?!\w)(?![.,]\d)", text, case)
    return [m.span() for m in found]


Found = tuple[Span, What, str, str, tuple[str, str, str] | None]
"""Place, what it is, role, value, sum."""


def _values(body: str, full: str, answer: str, like: Mapping[str, Sequence[str]]) -> list[Found]:
    """The values in the text before the answer, each where it is first written."""
    out: list[Found] = []
    for role, names in like.items():
        own = names[0]
        others = {n.casefold(): n for n in names[1:] if not same(n, own)}.values()  # cases may have equal answers
        there = [own] if every(own, body) else [n for n in others if every(n, body)]
        if len(there) == 1 and not same(there[0], answer):
            out.append((every(there[0], body)[0], "bridge", role, there[0], None))
    sums = [m for m in _SUM.finditer(full) if m.end("b") <= len(body) and same(m["result"], answer)
            and not _CHAIN.search(full[: m.start()])]  # fmt: skip
    for name in ("a", "b") if sums else ():
        m = sums[-1]
        if all(m.span(name) != span for span, *_ in out):
            out.append((m.span(name), "operand", name, m[name], (m["a"], m["operation"], m["b"])))
    last = every(answer, body)[-1:]
    if last and all(last[0] != span for span, *_ in out):
        out.append((last[0], "result", "whole", answer, None))
    return out


def _token_at(tokenizer: Any, ids: Ids, full: str, character: int, most: int) -> int | None:
    """Response tokens before the first character that is no white space, at most so many."""
    start = next((i for i in range(character, len(full)) if not full[i].isspace()), None)
    if start is None:
        return most
    found = token_span(tokenizer, ids, (start, start + 1), special_thinking_marks(tokenizer))
    return None if found is None else min(found.first, most)


def _written(
    tokenizer: Any, ids: Ids, full: str, span: Span, what: What, role: str, value: str, sum: tuple[str, str, str] | None
) -> Written | None:
    """The value with its tokens; None if they hold more text behind it."""
    marks = special_thinking_marks(tokenizer)
    found = token_span(tokenizer, ids, span, marks)
    if found is None or len(decode(tokenizer, ids[: found.end], (), marks)) != span[1]:
        return None
    return Written(what, role, value, found.first, found.end, full[found.characters : span[0]], sum)
