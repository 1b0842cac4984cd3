"""Validity checks of the probes: the answers in ``validity.json``, as a table of verdicts and in full."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError
from ...probes.catalog import Probe
from ..figures.grouping import labels
from ..organism.weights import named
from ..run import read_json
from ..run.reader import Row, RunData
from .sections import ends, number_text

_CLASSES = {"yes": "yes", "no": "no"}
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


def check(row: Row) -> Row:
    """One row as the page shows it, including answers that are "no" or that cannot be given."""
    answer = str(row.get("verdict") or "cannot say")
    return {
        "probe": str(row.get("probe", "")), "question": str(row.get("question", "")),
        "model": str(row.get("model") or ""), "quantity": str(row.get("quantity") or "").split(":")[0],
        "statement": str(row.get("statement") or ""),
        "n": row.get("n"), "answer": answer,
        "kind": _CLASSES.get(answer, "reversed" if answer.startswith(("yes, reversed", "explained")) else "open"),
        "measure": str(row.get("measure") or ""), "value": number_text("value", row.get("value")),
        "interval": ends(row), "method": str(row.get("interval") or ""),
        "headline": bool(row.get("headline", True)), "about": str(row.get("about") or ""),
    }  # fmt: skip


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
