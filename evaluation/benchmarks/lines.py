"""JSON-lines files of other people, with the place in every error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import reading


def read_records(path: str | Path, what: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, object) of every element of a JSON list, or of every JSON line, one after the other.

    Raises ``InputError`` naming file and item or line.
    """
    where = None
    for where, row in reading.records(path, f"give {what}"):
        if not isinstance(row, dict):
            raise InputError(f"{where}: expected a JSON object, got {type(row).__name__}; give {what}")
        yield where, row
    if where is None:
        raise InputError(f"{path}: no rows; give {what}")


def read_lines(path: str | Path, what: str) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file. Raises ``InputError`` naming file and line."""
    rows = []
    for where, row in reading.lines(path, f"give {what}"):
        if not isinstance(row, dict):
            raise InputError(f"{where}: expected a JSON object, got {type(row).__name__}; give {what}")
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: no rows; give {what}")
    return rows
