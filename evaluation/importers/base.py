"""What every importer uses: the types, the place of a row, and stored responses graded again.

An answer that the rules cannot judge is invalid, which is not a disagreement about right or wrong. Such answers are
listed and counted separately.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import InputError
from .. import cases
from ..asks import Outcome
from ..case import ANSWER_TYPES, Case
from ..gold import type_of_words
from ..graded import Graded
from ..grading import grade
from ..options import Choices
from ..prompts import FORMATS
from ..text_files import in_words


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
    question: str | None = None
    options: Choices = ()
    """Those of a choice; without, the question says them."""
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
        if name is not None and not has(document, name):
            flag = "--case-field" if usual == "case" else "--role-field"
            raise InputError(f"{where}: {flag} {name}: no such field; it has {', '.join(sorted(map(str, document)))}")
        found.append(str(in_words(document[name])) if name is not None else _usual(document, usual, default))
    return found[0], found[1]


def _usual(document: Mapping[str, Any], name: str, default: str) -> str:
    value = in_words(document.get(name))
    return value if isinstance(value, str) and value.strip() else default


def has(document: Mapping[str, Any], name: str) -> bool:
    """Whether a field has a value; NaN is the missing value of data frames."""
    value = document.get(name)
    return value not in (None, "") and value == value


def described(document: Mapping[str, Any]) -> dict[str, Any]:
    """Properties of the case that a document or its metadata states in our own field names."""
    names = ("family", "domain", "operation", "cluster", "kind", "atom")
    found: dict[str, Any] = {k: text for k in names if isinstance(text := in_words(document.get(k)), str)}
    for name in ("skills", "crossed"):
        value = document.get(name)
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            found[name] = tuple(value)
    if (depth_bin := depth_of(document, "depth_bin")) is not None:
        found["depth_bin"] = depth_bin
    with suppress(ValueError):  # none, or something else of that name
        if 0 <= (chance := float(str(document.get("chance")))) <= 1:
            found["chance"] = chance
    return found | ({"unknowable": True} if str(document.get("unknowable")).strip().lower() == "true" else {})


def depth_of(document: Mapping[str, Any], name: str = "depth") -> int | None:
    """The depth that a document states as a whole number, or as the text of one."""
    depth = str(document.get(name)).removesuffix(".0")  # 2.0: of a data frame
    return int(depth) if re.fullmatch(r"-?[0-9]{1,9}", depth) else None


def outcome_of(score: Any, name: str, where: str) -> tuple[Outcome, str | None]:
    """A stored score of 0 or 1 as an outcome; without a number it is invalid, with the reason.

    Raises ``InputError`` for a score that is not a right-or-wrong verdict.
    """
    if isinstance(score, bool | int | float) and score in (0, 1):
        return ("correct" if score else "incorrect"), None
    if score is None or score != score:
        return "invalid", f"score {name} is {score!r}"
    raise InputError(f"{where}: {name} is {score!r}, not a right-or-wrong verdict; give another --scorer")


def refuse_twice(rows: list[Graded], path: object, fix: str, places: Sequence[str] = ()) -> None:
    """Raises ``InputError`` where two rows are about the same case, role and repeat, or one could not be read back.

    ``places``: file and line of each row, where they are known.
    """
    seen: dict[tuple[Any, ...], int] = {}
    for n, row in enumerate(rows):
        Graded.from_dict(row.to_dict(), f"{path}: case {row.case!r}")
        first = seen.setdefault((row.model, row.case, row.role, row.repeat), n)
        if first != n:
            where, other = (places[n], f" (also {places[first]})") if places else (path, "")
            raise InputError(f"{where}: case {row.case!r} has role {row.role!r} twice{other}; keep one, or {fix}")


_SHOWN = 100
"""Characters from the end of a response that a line about a disagreement shows; its record has all of it."""


@dataclass(frozen=True)
class Regraded:
    """Rows with the new verdicts, and a comparison with the stored ones."""

    rows: list[Graded]
    disagreements: list[dict[str, Any]]
    """One record per row whose stored verdict is another: ``where, case, role, model, stored, ours, reason, answer,
    gold, answer_type, response``."""
    table: dict[str, int]
    """Rows by "stored -> ours" outcome."""
    not_graded: int
    """Rows without a response or gold answer: they keep the stored verdict."""


def check(options: Options) -> None:
    """Raises ``InputError`` for an answer type or prompt format that is not known."""
    if options.answer_type is not None and options.answer_type not in ANSWER_TYPES:
        raise InputError(f"--answer-type {options.answer_type}: use one of {', '.join(ANSWER_TYPES)}")
    if options.format is not None and options.format not in FORMATS:
        raise InputError(f"--format {options.format}: use one of {', '.join(FORMATS)}")


def regrade(found: Imported, options: Options) -> Regraded:
    """Grade every row again whose file holds a response and a gold answer.

    Raises ``InputError`` where a file holds no response at all.
    """
    check(options)
    if not any(found.stored):
        raise InputError("--regrade: the file has no responses with gold answers; leave out --regrade")
    rows, disagreements = [], []
    table: Counter[str] = Counter()
    for row, stored in zip(found.rows, found.stored, strict=True):
        if stored is None or not stored.has_verdict:
            rows.append(row)
            continue
        ours = graded(row, stored, options)
        rows.append(replace(ours, extra={**row.extra, "stored_outcome": row.outcome}))
        table[f"{row.outcome} -> {ours.outcome}"] += 1
        if ours.outcome != row.outcome:
            disagreements.append(_disagreement(row, ours, stored, options))
    return Regraded(rows, disagreements, dict(sorted(table.items())), sum(s is None for s in found.stored))


def graded(row: Graded, stored: Stored, options: Options) -> Graded:
    """The row with our verdict on its response.

    Raises ``InputError`` for a gold answer that is not of its type: any response would count as wrong.
    """
    kind = _kind(stored, options)
    format = stored.format if options.format is None else options.format
    gold, *aliases = stored.golds
    cases.check(Case(row.case, "?", gold, answer_type=kind, aliases=tuple(aliases)), f"{stored.where}, gold answer")
    try:
        found = grade(stored.response, stored.finish_reason, gold, kind, aliases=aliases, format=format,
                      options=stored.options, question=stored.question)  # fmt: skip
    except InputError as e:
        raise InputError(f"{stored.where}: {e}") from e
    options.each()
    return replace(
        row, outcome=found.outcome, answer=found.answer, match=found.match, reason=found.reason,
        gold=" | ".join(stored.golds),
    )  # fmt: skip


def _kind(stored: Stored, options: Options) -> str:
    return stored.answer_type or options.answer_type or type_of_golds(stored.golds)


def _disagreement(row: Graded, ours: Graded, stored: Stored, options: Options) -> dict[str, Any]:
    return {
        "where": stored.where, "case": row.case, "role": row.role, "model": row.model,
        "stored": row.outcome, "ours": ours.outcome, "reason": ours.reason, "answer": ours.answer,
        "gold": list(stored.golds), "answer_type": _kind(stored, options), "response": stored.response,
    }  # fmt: skip


def disagreement_lines(table: dict[str, int], disagreements: Sequence[dict[str, Any]], most: int) -> list[str]:
    """The table and the first disagreements as text."""
    out = ["graded again (stored -> ours): " + ", ".join(f"{n} {pair}" for pair, n in table.items())]
    judged = [d for d in disagreements if "invalid" not in (d["stored"], d["ours"])]
    open_ = len(disagreements) - len(judged)
    differ = "1 verdict differs" if len(judged) == 1 else f"{len(judged)} verdicts differ"
    more = f"{open_} more {'is' if open_ == 1 else 'are'} invalid on one side only"
    out.append(f"{differ}; {more} (all: disagreements.jsonl)")
    for d in judged[:most]:
        said = " ".join(d["response"].split())[-_SHOWN:]
        out.append(f"  {d['where']}, {d['role']}: stored {d['stored']}, ours {d['ours']} ({d['answer']!r} for "
                   f"{' | '.join(d['gold'])!r}): ...{said}")  # fmt: skip
    return out
