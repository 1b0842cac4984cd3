"""The first screen: what was found, with n, interval and chance level, and what it does not show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..figures.behaviour import chance
from ..figures.io import Row, RunData, labels

COLUMNS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "double-gate": (
        ("residual_failure", "whole wrong, every part known", "rate"),
        ("double_gate", "passed both gates", "rate"),
        ("atom_stability", "atoms right in every wording", "rate"),
        ("d50", "depth of 50 % failure", "number"),
    ),
    "compositionality-gap": (
        ("press_gap", "whole wrong, both parts right", "rate"),
        ("both", "both parts right", "rate"),
        ("composition", "whole right", "rate"),
        ("gap", "whole − both", "points"),
    ),
}
_DEFAULT = (
    ("composition", "whole right", "rate"),
    ("both", "all parts right", "rate"),
    ("any_scaffold", "right with any scaffold", "rate"),
    ("independence_gap", "whole − S1·S2", "points"),
)


def tables(runs: Sequence[RunData]) -> list[dict[str, Any]]:
    """One table a protocol and benchmark: a row per model, a cell per headline metric."""
    out = []
    for key in dict.fromkeys((r.protocol, r.benchmark) for r in runs):
        mine = [r for r in runs if (r.protocol, r.benchmark) == key]
        names = labels(mine)
        columns = COLUMNS.get(key[0], _DEFAULT)
        rows = [
            {"model": names[r.path], "run": r.name, "cells": [_cell(r, m, form) for m, _, form in columns]}
            for r in mine
        ]
        kept = [i for i in range(len(columns)) if any(row["cells"][i] for row in rows)]
        for row in rows:
            row["cells"] = [row["cells"][i] for i in kept]
        level = next((c for r in mine if (c := chance(r)) is not None), None)
        out.append({
            "protocol": key[0] or "no protocol", "benchmark": key[1], "columns": [columns[i][1] for i in kept], "rows": rows,
            "chance": None if level is None else f"{100 * level:.3g} %", "sentences": [sentence(r, names[r.path]) for r in mine],
        })  # fmt: skip
    return out


def methods(runs: Sequence[RunData]) -> list[str]:
    """Names of the interval methods behind the headline tables."""
    names = {m for columns in COLUMNS.values() for m, _, _ in columns}
    found = {str(m["interval"]) for r in runs for m in r.metrics if m["metric"] in names and m.get("interval")}
    return sorted(found) or ["none"]


def sentence(run: RunData, name: str) -> str:
    """The headline of one run in words."""
    gate, failed = ("both gates", run.one("residual_failure")) if run.protocol == "double-gate" else (
        "both parts", run.one("press_gap"))  # fmt: skip
    if failed is None:
        return f"{name}: no headline metric in this run."
    if failed["value"] is None:
        return f"{name}: no case passed {gate}, so a failure to compose cannot be told from a failure to know."
    return (
        f"{name} knows every part of {failed['n']} cases and still gets {failed['count']:.0f} of them wrong: "
        f"{shown(failed, 'rate')} {interval(failed, 'rate')}."
    )


def _cell(run: RunData, metric: str, form: str) -> dict[str, Any] | None:
    row = run.one(metric) or (run.one(metric, per="fact") if metric == "atom_stability" else None)
    if row is None:
        return None
    cell: dict[str, Any] = {"shown": shown(row, form), "interval": interval(row, form), "n": row["n"], "count": _count(row, form),
                            "few": (row["n"] or 0) < 15, "note": row.get("note"), "method": row.get("interval"),
                            "invalid": row.get("n_invalid") or 0}  # fmt: skip
    if form == "rate" and row["value"] is not None:
        cell |= {"at": _clip(row["value"]), "from": _clip(row.get("low")), "to": _clip(row.get("high"))}
    return cell


def shown(row: Row, form: str) -> str:
    """A metric's value as text; what is undefined is said so."""
    value = row.get("value")
    if value is None:
        note = str(row.get("note") or "")
        return next((w for w in note.split() if w.startswith(("<", ">"))), "undefined")
    if form == "number":
        return f"{value:.2f}"
    return f"{100 * value:+.1f}" if form == "points" else f"{100 * value:.1f} %"


def interval(row: Row, form: str) -> str:
    """``[low, high]`` in the unit of the value, or nothing where there is none."""
    low, high = row.get("low"), row.get("high")
    if low is None or high is None:
        return ""
    if form == "number":
        return f"[{low:.2f}, {high:.2f}]"
    return f"[{100 * low:.1f}, {100 * high:.1f}]"


def _count(row: Row, form: str) -> str:
    return f"{row['count']:.0f} of {row['n']}" if form == "rate" and row.get("count") is not None else f"n = {row['n']}"


def _clip(value: float | None) -> float | None:
    return None if value is None else round(100 * min(max(value, 0.0), 1.0), 2)


def caveats(runs: Sequence[RunData], validity: Sequence[Row]) -> list[str]:
    """What the numbers do not show, each only where it applies."""
    out = ["That a part is known means: it was answered right when asked alone, in the wordings of these prompts."]
    if any(chance(r) is not None for r in runs):
        out.append("A right whole can be a lucky guess; the chance level stands beside each table.")
    else:
        out.append("The benchmark gives no chance level, so lucky guesses among the right wholes cannot be counted.")
    if any(str(r.config.get("model", "")).startswith("organism:") for r in runs):
        out.append("Intervals are over cases. One training run per dose is shown: other seeds may differ by more.")
    else:
        out.append("Intervals are over cases, with the model and the prompts fixed.")
    invalid = sum(g["outcome"] == "invalid" for r in runs for g in r.graded)
    total = sum(len(r.graded) for r in runs)
    if invalid:
        out.append(
            f"{invalid} of {total} answers could not be graded; they leave the rates and enter their worst-case bounds."
        )
    if any(r.probe_names for r in runs):
        out.append(
            "Probes compare failures with successes matched on family, depth and operation: differences are associations."
        )
    else:
        out.append("No probe ran: this report says where the model fails, not why.")
    silent = [str(v["probe"]) for v in validity if v.get("answer") is False]
    if silent:
        names = ", ".join(dict.fromkeys(silent))
        out.append(
            f"Not every probe measured what it is read as: see the checks that {names} did not pass, under Validity."
        )
    elif not validity and any(r.probe_names for r in runs):
        out.append("Without models of known exposure there is no validity check here: read probe differences as leads.")
    return out
