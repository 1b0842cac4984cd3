"""The types of every protocol, and every protocol by its name: graded rows in, metrics and case sets out.

    reduce(get("double-gate"), rows).metrics

A protocol never calls a model. It says which asks a case needs next, given the grades so far, and reduces graded rows
(ours, or anybody's ``graded.jsonl``) to metrics and labelled case sets. Two rules hold for all of them: rows in roles
that are not counted give a warning, and answers without preamble are counted separately.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from typing import Any
from typing import Protocol as TypingProtocol

from ...errors import InputError, did_you_mean
from ...registry import PLUGIN_FIRST, Registry
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

    @classmethod
    def of(cls, label: str, cases: Iterable[str]) -> CaseSet:
        """A set of cases of which nothing but the ids is told."""
        return cls(label, label, tuple(Entry(c, ()) for c in cases))

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
        return {s.name: s for s in self.case_sets}[name]


@dataclass(frozen=True)
class About:
    """The description of a protocol: everything about it that other modules need to know.

    The class of a protocol has it as ``about``; a class without one has the defaults.
    """

    roles: tuple[str, ...] = ()
    """Roles that it counts: N is a number from 0 (levels: from 1), WAY any name. Empty: no role is checked."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Its own command-line options (with underscores), and the field of the class that each sets."""
    prepares: Mapping[str, Callable[[Sequence[Case], int], Sequence[Case]]] = field(default_factory=dict)
    """Options that change the cases before anything is asked, and how: from the cases and the seed."""
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
    """Kind of worked example that a role takes, if it is not the role itself."""
    gates_parts: bool = True
    """Whether its sets of failures and successes hold only cases whose parts are all right."""
    needs: tuple[str, ...] = ()
    """Roles without which it has nothing to count (scaffolds: where a whole failed)."""


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


PROTOCOLS: Registry[Callable[..., Protocol]] = Registry(
    "protocols", lambda value: isinstance(value, type) and isinstance(getattr(value, "about", None), About), __package__
)
"""Classes by command-line name; ``get(name, **options)`` makes a protocol of one."""
BARE = "no-preamble/"
"""Prefix of the roles of asks that are repeated without the instruction."""
_SHOWN = 3


def get(name: str, **options: Any) -> Protocol:
    """The protocol of a command-line name, with its options. Raises ``InputError`` for an unknown name or option."""
    found = PROTOCOLS.find(name)
    if found is None:
        raise InputError(
            f"--protocol {name!r} is not known; use one of {', '.join(sorted(PROTOCOLS))}"
            + (did_you_mean(name, PROTOCOLS) or f"; {PLUGIN_FIRST}")
        )
    own = name not in PROTOCOLS.own
    if own and not callable(found):
        raise InputError(f"--protocol {name}: is {found!r:.80}, an object; give its class")
    try:
        made = found(**options)
    except TypeError as e:
        fix = "; give its class each option as a field with a default" if own else ""
        raise InputError(f"--protocol {name}: option not known or wrong ({e}){fix}") from e
    if own:
        _check(made, name)
    return made


_CALLED = {
    "asks": (({}, {}), "asks(self, case, graded), which returns the asks that come next"),
    "reduce": (((), {}), "reduce(self, rows, cases=None), which returns a Reduction"),
}
_MISCALLED = re.compile(r"\brequired (?:positional|keyword-only) arg|unexpected keyword arg|positional arguments? but")
"""In a TypeError of a call whose arguments do not fit, unlike that of ``float(None)``."""


def _check(made: Any, name: str) -> None:
    """Raise ``InputError`` for a protocol of one's own that cannot ask or count, before anything is asked."""
    if (called := getattr(made, "name", None)) != name:
        raise InputError(f"--protocol {name}: field 'name' is {called!r}; make it {name!r}, as it is registered")
    for method, (given, wanted) in _CALLED.items():
        try:
            signature(getattr(made, method)).bind(*given)
        except (AttributeError, TypeError) as e:
            raise InputError(f"--protocol {name}: {type(made).__name__}.{method}: {e}; define {wanted}") from e
    try:
        found = made.reduce((), {})
    except Exception as e:
        if isinstance(e, TypeError) and _MISCALLED.search(str(e)):  # other errors may be of having no rows
            raise InputError(f"--protocol {name}: {type(made).__name__}.reduce: {e}; correct this call") from e
    else:
        _reduction(made, found)


def _reduction(protocol: Protocol, found: Any) -> Reduction:
    if not isinstance(found, Reduction):
        raise InputError(
            f"--protocol {protocol.name}: {type(protocol).__name__}.reduce returns {found!r:.60}; return a Reduction"
        )
    return found


def about(name: str | None) -> About:
    """The description of the protocol of a name; the defaults for an unknown one and for one without a description."""
    return getattr(PROTOCOLS.find(name) if name else None, "about", About())


