"""JSON-lines files of other people, with the place in every error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ...errors import InputError
from .files import existing


def read_lines(path: str | Path, what: str) -> list[dict[str, Any]]:
    """The objects of a JSON-lines file. Raises ``InputError`` naming file and line."""
    rows = []
    for n, line in enumerate(existing(path, what).read_text(encoding="utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as e:
            raise InputError(f"{path}:{n}: not valid JSON ({e.msg} at column {e.colno}); one object a line") from e
        if not isinstance(row, dict):
            raise InputError(f"{path}:{n}: expected a JSON object, got {type(row).__name__}; give {what}")
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: no rows; give {what}")
    return rows
