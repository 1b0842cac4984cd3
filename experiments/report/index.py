"""The case browser's index: one light row per case, with everything that its filters ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..figures.io import Row, RunData, labels
from .gates import GATES, gates, ladder_k

OUTCOMES = ("correct", "incorrect", "abstained", "invalid")
COLUMNS = ("run", "case", "family", "depth", "operation", "roles", "sets", "gate", "skills", "k", "question")
QUESTION = 120


def order(run: RunData) -> list[str]:
    """Case ids in the benchmark's order, then those known from graded rows only."""
    return list(dict.fromkeys([*run.cases, *(str(g["case"]) for g in run.graded)]))


def by_case(run: RunData) -> dict[str, list[Row]]:
    """Graded rows of every case, cases without any included."""
    out: dict[str, list[Row]] = {c: [] for c in order(run)}
    for g in run.graded:
        out[str(g["case"])].append(g)
    return out


def index(runs: Sequence[RunData]) -> dict[str, Any]:
    """Rows of all runs. Names that repeat (roles, skills, sets, families) are numbers into lists."""
    names = labels(runs)
    lists: dict[str, dict[str, int]] = {"roles": {}, "skills": {}, "sets": {}, "families": {}}
    rows = [row for i, run in enumerate(runs) for row in _rows(run, i, lists)]
    return {
        "runs": [{"label": names[r.path], "name": r.name, "benchmark": r.benchmark, "protocol": r.protocol}
                 for r in runs],
        "columns": list(COLUMNS), "rows": rows, "gates": list(GATES), "outcomes": list(OUTCOMES),
        **{name: list(values) for name, values in lists.items()},
    }  # fmt: skip


def _rows(run: RunData, number: int, lists: Mapping[str, dict[str, int]]) -> Iterator[list[Any]]:
    sets, gated, levels = _sets_of(run), gates(run), ladder_k(run)

    def place(name: str, value: Any) -> int:
        return lists[name].setdefault(str(value), len(lists[name]))

    for case, graded in by_case(run).items():
        about = run.cases.get(case) or (graded[0] if graded else {})
        outcomes: dict[int, str] = {}
        for g in graded:
            outcomes.setdefault(place("roles", g["role"]), str(outcome(g)))
        skills = {place("skills", s) for s in skills_of(about) or skills_of(graded[0] if graded else {})}
        family, mine = about.get("family"), [place("sets", s) for s in sets.get(case, [])]
        yield [
            number, case, None if family is None else place("families", family), about.get("depth"),
            about.get("operation"), _dense(outcomes), mine, GATES.index(gated[case]) if case in gated else None,
            sorted(skills), levels.get(case), _short(str(about.get("question") or "")),
        ]  # fmt: skip


def _short(question: str) -> str:
    return question if len(question) <= QUESTION else f"{question[: QUESTION - 1]}…"


def outcome(graded: Row) -> int:
    """Number of a row's outcome; what is no outcome counts as invalid."""
    return OUTCOMES.index(graded["outcome"]) if graded.get("outcome") in OUTCOMES else 3


def skills_of(about: Row) -> list[Any]:
    """A case's skills: its own list, else those of its parts."""
    own = about.get("skills")
    if isinstance(own, list) and own:
        return own
    return [p["skill"] for p in about.get("parts") or [] if isinstance(p, dict) and p.get("skill")]


def _dense(outcomes: Mapping[int, str]) -> str:
    """One character a role, in the order of the roles: the outcome's number, a dot where it was not asked."""
    return "".join(outcomes.get(i, ".") for i in range(max(outcomes, default=-1) + 1))


def _sets_of(run: RunData) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for name, entries in run.case_sets.items():
        for entry in entries:
            out.setdefault(str(entry["case"]), []).append(name)
    return out
