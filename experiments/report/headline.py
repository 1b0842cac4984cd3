"""Headline tables of the report: results with n, interval and chance level, and what they do not show."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...evaluation.metrics import MEANINGS, Metric, beyond, censored, method_in_words
from ...evaluation.protocols.base import about
from ...terminal import how_many
from ..figures.grouping import labels
from ..figures.style import HOLLOW_BELOW, MARKED_BELOW, signed
from ..run.diagnosis import read_diagnosis
from ..run.folder import INTERVENTIONS
from ..run.reader import Row, RunData
from ..run.summary import chance_stated, counted_rows


def tables(runs: Sequence[RunData]) -> list[dict[str, Any]]:
    """One table per protocol and benchmark, with a row per model and a cell per headline metric."""
    out = []
    for key in dict.fromkeys((r.protocol, r.benchmark) for r in runs):
        mine = [r for r in runs if (r.protocol, r.benchmark) == key]
        names = labels(mine)
        columns = about(key[0]).columns
        rows = [
            {"model": names[r.path], "run": r.name, "cells": [_cell(r, m, form) for m, _, form in columns]}
            for r in mine
        ]
        kept = [i for i in range(len(columns)) if any(row["cells"][i] for row in rows)]
        for row in rows:
            row["cells"] = [row["cells"][i] for i in kept]
        levels = sorted(r.chance for r in mine if r.chance is not None)
        said = dict.fromkeys(f"{100 * level:.3g}\u00a0%" for level in (*levels[:1], *levels[-1:]))
        out.append({
            "protocol": key[0] or "no protocol", "benchmark": key[1], "columns": [heading(columns[i]) for i in kept],
            "meanings": [(heading(columns[i]), columns[i][0], MEANINGS.get(columns[i][0], "")) for i in kept],
            "rows": rows,
            "chance": " to ".join(said) + chance_stated(mine) or None, "lead": lead(mine),
        })  # fmt: skip
    return out


def methods(runs: Sequence[RunData]) -> list[tuple[str, str]]:
    """Names of the interval methods behind the headline tables, each with its meaning."""
    names = {metric for r in runs for metric, _, _ in about(r.protocol).columns}
    found = {str(m.interval) for r in runs for m in r.metrics if m.metric in names and m.low is not None}
    return [(name, method_in_words(name)) for name in sorted(found)]


def lead(runs: Sequence[RunData]) -> str:
    """The headline of runs that share protocol and benchmark, in one sentence."""
    names = labels(runs)
    if any(r.one("any_scaffold") for r in runs):
        return _scaffolded(runs, names)
    metric = "residual_failure" if any(r.one("residual_failure") for r in runs) else "press_gap"
    found = [(names[r.path], m) for r in runs if (m := r.one(metric))]
    defined = [f for f in found if f[1].value is not None]
    enough = [f for f in defined if f[1].n >= HOLLOW_BELOW] or defined
    known = sorted(enough, key=lambda f: f[1].value or 0)
    if not found:
        return "No headline metric in these runs."
    if not known:
        said = none_known(sum(m.n_invalid for _, m in found))
        if len(found) > 1:  # the runs may share cases, which are counted in each
            said = f"Over {len(found)} runs, {said[0].lower()}{said[1:]}"
        return f"{said}, so failures to compose cannot be distinguished from missing knowledge."
    few = "; ".join(
        f"“{name}” has {m.n} gradable wholes and {m.n_invalid} others" for name, m in found if (name, m) not in enough
    )
    more = f" Too few cases to say: {few}." if few else ""
    if len(known) == 1:
        name, m = known[0]
        cases = how_many(m.n, "case")
        unknown = f" ({m.n_invalid} more cases could not be judged)" if m.n_invalid else ""
        return (
            f"“{name}” has every part of {cases} right and still gets {m.count:.0f} of the wholes wrong: "
            f"{shown(m, 'rate')} {interval(m, 'rate')}{unknown}.{more}"
        )
    low, high = (
        f"{shown(m, 'rate')} {interval(m, 'rate')} of {m.n} wholes wrong (“{name}”)"
        for name, m in (known[0], known[-1])
    )
    return f"With every part right, models still get from {low} to {high}.{more}"


def none_known(unknown: int) -> str:
    """The beginning of a sentence on cases of which none counts; ``unknown`` of them could not be judged."""
    if not unknown:
        return "No case has every part right"
    return f"{how_many(unknown, 'case')} could not be judged, and no other has every part right"


def families(runs: Sequence[RunData]) -> list[str]:
    """For each run, the families with the fewest and the most wrong wholes; if it has none, those of another run."""
    names = labels(runs)
    found = [_families(run) for run in runs]
    other = next((f"; in {names[run.path]}: {said}" for run, said in zip(runs, found, strict=True) if said), "")
    return [said or f"Not measured by family in this run{other}" for said in found]


def _families(run: RunData) -> str:
    by = next((by for by in _BY_FAMILY if run.select("residual_failure", *by)), ())
    measured = (m for m in run.select("residual_failure", *by) if m.value is not None and by)
    found = sorted(measured, key=lambda m: m.value or 0)
    ends = [
        f"{', depth '.join(str(m.group[k]) for k in by)}: {shown(m, 'rate')} {interval(m, 'rate')}, {_count(m, 'rate')}"
        for m in found
    ]
    return " to ".join(dict.fromkeys((ends[0], ends[-1]))) if ends else ""


_BY_FAMILY = (("family",), ("family", "depth_bin"), ("family", "depth"))


def _scaffolded(runs: Sequence[RunData], names: Mapping[Path, str]) -> str:
    """The effect of revealed steps, one sentence per model."""
    said = []
    for run in runs:
        alone, helped = run.one("composition"), run.one("any_scaffold")
        if alone is None or helped is None or None in (alone.value, helped.value):
            said.append(f"“{names[run.path]}”: too few answers could be graded for a conclusion.")
            continue
        unknown = f"; {helped.n_invalid} could not be graded" if helped.n_invalid else ""
        said.append(
            f"“{names[run.path]}” gets {alone.count:.0f} of {alone.n} wholes right unaided and "
            f"{helped.count:.0f} of {helped.n} unaided or with some of the steps revealed{unknown}: "
            f"{shown(alone, 'rate')} {interval(alone, 'rate')} and {shown(helped, 'rate')} {interval(helped, 'rate')}."
        )
    return " ".join(said)


def heading(column: Sequence[str]) -> str:
    """What a column shows, with the unit where its numbers have none."""
    return f"{column[1]}, points" if column[2] == "points" else column[1]


def of_column(run: RunData, metric: str) -> Metric | None:
    """The number of a run in a column of its headline table; atoms are counted once for each fact."""
    return run.one(metric) or (run.one(metric, per="fact") if metric == "atom_stability" else None)


def _cell(run: RunData, metric: str, form: str) -> dict[str, Any] | None:
    row = of_column(run, metric)
    if row is None:
        return None
    cell: dict[str, Any] = {
        "shown": shown(row, form),
        "interval": interval(row, form) or ("" if row.value is None else "no interval"),
        "n": row.n, "count": _count(row, form), "ungraded": ungraded(row, form),
        "few": row.n < MARKED_BELOW,
    }  # fmt: skip
    if form == "rate" and row.value is not None:
        cell |= {"at": _clip(row.value), "from": _clip(row.low), "to": _clip(row.high)}
    return cell


def shown(row: Metric, form: str) -> str:
    """A metric's value as text, ``< 2`` if it lies beyond what was asked, or ``undefined``."""
    value = row.value
    if value is None:
        said = censored(row)
        return f"{said[0]}\u00a0{said[1:]}" if said else "undefined"
    if form == "number":
        return f"{value:.2f}"
    return signed(100 * value) if form == "points" else f"{100 * value:.1f}\u00a0%"


