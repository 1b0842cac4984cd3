"""Why cases failed, as `composcope diagnose` found it: in a sentence, as a list, and for each case; and how to get
more.

Also the probes that no run of the report has, with the command that runs them.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from ...probes.catalog import PROBES
from ..run.diagnosis import TEXTS, Diagnosis, meaning, read_diagnosis
from ..run.reader import RunData
from ..run.summary import diagnosed_failures, of_known_parts

UNNAMED = ("fragile", "undetermined")
"""Results of a diagnosis that name no cause."""
AT_ONCE = 3
"""Up to this many equally frequent causes are named in one sentence; of more, only the number is given."""


@dataclass(frozen=True)
class CauseShare:
    """The failures with one result of the diagnosis."""

    means: str
    """The result in words."""
    count: int
    address: str
    """The address of those cases."""
    cause: str


@dataclass(frozen=True)
class Causes:
    """The causes of a run's failures, as the page shows them."""

    because: str
    """The most frequent cause (or several, if they are equally frequent), in words; empty if none was asked for."""
    named: tuple[CauseShare, ...]
    """The causes that answers or interventions show, the most frequent first."""
    unnamed: tuple[CauseShare, ...]
    """The results that name no cause."""
    n: int
    """How many failures were diagnosed."""
    left_out: str
    """Which diagnosed cases are not counted, as a sentence; empty if all are."""
    missing: str
    """The failures for which no cause was asked, in words; empty if there are none, or if there is no model to open."""
    command: str
    """The command that diagnoses them."""

    @property
    def diagnosed(self) -> bool:
        """Whether a diagnosis was made."""
        return bool(self.n or self.left_out)

    @property
    def n_named(self) -> int:
        """How many failures have a cause that answers or interventions show."""
        return sum(share.count for share in self.named)


def causes_of(run: RunData, only: Mapping[str, str], failures: int) -> Causes:
    """The causes of a run's ``failures`` for the page's first screen; ``only`` leads to them in addresses."""
    diagnosed = diagnosed_failures(run)
    found = diagnosed.found if diagnosed else None
    shares = [
        CauseShare(meaning(s.cause), s.count, urlencode({**only, "cause": s.cause}, errors="replace"), s.cause)
        for s in (found.causes() if found else ())
    ]
    named, unnamed = (tuple(s for s in shares if (s.cause in UNNAMED) == without) for without in (False, True))
    n, left_out = len(found.verdicts) if found else 0, diagnosed.left_out() if diagnosed else ""
    left = failures - n if run.config is not None else 0
    who = "they" if not n else "the other one" if left == 1 else f"the other {left}"
    missing, asked = (f"Why {who} failed is not known yet.", command(run)) if left > 0 else ("", "")
    return Causes(_because(found), named, unnamed, n, left_out, missing, asked)


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
    """The most frequent causes, with the number of cases that show each, of all that were diagnosed."""
    if diagnosis is None or not diagnosis.verdicts:
        return ""
    named = [s for s in diagnosis.causes() if s.cause not in UNNAMED]
    n = len(diagnosis.verdicts)
    if not named:
        return f"Why: no cause is shown in {n} of {n} diagnosed failures."
    most, equal = named[0], [s for s in named if s.count == named[0].count]
    means = "; ".join(meaning(s.cause) for s in equal)
    if len(equal) > AT_ONCE:
        means = f"{len(equal)} causes, equally often"
    spans = {(s.low, s.high) for s in equal}
    low, high = spans.pop() if len(spans) == 1 else (None, None)
    ends = "" if low is None or high is None else f" [{100 * low:.0f}, {100 * high:.0f}]"
    unnamed = sum(s.count for s in diagnosis.causes() if s.cause in UNNAMED)
    share = f"{100 * most.share:.0f}\u00a0%{ends}" + (f"; no cause is shown in {unnamed}" if unnamed else "")
    lead = "Why" if len(equal) * most.count == n else "Why, as far as it is shown" if unnamed else "Why, most often"
    each = "each " if len(equal) > 1 else ""
    return f"{lead}: {means} ({each}{most.count} of {n} diagnosed failures: {share})."


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
    able = [run for run in runs if all(run.groups)]
    if not able:
        lacking = [word for i, word in enumerate(("failure", "success")) if not any(run.groups[i] for run in runs)]
        known = min((of_known_parts(run.protocol) for run in runs), default="")
        every = f"no {' and no '.join(lacking)}{known}"
        what = every if lacking else "no run with failures and successes"
        return NotRun(titles, "", f"there is {what}, so probes have nothing to compare here")
    chosen = "" if len(absent) == len(usual) else f" --probes {','.join(p.name for p in absent)}"
    others = f"and the same for {len(able) - 1} other runs" if len(able) > 2 else "and the same for the other run"
    run = f"composcope probe {shlex.quote(place(able[0].path))}{chosen}"
    return NotRun(titles, run, others if len(able) > 1 else "")


def place(path: Path) -> str:
    """The folder as a user would type it: relative to the current folder if it is inside it."""
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)
