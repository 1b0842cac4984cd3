"""What the readers of decomposed multi-hop questions share: answers, parts as facts, and clusters of shared facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import InputError
from ..cases import Case, Part
from .answers import type_of_words
from .files import text_field


def gold(row: Mapping[str, Any], name: str, aliases: str, where: str) -> tuple[str, tuple[str, ...]]:
    """A gold answer and its aliases, each once and without the answer itself.

    Raises ``InputError`` for an answer that is no text, and for aliases that are no list of texts.
    """
    answer = text_field(row, name, where)
    listed = row.get(aliases) or []
    if not isinstance(listed, list) or not all(isinstance(a, str) for a in listed):
        raise InputError(f"{where}: field {aliases!r} is {listed!r}; give a list of strings")
    return answer, others(answer, listed)


def others(answer: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names beside the answer, without repetitions and empty ones."""
    kept: dict[str, str] = {}
    for name in (n.strip() for n in names):
        if name:
            kept.setdefault(name.casefold(), name)
    kept.pop(answer.casefold(), None)
    return tuple(kept.values())


def part(question: str, answer: str, hop: int, aliases: Sequence[str] = (), *, atom: str) -> Part:
    """One hop (from 1): a question about a fact, named ``atom`` wherever it is used."""
    return Part(question, answer, f"hop-{hop}", type_of_words(answer), tuple(aliases), atom=atom)


def same_last_answer(case: Case) -> Case:
    """The case where whole and last part accept each other's spellings, if it is the same answer."""
    if not case.parts:
        return case
    last = case.parts[-1]
    names = {n.casefold() for n in (case.answer, *case.aliases)}
    if not names & {n.casefold() for n in (last.answer, *last.aliases)}:
        return case
    whole = others(case.answer, (*case.aliases, last.answer, *last.aliases))
    own = others(last.answer, (*last.aliases, case.answer, *case.aliases))
    return replace(case, aliases=whole, parts=(*case.parts[:-1], replace(last, aliases=own)))


def clustered(cases: Sequence[Case]) -> list[Case]:
    """The cases, with one cluster for all that are linked by shared facts (the parts' atoms), directly or over others.

    A cluster is named after its first case.
    """
    parent: dict[Any, Any] = {}

    def root(node: Any) -> Any:
        while (above := parent.setdefault(node, node)) != node:
            parent[node] = node = parent[above]  # halves the path
        return node

    for i, case in enumerate(cases):
        for p in case.parts:
            a, b = root(i), root(("fact", p.atom))
            if a != b:
                parent[b] = a
    names: dict[Any, str] = {}
    return [replace(case, cluster=names.setdefault(root(i), case.id)) for i, case in enumerate(cases)]
