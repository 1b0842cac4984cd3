"""Reading the files of a run folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from ...errors import InputError
from . import schema
from .folder import _text, read_json, read_lines


def read_filled(path: str | Path) -> list[dict[str, Any]]:
    """``read_lines`` of a file that never is empty. Raises ``InputError`` where it is."""
    found = read_lines(path)
    if not found:
        raise InputError(f"{path}: no lines; {schema.AGAIN}")
    return found


def read_cases_lines(folder: Path) -> list[dict[str, Any]]:
    """The cases that a run asked about, as JSON objects without the schema version.

    Raises ``InputError`` for a file without a case, and for one whose cases are not as many as the run asked about:
    a file that lost lines would be counted as a smaller benchmark.
    """
    path, manifest = folder / "cases.jsonl", folder / "manifest.json"
    found = [{k: v for k, v in raw.items() if k != "schema"} for raw in read_filled(path)]
    twice = next((case for case, n in Counter(raw["id"] for raw in found).items() if n > 1), None)
    if twice is not None:
        raise InputError(f"{path}: field 'id' is {twice!r} in several lines; {schema.AGAIN}")
    asked = read_json(manifest).get("n_cases") if manifest.is_file() else None
    if asked not in (None, len(found)):
        raise InputError(
            f"{path}: {len(found)} cases, and field 'n_cases' of {manifest.name} is {asked}; {schema.AGAIN}"
        )
    return found


def read_graded_lines(folder: Path) -> list[dict[str, Any]]:
    """The graded rows of a run. Raises ``InputError`` where a complete run has none of one of its cases."""
    path, manifest = folder / "graded.jsonl", folder / "manifest.json"
    found = read_filled(path)
    said = read_json(manifest) if manifest.is_file() else {}
    if said.get("status") == "complete" and not said.get("stopped") and (folder / "cases.jsonl").is_file():
        graded = {row["case"] for row in found}
        missing = [case["id"] for case in read_cases_lines(folder) if case["id"] not in graded]
        if missing:
            raise InputError(
                f"{path}: no row of {len(missing)} cases (first: {missing[0]!r}), and the run is complete; "
                f"{schema.COUNT_AGAIN}"
            )
    return found


def read_config(folder: str | Path) -> dict[str, Any]:
    """The options that a run was made with.

    Raises ``InputError`` for a file that is missing, broken, or without model, benchmark and protocol.
    """
    import yaml

    path = Path(folder) / "config.yaml"
    try:
        found = yaml.safe_load(_text(path))
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        why = " ".join(str(e).split())[:200]
        raise InputError(f"{path}: not valid YAML ({why}); restore the file, or make the run again") from e
    if not isinstance(found, dict):
        raise InputError(f"{path}: holds no options; restore the file, or make the run again")
    schema.check_document(path, found)
    return found
