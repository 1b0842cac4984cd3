"""MultiArith: word problems with two operations, whose sub-questions are derived from their equations.

The file is a JSON list of ``{iIndex, sQuestion, lEquations: ["X=((32.0+42.0)-35.0)"], lSolutions: [39.0]}``. The inner
operation is the first part, the outer one on its result the second: "What is 32 + 42?", "What is 74 - 35?".
"""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..case import Case, Part
from ..reading import objects, text_field
from .catalog import benchmark

WHAT = "MultiArith.json: a JSON list of {iIndex, sQuestion, lEquations, lSolutions}"
_SIGNS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "addition"),
    ast.Sub: ("-", "subtraction"),
    ast.Mult: ("*", "multiplication"),
    ast.Div: ("/", "division"),
}


@benchmark("multiarith")
def read_multiarith(path: str | Path) -> list[Case]:
    """Read the cases, each equation checked against its stored solution; raises ``InputError`` naming the item."""
    return [_case(row, where, i) for i, (where, row) in enumerate(objects(path, WHAT))]


def _case(row: dict[str, Any], where: str, index: int) -> Case:
    equation = _only(row, "lEquations", where)
    steps = equation_steps(str(equation), where)
    value, solution = steps[-1][2], _only(row, "lSolutions", where)
    if abs(float(value) - float(solution)) > 1e-6:
        raise InputError(f"{where}: lEquations {equation!r} gives {_text(value)}, lSolutions says {solution!r}")
    parts = tuple(
        Part(f"What is {question}?", _text(result), "math", "number", skill=operation)
        for question, operation, result in steps
    )
    return Case(
        id=f"multiarith-{row.get('iIndex', index)}",
        question=text_field(row, "sQuestion", where),
        answer=_text(value),
        answer_type="number",
        parts=parts,
        benchmark="multiarith",
        depth=len(parts),
        operation=", ".join(operation for _, operation, _ in steps),
    )


def equation_steps(equation: str, where: str) -> list[tuple[str, str, Fraction]]:
    """The operations of ``X=...`` in the order in which they are solved: (expression, operation, result).

    Only numbers, brackets and the four operations are understood; nothing is executed.
    """
    try:
        tree = ast.parse(equation.split("=", 1)[-1].strip(), mode="eval").body
    except SyntaxError as e:
        raise InputError(f"{where}: lEquations {equation!r} is not an equation of the form X=...") from e
    steps: list[tuple[str, str, Fraction]] = []
    _solve(tree, steps, equation, where)
    if not steps:
        raise InputError(f"{where}: lEquations {equation!r} has no operation; nothing to take apart")
    return steps


def _solve(node: ast.expr, steps: list[tuple[str, str, Fraction]], equation: str, where: str) -> Fraction:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return Fraction(str(node.value))
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        left, right = _solve(node.left, steps, equation, where), _solve(node.right, steps, equation, where)
        sign, name = _SIGNS[type(node.op)]
        if sign == "/" and right == 0:
            raise InputError(f"{where}: lEquations {equation!r} divides by zero")
        result = {"+": left + right, "-": left - right, "*": left * right, "/": left / right if right else left}[sign]
        steps.append((f"{_text(left)} {sign} {_text(right)}", name, result))
        return result
    raise InputError(f"{where}: lEquations {equation!r} holds more than numbers and + - * /")


def _only(row: dict[str, Any], name: str, where: str) -> Any:
    value = row.get(name)
    if not isinstance(value, list) or len(value) != 1:
        raise InputError(f"{where}: field {name!r} is {value!r}; give a list of one")
    return value[0]


def _text(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))
