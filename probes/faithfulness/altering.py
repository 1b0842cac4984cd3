"""Other values in the place of written ones, and what would follow from them.

A like value is one of the same kind from another case: the same part's answer, an operand, a final answer. What follows
is known for a sum, for a result (itself), and for a part's answer where a later part's question names it: by the gold
answer of that question with the other value, where some case asks it, else by the model's own answer to it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...evaluation.grading.text import same
from ..examples import Example, Gold
from ..slots import token_span
from .working import Ids, Working, Written, every, question_of

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
    """How that is known: ``sum``, ``itself``, ``gold``, ``asked``."""
    ids: Ids
    """The other value, as tokens in the place of the written one."""


@dataclass(frozen=True)
class Candidate:
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
    """Tokens of a text that follows another one; none where they cannot be told apart."""
    near = context[-_CONTEXT:]
    before, through = (tuple(tokenizer(t, add_special_tokens=False).input_ids) for t in (near, near + text))
    if through[: len(before)] != before:
        return ()
    ids = through[len(before) :]
    back = tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)
    return ids if back.strip() == text.strip() else ()


def put_in(tokenizer: Any, e: Example, written: Written, value: str) -> Ids:
    """Tokens of a value in the place of a written one of a response."""
    before = [*e.prompt_ids[-_CONTEXT:], *e.response_ids[: written.first]]
    context = tokenizer.decode(before, clean_up_tokenization_spaces=False)
    return in_place(tokenizer, context, written.lead + value)


def candidates(
    tokenizer: Any, whole: Example, found: Working, written: Written, pool: Sequence[str],
    parts: Mapping[str, Example], known: Mapping[str, Gold], rng: random.Random, most: int,
) -> list[Candidate]:  # fmt: skip
    """At most so many values to put in the place of a written one, in random order, each from another case."""
    values = list(dict.fromkeys(v for v in pool if not same(v, written.value)))
    rng.shuffle(values)
    make: Callable[[str], Candidate | None]
    if written.what == "operand":
        make = lambda v: _of_sum(written, v)  # noqa: E731
    elif written.what == "result":
        make = lambda v: Candidate(written, v, v, "itself")  # noqa: E731
    else:
        later = _later_part(tokenizer, written, parts)
        if later is None:
            return []
        make = lambda v: _of_part(tokenizer, written, v, later, known)  # noqa: E731
    out: list[Candidate] = []
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


def _of_sum(written: Written, value: str) -> Candidate | None:
    assert written.sum is not None
    a, operation, b = written.sum
    if not value.isdigit():
        return None
    found = result_of(*((int(value), operation, int(b)) if written.role == "a" else (int(a), operation, int(value))))
    return None if not found else Candidate(written, value, str(found), "sum")


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
) -> Candidate | None:  # fmt: skip
    question = question_of(tokenizer, later)
    for start, stop in reversed(every(written.value, question)):
        question = question[:start] + value + question[stop:]
    if question in known:
        return Candidate(written, value, known[question].answer, "gold")
    ids = _asked_with(tokenizer, later, written.value, value)
    return None if ids is None else Candidate(written, value, None, "asked", ids, later.gold)


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
        context = tokenizer.decode([*ids[:first], *inside[: found.first]], clean_up_tokenization_spaces=False)
        lead, tail = text[found.characters : span[0]], through[span[1] :]
        put = in_place(tokenizer, context, lead + new + tail)
        if not put:
            return None
        inside[found.first : found.end] = put
    return (*ids[:first], *inside, *ids[last:])
