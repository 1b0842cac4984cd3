"""Test of Time, arithmetic part (Fatemi et al. 2024): questions that ask for a JSON answer.

Lines as exported from the data set: ``question``, ``label`` (or ``answer``; text, a number, or the text of an object
such as ``{"answer": "1986-06-25"}``) and ``question_type``, which becomes the family.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..case import Case
from ..gold import typed_answer
from ..reading import objects, text_field
from .catalog import benchmark

WHAT = "JSON lines with question, label and question_type (Test of Time, arithmetic)"


@benchmark("tot")
def read_tot(path: str | Path) -> list[Case]:
    """Read the cases. Raises ``InputError`` naming file, line and field."""
    found = enumerate(objects(path, WHAT))
    return [_case(row, f"{Path(path).stem}-{n:04d}", where) for n, (where, row) in found]


def _case(row: dict[str, Any], name: str, where: str) -> Case:
    label = row.get("label", row.get("answer"))
    if label is None or label == "":
        raise InputError(f"{where}: fields 'label' and 'answer' are missing; give {WHAT}")
    answer, kind = typed_answer(_value(label))
    return Case(
        id=str(row.get("id") or name),
        question=text_field(row, "question", where),
        answer=answer,
        answer_type=kind,
        benchmark="tot-arithmetic",
        family=row.get("question_type"),
        meta={k: v for k, v in row.items() if k not in ("id", "question", "label", "answer", "question_type")},
    )


def _value(label: Any) -> Any:
    """The label itself, or what its text holds where that is an object or a list."""
    if not isinstance(label, str) or label.strip()[:1] not in ("{", "["):
        return label
    for read in (json.loads, ast.literal_eval):
        try:
            return read(label.strip())
        except (ValueError, SyntaxError):
            continue
    return label
