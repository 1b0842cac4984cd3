"""Checks of graded rows and metrics from any source; each problem is reported with its place.

check_rows(read_graded("graded.jsonl"))  # messages
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from . import reading
from .graded import Graded
from .metrics import Metric

_FLAGS = ("correct", "is_correct", "is_right", "right", "acc", "exact_match")
_ROUNDING = 1e-9


def read_graded(path: str | Path) -> list[Graded]:
    """Read ``graded.jsonl`` from anywhere (UTF-8, one object a line; unknown fields are kept).

    Raises ``InputError`` naming file:line, field, value and fix for a line that is not a row, for a row that appears
    twice, and for an empty file.
    """
    rows: list[Graded] = []
    seen: dict[tuple[Any, ...], str] = {}
    for where, raw in reading.lines(path, "give a graded.jsonl with one graded ask a line"):
        row = Graded.from_dict(raw, where)
        key = (row.model, row.run, row.case, row.role, row.repeat)
        if key in seen:
            raise InputError(
                f"{where}: case {row.case!r} with role {row.role!r} and repeat {row.repeat} is already in line "
                f"{seen[key]}; keep one, or number them with the field 'repeat'"
            )
        seen[key] = where.rpartition(":")[2]
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: no graded rows; give one JSON object a line with case, role and outcome")
    return rows


def check_rows(rows: Sequence[Graded]) -> list[str]:
    """Contradictions inside graded rows: flags against outcomes, answers of abstentions, properties of one case."""
    found: list[str] = []
    properties: dict[str, dict[str, Any]] = {}
    conflicting: Counter[str] = Counter()
    for row in rows:
        where = f"case {row.case!r}, role {row.role!r}"
        found += [f"{where}: {problem}" for problem in _contradictions(row)]
        known = properties.setdefault(row.case, {})
        for name in ("family", "depth", "benchmark", "cluster", "skills"):
            value = getattr(row, name) or None
            if value is not None and known.setdefault(name, value) != value:
                conflicting[f"case {row.case!r}: {name} is {known[name]!r} and {value!r} in different rows"] += 1
    return found + list(conflicting)


def _contradictions(row: Graded) -> list[str]:
    found = []
    for name in _FLAGS:
        flag = row.extra.get(name)
        if isinstance(flag, str) and flag.strip().lower() in ("true", "false", "0", "1"):
            flag = flag.strip().lower() in ("true", "1")
        if isinstance(flag, bool | int | float) and flag in (0, 1) and row.outcome != "invalid":
            if bool(flag) != (row.outcome == "correct"):
                found.append(
                    f"field {name!r} is {row.extra[name]!r} but outcome is {row.outcome!r}; the outcome counts"
                )
    if row.outcome == "correct" and row.answer is None and row.gold is not None and row.ask is not None:
        found.append("outcome is 'correct' without an answer; check the grading")
    return found


def frechet(steps: Sequence[float]) -> tuple[float, float]:
    """Bounds of the share of cases with all K steps right, given the share with each right (Frechet).

    max(0, sum - (K - 1)) <= all <= the least step; widened a little for rounding.
    """
    return max(0.0, math.fsum(steps) - (len(steps) - 1)) - _ROUNDING, min(steps) + _ROUNDING


def check_metrics(metrics: Iterable[Metric]) -> list[str]:
    """Problems between metrics: rates outside [0, 1], both outside its Frechet bounds, parts that do not add up."""
    rows = list(metrics)
    found = [f"{m.metric} {dict(m.group)}: value {m.value} is not a rate" for m in rows if _impossible_rate(m)]
    cells: dict[str, dict[str, Metric]] = {}
    for m in rows:
        cells.setdefault(json.dumps(m.group, sort_keys=True, default=str), {})[m.metric] = m
    for key, cell in cells.items():
        found += [f"{problem} in {key}" for problem in _cell_problems(cell)]
    return found


def _impossible_rate(m: Metric) -> bool:
    return m.interval == "clopper-pearson" and m.value is not None and not 0 <= m.value <= 1


def _cell_problems(cell: Mapping[str, Metric]) -> list[str]:
    found = []
    steps = [m for name, m in sorted(cell.items()) if re.fullmatch(r"step:\d+", name)]
    both = cell.get("both")
    values = [m.value for m in steps if m.value is not None]
    same = both is not None and all(m.n == both.n for m in steps) and len(values) == len(steps) >= 1
    if same and both is not None and both.value is not None:
        low, high = frechet(values)
        if not low <= both.value <= high:
            found.append(f"both = {both.value:.4f} is outside its Frechet bounds [{low:.4f}, {high:.4f}]")
    shares = [cell[name] for name in ("k_zero", "k_positive", "intractable") if name in cell]
    exact = all(m.n == shares[0].n and not m.n_invalid for m in shares)
    if len(shares) == 3 and exact and sum(m.count or 0 for m in shares) != shares[0].n:
        found.append("k_zero + k_positive + intractable do not add up to n")
    return found
