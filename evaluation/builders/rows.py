"""JSON-lines files of builders, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...files import write_text


def write_rows(rows: Iterable[Mapping[str, Any]], path: str | Path) -> None:
    """Write one object a line; an interrupted write leaves the earlier file as it was."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
