"""Which reader's published shape a file has that was given as a case file."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

_SHAPES: tuple[tuple[str, frozenset[str]], ...] = (
    ("musique", frozenset({"question_decomposition", "question"})),
    ("musique", frozenset({"paragraphs", "question"})),
    ("2wiki", frozenset({"evidences", "question"})),
    ("hotpotqa", frozenset({"supporting_facts", "question"})),
    ("hotpotqa", frozenset({"_id", "context", "question"})),
    ("mquake", frozenset({"single_hops", "questions"})),
    ("twohopfact", frozenset({"r2(r1(e1)).prompt", "e3.value"})),
    ("agentcoma", frozenset({"question_composition", "answer_composition"})),
    ("bamboogle", frozenset({"Question", "Q1", "A1"})),
    ("multiarith", frozenset({"sQuestion", "lEquations"})),
    ("math-hard", frozenset({"problem", "solution"})),
    ("stad", frozenset({"sub-task", "question"})),
    ("tot", frozenset({"question_type", "label", "question"})),
)
_ENOUGH = 1 << 20
"""Bytes that are read: the first record, or the header, of any of these files stands within them."""


def shape_of(path: Path) -> str | None:
    """The reader's name; None for a case file, and for whatever is none of the known shapes."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        start = file.read(_ENOUGH).decode("utf-8-sig", "ignore")
    record = _header(start) if path.suffix.lower() == ".csv" else _first_record(start)
    found = next((reader for reader, signs in _SHAPES if signs <= record.keys()), None)
    return found or ("gsm8k" if "id" not in record and "####" in str(record.get("answer")) else None)


def _header(start: str) -> dict[str, Any]:
    return dict.fromkeys(next(csv.reader(start.split("\n")[:1]), []))


def _first_record(start: str) -> dict[str, Any]:
    text = start.lstrip().removeprefix("[").lstrip()
    try:
        record: Any = json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
