"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_text(path: str | Path, text: str) -> Path:
    """Write a file atomically: a reader sees the old content or the new one, never half of it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path
