"""Asks that all protocols share: a part, its wordings, the whole; with the case's evidence and options."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ...errors import InputError
from .. import prompts
from ..asks import Ask, Grade
from ..case import Case, Part
from ..options import Choices, listed
from .base import about

MAX_TOKENS = {"plain": 128, "short": 32, "xml": 512, "xml-answer": 128, "knowledge": 128, "cot": 1024, "self-ask": 1024}
"""Response budgets by prompt format: equal for all roles of a protocol, so that no role is cut off more easily."""
THINKING = "thinking"
"""The whole asked again with the chat template's thinking switched on."""


def question(case: Case, text: str, options: Choices = ()) -> str:
    """The question, after the case's evidence where it has some, with the options where it does not list them."""
    text = listed(text, options)
    return prompts.with_evidence(text, case.evidence) if case.evidence else text


def ask_part(case: Case, i: int, role: str, text: str, format: str, max_tokens: int | None) -> Ask:
    """An ask about part ``i``, in the words of ``text``."""
    part = case.parts[i]
    return replace(_ask(case, part, role, text, format, max_tokens), kind=part.kind, atom=part.atom)


def ask_whole(case: Case, role: str, text: str, format: str, max_tokens: int | None) -> Ask:
    """An ask whose answer is the case's answer."""
    return _ask(case, case, role, text, format, max_tokens)


def _ask(case: Case, of: Case | Part, role: str, text: str, format: str, max_tokens: int | None) -> Ask:
    """An ask whose answer is that of the case, or of one of its parts."""
    asked = question(case, text, of.options)
    return Ask(
        case=case.id,
        role=role,
        prompt=prompts.render(asked, format),
        gold=of.answer,
        answer_type=of.answer_type,
        format=format,
        aliases=of.aliases,
        max_tokens=max_tokens or MAX_TOKENS.get(format, 512),
        stop=prompts.FORMATS[format].stop,
        options=of.options,
        question=asked,
    )


def ask_again(case: Case, way: str, format: str, max_tokens: int | None) -> Ask:
    """The whole once more, in another prompt format or with ``thinking`` in the protocol's own."""
    if way == THINKING:
        return replace(ask_whole(case, f"whole:{way}", case.question, format, max_tokens), thinking=True)
    return ask_whole(case, f"whole:{way}", case.question, way, max_tokens)


def recommended(cases: Iterable[Case], name: str) -> str | None:
    """What a benchmark says in ``meta[name]`` about how to ask it, if all its cases agree."""
    named = {str(case.meta.get(name) or "") for case in cases}
    return (named.pop() or None) if len(named) == 1 else None


def recommended_format(cases: Iterable[Case]) -> str | None:
    """The prompt format in which a benchmark wants to be asked: ``meta["format"]``.

    Raises ``InputError`` for a format that is not known.
    """
    format = recommended(cases, "format")
    if format is not None and format not in prompts.FORMATS:
        raise InputError(f"meta.format is {format!r}; use one of {', '.join(prompts.FORMATS)}, or leave it out")
    return format


def default_protocol(cases: Sequence[Case]) -> str:
    """The protocol in the cases (``meta["protocol"]``), else ``double-gate`` if the parts have paraphrases, which its
    first gate needs, else ``compositionality-gap``.
    """
    if (own := recommended(cases, "protocol")) is not None:
        return own
    return "double-gate" if has_paraphrases(cases) else "compositionality-gap"


def has_paraphrases(cases: Iterable[Case]) -> bool:
    """Whether any part is also worded otherwise."""
    return any(part.paraphrases for case in cases for part in case.parts)


SHORT_WORDS = 5


def default_format(cases: Iterable[Case], protocol: str) -> str | None:
    """``short`` for cases whose gold answers are all short, asked by a protocol without steps of its own; else None.

    Worked answers and unknowable questions need another format: the protocol's own (None).
    """
    if not about(protocol).short_answers:
        return None
    for case in cases:
        asked = (case, *case.parts)
        if case.unknowable or any(a.worked or len(a.answer.split()) > SHORT_WORDS for a in asked):
            return None
    return "short"


def check_formats(format: str, ways: Iterable[str] = ()) -> None:
    """Raises ``InputError`` for a prompt format, or a way to ask again, that is not known."""
    if format not in prompts.FORMATS:
        raise InputError(f"--format {format!r} is not known; use one of {', '.join(prompts.FORMATS)}")
    for way in ways:
        if way not in (*prompts.FORMATS, THINKING):
            raise InputError(f"--also {way!r} is not known; use {', '.join([*prompts.FORMATS, THINKING])}")


def pending(asks: Iterable[Ask], graded: Mapping[str, Grade]) -> list[Ask]:
    """The asks whose role has no grade yet."""
    return [ask for ask in asks if ask.role not in graded]
