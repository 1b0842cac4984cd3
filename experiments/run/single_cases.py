"""What probes kept of single cases, in ``probes/NAME/cases``: maps, tokens and sweeps of a few failures and successes.

kept = read_single_cases(run.path, "lookback")
kept.entries[0].about["tokens"], kept.entries[0].arrays["ratio"]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import read_json
from .reader import Array, Row, read_tensors


@dataclass(frozen=True)
class SavedEntry:
    """One prompt of one case."""

    about: Row
    """Case, role, kind, group, tokens and spans, the settings, and ``axes``: the axis names of each array."""
    arrays: dict[str, Array]


@dataclass(frozen=True)
class SavedCases:
    """The entries of a probe."""

    about: Row
    """How many cases were kept (``note``, ``cases_per_group``), and what was left out (``left_out``)."""
    entries: Sequence[SavedEntry]


def read_single_cases(run: Path, probe: str) -> SavedCases | None:
    """The single cases that a probe kept; None if it kept none.

    Raises ``InputError`` for an index, and ``SafetensorError`` for tensors, that cannot be read.
    """
    folder = run / "probes" / probe / "cases"
    if not (folder / "index.json").is_file():
        return None
    about = read_json(folder / "index.json")
    mine: dict[str, dict[str, Array]] = {}
    for name, values in read_tensors(folder / "tensors.safetensors").items():
        at, _, what = name.partition(".")
        mine.setdefault(at, {})[what] = values
    entries = [SavedEntry(entry, mine.get(str(i), {})) for i, entry in enumerate(about.pop("entries", []))]
    return SavedCases(about, entries)
