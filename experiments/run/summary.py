"""Text summaries: one run's headline metrics with n, interval and chance level, or one line for each of many runs."""

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError, InputError
from ...evaluation import dependence
from ...evaluation.metrics import MEANINGS, Metric, percent, points, quoted, span
from ...evaluation.protocols.base import PROTOCOLS, Entry, about
from ...evaluation.statistics import method_shown
from .folder import is_run
from .reader import RunData
from .schema import Manifest, Metrics

_DIFFERENCES = (
    "gap",
    "distraction",
    "leakage",
    "conflation",
    "delta_atom",
    "delta_comp",
    "delta_depth",
    "independence_gap",
)
_CASES, _WIDTH = 3, 80
"""Failing cases that are shown of each set, and characters of an answer."""
_PLAIN = ("d50", "mean_k", "mean_k_solvable")
_SHARES = (*MEANINGS, "code_gain")
"""Shares, and one change in percent of another share, unless named above; other metrics are those of plugins."""
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
    shown = [*headline(counted), *(row for row in counted.metrics if row.metric in AGREEMENT)]
    out += [f"  {line}" for line in metric_lines(shown)]
    if run.chance is not None:
        out.append(f"  chance level of the whole: {100 * run.chance:.1f} %")
    for name, found in run.case_sets.items():
        out.append(f"  case set {name}: {len(found.entries)}")
        out += [f"    {entry_line(e)}" for e in found.entries[:_CASES] if found.label == "failure"]
    if any(found.label == "failure" and found.entries for found in run.case_sets.values()):
        out.append(f"  every failing case: composcope ls {shlex.quote(str(folder))} --failures")
    return out + [f"  warning: {w}" for w in counted.warnings]


def entry_line(entry: Entry) -> str:
    """A failing case in short: its id, what was answered where it failed, and what is right.

    >>> entry_line(Entry("oslo", (Evidence("whole", "incorrect", "euro", "krone"),)))
    "oslo: answered 'euro', right is 'krone'"
    """
    wrong = next((e for e in entry.evidence if e.outcome != "correct"), None)
    if wrong is None:
        return entry.case
    answered = str(wrong.outcome) if wrong.answer is None else f"answered {shortened(wrong.answer)}"
    return f"{entry.case}: {answered}" + ("" if wrong.gold is None else f", right is {shortened(wrong.gold)}")


def shortened(text: str) -> str:
    """A text on one line and in quotation marks; a long one ends with dots."""
    text = " ".join(text.split())
    return repr(text if len(text) <= _WIDTH else f"{text[:_WIDTH]}...")


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
        "metrics": [m.to_dict() for m in headline(counted)],
        "chance": run.chance,
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
    """One metric as text: name, group, value, interval with its method, counts. A value never appears without n."""
    m = quoted(metric)
    group = ", ".join(f"{k}={v}" for k, v in m.group.items())
    shown = _unit(m)
    text = f"{m.metric}{f' [{group}]' if group else ''}: {'undefined' if m.value is None else shown(m.value)}"
    if ends := span(m.low, m.high, shown):
        text += f"{ends} ({method_shown(m.interval)})"
    text += f", n={m.n}"
    if m.n_invalid:
        text += f", invalid={m.n_invalid}"
    return text + (f" ({m.note})" if m.note else "")


def _unit(metric: Metric) -> Callable[[float], str]:
    """How values of a metric are written: as a protocol's columns declare it, or as its interval shows it.

    A plugin's metric whose interval is not one of rates is a difference of rates, if no column says ``number``.
    """
    name = metric.metric
    declared = {column[0]: column[2] for known in PROTOCOLS for column in about(known).columns}
    if name in _PLAIN or declared.get(name) == "number":
        return "{:.2f}".format
    if name in _DIFFERENCES or declared.get(name) == "points":
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
