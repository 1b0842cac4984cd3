"""Puts other values in the place of written ones, finds what would follow from them, and lets the model continue.

The other value is of the same kind and from another case: the same part's answer, an operand, a final answer. What
follows is known for a sum, and for a result (the value itself). For a part's answer it is known if a later part's
question names it: the gold answer of that question with the other value if some case asks it, else the model's own
answer to it.

Every prompt consists of the case's own prompt, tokens of the model's own response, and the inserted tokens; nothing is
tokenized again. All answers are greedy.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...evaluation.engines.text import verbatim
from ...evaluation.grading.text import same
from ...hooks.generation import room
from ...hooks.model import Model
from ...terminal import reached
from ..examples import Example, Gold
from ..slots import token_span
from .working import Ids, Working, Written, every, judged, question_of, said

_CONTEXT = 60
"""Characters before a value that decide how it is cut into tokens."""
NO_BRIDGE = "no bridge or operand found in the working"
NO_FOLLOWING = "what would follow from another value is not known"
NOT_WRITTEN = "another value cannot be written in its place"


@dataclass(frozen=True)
class Altered:
    """One written value with another one in its place."""

    written: Written
    value: str
    follows: str
    """The answer that follows from it."""
    known: str
    """How this answer is known: ``sum``, ``itself``, ``gold``, ``asked``."""
    ids: Ids
    """The other value, as tokens in the place of the written one."""


@dataclass(frozen=True)
class Replacement:
    """A value that may be put in, and where its consequence comes from."""

    written: Written
    value: str
    follows: str | None
    known: str
    ask: Ids | None = None
    """The prompt that asks for it, where it is not known."""
    gold: Gold | None = None
    """Of the question that is asked."""


def in_place(tokenizer: Any, context: str, text: str) -> Ids:
    """Tokens of a text that follows another one; none if the two cannot be told apart."""
    near = context[-_CONTEXT:]
    before, through = (tuple(tokenizer(t, add_special_tokens=False).input_ids) for t in (near, near + text))
    if through[: len(before)] != before:
        return ()
    ids = through[len(before) :]
    back = verbatim(tokenizer, ids)
    return ids if back.strip() == text.strip() else ()


def put_in(tokenizer: Any, e: Example, written: Written, value: str) -> Ids:
    """Tokens of a value in the place of a written one of a response."""
    before = [*e.prompt_ids[-_CONTEXT:], *e.response_ids[: written.first]]
    context = verbatim(tokenizer, before)
    return in_place(tokenizer, context, written.lead + value)


def candidates(
    tokenizer: Any, found: Working, written: Written, pool: Sequence[str],
    parts: Mapping[str, Example], known: Mapping[str, Gold], rng: random.Random, most: int,
) -> list[Replacement]:  # fmt: skip
    """At most this many values to put in the place of a written one, in random order, each from another case."""
    values = list(dict.fromkeys(v for v in pool if not same(v, written.value)))
    rng.shuffle(values)
    make: Callable[[str], Replacement | None]
    if written.what == "operand":
        make = lambda v: _of_sum(written, v)  # noqa: E731
    elif written.what == "result":
        make = lambda v: Replacement(written, v, v, "itself")  # noqa: E731
    else:
        later = _later_part(tokenizer, written, parts)
        if later is None:
            return []
        make = lambda v: _of_part(tokenizer, written, v, later, known)  # noqa: E731
    out: list[Replacement] = []
    for value in values:
        one = make(value)
        if one is not None and (one.follows is None or not same(one.follows, found.answer)):
            out.append(one)
        if len(out) == most:
            break
    return out


def result_of(a: int, operation: str, b: int) -> int | None:
    """The result of a written sum, where it is a whole number that is not negative."""
    match operation:
        case "plus" | "+":
            return a + b
        case "times" | "*" | "×":
            return a * b
        case "divided by" | "/" | "÷":
            return a // b if b and a % b == 0 else None
        case _:
            return a - b if a >= b else None


def _of_sum(written: Written, value: str) -> Replacement | None:
    assert written.sum is not None
    a, operation, b = written.sum
    if not value.isdigit():
        return None
    found = result_of(*((int(value), operation, int(b)) if written.role == "a" else (int(a), operation, int(value))))
    return None if not found else Replacement(written, value, str(found), "sum")


def _later_part(tokenizer: Any, written: Written, parts: Mapping[str, Example]) -> Example | None:
    """The last later part whose question names the written value; a number that it names twice may be another one."""
    place = {role: int(role.partition(":")[2]) for role in (written.role, *parts)}
    later = sorted((role for role in parts if place[role] > place[written.role]), key=place.__getitem__)
    for role in reversed(later):
        n = len(every(written.value, question_of(tokenizer, parts[role])))
        if n == 1 or (n and not written.value.isdigit()):
            return parts[role]
    return None


def _of_part(
    tokenizer: Any, written: Written, value: str, later: Example, known: Mapping[str, Gold]
) -> Replacement | None:
    question = question_of(tokenizer, later)
    for start, stop in reversed(every(written.value, question)):
        question = question[:start] + value + question[stop:]
    if question in known:
        return Replacement(written, value, known[question].answer, "gold")
    ids = _asked_with(tokenizer, later, written.value, value)
    return None if ids is None else Replacement(written, value, None, "asked", ids, later.gold)


def _asked_with(tokenizer: Any, part: Example, old: str, new: str) -> Ids | None:
    """The part's prompt with another value in its question; all other tokens stay."""
    ids = list(part.prompt_ids)
    first, last = part.question_span
    inside = ids[first:last]
    text = tokenizer.decode(inside, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    for span in reversed(every(old, text)):
        found = token_span(tokenizer, inside, span)
        if found is None:
            return None
        through = tokenizer.decode(inside[: found.end], skip_special_tokens=True, clean_up_tokenization_spaces=False)
        context = verbatim(tokenizer, [*ids[:first], *inside[: found.first]])
        lead, tail = text[found.characters : span[0]], through[span[1] :]
        put = in_place(tokenizer, context, lead + new + tail)
        if not put:
            return None
        inside[found.first : found.end] = put
    return (*ids[:first], *inside, *ids[last:])


ROWS = 64
"""Prompts that are continued together."""
MARK = " ."
"""What fills the place of the working in the control without one."""


@dataclass(frozen=True)
class AlteredOutcome:
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
    context = verbatim(tokenizer, e.prompt_ids[-20:])
    ids = in_place(tokenizer, context, MARK)
    return ids[-1] if ids else None


def continued(lm: Model, prompts: Sequence[Ids], most: int) -> list[list[int]]:
    """Greedy continuations, a few at a time; equal prompts run once."""
    distinct = sorted(dict.fromkeys(prompts), key=len)
    found: dict[Ids, list[int]] = {}
    for at in range(0, len(distinct), ROWS):
        some = distinct[at : at + ROWS]
        found |= zip(some, lm.generate(some, max_new_tokens=room(lm.anatomy.context, some, most)), strict=True)
        reached(len(found))
    return [found[p] for p in prompts]


def answer_to(lm: Model, gold: Gold, ids: Sequence[int]) -> str | None:
    """What a continuation answers to a question of that kind; None if it cannot be read."""
    found = judged(*said(lm.tokenizer, ids, lm.eos_ids, gold), gold)
    return None if found.outcome in ("invalid", "abstained") else found.answer


def outcome(lm: Model, e: Example, found: Working, begun: Begun, new: Sequence[int]) -> AlteredOutcome:
    """Which answer a continued response gives."""
    assert e.gold is not None
    text, reason = said(lm.tokenizer, [*begun.ids, *new], lm.eos_ids, e.gold)
    own = judged(text, reason, e.gold, found.answer)
    kept = _matches(own.outcome)
    other = None if begun.altered is None else judged(text, reason, e.gold, begun.altered.follows)
    followed = None if other is None else _matches(other.outcome)
    why = ""
    if (kept is None and not followed) or (other is not None and followed is None and not kept):
        kept, followed, why = None, None, own.reason or (other.reason if other is not None else None) or "not read"
    return AlteredOutcome(begun.measure, kept, followed, why, begun.step, begun.altered, own.answer, text)


def _matches(outcome: str) -> bool | None:
    return None if outcome == "invalid" else outcome == "correct"
