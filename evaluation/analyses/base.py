"""The input and output of analyses: graded rows of a run with their texts, and metrics and tables.

``lengths`` is the one analysis that any run allows: response lengths by role, which confound every comparison of roles
and models.
"""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import InputError
from ..case import Case
from ..graded import Graded, role_order
from ..metrics import Metric
from ..protocols import counting


@dataclass(frozen=True)
class Source:
    """One run, or one file of graded rows."""

    name: str
    rows: Sequence[Graded]
    cases: Mapping[str, Case] = field(default_factory=dict)
    """Empty where only rows are known."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Responses by ask id; empty where only rows are known."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Response tokens by ask id, of the responses whose length is known."""

    @property
    def model(self) -> str:
        """The model that the rows are about (the source's name where they do not say)."""
        models = {r.model for r in self.rows if r.model}
        if len(models) > 1:
            raise InputError(f"{self.name}: rows of {len(models)} models; give one run or file per model")
        return next(iter(models), self.name)

    def text(self, row: Graded) -> str | None:
        """The whole response to a row's ask; None where only rows are known."""
        return None if row.ask is None else self.texts.get(row.ask)


@dataclass(frozen=True)
class Analysis:
    """What an analysis found."""

    name: str
    metrics: tuple[Metric, ...] = ()
    tables: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    files: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """JSON-lines files to write: sheets, keys, case lists."""
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON document; files are named with their number of rows."""
        return {
            "schema": 1,
            "analysis": self.name,
            "metrics": [m.to_dict() for m in self.metrics],
            "tables": {name: [dict(row) for row in rows] for name, rows in self.tables.items()},
            "files": {name: len(rows) for name, rows in self.files.items()},
            "warnings": list(self.warnings),
        }


def distinct(sources: Sequence[Source], least: int, what: str) -> None:
    """Raises ``InputError`` for too few sources, or two of one name."""
    if len(sources) < least:
        raise InputError(f"{what}: {len(sources)} runs; give at least {least}")
    names = [s.name for s in sources]
    if len(set(names)) < len(names):
        raise InputError(f"{what}: run {max(names, key=names.count)!r} is given twice")


def first_repeats(sources: Sequence[Source]) -> tuple[str, ...]:
    """A warning of an analysis that counts each case once, where rows of later repeats are left out."""
    left = sum(row.repeat > 0 for source in sources for row in source.rows)
    return (f"{left} rows of later repeats are left out: every case counts once",) if left else ()


Line = Mapping[str, Any]


def matched(
    key: Sequence[Line], sheet: Sequence[Line], needed: Sequence[str]
) -> Iterator[tuple[int, Line, Line | None]]:
    """(number, line of the sheet, its line of the key or None) for a sheet that people have filled in.

    Raises ``InputError`` for a line of the key that lacks a ``needed`` field, and for an item that occurs twice.
    """
    by_item = dict(_once(key, "key", needed))
    for n, (item, line) in enumerate(_once(sheet, "sheet", ()), 1):
        yield n, line, by_item.get(item)


def _once(lines: Sequence[Line], what: str, needed: Sequence[str]) -> Iterator[tuple[str, Line]]:
    seen: dict[str, int] = {}
    for n, line in enumerate(lines, 1):
        if (lacking := next((name for name in ("item", *needed) if line.get(name) is None), None)) is not None:
            raise InputError(f"{what}:{n}: field {lacking!r} is missing; give sheet and key that were written together")
        item = str(line["item"])
        if item in seen:
            raise InputError(f"{what}:{n}: item {item!r} is in line {seen[item]}, too; keep one of them")
        seen[item] = n
        yield item, line


def lengths(sources: Sequence[Source], seed: int = 0) -> Analysis:
    """Mean response length in tokens for each role and outcome, with bootstrap intervals over cases.

    Roles of steps are counted together (``part:0``; ``part:*:paraphrase``). Responses without a length (their server
    states none, or there was an error) are counted and left out. Raises ``InputError`` where a source has no lengths
    (a file of graded rows alone).
    """
    metrics: list[Metric] = []
    for source in sources:
        if not source.tokens:
            raise InputError(f"{source.name}: no response lengths; give a run folder, whose server states them")
        group = {"model": source.name} if len(sources) > 1 else {}
        cells: dict[tuple[str, str], list[tuple[Hashable, int | None]]] = {}
        for row in source.rows:
            if row.ask is not None:
                value = (counting.near(row), source.tokens.get(row.ask))
                cells.setdefault((role_class(row.role), "all"), []).append(value)
                cells.setdefault((role_class(row.role), row.outcome), []).append(value)
        for role, outcome in sorted(cells, key=lambda cell: (role_order(cell[0]), cell[1])):
            cell = {**group, "role": role} | ({} if outcome == "all" else {"outcome": outcome})
            metrics.append(_mean_length(cell, cells[role, outcome], seed))
    return Analysis("lengths", tuple(metrics))


def role_class(role: str) -> str:
    """Roles counted together: all wordings of all steps, all levels of one kind."""
    return re.sub(r"^part:\d+:paraphrase:\d+$", "part:*:paraphrase", role)


def _mean_length(group: dict[str, str], found: Sequence[tuple[Hashable, int | None]], seed: int) -> Metric:
    def mean(s: np.ndarray) -> np.ndarray:
        return s[..., 0] / s[..., 1]

    values = [(label, n) for label, n in found if n is not None]
    columns, near = [(n, 1) for _, n in values], [label for label, _ in values]
    return counting.statistic(
        "mean_length", columns, mean, group, seed=seed, n_invalid=len(found) - len(values),
        count=sum(n for _, n in values), clusters=near, note="tokens", skewed=True,
    )  # fmt: skip
