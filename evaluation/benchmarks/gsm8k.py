"""GSM8K (Cobbe et al. 2021), plain and with the human step questions of its socratic form.

A line is ``{"question", "answer"}``; the answer is a worked solution that ends in ``#### 18``, with calculator marks
``<<16-3-4=9>>``. In the socratic form each line of it is ``step question ** working``.
"""

from __future__ import annotations

import re
from pathlib import Path

from ...errors import InputError
from ..case import Case, Part
from ..reading import objects, text_field
from .catalog import benchmark

WHAT = "GSM8K's test.jsonl or test_socratic.jsonl"

_MARK = re.compile(r"<<[^<>]*=\s*([^<>=]*)>>")


@benchmark("gsm8k")
def read_gsm8k(path: str | Path) -> list[Case]:
    """Read the cases; socratic files give parts, one per step whose value is marked.

    Raises ``InputError`` naming file and line.
    """
    return [_case(row, n, where) for n, (where, row) in enumerate(objects(path, WHAT), 1)]


def _case(row: dict[str, object], n: int, where: str) -> Case:
    solution = text_field(row, "answer", where)
    working, mark, answer = solution.rpartition("####")
    if not mark or not answer.strip():
        raise InputError(f"{where}: field 'answer' does not end in '#### number'; give {WHAT}")
    steps = socratic_steps(working)
    parts = tuple(Part(q, a, "math", "number", worked=w) for q, a, w in steps if a is not None)
    return Case(
        id=f"gsm8k-{n - 1:04d}",
        question=text_field(row, "question", where),
        answer=answer.strip().replace(",", ""),
        answer_type="number",
        # A step without a value cannot be asked; then the item has no usable decomposition.
        parts=parts if len(parts) == len(steps) else (),
        worked=clean(working.replace(" ** ", " ")).strip() or None,
        benchmark="gsm8k",
        depth=len(steps) or None,
    )


def socratic_steps(working: str) -> list[tuple[str, str | None, str]]:
    """(step question, value, working) of each socratic line; the value is None where no calculation is marked."""
    steps = []
    for line in working.strip().split("\n"):
        question, separator, text = line.partition(" ** ")
        if separator:
            values = _MARK.findall(text)
            steps.append(
                (question.strip(), values[-1].strip().replace(",", "") if values else None, clean(text).strip())
            )
    return steps


def clean(text: str) -> str:
    """The working without calculator marks."""
    return _MARK.sub("", text)
