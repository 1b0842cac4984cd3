"""Text summaries: one run's headline metrics with n, interval and chance level, one line for each run, failing cases.

Which failures a run counts, and which of them were diagnosed, is said here once: pages, figures and lists agree on it.
"""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError, InputError
from ...evaluation import dependence
from ...evaluation.graded import Graded
from ...evaluation.metrics import DIFFERENCES, MEANINGS, NUMBERS, Metric, censored, percent, points, quoted, span
from ...evaluation.protocols import counting
from ...evaluation.protocols.base import PROTOCOLS, Entry, Evidence, about
from ...evaluation.statistics import method_shown
from ...terminal import how_many
from .diagnosis import Diagnosis, count, meaning, read_diagnosis, shortened
from .folder import is_run, probed_cases, unfinished
from .reader import RunData
from .schema import Manifest, Metrics

_CASES = 3
"""Failing cases that are shown of each set."""
_SHARES = (*MEANINGS, "code_gain")
"""Shares (where they are no ``NUMBERS`` or ``DIFFERENCES``) and a change in percent; others are those of plugins."""
_OF_RATES = ("clopper-pearson", "korn-graubard", dependence.FEW)
"""Beginnings of the methods of a rate's interval."""


AGREEMENT = ("judge_agreement", "human_agreement", "human_precision", "human_recall")
"""Metrics of grades that were given twice."""


def lines(folder: str | Path) -> list[str]:
    """The headline of a run folder: model and benchmark, metrics, case sets, warnings."""
    run = RunData(Path(folder))
    counted = run.counted_now()
    model, benchmark = (run.manifest.identity.get(key) for key in ("model", "benchmark"))
    out = [f"{folder}: {model} on {benchmark} ({counted.protocol}), {state(run.manifest)}"]
    out += [f"  {line}" for line in metric_lines(_shown(counted))]
    if run.chance is not None:
        out.append(f"  chance level of the whole: {100 * run.chance:.1f} %{chance_stated([run])}")
    for name, found in run.case_sets.items():
        out.append(f"  case set {name}: {len(found.entries)}")
        out += [f"    {entry_line(e)}" for e in found.entries[:_CASES] if found.label == "failure"]
    if any(found.label == "failure" and found.entries for found in run.case_sets.values()):
        out.append(f"  every failing case: composcope ls {shlex.quote(str(folder))} --failures")
    return out + [f"  warning: {w}" for w in counted.warnings]


def _shown(counted: Metrics) -> list[Metric]:
    first = headline(counted)
    return [*first, *(row for row in counted.metrics if row.metric in AGREEMENT and row not in first)]


def n_asked(run: RunData) -> str:
    """How many cases a run asked, in words; of how many, where it was stopped before it had asked all."""
    every, asked = how_many(len(run.cases), "case"), len({row.case for row in run.graded} & run.cases.keys())
    return f"{asked} of {every}" if asked < len(run.cases) else every


def n_chance(run: RunData) -> int:
    """How many cases of a run state their chance level: its own is the mean over these."""
    return sum(case.chance is not None for case in run.cases.values())


def chance_stated(runs: Sequence[RunData]) -> str:
    """For how many cases a chance level is stated, in brackets after a space; empty where it is for all cases."""
    counts = [(n_chance(run), len(run.cases)) for run in runs if run.chance is not None]
    said = dict.fromkeys(f"{n} of {every} cases" for n, every in counts if n < every)
    return f" (stated for {' and '.join(said)})" if said else ""


def entry_line(entry: Entry) -> str:
    """A failing case in short: its id, what was answered where it failed, and what is right.

    >>> entry_line(Entry("oslo", (Evidence("whole", "incorrect", "euro", "krone"),)))
    "oslo: answered 'euro', right is 'krone'"
    """
    wrong = _wrong(entry)
    return entry.case if wrong is None else f"{entry.case}: {_answered(wrong.outcome, wrong.answer, wrong.gold)}"


def _answered(outcome: str | None, answer: str | None, gold: str | None) -> str:
    said = str(outcome) if answer is None else f"answered {shortened(answer)}"
    return said + ("" if gold is None else f", right is {shortened(gold)}")


def state(manifest: Manifest) -> str:
    """A run's progress in words: its status, or the limit that stopped it before everything was asked."""
    done = manifest.status == "complete"
    return f"stopped by {manifest.stopped}" if manifest.stopped and done else str(manifest.status)


def document(folder: str | Path) -> dict[str, Any]:
    """The content of ``lines`` as JSON, with metrics as in ``metrics.json``, and the names of probes with results."""
    run = RunData(Path(folder))
    counted, manifest = run.counted_now(), run.manifest
    return {
        "schema": 1,
        "run": str(folder),
        **{key: manifest.identity.get(key) for key in ("model", "benchmark", "protocol")},
        "status": manifest.status,
        "n_cases": manifest.n_cases,
        "n_invalid": manifest.n_invalid,
        "stopped": manifest.stopped,
        "metrics": [m.to_dict() for m in _shown(counted)],
        "chance": run.chance,
        "n_chance": n_chance(run),
        "case_sets": {name: len(found.entries) for name, found in run.case_sets.items()},
        "probes": [name for name in run.probe_names if (run.path / "probes" / name / "result.json").is_file()],
        "warnings": counted.warnings,
    }


