"""One graded ask: a line of ``graded.jsonl``, the exchange format for results from anywhere.

Graded.from_dict({"case": "c1", "role": "whole", "outcome": "correct"})
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence, Sized
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..errors import InputError
from . import text_files
from .asks import OUTCOMES, Ask, Grade, Outcome
from .case import Case, declared_bin, shares

GRADED_SCHEMA = 1
_NUMBERED = re.compile(r"(?:no-preamble/)?(part|scaffold|placeholder):")
_NUMBER = re.compile(r"(?:0|[1-9][0-9]{0,2})(?=:|$)")


@dataclass(frozen=True)
class Graded:
    """One graded ask: a line of the exchange format ``graded.jsonl``. Only case, role and outcome are required."""

    case: str
    role: str
    outcome: Outcome
    benchmark: str | None = None
    family: str | None = None
    depth: int | None = None
    cluster: str | None = None
    atom: str | None = None
    """The shared fact that a ``part:i:paraphrase:j`` row asks about: its probes count once over all cases."""
    skills: tuple[str, ...] = ()
    """The case's ordered skills, one per step."""
    kind: str | None = None
    repeat: int = 0
    model: str | None = None
    run: str | None = None
    ask: str | None = None
    reason: str | None = None
    answer: str | None = None
    gold: str | None = None
    match: str | None = None
    """How the answer was matched (``exact``, ``numeric``, ``consistency``, ``judge``, ...)."""
    domain: str | None = None
    operation: str | None = None
    prompt: str | None = None
    """Name of the prompt format."""
    unknowable: bool = False
    """True where no model can know the answer; abstaining is then right."""
    chance: float | None = None
    """Probability that a guess in the right format is right."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Unknown fields of the file, kept as they are."""
    depth_bin: int | None = None
    """As of the case: there only where the benchmark declares bins."""
    crossed: tuple[str, ...] = ()
    """What the case shares with others beside its cluster."""

    def __post_init__(self) -> None:
        if self.depth_bin is None:
            object.__setattr__(self, "depth_bin", declared_bin(self.benchmark, self.depth))

    @property
    def binned(self) -> int | None:
        """The bin of the depth: the depth itself where none is given."""
        return self.depth if self.depth_bin is None else self.depth_bin

    @property
    def shares(self) -> Hashable:
        """What the case shares with others, as ``dependence`` takes it; None if it shares nothing."""
        return shares(self.cluster, self.crossed)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the row: the exchange fields always, the others where they are set."""
        row: dict[str, Any] = {"schema": GRADED_SCHEMA}
        for name in _FIELDS:
            value = getattr(self, name)
            if name in _ALWAYS or not (value is None or value is False or value == ()):  # 0 is a value
                row[name] = list(value) if isinstance(value, tuple) else value
        return {**row, **self.extra}

    @staticmethod
    def from_dict(raw: Any, where: str = "graded row") -> Graded:
        """Read one row; ``where`` (file:line) leads every error message.

        Raises ``InputError`` for a missing field, an unknown outcome or a value of the wrong type.
        """
        if not isinstance(raw, Mapping):
            raise InputError(f"{where}: expected a JSON object, got {type(raw).__name__}")
        if raw.get("schema", GRADED_SCHEMA) != GRADED_SCHEMA:
            raise InputError(f"{where}: schema is {raw['schema']!r}; this version reads schema {GRADED_SCHEMA}")
        # NaN: the missing value of data frames, in which a list may be an array
        known = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in raw.items() if k in _FIELDS}
        known = {k: v for k, v in known.items() if v is not None and v == v}
        for name in ("case", "role", "outcome"):
            if name not in known:
                raise InputError(f"{where}: field {name!r} is missing; every row needs case, role and outcome")
        if known["outcome"] not in OUTCOMES:
            raise InputError(f"{where}: outcome is {known['outcome']!r}; use one of {', '.join(OUTCOMES)}")
        for name, value in known.items():
            if name not in _TEXTS or type(value) is not str:
                known[name] = _typed(name, value, where)
        extra = {k: v for k, v in raw.items() if k not in _FIELDS and k != "schema"}
        return Graded(**known, extra=extra)

    @staticmethod
    def of(case: Case, ask: Ask, grade: Grade, *, ask_id: str | None, model: str | None, run: str | None) -> Graded:
        """The row of one graded ask."""
        skills = tuple(part.skill or "" for part in case.parts)
        of_case = {name: getattr(case, name) for name in _OF_CASE}
        of_ask = {name: getattr(ask, name) for name in ("role", "atom", "kind", "repeat", "gold")}
        of_grade = {name: getattr(grade, name) for name in ("outcome", "reason", "answer", "match")}
        about = {"case": case.id, "ask": ask_id, "prompt": ask.format, "model": model, "run": run}
        return Graded(**about, **of_case, **of_ask, **of_grade, skills=skills if any(skills) else ())


_FIELDS = tuple(f.name for f in fields(Graded) if f.name != "extra")
_OF_CASE = (
    "benchmark", "family", "depth", "depth_bin", "cluster", "crossed", "domain", "operation", "unknowable", "chance"
)  # fmt: skip
_ALWAYS = frozenset(
    "case benchmark family depth cluster atom skills role kind repeat model run ask outcome reason answer gold".split()
)
_TEXTS = frozenset(
    "outcome benchmark family cluster atom kind model run ask reason answer gold match domain operation prompt".split()
)
"""Fields for which any text is right."""


def _typed(name: str, value: Any, where: str) -> Any:
    if name in ("skills", "crossed"):
        if not isinstance(value, list | tuple) or not all(isinstance(v, str) for v in value):
            raise InputError(f"{where}: {name} is {value!r}; give a list of strings")
        return tuple(value)
    if name in ("depth", "depth_bin", "repeat"):
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InputError(f"{where}: {name} is {value!r}; give a whole number of at least 0")
        return value
    if name == "unknowable":
        if not isinstance(value, bool):
            raise InputError(f"{where}: unknowable is {value!r}; give true or false")
        return value
    if name == "chance":
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise InputError(f"{where}: chance is {value!r}; give a probability between 0 and 1")
        return float(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{where}: {name} is {value!r}; give a string")
    text = str(text_files.in_words(value))
    if name in ("case", "role") and not text.strip():
        raise InputError(f"{where}: {name} is empty; give a non-empty string")
    if name == "role" and (kind := _NUMBERED.match(text)):
        least = 0 if kind[1] == "part" else 1
        number = _NUMBER.match(text, kind.end())
        if number is None or int(number[0]) < least:
            raise InputError(
                f"{where}: role is {text!r}; after {kind[1]!r} give a number from {least} to 999, without leading zeros"
            )
    return text


_FLAGS = ("correct", "is_correct", "is_right", "right", "acc", "exact_match")


def read_graded(path: str | Path) -> list[Graded]:
    """Read ``graded.jsonl`` from anywhere (UTF-8, one object a line; unknown fields are kept).

    Raises ``InputError`` naming file:line, field, value and fix for a line that is not a row, for a row that appears
    twice, and for an empty file.
    """
    rows: list[Graded] = []
    seen: dict[tuple[Any, ...], str] = {}
    rows_are = f"graded rows are JSON lines, {text_files.ONE_A_LINE}"
    for where, raw in text_files.lines(path, "give a graded.jsonl with one graded ask a line", rows_are):
        if isinstance(raw, dict) and {"question", "answer"} <= raw.keys() and not {"case", "outcome"} & raw.keys():
            raise InputError(
                f"{where}: a case, not a graded row (case, role, outcome); ask the cases of this file with `composcope "
                f"evaluate --benchmark {path}`"
            )
        row = Graded.from_dict(raw, where)
        key = (row.model, row.run, row.case, row.role, row.repeat)
        if key in seen:
            raise InputError(
                f"{where}: case {row.case!r} with role {row.role!r} and repeat {row.repeat} is already in line "
                f"{seen[key]}; keep one, or number them with the field 'repeat'"
            )
        seen[key] = where.rpartition(":")[2]
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: no graded rows; give one JSON object a line with case, role and outcome")
    return rows


def role_order(role: str) -> list[tuple[int, str]]:
    """Where a role stands in lists: by its words and numbers, so scaffold 2 comes before scaffold 10."""
    return [(int(word) if word.isdecimal() else -1, word) for word in role.split(":")]


def check_rows(rows: Sequence[Graded]) -> list[str]:
    """Contradictions inside graded rows: flags against outcomes, answers of abstentions, properties of one case."""
    found: list[str] = []
    properties: dict[str, dict[str, Any]] = {}
    conflicting: dict[str, dict[str, None]] = {}
    golds: dict[tuple[str, str], str] = {}
    others: dict[tuple[str, str], str] = {}
    for row in rows:
        where = f"case {row.case!r}, role {row.role!r}"
        found += [f"{where}: {problem}" for problem in _contradictions(row)]
        known = properties.setdefault(row.case, {})
        for name in ("family", "depth", "benchmark", "cluster", "skills"):
            value = getattr(row, name) or None
            if value is not None and known.setdefault(name, value) != value:
                line = f"case {row.case!r}: {name} is {known[name]!r} and {value!r} in different rows"
                conflicting.setdefault(name, {})[line] = None
        asked = row.case, row.role
        if row.gold and _ASKED.fullmatch(row.role) and _first(golds.setdefault(asked, row.gold)) != _first(row.gold):
            others.setdefault(asked, row.gold)
    found += [next(iter(lines)) + _more(lines) for lines in conflicting.values()]
    for (case, role), gold in [*others.items()][:1]:
        both = f"{golds[case, role]!r:.60} and {gold!r:.60} in different rows{_more(others)}"
        found.append(f"case {case!r}, role {role!r}: gold is {both}; is it one question?")
    return found


def _more(alike: Sized) -> str:
    return f" (and {len(alike) - 1} more like it)" if len(alike) > 1 else ""


_ASKED = re.compile(r"whole|part:\d+")
"""Roles whose question is the same for every model."""


def _first(gold: str) -> str:
    """A gold answer without its aliases and in one spelling, for a comparison."""
    return gold.partition(" | ")[0].strip().casefold().removesuffix(".0")


def _contradictions(row: Graded) -> list[str]:
    found = []
    for name in _FLAGS:
        flag = row.extra.get(name)
        if isinstance(flag, str) and flag.strip().lower() in ("true", "false", "0", "1"):
            flag = flag.strip().lower() in ("true", "1")
        if isinstance(flag, bool | int | float) and flag in (0, 1) and row.outcome != "invalid":
            if bool(flag) != (row.outcome == "correct"):
                found.append(
                    f"field {name!r} is {row.extra[name]!r} but outcome is {row.outcome!r}; the outcome counts"
                )
    if row.outcome == "correct" and row.answer is None and row.gold is not None and row.ask is not None:
        found.append("outcome is 'correct' without an answer; check the grading")
    return found
