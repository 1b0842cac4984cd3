"""What probes measured in single cases: numbers of all of them, and maps, tokens and sweeps of a few.

kept = read_single_cases(run.path, "lookback")  # probes/lookback/cases
kept.entries[0].about["tokens"], kept.entries[0].arrays["ratio"]
read_values(run.path, "lookback")[0].value  # probes/lookback/values.csv
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from ...evaluation.case import shares
from ...files import read_csv
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


@dataclass(frozen=True)
class CaseValue:
    """A number that a probe measured at one prompt of a case."""

    case: str
    role: str
    kind: str
    quantity: str
    value: float
    """NaN where it is undefined."""
    shares: Hashable
    """What the case shares with others (``evaluation.dependence``); None if nothing."""


def read_values(run: Path, probe: str) -> list[CaseValue]:
    """A probe's numbers, in the order of the file; none if it has no numbers of single cases.

    Raises ``InputError`` for a line without case, role, kind, quantity and value.
    """
    path, found = run / "probes" / probe / "values.csv", list[CaseValue]()
    for n, row in enumerate(read_csv(path)[1] if path.is_file() else (), start=2):
        try:
            case, role, kind, quantity = (str(row[key]) for key in ("case", "role", "kind", "quantity"))
            value = float(row["value"] or math.nan)
        except (KeyError, TypeError, ValueError) as e:
            raise InputError(f"{path}:{n}: no case, role, kind, quantity and value; run the probe again") from e
        crossed = [c for c in (row.get("crossed") or "").split("; ") if c]
        found.append(CaseValue(case, role, kind, quantity, value, shares(row.get("cluster") or None, crossed)))
    return found
