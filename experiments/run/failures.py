"""List failing cases of runs: every part right, the whole wrong; with question, answer, right answer and cause.

Which failures a run counts, and which of them were diagnosed, is said here once: pages, figures and lists agree on it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.protocols.base import Entry, Evidence
from ...terminal import how_many
from .diagnosis import Diagnosis, count, meaning, read_diagnosis
from .folder import unfinished
from .reader import RunData
from .summary import runs_in, shortened

_ENDS = 150
"""Characters that are shown of each end of a long question: what is asked often stands at its end."""


@dataclass(frozen=True)
class Diagnosed:
    """The diagnosis of the failures that a run counts, without what else was diagnosed."""

    found: Diagnosis
    """Verdicts and shares of the counted failures only."""
    unjudged: int
    """Diagnosed cases that are left out because their whole could not be judged."""
    outside: int
    """Diagnosed cases that are left out because no set of failures holds them."""

    def left_out(self) -> str:
        """What was diagnosed and is not counted, as a sentence; empty if nothing was."""
        kinds = ((self.unjudged, "whose whole could not be judged"), (self.outside, "outside the sets of failures"))
        said = [f"{how_many(n, 'diagnosed case')} {which}" for n, which in kinds if n]
        return f"Not counted: {', '.join(said)}." if said else ""


def counted_failures(run: RunData) -> set[str]:
    """The failures that a run counts: the cases of its sets of failures.

    Without such cases, those with every part right and the whole judged not right: a whole that could not be judged is
    invalid, not failed.
    """
    named = {id for found in run.case_sets.values() if found.label == "failure" for id in found.ids}
    if named:
        return named
    return {id for id, case in run.cases.items() if _failed(run.outcomes.get(id, {}), len(case.parts))}


def _failed(outcomes: Mapping[str, str], n_parts: int) -> bool:
    known = n_parts > 0 and all(outcomes.get(f"part:{i}") == "correct" for i in range(n_parts))
    return known and outcomes.get("whole") in ("incorrect", "abstained")


def diagnosed_failures(run: RunData) -> Diagnosed | None:
    """The diagnosis of a run's counted failures; None if the run has not been diagnosed.

    A diagnosis may hold other cases, which its user named. Rates and sets of failures leave them out, so shares of
    causes that stand beside those have to leave them out, too.
    """
    diagnosis = read_diagnosis(run.path)
    if diagnosis is None:
        return None
    failing = counted_failures(run)
    unjudged = {row.case for row in run.graded if row.role == "whole" and row.outcome == "invalid"} - failing
    kept = [v for v in diagnosis.verdicts if v.case in failing]
    left = len(diagnosis.verdicts) - len(kept)
    if not left:
        return Diagnosed(diagnosis, 0, 0)
    cannot = sum(v.case in unjudged for v in diagnosis.verdicts)
    return Diagnosed(replace(diagnosis, verdicts=kept, shares=count(kept, run.cases)), cannot, left - cannot)


def failing_cases(folder: str | Path, note: Callable[[str], None] = lambda _: None) -> list[dict[str, Any]]:
    """One row per failing case of a run, or of each finished run in a folder; ``note`` is told of the others.

    Raises ``InputError`` if there is no run, or none that is finished.

    ``cause`` is what `composcope diagnose` found, and None for a case that was not diagnosed.
    """
    folders = runs_in(folder)
    if not folders:
        raise InputError(f"{folder}: no run here; give a run folder, or a folder that holds runs")
    runs = [RunData(path) for path in folders]
    finished = [run for run in runs if run.counted is not None or run.manifest.status == "complete"] or runs
    for run in runs:
        if run not in finished:
            note(f"{run.path}: left out: {unfinished(run.path)}")
    return [row for run in finished for row in _of_run(run)]


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
        cause = f" ({row['cause']}: {meaning(row['cause'])})" if row["cause"] else ""
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
