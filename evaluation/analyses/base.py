"""The input and output of analyses: graded rows of a run with their texts, and metrics and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError
from ..case import Case
from ..graded import Graded
from ..metrics import Metric


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
    """Response tokens by ask id."""

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
