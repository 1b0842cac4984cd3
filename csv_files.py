"""Writes and reads tables as CSV that a spreadsheet cannot execute.

A spreadsheet takes a cell for a formula if it begins with ``=``, ``+``, ``-`` or ``@`` and is not a number, and answers
of models may begin like that. ``to_csv`` writes an apostrophe before such cells, as spreadsheets do to mark text, and
``read_csv`` removes it.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
"""A row of a table, by column."""
_FORMULA = re.compile(r"'*([\t\r\n]|[\s\u200b\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20]).", re.DOTALL)
"""Some programs skip spaces, and read the wide forms of East Asian keyboards as the ordinary ones."""


def to_csv(rows: Iterable[Mapping[str, Any]], columns: Sequence[str] | None = None) -> str:
    """Rows as CSV. Columns are in order of first appearance unless given; None becomes an empty cell."""
    rows = list(rows)
    names = list(columns or dict.fromkeys(k for row in rows for k in row))
    return _line(names) + "".join(_line([row.get(name) for name in names]) for row in rows)


def _line(cells: Iterable[Any]) -> str:
    text = io.StringIO(newline="")
    # The writer quotes a cell with a line end only if its own line terminator contains that character.
    csv.writer(text, lineterminator="\r\n").writerow([inert(cell) for cell in cells])
    return text.getvalue()[:-2] + "\n"


def read_csv(path: str | Path) -> tuple[list[str], list[dict[str, Any]]]:
    """Columns and rows of a table written by ``to_csv``, like ``csv.DictReader``, with the original cells."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        reader = csv.DictReader(file)
        rows = [{k: _as_it_was(v) if isinstance(v, str) else v for k, v in row.items()} for row in reader]
        return list(reader.fieldnames or ()), rows


def inert(value: Any) -> Any:
    """A cell's value, with text that a spreadsheet would take for a formula marked as text."""
    if not isinstance(value, str) or not _FORMULA.match(value):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def _as_it_was(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
