"""JSON-lines files of other people, with the place in every error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import reading


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
