"""Why cases failed, as `composcope diagnose` found it: in a sentence, as a list, for each case, and how to get more."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from ..run.diagnosis import TEXTS, Diagnosis, meaning, read_diagnosis
from ..run.reader import RunData
from .not_run import place

UNNAMED = ("fragile", "undetermined")
"""Results of a diagnosis that name no cause."""


@dataclass(frozen=True)
class Causes:
    """The causes of a run's failures, as the page shows them."""

    because: str
    """The most frequent cause, in words; empty if none was asked for."""
    shares: tuple[tuple[str, int, str, str], ...]
    """In words, number of cases, the address of those cases, and the name; the most frequent first."""
    n: int
    """How many failures were diagnosed."""
    missing: str
    """Of which failures no cause was asked for, in words; empty if of none, or if there is no model to open."""
    command: str
    """The command that diagnoses them."""


def causes_of(run: RunData, label: str, failures: int) -> Causes:
    """The causes of a run's ``failures`` for the page's first screen; ``label`` names the run in addresses."""
    found = read_diagnosis(run.path)
    shares = tuple(
        (meaning(s.cause), s.count, urlencode({"run": label, "cause": s.cause}), s.cause)
        for s in (found.causes() if found else ())
    )
    n = len(found.verdicts) if found else 0
    if run.config is None or n >= failures:
        return Causes(_because(found), shares, n, "", "")
    left = failures - n
    who = "they" if not n else "the other one" if left == 1 else f"the other {left}"
    return Causes(_because(found), shares, n, f"Why {who} failed is not known yet.", command(run))


def command(run: RunData) -> str:
    """The command that names the causes of a run's failures; empty for imported rows, which have no model to open."""
    if run.config is None:
        return ""
    serving = run.config.serving
    served = serving.engine not in ("transformers", "ray") or "://" in run.config.model
    weights = " --model FOLDER" if served and serving.probe_model is None else ""  # only the user knows where they are
    return f"composcope diagnose {shlex.quote(place(run.path))}{weights}"


def by_case(run: RunData) -> dict[str, Any]:
    """The cause of each diagnosed case, with its evidence; empty without a diagnosis."""
    found = read_diagnosis(run.path)
    return {
        v.case: {"means": v.means, **v.row(), "mended_by": TEXTS.get(v.mended_by or "", v.mended_by)}
        for v in (found.verdicts if found else ())
    }


def _because(diagnosis: Diagnosis | None) -> str:
    """The most frequent cause, with the number of cases that show it, of all that were diagnosed."""
    if diagnosis is None or not diagnosis.verdicts:
        return ""
    most = next((s for s in diagnosis.causes() if s.cause not in UNNAMED), None)
    n = len(diagnosis.verdicts)
    if most is None:
        return f"Why: no cause is shown in {n} of {n} diagnosed failures."
    ends = "" if most.low is None or most.high is None else f" [{100 * most.low:.0f}, {100 * most.high:.0f}]"
    share = f"{100 * most.share:.0f}\u00a0%{ends}"
    return f"Why: {meaning(most.cause)} ({most.count} of {n} diagnosed failures: {share})."
