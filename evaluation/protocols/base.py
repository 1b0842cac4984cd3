"""The types of every protocol: Graded rows in, Metrics and CaseSets out.

    get("double-gate").reduce(rows).metrics

A protocol never calls a model. It says which asks a case needs next, given the grades so far, and reduces graded
rows (ours, or anybody's ``graded.jsonl``) to metrics and labelled case sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any
from typing import Protocol as TypingProtocol

from ...errors import InputError
from ..asks import OUTCOMES, Ask, Grade, Outcome
from ..cases import Case, declared_bin, shares
from ..metrics import Metric

GRADED_SCHEMA = 1
_NUMBERED = re.compile(r"(?:no-preamble/)?(part|scaffold|placeholder):")
_NUMBER = re.compile(r"[0-9]{1,3}(?=:|$)")


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
    """Shared fact that a ``part:i:paraphrase:j`` row probes: its probes count once over all cases."""
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
    def shares(self) -> Hashable:
        """What the case shares with others, as ``dependence`` takes it; None where it stands alone."""
        return shares(self.cluster, self.crossed)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the row: the exchange fields always, the others where they are set."""
        row: dict[str, Any] = {"schema": GRADED_SCHEMA}
        for name in _FIELDS:
            value = getattr(self, name)
            if name in _ALWAYS or value not in (None, False, ()):
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
        known = {k: v for k, v in raw.items() if k in _FIELDS and v is not None}
        for name in ("case", "role", "outcome"):
            if name not in known:
                raise InputError(f"{where}: field {name!r} is missing; every row needs case, role and outcome")
        if known["outcome"] not in OUTCOMES:
            raise InputError(f"{where}: outcome is {known['outcome']!r}; use one of {', '.join(OUTCOMES)}")
        for name, value in known.items():
            known[name] = _typed(name, value, where)
        extra = {k: v for k, v in raw.items() if k not in _FIELDS and k != "schema"}
        return Graded(**known, extra=extra)

    @staticmethod
    def of(case: Case, ask: Ask, grade: Grade, *, ask_id: str | None, model: str | None, run: str | None) -> Graded:
        """The row of one graded ask."""
        skills = tuple(part.skill or "" for part in case.parts)
        return Graded(
            case=case.id,
            role=ask.role,
            outcome=grade.outcome,
            benchmark=case.benchmark,
            family=case.family,
            depth=case.depth,
            depth_bin=case.depth_bin,
            cluster=case.cluster,
            crossed=case.crossed,
            atom=ask.atom,
            skills=skills if any(skills) else (),
            kind=ask.kind,
            repeat=ask.repeat,
            model=model,
            run=run,
            ask=ask_id,
            reason=grade.reason,
            answer=grade.answer,
            gold=ask.gold,
            match=grade.match,
            domain=case.domain,
            operation=case.operation,
            prompt=ask.format,
            unknowable=case.unknowable,
            chance=case.chance,
        )


_FIELDS = tuple(f.name for f in fields(Graded) if f.name != "extra")
_ALWAYS = frozenset(
    "case benchmark family depth cluster atom skills role kind repeat model run ask outcome reason answer gold".split()
)


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
    text = str(value)
    if name in ("case", "role") and not text.strip():
        raise InputError(f"{where}: {name} is empty; give a non-empty string")
    if name == "role" and (kind := _NUMBERED.match(text)):
        least = 0 if kind[1] == "part" else 1
        number = _NUMBER.match(text, kind.end())
        if number is None or int(number[0]) < least:
            raise InputError(f"{where}: role is {text!r}; after {kind[1]!r} give a number from {least} to 999")
    return text


@dataclass(frozen=True)
class Evidence:
    """Why a case carries its label: one graded ask that decided about it."""

    role: str
    outcome: Outcome
    answer: str | None = None
    gold: str | None = None
    ask: str | None = None

    @staticmethod
    def of(row: Graded) -> Evidence:
        return Evidence(row.role, row.outcome, row.answer, row.gold, row.ask)


@dataclass(frozen=True)
class Entry:
    """A case in a case set, with the evidence for its label."""

    case: str
    evidence: tuple[Evidence, ...]
    family: str | None = None
    depth: int | None = None
    cluster: str | None = None
    model: str | None = None
    value: Any = None
    """A value that belongs to the label, such as k for ``scaffold-k``."""

    def to_dict(self, case_set: CaseSet) -> dict[str, Any]:
        """One line of ``casesets/NAME.jsonl``."""
        row = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "evidence"}
        evidence = [{f.name: getattr(e, f.name) for f in fields(e)} for e in self.evidence]
        return {"schema": 1, "set": case_set.name, "label": case_set.label, **row, "evidence": evidence}


@dataclass(frozen=True)
class CaseSet:
    """Cases that share a label; the probes compare such sets."""

    name: str
    """``residual-failure``, ``both-right-whole-wrong``, ..."""
    label: str
    """``failure`` or ``success``: which side of a contrast it is (``other`` where it is neither)."""
    entries: tuple[Entry, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(e.case for e in self.entries)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The lines of ``casesets/NAME.jsonl``."""
        return [e.to_dict(self) for e in self.entries]


@dataclass(frozen=True)
class Reduction:
    """The result of a protocol: metrics, case sets and warnings."""

    metrics: tuple[Metric, ...]
    case_sets: tuple[CaseSet, ...] = ()
    warnings: tuple[str, ...] = ()

    def case_set(self, name: str) -> CaseSet:
        """The case set of that name (``KeyError`` where the protocol has none)."""
        for s in self.case_sets:
            if s.name == name:
                return s
        raise KeyError(name)


@dataclass(frozen=True)
class About:
    """The description of a protocol: everything about it that other modules need to know.

    The class of a protocol has it as ``about``; a class without one has the defaults.
    """

    roles: tuple[str, ...] = ()
    """Roles that it counts: N is a number from 0 (levels: from 1), WAY any name. Empty: no role is checked."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Its own command-line options (with underscores), and the field of the class that each sets."""
    asks_parts: bool = False
    """Whether it asks the parts, whatever their number, so that cases need some."""
    short_answers: bool = False
    """Whether it asks for an answer without written steps where the gold answers are short."""
    two_steps: bool = False
    """Whether the parts are a first and a second step, the same for every case."""
    headline: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Metrics that a run's summary shows, with the keys of their groups; empty: all without a group."""
    columns: tuple[tuple[str, str, str], ...] = (
        ("composition", "whole right", "rate"),
        ("both", "all parts right", "rate"),
        ("any_scaffold", "right with any scaffold", "rate"),
        ("independence_gap", "whole − S1·S2", "points"),
    )
    """Columns of the report's first table: metric, heading, and ``rate``, ``points`` or ``number``."""
    examples: tuple[str, Callable[[Sequence[dict[str, str]]], list[Any]]] | None = None
    """File of its worked examples (in ``exemplars/``), and the function that makes examples of its lines."""
    example_kinds: Mapping[str, str] = field(default_factory=dict)
    """Kind of worked example that a role takes, where that is not the role itself."""


class Protocol(TypingProtocol):
    """A published way to ask and to count. Its class may hold an ``about``."""

    @property
    def name(self) -> str:
        """The command-line name."""
        ...

    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        """The asks that this case needs next.

        Called again after every round with all grades so far, by role; returns only asks whose role is not in
        ``graded``. An empty list means that the case is done.
        """
        ...

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        """Metrics, case sets and warnings from graded rows; ``cases`` add what the rows do not say (K, skills)."""
        ...