def interval(row: Metric, form: str) -> str:
    """``[low, high]`` in the unit of the value, on one line; empty if there is no interval."""
    low, high = (_bound(row, name, form) for name in ("low", "high"))
    # If both ends lie beyond what was asked, the interval adds nothing to the value.
    return f"[{low},\u00a0{high}]" if low and high and not low == high == shown(row, form) else ""


def _bound(row: Metric, name: str, form: str) -> str:
    """One end of an interval; ``< 2`` if it lies beyond what was asked, as given in the note."""
    value = getattr(row, name)
    if value is not None:
        return f"{value:.2f}" if form == "number" else f"{100 * value:.1f}".replace("-", "−")
    said = beyond(row, name)
    return f"{said[0]}\u00a0{said[1:]}" if said else ""


def _count(row: Metric, form: str) -> str:
    text = f"{row.count:.0f} of {row.n}" if form == "rate" and row.count is not None else f"n = {row.n}"
    if not row.cluster_n or not row.n:
        return text
    # where each case shares several facts with others, these are counted, and there may be more of them than cases
    crossed = "crossed" in str(row.interval) or row.cluster_n > row.n
    return f"{text}; {row.cluster_n} {'shared facts' if crossed else 'clusters'}"


def ungraded(row: Metric, form: str) -> str:
    """How many cases could not be graded, and the range of the value if all of them were right, or wrong; or empty."""
    ends = row.bound_low, row.bound_high
    if not row.n_invalid or None in ends:
        return f"{row.n_invalid} ungraded" if row.n_invalid else ""
    between = " to ".join(shown(replace(row, value=end), form) for end in ends)
    return f"{row.n_invalid} ungraded: with them {between}"