def uncounted(rows: Iterable[Graded], protocol: str | None) -> list[str]:
    """One warning about rows in roles that a protocol (None: every protocol here) does not count.

    Empty for a protocol that states no roles. Raises ``InputError`` if no row at all is in a role that counts.
    """
    names = PROTOCOLS.own if protocol is None else (protocol,)
    known = tuple(dict.fromkeys(role for name in names for role in about(name).roles))
    if not known:
        return []
    fits, read = _matching(known), list(rows)
    left = [row for row in read if not fits.fullmatch(row.role.removeprefix(BARE))]
    if not left:
        return []
    who = "no protocol counts" if protocol is None else f"{protocol} does not count"
    first = f"the first is case {left[0].case!r}, role {left[0].role!r}"
    examples = [r.replace("N", "0") for r in known if "WAY" not in r]
    fix = f"roles are {', '.join(known)}{did_you_mean(left[0].role.strip().lower(), examples)}"
    if len(left) == len(read) and protocol is not None:
        raise InputError(f"graded rows: none of the {len(read)} is in a role that {protocol} counts; {first}; {fix}")
    counts = Counter(row.role for row in left)
    names = ", ".join(f"{role!r} {n}" for role, n in counts.most_common(_SHOWN))
    more = f" and {len(counts) - _SHOWN} others" if len(counts) > _SHOWN else ""
    return [f"{len(left)} of {len(read)} rows are in roles that {who} ({names}{more}); {first}; {fix}"]


def _matching(roles: Sequence[str]) -> re.Pattern[str]:
    # N is a number, WAY is the rest
    return re.compile("|".join(re.escape(r).replace("N", r"\d+").replace("WAY", ".+") for r in roles), re.DOTALL)


def check_needed(rows: Sequence[Graded], protocol: str, where: str) -> None:
    """Raises ``InputError`` if no row is in a role that a protocol needs: its numbers would be of a remainder."""
    counts = Counter(row.role.removeprefix(BARE) for row in rows)
    having = {i: {row.case for row in rows if row.role.removeprefix(BARE) == f"part:{i}"} for i in (0, 1)}
    one_step = having[0] - having[1]  # has no scaffold
    wholes = [row for row in rows if row.role.removeprefix(BARE) == "whole"]
    failed = any(row.outcome != "correct" and row.case not in one_step for row in wholes)
    for role in about(protocol).needs:
        there_is = any(name == role or name.startswith(f"{role}:") for name in counts)  # in another wording, too
        if there_is or (role.startswith("scaffold:") and not failed):
            continue
        there = ", ".join(f"{name!r} {n}" for name, n in counts.most_common())
        unknown = [name for name in counts if not _matching(about(protocol).roles).fullmatch(name)]
        near = [name for name in unknown if name.strip().lower()[:4] == role[:4]]
        meant = [f"{name!r}: {hint[2:]}" for name in near if (hint := did_you_mean(name.strip().lower(), [role]))]
        fix = meant[0] if meant else "add these rows, or give the protocol that they were asked with"
        raise InputError(f"{where}: no row has the role {role!r}, which {protocol} needs (roles here: {there}); {fix}")


def by_model(rows: Sequence[Graded]) -> list[tuple[dict[str, Any], list[Graded]]]:
    """Rows split by model (and run, where one model has several); the group is empty where there is only one."""
    split: dict[tuple[str | None, str | None], list[Graded]] = {}
    for row in rows:
        split.setdefault((row.model, row.run), []).append(row)
    if len(split) <= 1:
        return [({}, list(rows))]
    models = [m for m, _ in split]
    return [
        ({"model": m} if models.count(m) == 1 else {"model": m, "run": r}, chosen) for (m, r), chosen in split.items()
    ]


def reduce(protocol: Protocol, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
    """The protocol's reduction; rows of roles ``no-preamble/...`` are counted separately.

    Their metrics carry the group ``prompt: no-preamble``; case sets come from the other rows. Neither of the two ways
    is chosen as the better one: both are reported. Rows in roles that the protocol does not count are a warning.

    Raises ``InputError`` where no row is in a role that it counts.
    """
    unknown = uncounted(rows, protocol.name)
    usual = [row for row in rows if not row.role.startswith(BARE)]
    bare = [replace(row, role=row.role.removeprefix(BARE)) for row in rows if row.role.startswith(BARE)]
    found = _of_whom(rows, usual, _reduction(protocol, protocol.reduce(usual, cases)))
    metrics, warnings = list(found.metrics), [*unknown, *found.warnings]
    if bare:
        other = _of_whom(rows, bare, _reduction(protocol, protocol.reduce(bare, cases)))
        for m in other.metrics:
            prompt = " ".join(str(p) for p in ("no-preamble", m.group.get("prompt")) if p)
            metrics.append(replace(m, group={**m.group, "prompt": prompt}))
        warnings += [f"without preamble: {w}" for w in other.warnings]
    return Reduction(tuple(metrics), found.case_sets, tuple(warnings))


def _of_whom(rows: Sequence[Graded], some: Sequence[Graded], found: Reduction) -> Reduction:
    """The result for some of the rows; where these are of one of several models, its metrics name it all the same."""
    whose = {(row.model, row.run) for row in some}
    named = next((group for group, own in by_model(rows) if {(row.model, row.run) for row in own} == whose), {})
    return replace(found, metrics=tuple(replace(m, group={**named, **m.group}) for m in found.metrics))
