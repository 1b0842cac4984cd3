"""The exit code that a finished command must have, told from what it wrote."""

from __future__ import annotations

import json
from pathlib import Path


def done(folder: Path) -> int:
    """2 where a graded answer of a run or a study could not be judged, else 0."""
    files = list(folder.rglob("graded.jsonl"))
    assert files, f"{folder}: nothing was graded"
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return 2 if any(row["outcome"] == "invalid" for row in rows) else 0
