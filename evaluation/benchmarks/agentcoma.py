"""AgentCoMa: a commonsense choice, then one arithmetic operation on what was chosen (CSV as released, gated).

Columns used: ``question_commonsense, answers_commonsense`` (a list of accepted answers, written as Python or JSON),
``question_math, answer_math, question_composition, answer_composition``. Where they are there too: ``domain``,
``operation`` and an id column. All other columns are kept in ``meta``.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

from ...errors import InputError
from .. import reading
from ..cases import Case, Part
from .files import text_field

WHAT = "AgentCoMa's agentcoma_dev.csv or agentcoma_test.csv (from its gated dataset page)"
_COLUMNS = (
    "question_commonsense",
    "answers_commonsense",
    "question_math",
    "answer_math",
    "question_composition",
    "answer_composition",
)
_IDS = ("id", "idx", "item_id", "question_id")


def read_agentcoma(path: str | Path) -> list[Case]:
    """Read the cases of one CSV file. Raises ``InputError`` naming line and column."""
    columns, rows = reading.table(path, f"give {WHAT}")
    missing = [c for c in _COLUMNS if c not in columns]
    if missing:
        raise InputError(f"{path}: column {missing[0]!r} is missing; give {WHAT}")
    stem = Path(path).expanduser().stem
    return [_case(row, i, stem, f"{path}:{line}") for i, (line, row) in enumerate(rows)]


def _case(row: Mapping[str, str], index: int, stem: str, where: str) -> Case:
    accepted = _accepted(row["answers_commonsense"], where)
    named = next((row[c].strip() for c in _IDS if row.get(c, "").strip()), None)
    return Case(
        id=f"{stem}-{named or f'{index:03d}'}",
        question=text_field(row, "question_composition", where),
        answer=text_field(row, "answer_composition", where),
        answer_type="number",
        parts=(
            Part(text_field(row, "question_commonsense", where), accepted[0], "commonsense", aliases=accepted[1:]),
            Part(text_field(row, "question_math", where), text_field(row, "answer_math", where), "math", "number"),
        ),
        benchmark="agentcoma",
        depth=2,
        domain=row.get("domain") or None,
        operation=row.get("operation") or None,
        meta={k: v for k, v in row.items() if k and k not in (*_COLUMNS, *_IDS, "domain", "operation")},
    )


def _accepted(text: str, where: str) -> tuple[str, ...]:
    try:
        values = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        values = text.strip()
    values = values if isinstance(values, list | tuple) else [values]
    accepted = tuple(dict.fromkeys(str(v).strip() for v in values if str(v).strip()))
    if not accepted:
        raise InputError(f"{where}: column 'answers_commonsense' is {text!r}; give a list of accepted answers")
    return accepted
