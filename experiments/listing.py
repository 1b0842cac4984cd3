"""``composcope ls``: what runs are in a folder, and how far each one got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import ComposcopeError, InputError
from .run import is_run, read_json
from .summary import headline, metric_line, state


def list_folder(folder: str | Path) -> list[dict[str, Any]]:
    """One row per run under a folder (two levels: a study folder holds several), sorted by path."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give the folder that holds your runs")
    candidates = [folder, *folder.glob("*"), *folder.glob("*/*")]
    return [_row(p) for p in sorted(candidates) if p.is_dir() and is_run(p)]


def _row(run: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"run": str(run), "status": "unreadable", "headline": None}
    try:
        manifest = read_json(run / "manifest.json")
        identity = manifest.get("identity", {})
        row |= {key: identity.get(key) for key in ("model", "benchmark", "protocol")}
        row |= {"status": manifest.get("status"), "cases": manifest.get("n_cases"), "created": manifest.get("created")}
        row |= {"stopped": manifest.get("stopped"), "state": state(manifest)}
        if (run / "metrics.json").is_file():
            row["headline"] = _headline(read_json(run / "metrics.json"))
    except ComposcopeError as e:
        row["error"] = str(e)
    return row


def _headline(document: Mapping[str, Any]) -> str | None:
    names = ("composition", "residual_failure")
    rows = [r for r in headline(document) if r["metric"] in names and not r["group"]]
    return metric_line(rows[0]) if rows else None


def listing_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows as text, one line each."""
    if not rows:
        return ["no runs here; make one with: composcope demo"]
    return [
        f"{r['run']}  {r.get('state') or r['status']}  {r.get('model')}  {r.get('benchmark')}  {r.get('protocol')}"
        f"  cases={r.get('cases')}  {r.get('headline') or r.get('error') or ''}".rstrip()
        for r in rows
    ]
