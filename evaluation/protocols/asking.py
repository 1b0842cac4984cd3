"""Asks that all protocols share: a part, its wordings, the whole; with evidence where the case gives it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .. import prompts
from ..asks import Ask, Grade
from ..cases import Case

MAX_TOKENS = {"plain": 128, "xml": 512, "xml-answer": 128, "knowledge": 128, "cot": 1024, "self-ask": 1024}
"""Response budgets by prompt format: equal for all roles of a protocol, so that no role is cut off more easily."""


def question(case: Case, text: str) -> str:
    """The question, after the case's evidence where it has some."""
    return prompts.with_evidence(text, case.evidence) if case.evidence else text


def ask_part(case: Case, i: int, role: str, text: str, format: str, max_tokens: int | None) -> Ask:
    """An ask about part ``i`` in other or the same words."""
    part = case.parts[i]
    return Ask(
        case=case.id,
        role=role,
        prompt=prompts.render(question(case, text), format),
        gold=part.answer,
        answer_type=part.answer_type,
        format=format,
        aliases=part.aliases,
        max_tokens=max_tokens or MAX_TOKENS.get(format, 512),
        stop=prompts.FORMATS[format].stop,
        kind=part.kind,
        atom=part.atom,
    )


def ask_whole(case: Case, role: str, text: str, format: str, max_tokens: int | None) -> Ask:
    """An ask whose answer is the case's answer."""
    return Ask(
        case=case.id,
        role=role,
        prompt=prompts.render(question(case, text), format),
        gold=case.answer,
        answer_type=case.answer_type,
        format=format,
        aliases=case.aliases,
        max_tokens=max_tokens or MAX_TOKENS.get(format, 512),
        stop=prompts.FORMATS[format].stop,
    )


def pending(asks: Iterable[Ask], graded: Mapping[str, Grade]) -> list[Ask]:
    """The asks whose role has no grade yet."""
    return [ask for ask in asks if ask.role not in graded]
