"""Name the probes that no run of the report has, with the command that runs them."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...probes.catalog import PROBES
from ..run.reader import RunData


@dataclass(frozen=True)
class NotRun:
    """Probes that were not run, and how to run them."""

    titles: str
    command: str
    """The command that runs them; empty if probes would have nothing to compare."""
    reason: str
    """Why there is no command, or a note on the command."""


def missing(runs: Sequence[RunData]) -> NotRun | None:
    """The probes that ran in none of the runs; None if each probe ran in some run."""
    usual = [p for p in PROBES.own.values() if p.standard]
    absent = [p for p in usual if not any(run.probe(p.name) for run in runs)]
    if not absent:
        return None
    titles = ", ".join(p.title for p in absent)
    groups = [(run, _groups(run)) for run in runs]
    able = [run for run, (failures, successes) in groups if failures and successes]
    if not able:
        return NotRun(titles, "", _no_contrast(groups))
    chosen = "" if len(absent) == len(usual) else f" --probes {','.join(p.name for p in absent)}"
    others = f"and the same for {len(able) - 1} other runs" if len(able) > 2 else "and the same for the other run"
    return NotRun(
        titles, f"composcope probe {shlex.quote(place(able[0].path))}{chosen}", others if len(able) > 1 else ""
    )


def _groups(run: RunData) -> tuple[int, int]:
    said = [found.label for found in run.case_sets.values() for _ in found.entries]
    return said.count("failure"), said.count("success")


def _no_contrast(groups: Sequence[tuple[RunData, tuple[int, int]]]) -> str:
    failures, successes = (sum(found[i] for _, found in groups) for i in (0, 1))
    lacking = [word for word, n in (("failure", failures), ("success", successes)) if not n]
    what = f"no {' and no '.join(lacking)} with every part right" if lacking else "no run with failures and successes"
    return f"there is {what}, so probes have nothing to compare here"


def place(path: Path) -> str:
    """The folder as a user would type it: relative to the current folder if it is inside it."""
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)
