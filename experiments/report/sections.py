"""The sections of the report: rows of the probes' tables, notes on settings and matching, and provenance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...probes.verdicts import rank
from ..figures.grouping import labels
from ..run import read_json
from ..run.reader import Row, RunData

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
    low, high = (number_text(bound, row.get(bound)) for bound in SPANS[column])
    return f"{text} [{low}, {high}]" if low and high else f"{text} (no interval)"


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


def matching_notes(runs: Sequence[RunData]) -> list[str]:
    """How failures and successes were matched, one line per run."""
    names, out = labels(runs), []
    for run in runs:
        path = run.path / "probes" / "examples.json"
        if path.is_file():
            out.append(f"{names[run.path]}: {read_json(path).get('note', '')}")
    return out


def provenance_rows(run: RunData) -> list[tuple[str, str]]:
    """The manifest as pairs of name and text, with nested facts flattened one level."""
    skip = {"schema", "command", "run", "invocations"}
    rows = []
    for key, value in run.manifest.facts().items():
        if key in skip:
            continue
        if value not in (None, [], {}):
            rows.append((key.replace("_", " "), _flat(value)))
    return rows


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
