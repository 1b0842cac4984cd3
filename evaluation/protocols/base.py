"""The types of every protocol: Graded rows in, Metrics and CaseSets out.

    get("double-gate").reduce(rows).metrics

A protocol never calls a model. It says which asks a case needs next, given the grades so far, and reduces graded
rows (ours, or anybody's ``graded.jsonl``) to metrics and labelled case sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any
from typing import Protocol as TypingProtocol

from ..asks import Ask, Grade, Outcome
from ..case import Case
from ..graded import Graded
from ..metrics import Metric


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
