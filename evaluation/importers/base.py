"""The types that every importer uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError
from ..gold import type_of_words
from ..graded import Graded


@dataclass(frozen=True)
class Stored:
    """The response and the gold answers of a row, enough to grade the response again."""

    response: str
    golds: tuple[str, ...]
    """The gold answer, then its aliases."""
    answer_type: str | None = None
    """None where the file does not say it: then the gold answers do (``type_of_golds``)."""
    format: str = "plain"
    finish_reason: str = "stop"
    where: str = ""
    """The row's place in its file."""
    has_verdict: bool = True
    """False where the file has no verdict: the row then has the verdict of the grading rules."""


@dataclass(frozen=True)
class Imported:
    """Graded rows of one file, and everything about the file that should be known before they are used."""

    rows: list[Graded]
    contradictions: list[dict[str, Any]] = field(default_factory=list)
    """One record per stored value that other values of the file contradict: ``where``, ``field``, ``stored``,
    ``recomputed``, ``problem``."""
    warnings: list[str] = field(default_factory=list)
    stored: list[Stored | None] = field(default_factory=list)
    """The responses of the rows, in their order; None where a row has none, empty for formats without responses."""


@dataclass(frozen=True)
class Options:
    """What the user states about a file because the file does not."""

    model: str | None = None
    scorer: str | None = None
    """Which of several stored verdicts counts: a scorer (Bamboogle results, inspect_ai), metric (lm-evaluation) or
    field (plain rows)."""
    filter: str | None = None
    """lm-evaluation-harness: which of several answer extractions counts."""
    whole: str | None = None
    """Bamboogle results: the prompt style that becomes the role ``whole``."""
    role: str | None = None
    """Role of every row, where rows do not carry one."""
    case_field: str | None = None
    """Field of the document (or metadata) that holds the case's id."""
    role_field: str | None = None
    """Field of the document (or metadata) that holds the role."""
    response_field: str | None = None
    """Plain rows: the field that holds the response."""
    gold_field: str | None = None
    """Plain rows: the field that holds the gold answer, or a list of accepted ones."""
    regrade: bool = False
    """Grade the stored responses again, with our rules."""
    answer_type: str | None = None
    """How gold answers are compared when graded again, where rows do not say it."""
    format: str | None = None
    """Prompt format of the responses when graded again, where rows do not say it."""
    each: Callable[[], None] = lambda: None
    """Called after each row that is graded here, which takes most of the time."""


def type_of_golds(golds: tuple[str, ...]) -> str:
    """The answer type that all golds have, else text."""
    types = {type_of_words(g) for g in golds}
    return types.pop() if len(types) == 1 else "text"


def contradiction(where: str, field: str, stored: Any, recomputed: Any, problem: str) -> dict[str, Any]:
    """One record of ``Imported.contradictions``."""
    return {"where": where, "field": field, "stored": stored, "recomputed": recomputed, "problem": problem}


def place(document: Mapping[str, Any], fallback: str, options: Options, where: str) -> tuple[str, str]:
    """(case, role) of a row: from the named fields, else from ``case`` and ``role``, else ``fallback`` and ``whole``.

    Raises ``InputError`` where a field that the user named is missing.
    """
    found = []
    for name, usual, default in (
        (options.case_field, "case", fallback),
        (options.role_field, "role", options.role or "whole"),
    ):
        if name is not None and document.get(name) in (None, ""):
            flag = "--case-field" if usual == "case" else "--role-field"
            raise InputError(f"{where}: {flag} {name}: no such field; it has {', '.join(sorted(map(str, document)))}")
        found.append(str(document[name]) if name is not None else _usual(document, usual, default))
    return found[0], found[1]


def _usual(document: Mapping[str, Any], name: str, default: str) -> str:
    value = document.get(name)
    return value if isinstance(value, str) and value.strip() else default


def described(document: Mapping[str, Any]) -> dict[str, Any]:
    """Properties of the case that a document or its metadata states in our own field names."""
    names = ("family", "domain", "operation", "cluster", "kind")
    return {k: document[k] for k in names if isinstance(document.get(k), str)}


def refuse_twice(rows: list[Graded], path: object, fix: str) -> None:
    """Raises ``InputError`` where two rows are about the same case, role and repeat."""
    seen: set[tuple[Any, ...]] = set()
    for row in rows:
        key = (row.model, row.case, row.role, row.repeat)
        if key in seen:
            raise InputError(f"{path}: case {row.case!r} has role {row.role!r} twice; {fix}")
        seen.add(key)
