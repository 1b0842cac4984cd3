"""What the model goes on to write after a beginning of its own response, and which answer that is.

Every prompt is the case's own prompt, tokens of the model's own response, and what was put in; nothing is tokenized
again. All answers are greedy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...hooks.model import Model
from ...hooks.progress import reached
from ..examples import Example, Gold
from .altering import Altered, in_place, put_in
from .working import Ids, Working, judged, said

ROWS = 64
"""Prompts that are continued together."""
MARK = " ."
"""What fills the place of the working in the control without one."""


@dataclass(frozen=True)
class Outcome:
    """One continued response."""

    measure: str
    """``early``, ``filler``, ``same`` or ``altered``."""
    kept: bool | None
    """Whether the answer is the model's own final one; None if it cannot be read."""
    followed: bool | None = None
    """Whether it is the one that follows from an altered value."""
    reason: str = ""
    """Why it cannot be read."""
    step: int = 0
    """How many steps were shown."""
    altered: Altered | None = None
    answer: str | None = None
    """What was answered."""
    text: str = ""
    """The response, with what was put in and what was written after it."""


@dataclass(frozen=True)
class Begun:
    """A beginning of a response, to be continued."""

    measure: str
    ids: Ids
    """Of the response, not of the prompt."""
    step: int = 0
    altered: Altered | None = None


def beginnings(tokenizer: Any, e: Example, found: Working, altered: Sequence[Altered]) -> Iterator[Begun]:
    """All that is continued of one case."""
    if found.closing:
        for k, n in enumerate((0, *found.steps)):
            yield Begun("early", (*e.response_ids[:n], *found.closing), k)
        mark = filler(tokenizer, e)
        if mark is not None:
            yield Begun("filler", (*[mark] * found.through, *found.closing))
    for written in dict.fromkeys(a.written for a in altered):
        put = put_in(tokenizer, e, written, written.value)
        if put:
            yield Begun("same", (*e.response_ids[: written.first], *put))
    for one in altered:
        yield Begun("altered", (*e.response_ids[: one.written.first], *one.ids), altered=one)


def filler(tokenizer: Any, e: Example) -> int | None:
    """A token that says nothing."""
    context = tokenizer.decode(list(e.prompt_ids[-20:]), clean_up_tokenization_spaces=False)
    ids = in_place(tokenizer, context, MARK)
    return ids[-1] if ids else None


def continued(lm: Model, prompts: Sequence[Ids], most: int) -> list[list[int]]:
    """Greedy continuations, a few at a time; equal prompts run once."""
    distinct = sorted(dict.fromkeys(prompts), key=len)
    found: dict[Ids, list[int]] = {}
    for at in range(0, len(distinct), ROWS):
        some = distinct[at : at + ROWS]
        found |= zip(some, lm.generate(some, max_new_tokens=room(lm, some, most)), strict=True)
        reached(len(found))
    return [found[p] for p in prompts]


def room(lm: Model, prompts: Iterable[Ids], most: int) -> int:
    """New tokens that fit behind all of these prompts; 1 at least."""
    context = lm.anatomy.context
    return most if context is None else max(1, min(most, context + 1 - max(map(len, prompts))))


def answer_to(lm: Model, gold: Gold, ids: Sequence[int]) -> str | None:
    """What a continuation answers to a question of that kind; None if it cannot be read."""
    found = judged(*said(lm.tokenizer, ids, lm.eos_ids, gold.stop), gold)
    return None if found.outcome in ("invalid", "abstained") else found.answer


def outcome(lm: Model, e: Example, found: Working, begun: Begun, new: Sequence[int]) -> Outcome:
    """Which answer a continued response gives."""
    assert e.gold is not None
    text, reason = said(lm.tokenizer, [*begun.ids, *new], lm.eos_ids, e.gold.stop)
    own = judged(text, reason, e.gold, found.answer)
    kept = _matches(own.outcome)
    other = None if begun.altered is None else judged(text, reason, e.gold, begun.altered.follows)
    followed = None if other is None else _matches(other.outcome)
    why = ""
    if (kept is None and not followed) or (other is not None and followed is None and not kept):
        kept, followed, why = None, None, own.reason or (other.reason if other is not None else None) or "not read"
    return Outcome(begun.measure, kept, followed, why, begun.step, begun.altered, own.answer, text)


def _matches(outcome: str) -> bool | None:
    return None if outcome == "invalid" else outcome == "correct"
