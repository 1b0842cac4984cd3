"""The answer slot of a graded response: the token that begins the answer, and the gold answer at that place.

The ids are the generated ones; text is decoded from them. Only the gold answer is tokenized.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..evaluation.asks import Ask, Response
from ..evaluation.engines.text import decode, special_thinking_marks, verbatim
from ..evaluation.grading.extract import CODE, extract
from .answer_spans import Span, answer_span

Ids = tuple[int, ...]
Said = tuple[str, str | None]
"""Outcome of a graded ask, and the text that the grader took for the answer."""
_NEAR = 8
"""Tokens around a guess: a character has at most four, and texts that end in an unfinished one are no prefixes."""
_PIECE = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")
_CONTEXT = 40
"""Characters before an answer that decide how its first token is cut."""


@dataclass(frozen=True)
class Slot:
    """Where a response's answer begins."""

    offset: int
    """Response tokens before the one that begins the answer."""
    answer_ids: Ids | None = None
    """The answer as it is scored there: as written if it was right, otherwise the gold answer; None: ``answer_ids``."""
    separators: int = 0
    """First tokens of this answer that are white space alone."""


AT_ONCE = Slot(0)


class Exchange(NamedTuple):
    """One ask with its response and grade."""

    ask: Ask
    response: Response
    prompt: str
    """As text that tokenizes to the ids that were fed."""
    question: str
    """The question's own wording."""


class Tokens(NamedTuple):
    """Tokens of a response that hold a stretch of its text."""

    first: int
    end: int
    """Half-open."""
    characters: int
    """Of the tokens before the first."""


def locate(tokenizer: Any, encode: Callable[[str], Ids], asked: Exchange, said: Said) -> Slot | None:
    """The slot of a response; None if its answer, or the gold answer in its place, cannot be located.

    A right answer is scored as written; otherwise the gold answer is scored after the text before the slot.
    """
    ask, response = asked.ask, asked.response
    ids, (outcome, answer) = tuple(response.response_ids or ()), said
    if ask.format == CODE or outcome == "invalid":
        return None
    kept = special_thinking_marks(tokenizer)
    whole = decode(tokenizer, ids, (), kept)
    if not whole.startswith(response.text):
        return None
    right = outcome == "correct"
    segments = extract(response.text, ask.format, response.finish_reason)
    span = answer_span(
        response.text, answer or (ask.gold if right else None), ask.answer_type,
        golds=(ask.gold, *ask.aliases) if right else (), question=asked.question,
        segments=segments.segments, cued=segments.cued,
    )  # fmt: skip
    found = None if span is None else token_span(tokenizer, ids, span, kept)
    if span is None or found is None:
        return None
    if right:
        return Slot(found.first, ids[found.first : found.end])
    lead = response.text[found.characters : span[0]]
    fed = (*(response.prompt_ids or ()), *ids[: found.first])
    written = continued(encode, asked.prompt + whole[: found.characters], fed, lead + ask.gold)
    back = verbatim(tokenizer, written)
    if "".join(back.split()) != "".join((lead + ask.gold).split()):
        return None
    return Slot(found.first, written, separators(tokenizer, written))


def separators(tokenizer: Any, answer: Ids) -> int:
    """First tokens of an answer that are only white space; at least one token is left."""
    n = 0
    while n < len(answer) - 1 and not tokenizer.decode([answer[n]]).strip():
        n += 1
    return n


def token_span(tokenizer: Any, ids: Sequence[int], span: Span, kept: Mapping[int, str] | None = None) -> Tokens | None:
    """Tokens of a response that hold characters ``span`` of its text; None if that cannot be told.

    The text is ``decode(tokenizer, ids, (), kept)``, special tokens left out; the tokens are those from the first byte
    of the first character through the last byte of the last one.
    """
    whole = decode(tokenizer, ids, (), kept)
    if not 0 <= span[0] < span[1] <= len(whole):
        return None
    start, last = (_before(tokenizer, ids, whole, character, kept) for character in (span[0], span[1] - 1))
    if start is None or last is None:
        return None
    end = max(start[0], last[0]) + 1
    while end < len(ids) and (through := decode(tokenizer, ids[:end], (), kept)).endswith("\ufffd"):
        if through.startswith(whole[: span[1]]):
            break
        end += 1
    return Tokens(start[0], end, start[1])


def _before(
    tokenizer: Any, ids: Sequence[int], whole: str, character: int, kept: Mapping[int, str] | None
) -> tuple[int, int] | None:
    """How many tokens end at or before a character (the next one holds it), and how many characters these tokens
    have."""

    def text(n: int) -> str:
        return decode(tokenizer, ids[:n], (), kept)

    low, high = 0, len(ids) - 1
    while low < high:  # texts of prefixes grow, but for unfinished characters
        middle = (low + high + 1) // 2
        low, high = (middle, high) if len(text(middle)) <= character else (low, middle - 1)
    for n in range(min(len(ids) - 1, low + _NEAR), max(0, low - _NEAR) - 1, -1):
        before = text(n)
        # In the middle of a character, and where a decoder rewrites what it wrote, the text is no prefix.
        if len(before) <= character and whole.startswith(before):
            return n, len(before)
    return None


def continued(encode: Callable[[str], Ids], context: str, ids: Collection[int], written: str) -> Ids:
    """Token ids of a text that follows others, tokenized in its context."""
    full = encode(context + written)
    if full[: len(ids)] == tuple(ids):
        return full[len(ids) :]
    # The tokenizer would write the generated text with other tokens: a piece of the context shows how it is cut.
    near = context[-_CONTEXT:]
    before, through = encode(near), encode(near + written)
    return through[len(before) :] if through[: len(before)] == before else ()


def in_worked_form(worked: str, said: str) -> bool:
    """Whether a response writes its working as the worked answer does: it begins in the same way, with as many
    numbers."""
    shapes = [["#" if p[0].isdigit() else p.casefold() for p in _PIECE.findall(t)] for t in (worked, said)]
    return shapes[0][:1] == shapes[1][:1] and len({s.count("#") for s in shapes}) == 1
