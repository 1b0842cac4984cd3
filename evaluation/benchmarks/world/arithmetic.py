"""One operation on two numbers: the last step of a mixed-type case, and what goes wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...cases import Case, Part
from .decoys import nearest
from .tables import rows

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "addition": lambda a, b: a + b,
    "subtraction": lambda a, b: a - b,
    "multiplication": lambda a, b: a * b,
    "division": lambda a, b: a // b,
}


def fair(operation: str, a: int, b: int) -> bool:
    """Whether the result is more than 1 and neither operand: a question must not hold its own answer."""
    result = OPERATIONS[operation](a, b)
    return result > 1 and result not in (a, b)


def slips(operation: str, a: int, b: int) -> list[str]:
    """Results near the right one: of other operations on the same numbers, and of operands that are one off."""
    run, right = OPERATIONS[operation], OPERATIONS[operation](a, b)
    one_off = {run(a + i, b + j) for i, j in ((-1, 0), (1, 0), (0, -1), (0, 1)) if b + j > 0}
    return nearest({other(a, b) for other in OPERATIONS.values()} | one_off | {right - 1, right + 1}, right)


def math_part(operation: str, a: int, b: int) -> Part:
    """The operation as a sub-question."""
    row = next(row for row in rows("arithmetic") if row["operation"] == operation)
    question, *paraphrases = (row[name].format(a=a, b=b) for name in ("question", "paraphrase_1", "paraphrase_2"))
    return Part(
        question=question,
        answer=str(OPERATIONS[operation](a, b)),
        kind="math",
        answer_type="number",
        paraphrases=tuple(paraphrases),
        atom=f"{operation}:{a},{b}",
        skill=operation,
    )


def mixed_case(
    id: str,
    question: str,
    parts: tuple[Part, ...],
    *,
    shared: tuple[str, str],
    decoys: Sequence[list[str]],
    chance: float | None = None,
) -> Case:
    """A case whose last part computes the whole's answer; ``shared`` is its cluster and what crosses it."""
    cluster, crossed = shared
    by_role = {f"part:{i}": found for i, found in enumerate(decoys)}
    return Case(
        id=id,
        question=question,
        answer=parts[-1].answer,
        parts=parts,
        answer_type="number",
        depth=len(parts),
        cluster=cluster,
        chance=chance,
        meta={"first": cluster, "crossed": crossed, "decoys": {**by_role, "whole": decoys[-1]}},
    )
