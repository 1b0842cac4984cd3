"""The sections of the report: rows of the probes' tables with their validity checks, settings, matching, provenance.

The checks are the answers in ``validity.json``, as a table of verdicts and in full, and a run's own controls.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError
from ...probes.catalog import Probe, described
from ...probes.verdicts import rank
from ..figures.catalog import FIGURES
from ..figures.grouping import labels
from ..organism.weights import named
from ..run.folder import probed_cases, read_json
from ..run.reader import ProbeData, Row, RunData
from ..run.summary import measured_on_others, n_asked

_FIELDS = ("quantity", "kind", "group", "layer", "head", "n", "value", "interval", "effect", "test", "p_adjusted",
           "family", "note")  # fmt: skip
SPANS = {"value": ("low", "high"), "effect": ("effect_low", "effect_high")}
"""Columns whose numbers share a cell with their interval."""
_TITLES = {"value": "value [95 % interval]", "interval": "method", "effect": "effect [95 % interval]"}
_SUMMARY_LIMIT = 60


def probe_rows(runs: Sequence[RunData], probe: str) -> dict[str, Any]:
    """The probe's contrasts in all runs (with an effect or an adjusted p) by ``rank``, with their total."""
    names = labels(runs)
    found: list[Row] = []
    for run in runs:
        data = run.probe(probe)
        rows = [
            r for r in (data.table if data else ()) if r.get("p_adjusted") is not None or r.get("effect") is not None
        ]
        found += [{**r, "model": names[run.path]} for r in rows]
    found.sort(key=rank)
    columns = ["model", *(k for k in _FIELDS if any(r.get(k) is not None for r in found))]
    shown = [[cell(k, r) for k in columns] for r in found[:_SUMMARY_LIMIT]]
    return {"columns": [title(c) for c in columns], "rows": shown, "total": len(found)}


def title(column: str) -> str:
    """The heading of a column in a probe's table."""
    return _TITLES.get(column, column.replace("_", " "))


def cell(column: str, row: Row) -> str:
    """A cell of a probe's table: a value or effect with its interval, or with ``(no interval)``."""
    text = number_text(column, row.get(column))
    if column not in SPANS:
        return text
    if not text:
        return "undefined" if column == "value" else ""
    return f"{text} {ends(row, '(no interval)', SPANS[column])}"


def ends(row: Row, otherwise: str = "", bounds: tuple[str, str] = ("low", "high")) -> str:
    """A row's interval in brackets; ``otherwise`` where it has none."""
    low, high = (number_text(bound, row.get(bound)) for bound in bounds)
    return f"[{low}, {high}]" if low and high else otherwise


def probe_notes(runs: Sequence[RunData], probe: str) -> list[str]:
    """Settings that the numbers depend on, and warnings: one line per run, or one line for all runs that agree."""
    names = labels(runs)
    lines: dict[str, list[str]] = {}
    for run in runs:
        data = run.probe(probe)
        if data is None:
            lines.setdefault("did not run", []).append(names[run.path])
            continue
        said = ", ".join(
            f"{k} = {number_text(k, v)}"
            for k, v in data.settings.items()
            if not isinstance(v, dict | list | tuple) and v not in (None, "")
        )
        for text in filter(None, [f"settings: {said}" if said else "", *map(str, data.warnings)]):
            lines.setdefault(text, []).append(names[run.path])
    return [text if len(who) == len(runs) > 1 else f"{', '.join(who)}: {text}" for text, who in lines.items()]


def stale_probes(run: RunData) -> list[str]:
    """A warning for each probe whose cases are no longer those of the run."""
    found = {name: measured_on_others(run, name) for name in run.probe_names}
    return [f"probe {n}: {o}; `composcope probe RUN` measures those that it has" for n, o in found.items() if o]


def cut_short(run: RunData) -> list[str]:
    """A warning for a run that was stopped before everything was asked."""
    return [f"stopped by {run.manifest.stopped}: {n_asked(run)} have answers"] if run.manifest.stopped else []


def matching_notes(runs: Sequence[RunData]) -> list[str]:
    """How failures and successes were matched, one line per run; several if its probes ran on different cases."""
    names, out = labels(runs), []
    for run in runs:
        notes: dict[str, list[str]] = {}
        for probe in run.probe_names:
            notes.setdefault(probed_cases(run.path, probe).get("note", ""), []).append(probe)
        which = {note: f" ({', '.join(probes)})" if len(notes) > 1 else "" for note, probes in notes.items() if note}
        out += [f"{names[run.path]}{probes}: {note}" for note, probes in which.items()]
    return out


def provenance_rows(run: RunData) -> list[tuple[str, str]]:
    """The manifest as pairs of name and text, with nested facts flattened one level."""
    skip = {"schema", "command", "run", "invocations"}
    facts = {key: value for key, value in run.manifest.facts().items() if key not in skip}
    return [(key.replace("_", " "), _flat(value)) for key, value in facts.items() if value not in (None, [], {})]


