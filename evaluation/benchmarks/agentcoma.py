"""AgentCoMa: a commonsense choice, then one arithmetic operation on what was chosen (CSV as released, gated).

Columns used: ``question_commonsense, answers_commonsense`` (a list of accepted answers, written as Python or JSON),
``question_math, answer_math, question_composition, answer_composition``. Where they are there too: an id, ``category``
or ``domain`` (house_working, travel_agent, ...), ``operation_type`` or ``operation``, and sub-questions with the
whole's irrelevant numbers added (App. K): a column whose name has "extra" or "context" in it, and "math" if it is
about the second step. All other columns are kept in ``meta``.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...files import at_home
from .. import text_files
from ..case import Case, Part
from ..grading import numbers
from ..text_files import text_field
from .catalog import benchmark

WHAT = "AgentCoMa's agentcoma_dev.csv or agentcoma_test.csv (from its gated dataset page)"
_COLUMNS = tuple(
    "question_commonsense answers_commonsense question_math answer_math question_composition answer_composition".split()
)
_IDS = ("id", "idx", "item_id", "question_id")
_DOMAIN = ("domain", "category")
_OPERATION = ("operation", "operation_type")


@benchmark("agentcoma")
def read_agentcoma(path: str | Path) -> list[Case]:
    """Read the cases of one CSV file. Raises ``InputError`` naming line and column."""
    columns, rows = text_files.table(path, f"give {WHAT}")
    missing = [c for c in _COLUMNS if c not in columns]
    if missing:
        raise InputError(f"{path}: column {missing[0]!r} is missing; give {WHAT}")
    stem = at_home(path).stem
    extra = _extra_contexts(columns, path)
    return [_case(row, i, stem, f"{path}:{line}", extra) for i, (line, row) in enumerate(rows)]


def _extra_contexts(columns: Sequence[str], path: object) -> tuple[str | None, str | None]:
    """The columns that hold the two sub-questions with extra context; None where there is none."""
    worded = [c for c in columns if re.search("extra|context", c, re.I) and not c.startswith("answer")]
    found: list[str | None] = []
    for is_math in (False, True):
        of_step = [c for c in worded if ("math" in c.casefold()) is is_math]
        if len(of_step) > 1:
            both = " and ".join(map(repr, of_step[:2]))
            raise InputError(f"{path}:1: columns {both} hold one sub-question with extra context; keep one of them")
        found.append(of_step[0] if of_step else None)
    return found[0], found[1]


def _case(
    row: Mapping[str, str], index: int, stem: str, where: str, extra: tuple[str | None, str | None] = (None, None)
) -> Case:
    accepted = _accepted(row["answers_commonsense"], where)
    named, domain, operation = (
        next((row[c].strip() for c in columns if row.get(c, "").strip()), None)
        for columns in (_IDS, _DOMAIN, _OPERATION)
    )
    first, second = (row[c].strip() or None if c else None for c in extra)

    def text(column: str) -> str:
        return text_field(row, column, where)

    def number(column: str) -> str:
        if numbers.parse(found := text(column)) is None:  # such as the "nan" of a table's missing value
            raise InputError(f"{where}: column {column!r} is {found!r}; give a number")
        return found

    used = {*_COLUMNS, *_IDS, *_DOMAIN, *_OPERATION, *extra}
    return Case(
        id=f"{stem}-{named or f'{index:03d}'}",
        question=text("question_composition"),
        answer=number("answer_composition"),
        answer_type="number",
        parts=(
            Part(text("question_commonsense"), accepted[0], "commonsense", aliases=accepted[1:], extra_context=first),
            Part(text("question_math"), number("answer_math"), "math", "number", extra_context=second),
        ),
        benchmark="agentcoma",
        depth=2,
        domain=domain,
        operation=operation,
        meta={k: v for k, v in row.items() if k and k not in used},
    )


def _accepted(text: str, where: str) -> tuple[str, ...]:
    text = text.strip()
    kinds: dict[str, type] = {"[": list, "(": tuple, "'": object, '"': object}  # in quotes: one answer, or several
    found: Any = text_files.literal(text, kinds.get(text[:1], str))
    values = found if isinstance(found, list | tuple) else [] if text.startswith("[") else [found or text]
    if not values or not all(isinstance(v, str | int | float) and str(v).strip() for v in values):
        raise InputError(f"{where}: column 'answers_commonsense' is {text!r}; give a list of accepted answers")
    return tuple(dict.fromkeys(str(v).strip() for v in values))
