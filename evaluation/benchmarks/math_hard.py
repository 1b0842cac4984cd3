"""MATH (Hendrycks et al. 2021), of which the hardest level is Math-Hard: LaTeX problems and boxed answers.

A line is ``{"problem", "solution", "level", "type"}`` with the answer in the solution's last ``\\boxed{...}``, or has
``question`` and ``answer`` instead. The type becomes the domain; answers are compared as formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..case import Case
from ..gold import typed_answer
from ..reading import objects, text_field
from .catalog import benchmark

WHAT = "MATH's problems as JSON lines (problem, solution, level, type)"


@benchmark("math-hard")
def read_math_hard(path: str | Path, levels: Sequence[str] | None = None) -> list[Case]:
    """Read the cases, of the given levels only where ``levels`` are given (``Level 5`` is Math-Hard).

    Raises ``InputError`` naming file, line and field, and where no problem is of these levels.
    """
    found = enumerate(objects(path, WHAT))
    rows = [(n, where, row) for n, (where, row) in found if not levels or row.get("level") in levels]
    if not rows:
        raise InputError(f"{path}: no problem is of {', '.join(levels or ())}; give other levels")
    return [_case(row, f"{Path(path).stem}-{n:04d}", where) for n, where, row in rows]


def _case(row: dict[str, Any], name: str, where: str) -> Case:
    question = text_field(row, "problem" if "problem" in row else "question", where)
    if "answer" in row:
        answer, solution = text_field(row, "answer", where), row.get("solution")
    else:
        solution = text_field(row, "solution", where)
        answer = boxed(solution)
        if answer is None:
            raise InputError(f"{where}: field 'solution' has no \\boxed{{...}}; give {WHAT}")
    text, kind = typed_answer(answer)
    return Case(
        id=str(row.get("id") or row.get("unique_id") or name),
        question=question,
        answer=text,
        # A formula also where it is plain text in LaTeX: \text{even} is compared as such.
        answer_type=kind,
        benchmark="math",
        worked=solution,
        domain=row.get("type") or row.get("subject"),
        meta={"level": row["level"]} if "level" in row else {},
    )


def boxed(solution: str) -> str | None:
    """What the last ``\\boxed{...}`` of a solution holds; braces inside it are balanced."""
    start = solution.rfind("\\boxed{")
    if start < 0:
        return None
    depth = 0
    for i in range(start + len("\\boxed"), len(solution)):
        escaped = solution[i - 1] == "\\"
        depth += {"{": 1, "}": -1}.get(solution[i], 0) if not escaped else 0
        if depth == 0:
            return solution[start + len("\\boxed{") : i].strip()
    return None
