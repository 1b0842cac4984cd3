"""What the readers of other people's files share: paths, JSON, and errors that name the place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import InputError
from .. import reading


def read_json_list(path: str | Path, what: str) -> list[dict[str, Any]]:
    """A file that holds one JSON list of objects."""
    raw = reading.document(path, f"give {what}")
    if not isinstance(raw, list) or not all(isinstance(item, dict) for item in raw):
        raise InputError(f"{path}: expected a list of objects; give {what}")
    return raw


def text_field(row: Mapping[str, Any], name: str, where: str) -> str:
    """A field that must hold text."""
    value = row.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = number_text(value)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: field {name!r} is {value!r}; give a non-empty string")
    return value.strip()


def answers_field(row: Mapping[str, Any], name: str, where: str) -> tuple[str, tuple[str, ...]]:
    """A gold answer and its aliases from a field that holds one answer or a list of accepted ones."""
    value = row.get(name)
    accepted = value if isinstance(value, list) else [value]
    texts = [text_field({name: v}, name, where) for v in accepted]
    if not texts:
        raise InputError(f"{where}: field {name!r} is an empty list; give at least one accepted answer")
    unique = list(dict.fromkeys(texts))
    return unique[0], tuple(unique[1:])


def number_text(value: float) -> str:
    """A number as one writes it: 39.0 is "39"."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