def headline(counted: Metrics) -> list[Metric]:
    """The metrics to show first; for a protocol that names none, every ungrouped metric."""
    rows = counted.metrics
    wanted = about(counted.protocol).headline
    if not wanted:
        return [r for r in rows if not r.group]
    if not any("depth_bin" in r.group for r in rows):  # the benchmark declares no bins
        wanted = tuple((name, tuple("depth" if k == "depth_bin" else k for k in keys)) for name, keys in wanted)
    return [r for name, keys in wanted for r in rows if r.metric == name and tuple(r.group) == keys]


def metric_lines(rows: Sequence[Metric]) -> list[str]:
    """Metrics as text, one line each; the first line of each metric says what its name means."""
    out, said = [], set[str]()
    for row in rows:
        means = MEANINGS.get(row.metric) if row.metric not in said else None
        said.add(row.metric)
        if means and row.note:  # the meaning may say some of it, too
            other = [one for one in row.note.split("; ") if not means.startswith(one.replace(" - ", " − "))]
            row = replace(row, note="; ".join(other) or None)
        out.append(metric_line(row) + (f": {means}" if means else ""))
    return out


def metric_line(metric: Metric) -> str:
    """One metric as text: name, group, value, interval with its method, counts, and the bounds with what was invalid.

    A value never appears without n.
    """
    m = quoted(metric)
    group = ", ".join(f"{k}={v}" for k, v in m.group.items())
    shown = _unit(m)
    beyond = censored(m)
    value = (beyond or "undefined") if m.value is None else shown(m.value)
    text = f"{m.metric}{f' [{group}]' if group else ''}: {value}"
    if ends := span(m.low, m.high, shown):
        text += f"{ends} ({method_shown(m.interval)})"
    elif m.interval == dependence.FEW and m.value is not None:
        text += f" ({dependence.FEW})"
    text += f", n={m.n}"
    if m.n_invalid:
        text += f", invalid={m.n_invalid}"
        if m.bound_low is not None and m.bound_high is not None:
            text += f" (with these {shown(m.bound_low)} to {shown(m.bound_high)})"
    note = (m.note or "").removeprefix(beyond).removeprefix("; ")
    return text + (f" ({note})" if note else "")


def _unit(metric: Metric) -> Callable[[float], str]:
    """How values of a metric are written: as a protocol's columns declare it, or as its interval shows it.

    A plugin's metric whose interval is not one of rates is a difference of rates, if no column says ``number``.
    """
    name = metric.metric
    declared = {column[0]: column[2] for known in PROTOCOLS for column in about(known).columns}
    if name in NUMBERS or declared.get(name) == "number":
        return "{:.2f}".format
    if name in DIFFERENCES or declared.get(name) == "points":
        return points
    other = name not in _SHARES and name not in declared and not (metric.interval or _OF_RATES[0]).startswith(_OF_RATES)
    return points if other else percent


def list_folder(folder: str | Path) -> list[dict[str, Any]]:
    """One row per run in a folder, sorted by path."""
    return [_row(p) for p in runs_in(folder)]


def runs_in(folder: str | Path) -> list[Path]:
    """The run folders in a folder, sorted. Searches two levels, since a study folder contains several runs."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder that holds your runs")
    candidates = [folder, *folder.glob("*"), *folder.glob("*/*")]
    return [p for p in sorted(candidates) if p.is_dir() and is_run(p)]


def _row(folder: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"run": str(folder), "status": "unreadable", "headline": None}
    run = RunData(folder)
    try:
        manifest = run.manifest
        row |= {key: manifest.identity.get(key) for key in ("model", "benchmark", "protocol")}
        row |= {"status": manifest.status, "cases": manifest.n_cases, "created": manifest.created}
        row |= {"stopped": manifest.stopped, "state": state(manifest)}
        found = headline(run.counted) if run.counted else []
        alone = [m for m in found if not m.group]
        first = [m for m in alone if m.metric in ("composition", "residual_failure")] or alone
        row["headline"] = metric_line(first[0]) if first else None
    except ComposcopeError as e:
        row["error"] = str(e)
    return row


def listing_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows as text, one line each."""
    if not rows:
        return ["no runs here; make one with: composcope demo"]
    return [
        f"{r['run']}  {r.get('state') or r['status']}  {r.get('model')}  {r.get('benchmark')}  {r.get('protocol')}"
        f"  cases={r.get('cases')}  {r.get('headline') or r.get('error') or ''}".rstrip()
        for r in rows
    ]


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


