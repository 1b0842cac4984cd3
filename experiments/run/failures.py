"""List failing cases of runs: every part right, the whole wrong; with question, answer, right answer and cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.protocols.base import Entry, Evidence
from .diagnosis import read_diagnosis
from .reader import RunData
from .summary import runs_in, shortened

_ENDS = 150
"""Characters that are shown of each end of a long question: what is asked often stands at its end."""


def failing_cases(folder: str | Path) -> list[dict[str, Any]]:
    """One row per failing case of a run, or of each run in a folder. Raises ``InputError`` if there is no run.

    ``cause`` is what `composcope diagnose` found, and None for a case that was not diagnosed.
    """
    folders = runs_in(folder)
    if not folders:
        raise InputError(f"{folder}: no run here; give a run folder, or a folder that holds runs")
    return [row for path in folders for row in _of_run(RunData(path))]


def failure_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows as text, one line each; rows of several runs begin with the run.

    >>> failure_lines(failing_cases("runs/demo/control--mixed"))[0]
    "mixed-0001: answered '40', right is '32': On the table: glider, cider, oak, ..."
    """
    several = len({row["run"] for row in rows}) > 1
    out = []
    for row in rows:
        answered = row["outcome"] if row["answer"] is None else f"answered {shortened(row['answer'])}"
        gold = "" if row["gold"] is None else f", right is {shortened(row['gold'])}"
        cause = f" ({row['cause']})" if row["cause"] else ""
        asked = f": {_both_ends(row['question'])}" if row["question"] else ""
        out.append(f"{row['run'] + '  ' if several else ''}{row['case']}: {answered}{gold}{cause}{asked}")
    return out


def _of_run(run: RunData) -> list[dict[str, Any]]:
    run.counted_now()  # a run that was not counted has no case sets yet
    found = read_diagnosis(run.path)
    causes = {v.case: v.cause for v in found.verdicts} if found else {}
    rows: dict[str, dict[str, Any]] = {}
    for name, members in run.case_sets.items():
        for entry in members.entries if members.label == "failure" else ():
            about, wrong = run.cases.get(entry.case), _wrong(entry)
            rows.setdefault(entry.case, {
                "run": str(run.path), "case": entry.case, "set": name, "family": entry.family, "depth": entry.depth,
                "question": about.question if about else None, "outcome": wrong.outcome if wrong else "incorrect",
                "answer": wrong.answer if wrong else None,
                "gold": wrong.gold if wrong else about.answer if about else None, "cause": causes.get(entry.case),
            })  # fmt: skip
    return list(rows.values())


def _wrong(entry: Entry) -> Evidence | None:
    """The wrong answer that makes a case a failure: the whole's, where it is part of the evidence."""
    wrong = [e for e in entry.evidence if e.outcome != "correct"]
    return next((e for e in wrong if e.role == "whole"), wrong[0] if wrong else None)


def _both_ends(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 2 * _ENDS else f"{text[:_ENDS]} ... {text[-_ENDS:]}"