def _clip(value: float | None) -> float | None:
    return None if value is None else round(100 * min(max(value, 0.0), 1.0), 2)


def n_unjudged(run: RunData) -> tuple[int, int]:
    """How many answers could not be judged: those that rates leave out, and those that its paper counts as wrong."""
    left = sum(row.outcome == "invalid" for row in counted_rows(run))
    return left, sum(row.outcome == "invalid" for row in run.graded) - left


def caveats(runs: Sequence[RunData], validity: Sequence[Row]) -> list[str]:
    """Statements on what the numbers do not show; each is included only where it applies."""
    out = ["A part counts as known if it was answered right when asked alone, in the wordings of these prompts."]
    if any(r.chance is not None for r in runs):
        out.append("A right whole can be a lucky guess; the chance level is given with each table.")
    else:
        out.append("The benchmark gives no chance level, so lucky guesses among the right wholes cannot be counted.")
    if any(r.config is not None and r.config.model.startswith("organism:") for r in runs):
        out.append("Intervals are over cases. Each organism was trained once; another training may differ by more.")
    else:
        out.append("Intervals are over cases, with the model and the prompts fixed.")
    total = sum(len(r.graded) for r in runs)
    invalid, wrong = map(sum, zip(*(n_unjudged(r) for r in runs), strict=True)) if runs else (0, 0)
    if invalid:
        out.append(
            f"{invalid} of {total} answers could not be graded; rates leave them out, worst-case bounds include them."
        )
    if wrong:
        out.append(f"{wrong} of {total} answers could not be graded and count as wrong, as the paper counts them.")
    probed = any(name not in INTERVENTIONS.values() for r in runs for name in r.probe_names)
    if probed:
        out.append(
            "Probes compare failures with successes matched on family, depth, operation and length. A difference is an "
            "association; it is not shown to be the cause."
        )
    elif all(read_diagnosis(r.path) is None for r in runs):
        out.append("No probe ran: this report shows where the model fails, not why.")
    kinds = {v["kind"] for v in validity if v["headline"]}
    if kinds & {"no", "reversed"}:
        out.append(
            "Not every probe measures what it claims: Validity lists the answers that are no, reversed, or "
            "explained by length or likelihood."
        )
    elif "open" in kinds:
        out.append("Validity describes what the probes measure but gives no verdicts: verdicts need eight trainings.")
    elif not validity and probed:
        out.append(
            "No study of validity is part of this page (it needs models of known exposure), and the checks of a probe "
            "are about this run alone: read probe differences as leads."
        )
    return out