def counted_rows(run: RunData) -> list[Graded]:
    """The graded rows as the run's metrics count them: some papers count what could not be judged as wrong."""
    return counting.published(run.graded, run.counted.compat if run.counted else None)


def counted_failures(run: RunData) -> set[str]:
    """The failures that a run counts: the cases of its sets of failures.

    Without such cases, those with every part right and the whole judged not right: a whole that could not be judged is
    invalid, not failed.
    """
    if named := run.groups[0]:
        return set(named)
    return {id for id, case in run.cases.items() if _failed(run.outcomes.get(id, {}), len(case.parts))}


_WRONG, _OPEN = ("incorrect", "abstained"), ("invalid",)


def _failed(outcomes: Mapping[str, str], n_parts: int, whole: Collection[str] = _WRONG) -> bool:
    known = n_parts > 0 and all(outcomes.get(f"part:{i}") == "correct" for i in range(n_parts))
    return known and outcomes.get("whole") in whole


def diagnosed_failures(run: RunData) -> Diagnosed | None:
    """The diagnosis of a run's counted failures; None if the run has not been diagnosed.

    A diagnosis may hold other cases, which its user named. Rates and sets of failures leave them out, so shares of
    causes that stand beside those have to leave them out, too.
    """
    diagnosis = read_diagnosis(run.path)
    if diagnosis is None:
        return None
    failing = counted_failures(run)
    unjudged = {row.case for row in run.graded if row.role == "whole" and row.outcome == "invalid"}
    kept = [v for v in diagnosis.verdicts if v.case in failing]
    left = len(diagnosis.verdicts) - len(kept)
    cannot = sum(v.case in unjudged - failing for v in diagnosis.verdicts)
    shares = count(kept, run.cases) if left else diagnosis.shares
    # The run may have been evaluated again with other cases, so its failures are counted now.
    about = {**diagnosis.about, "failures": len(failing), "unjudged": sum(v.case in unjudged for v in kept)}
    return Diagnosed(replace(diagnosis, verdicts=kept, shares=shares, about=about), cannot, left - cannot)


def causes_now(run: RunData) -> str | None:
    """One sentence on the causes of the failures that a run counts; None if it has not been diagnosed.

    If only wholes that could not be judged were diagnosed, the sentence is about those.
    """
    diagnosed = diagnosed_failures(run)
    if diagnosed is None:
        return None
    found, left_out = diagnosed.found, diagnosed.left_out()
    if not found.verdicts and diagnosed.unjudged:
        unjudged = {id for id, case in run.cases.items() if _failed(run.outcomes.get(id, {}), len(case.parts), _OPEN)}
        kept = [v for v in (read_diagnosis(run.path) or found).verdicts if v.case in unjudged]
        about = {**found.about, "failures": len(unjudged), "unjudged": len(kept)}
        found, left_out = replace(found, verdicts=kept, shares=count(kept, run.cases), about=about), ""
    said = found.sentence(words=True) if found.verdicts or not left_out else ""
    return " ".join(filter(None, (said, left_out)))


def measured_on_others(run: RunData, probe: str) -> str:
    """How many of a probe's cases are no longer those of the run, in words; empty if it ran on the run's own cases.

    A run may be evaluated again with fewer cases, or graded otherwise, after it was probed.
    """
    if not (run.path / "probes" / probe / "inputs.json").is_file():  # which cases it ran on is not known
        return ""
    ran = {group: set(cases) for group, cases in probed_cases(run.path, probe).get("groups", {}).items()}
    every, (failures, successes) = set[str]().union(*ran.values()), map(set, run.groups)
    gone = every - run.cases.keys()
    now = ran.get("failure", set()) & (successes - failures) | ran.get("success", set()) & (failures - successes)
    kinds = ((len(gone), "no longer in the run"), (len(now), "labelled otherwise now"))
    said = [f"{n} of its {len(every)} cases {'is' if n == 1 else 'are'} {what}" for n, what in kinds if n]
    return ", ".join(said)


def of_known_parts(protocol: str | None) -> str:
    """What a protocol's failures and successes have in common, after a space; empty if their parts may be wrong."""
    return " with every part right" if about(protocol).gates_parts else ""


def none_decided(rows: Iterable[Graded], protocol: str | None) -> bool:
    """Whether every case has a whole that could not be judged, or a part without which the protocol cannot say if it
    failed: then more cases like these would not help.
    """
    needed = r"whole|part:\d+" if about(protocol).gates_parts else "whole"
    asked = [row for row in rows if re.fullmatch(needed, row.role)]
    unjudged = {row.case for row in asked if row.outcome == "invalid"}
    return bool(unjudged) and unjudged == {row.case for row in asked}


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
        answered = _answered(row["outcome"], row["answer"], row["gold"])
        cause = f" ({row['cause']}: {meaning(row['cause'])})" if row["cause"] else ""
        asked = f": {_both_ends(row['question'])}" if row["question"] else ""
        out.append(f"{row['run'] + '  ' if several else ''}{row['case']}: {answered}{cause}{asked}")
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
