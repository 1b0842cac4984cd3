"""Probe tables side by side."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

TOLERANCE = 1e-4


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "table.csv").open(newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def assert_same_tables(a: Path, b: Path, tolerance: float = TOLERANCE) -> None:
    """Equal words; numbers equal within a tolerance, relative or, below 1, absolute."""
    first, second = table(a), table(b)
    assert len(first) == len(second) > 0
    for x, y in zip(first, second, strict=True):
        assert x.keys() == y.keys()
        for column in x:
            try:
                p, q = float(x[column]), float(y[column])
            except ValueError:
                assert x[column] == y[column], (x, y)
            else:
                assert p == q or abs(p - q) <= tolerance * max(1, abs(p)) or (p != p and q != q), (column, x, y)


@pytest.fixture
def same_tables() -> Callable[[Path, Path], None]:
    return assert_same_tables