def _flat(value: Any) -> str:
    """Nested facts on one line, without those that are unknown."""
    if isinstance(value, dict):
        return ", ".join(
            f"{k}: ({_flat(v)})" if isinstance(v, dict | list) else f"{k}: {v}"
            for k, v in value.items()
            if v is not None
        )
    return "; ".join(map(_flat, value)) if isinstance(value, list) else str(value)


def number_text(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key == "p_adjusted" and isinstance(value, int | float):
        return f"{value:.2g}" if value >= 0.001 else "< 0.001"
    if isinstance(value, float):
        return f"{value:.3g}"
    return str(value)


ROWS = 200
_FIRST = ("quantity", "kind", "group", "layer", "head", "token", "case", "role")
_LAST = ("effect", "p_adjusted", "note")
_TESTS = frozenset("sd n_first n_second effect_size test p smallest_detectable cliffs_delta family n_dropped".split())
"""Columns that ``probes.tables`` adds to a comparison: the page only names them, and the csv has them."""


def collect(runs: Sequence[RunData]) -> list[dict[str, Any]]:
    """One section for each probe in the runs that is not composcope's own, ordered by name.

    These are probes from a plugin or an installed package. The page does not know what such a probe measures. It shows
    the table with intervals, names the tensors, repeats the settings and warnings, and shows the figures of the same
    plugin.
    """
    own = {_plain(p.name) for p in described()}
    names = dict.fromkeys(n for r in runs for n in r.probe_names if _plain(n) not in own)
    taken: set[str] = set()
    return [found for name in sorted(names) if (found := _section(runs, name, taken)) is not None]


def figures_of(probe: str) -> list[str]:
    """Figures of a plugin that belong to its probe: they declare the probe, or their names begin with its name."""
    mine, brought = _plain(probe), [f for f in FIGURES.values() if f.name not in FIGURES.own]
    named = [f.name for f in brought if _plain(f.name) == mine or _plain(f.name).startswith(f"{mine}-")]
    return list(dict.fromkeys([*(f.name for f in brought if _plain(f.section) == mine), *named]))


def _section(runs: Sequence[RunData], name: str, taken: set[str]) -> dict[str, Any] | None:
    names = labels(runs)
    found = [(names[run.path], data) for run in runs if (data := run.probe(name)) is not None]
    if not found:
        return None
    rows = [(model, row) for model, data in found for row in data.table]
    columns, left_out = _columns([row for _, row in rows])
    several = len(runs) > 1
    shown = [(*((model,) if several else ()), *(cell(c, row) for c in columns)) for model, row in rows[:ROWS]]
    return {
        "id": _anchor(name, taken), "name": name, "models": [model for model, _ in found],
        "columns": [*(["model"] if several else []), *map(title, columns)], "rows": shown, "total": len(rows),
        "left_out": left_out, "tensors": [t for model, data in found for t in _tensors(model, data)],
        "notes": probe_notes(runs, name),
    }  # fmt: skip


def _columns(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Columns in reading order (what, of whom, n, value with interval, the rest), and the columns only in the csv."""
    present = list(dict.fromkeys(k for row in rows for k, v in row.items() if v is not None))
    inside = {bound for column in SPANS for bound in SPANS[column] if column in present}
    counted = ("n", "value", "interval")
    of_its_own = [c for c in present if c not in {*_FIRST, *counted, *_LAST, *inside, *_TESTS}]
    order = [*_FIRST, *of_its_own, *counted, *_LAST]
    return [c for c in order if c in present], [c for c in present if c in _TESTS]


def _tensors(model: str, data: ProbeData) -> list[tuple[str, str, str]]:
    out = []
    for name, array in data.tensors.items():
        axes = list(data.axes.get(name, ()))
        sizes = [str(n) for n in array.shape]
        if len(axes) == len(sizes):
            sizes = [f"{axis} {size}" for axis, size in zip(axes, sizes, strict=True)]
        out.append((model, name, " × ".join(sizes) or "one number"))
    return out


def _anchor(name: str, taken: set[str]) -> str:
    """An anchor on the page: letters and digits only, and different from every other section's."""
    base = "probe-" + (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "other")
    found, i = base, 2
    while found in taken:
        found, i = f"{base}-{i}", i + 1
    taken.add(found)
    return found


def _plain(name: str) -> str:
    return name.replace("_", "-")


KINDS = {"yes": "yes", "no": "no", "reversed": "reversed or explained by something else", "open": "undecided"}
"""Kinds of an answer, in words."""
FAILS = ("no", "reversed")
"""Kinds of an answer that is against the probe."""


def read_validity(folders: Sequence[Path]) -> tuple[list[Row], list[str]]:
    """Rows of the first ``validity.json`` in the folders, and notes; a broken file becomes a note."""
    for folder in dict.fromkeys(folders):
        path = folder / "validity.json"
        if path.is_file():
            try:
                document = read_json(path)
            except ComposcopeError as e:
                return [], [str(e)]
            rows = document.get("rows")
            found = [r for r in rows if isinstance(r, dict)] if isinstance(rows, list) else []
            checked = [check({**r, "model": named(str(r.get("model") or ""))}) for r in found]
            return checked, [str(n) for n in document.get("notes") or []]
    return [], []


def validities(runs: Sequence[RunData], near: Sequence[Path]) -> tuple[list[list[Row]], list[Row], list[str]]:
    """The answers of each run's own study (else of one that is near), all of these once, and their notes.

    Each answer and note of several studies names its study: other trainings may give another answer.
    """
    homes: list[Path | None] = []
    for run in runs:
        folders = (folder.resolve() for folder in (run.path, run.path.parent, *near))
        homes.append(next((folder for folder in folders if (folder / "validity.json").is_file()), None))
    read = {home: read_validity([home]) for home in homes if home is not None}
    for home, (rows, notes) in read.items() if len(read) > 1 else ():
        name = home.name if [h.name for h in read].count(home.name) == 1 else str(home)
        rows[:] = [{**row, "model": f"{row['model']} · {name}"} for row in rows]
        notes[:] = [f"{name}: {note}" for note in notes]
    own = [read[home][0] if home is not None else [] for home in homes]
    return own, [row for rows, _ in read.values() for row in rows], [n for _, notes in read.values() for n in notes]


def check(row: Row) -> Row:
    """One row as the page shows it, including answers that are "no" or that cannot be given."""
    answer = str(row.get("verdict") or "cannot say")
    return {
        "probe": str(row.get("probe", "")), "question": str(row.get("question", "")),
        "model": str(row.get("model") or ""), "quantity": str(row.get("quantity") or "").split(":")[0],
        "statement": str(row.get("statement") or ""),
        "n": row.get("n"), "answer": answer,
        "kind": _kind(answer),
        "measure": str(row.get("measure") or ""), "value": number_text("value", row.get("value")),
        "interval": ends(row), "method": str(row.get("interval") or ""),
        "headline": bool(row.get("headline", True)), "about": str(row.get("about") or ""),
    }  # fmt: skip


def _kind(answer: str) -> str:
    if answer in ("yes", "no"):
        return answer
    return "reversed" if answer.startswith(("yes, reversed", "explained")) else "open"


def matrix(rows: Sequence[Row]) -> dict[str, Any]:
    """The headline answers: one line per probe and quantity, one column per question."""
    chosen = [r for r in rows if r["headline"]]
    columns = list(dict.fromkeys((r["question"], r["model"]) for r in chosen))
    lines = list(dict.fromkeys((r["probe"], r["quantity"]) for r in chosen))
    found = {((r["probe"], r["quantity"]), (r["question"], r["model"])): r for r in chosen}
    kinds = [KINDS.get(r["kind"], KINDS["open"]) for r in chosen]
    return {
        "n": len(chosen), "said": ", ".join(f"{kinds.count(k)} {k}" for k in KINDS.values() if k in kinds),
        "columns": [{"question": q, "model": m} for q, m in columns],
        "lines": [{"probe": p, "quantity": q, "cells": [found.get(((p, q), c)) for c in columns]} for p, q in lines],
    }  # fmt: skip


def tests_of(answers: Sequence[Row], runs: Sequence[RunData], probe: Probe) -> list[Row]:
    """Evidence on whether a probe measures what it claims: answers of a validity study, and controls in the runs."""
    return [*(v for v in answers if about(v["probe"], probe.folder)), *own_checks(runs, probe)]


def counted(tests: Sequence[Row], *kinds: str) -> tuple[int, str]:
    """How many checks have one of these answers, and what they are about, in brackets after a space."""
    found = [t for t in tests if t["kind"] in kinds]
    named = dict.fromkeys(t["about"] for t in found if t.get("about"))
    return len(found), f" ({', '.join(named)})" if named else ""


def about(name: str, probe: str) -> bool:
    """Whether a validity row is about this probe; ``min-k`` and ``min_k`` are the same name."""
    return name.replace("-", "_").split(".")[0].split(":")[0] == probe


def own_checks(runs: Sequence[RunData], probe: Probe) -> list[Row]:
    """A run's own evidence on whether a probe measured anything: its controls, as rows of the validity study.

    The dose series of organisms shows whether a probe follows a known difference; a run of any other model cannot show
    that. It only has the controls that ran along with the measurement.
    """
    names, make = labels(runs), probe.checks
    if make is None:
        return []
    found = [(names[run.path], data) for run in runs if (data := run.probe(probe.name)) is not None]
    return [check({"probe": probe.folder, "model": name, **row}) for name, data in found for row in make(data)]
