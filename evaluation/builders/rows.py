"""JSON-lines files of builders, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def write_rows(rows: Iterable[Mapping[str, Any]], path: str | Path) -> None:
    """Write one object a line; an interrupted write leaves the earlier file as it was."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
