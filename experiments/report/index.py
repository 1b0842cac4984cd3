"""The index of the case browser: one short row per case, with every field that the filters use.

Among them: which gates each case passed, and the k of its scaffold ladder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...evaluation.asks import OUTCOMES
from ...evaluation.graded import Graded
from ...evaluation.protocols import counting
from ...evaluation.protocols.collapse_depth import Gated
from ...evaluation.protocols.double_gate import gate_cases
from ..figures.grouping import labels
from ..run.reader import RunData
from .origins import KINDS, MEANS, Origin

COLUMNS = ("run", "case", "family", "depth", "operation", "roles", "sets", "gate", "skills", "k", "question", "gold",
           "answer", "origin", "detail", "twin")  # fmt: skip
LONGEST = 120
ENDING = 75
"""Characters that are shown of the end of a long question: what is asked often stands there."""
_PART_AT_END, _PART_AT_START = re.compile(r"\s\S{0,15}$"), re.compile(r"^\S{0,15}\s")


def order(run: RunData) -> list[str]:
    """Case ids in the benchmark's order, followed by those that appear only in graded rows."""
    return list(dict.fromkeys([*run.cases, *(g.case for g in run.graded)]))


def by_case(run: RunData) -> dict[str, list[Graded]]:
    """Graded rows of every case, including cases without any."""
    out: dict[str, list[Graded]] = {c: [] for c in order(run)}
    for g in run.graded:
        out[g.case].append(g)
    return out


@dataclass(frozen=True)
class Told:
    """Facts about a run's failing cases that its list shows."""

    origins: Mapping[str, Origin]
    """The origin of each wrong whole."""
    twins: Mapping[str, str] = field(default_factory=dict)
    """For each failure, the success that is shown with it."""


def index(runs: Sequence[RunData], told: Sequence[Told]) -> dict[str, Any]:
    """Rows of all runs. Repeated names (roles, skills, sets, families) are stored as positions in lists."""
    names = labels(runs)
    lists: dict[str, dict[str, int]] = {"roles": {}, "skills": {}, "sets": {}, "families": {}}
    rows = [row for i, run in enumerate(runs) for row in _rows(run, i, lists, told[i])]
    return {
        "runs": [{"label": names[r.path], "name": r.name, "benchmark": r.benchmark, "protocol": r.protocol}
                 for r in runs],
        "columns": list(COLUMNS), "rows": rows, "gates": list(GATES), "outcomes": list(OUTCOMES),
        "origins": list(KINDS.values()), "origins_mean": [MEANS[kind] for kind in KINDS],
        **{name: list(values) for name, values in lists.items()},
    }  # fmt: skip


def _rows(run: RunData, number: int, lists: Mapping[str, dict[str, int]], told: Told) -> Iterator[list[Any]]:
    sets, gated, levels = _sets_of(run), gates(run), ladder_k(run)

    def place(name: str, value: Any) -> int:
        return lists[name].setdefault(str(value), len(lists[name]))

    for case, graded in by_case(run).items():
        known = run.cases.get(case)
        about = known or graded[0]
        outcomes: dict[int, str] = {}
        for g in graded:
            outcomes.setdefault(place("roles", g.role), str(OUTCOMES.index(g.outcome)))
        own = [p.skill for p in known.parts if p.skill] if known else []
        skills = {place("skills", s) for s in own or (graded[0].skills if graded else ())}
        mine = [place("sets", s) for s in sets.get(case, [])]
        whole = next((g for g in graded if g.role == "whole"), None)
        origin = told.origins.get(case)
        yield [
            number, case, None if about.family is None else place("families", about.family), about.depth,
            about.operation, _dense(outcomes), mine, GATES.index(gated[case]) if case in gated else None,
            sorted(skills), levels.get(case), _both_ends(known.question if known else ""),
            _short(known.answer if known else str((whole and whole.gold) or "")),
            _short(str(whole.answer)) if whole and whole.answer is not None else None,
            list(KINDS).index(origin.kind) if origin else None, _short(origin.detail) if origin else "",
            told.twins.get(case),
        ]  # fmt: skip


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _both_ends(text: str) -> str:
    """A question cut in the middle: many questions of one kind begin alike and differ at their end."""
    if len(text) <= LONGEST:
        return text
    begins, ends = text[: LONGEST - ENDING - 3], text[-ENDING:]
    return f"{_PART_AT_END.sub('', begins)} … {_PART_AT_START.sub('', ends)}"


def _dense(outcomes: Mapping[int, str]) -> str:
    """One character per role, in the order of the roles: the outcome's number, or a dot if the role was not asked."""
    return "".join(outcomes.get(i, ".") for i in range(max(outcomes, default=-1) + 1))


def _sets_of(run: RunData) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for name, found in run.case_sets.items():
        for case in found.ids:
            out.setdefault(case, []).append(name)
    return out


PASSED, ATOMS, PARTS, OPEN = "passed every gate", "stopped at the atoms", "stopped at the parts", "not decided"
GATES = (PASSED, ATOMS, PARTS, OPEN)


def gates(run: RunData) -> dict[str, str]:
    """For each case, the gate that stopped it, or that it passed every gate.

    The atoms gate needs every wording of every atom right; the parts gate needs every sub-question right. A case that
    fails both is stopped at the atoms, which come first. An answer that could not be judged leaves a gate undecided
    unless another answer fails it. Cases without parts are left out.
    """
    cases = run.cases if any(":paraphrase:" in r.role for r in run.graded) else None
    compat = run.config.asking.compat if run.config else None
    found: dict[str, str] = {}
    for gated in gate_cases(counting.published(run.graded, compat), cases):
        if gated.item.n_parts:
            found.setdefault(gated.item.case, _stopped(gated))
    return found


def _stopped(gated: Gated) -> str:
    if gated.has_atoms and gated.atom is False:
        return ATOMS
    if gated.sub is False:
        return PARTS
    return PASSED if gated.double is True else OPEN


def ladder_k(run: RunData) -> dict[str, Any]:
    """k of each case, from the run's own case sets: 0 if solved unaided, the level that was enough, -1 if none was."""
    names = ("unaided", "scaffold-k", "intractable")
    sets = [run.case_sets[n] for n in names if n in run.case_sets]
    return {e.case: e.value for found in sets for e in found.entries if e.value is not None}
