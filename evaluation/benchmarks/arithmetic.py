"""Released data sets of arithmetic: GSM8K, MATH, MultiArith and Test of Time.

GSM8K (Cobbe et al. 2021), plain and with the human step questions of its socratic form: a line is ``{"question",
"answer"}``; the answer is a worked solution that ends in ``#### 18``, with calculator marks ``<<16-3-4=9>>``. In the
socratic form each line of it is ``step question ** working``.

MATH (Hendrycks et al. 2021), of which the hardest level is Math-Hard: LaTeX problems and boxed answers. A line is
``{"problem", "solution", "level", "type"}`` with the answer in the solution's last ``\\boxed{...}``, or has
``question`` and ``answer`` instead. The type becomes the domain; answers are compared as formulas.

MultiArith: word problems with two operations, whose sub-questions are derived from their equations. The file is a JSON
list of ``{iIndex, sQuestion, lEquations: ["X=((32.0+42.0)-35.0)"], lSolutions: [39.0]}``. The inner operation is the
first part, the outer one on its result the second: "What is 32 + 42?", "What is 74 - 35?".

Test of Time, arithmetic part (Fatemi et al. 2024): questions that ask for a JSON answer. Lines as exported from the
data set: ``question``, ``label`` (or ``answer``; text, a number, or the text of an object such as
``{"answer": "1986-06-25"}``) and ``question_type``, which becomes the family.
"""

import ast
import math
import operator
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..case import Case, Part
from ..gold import typed_answer
from ..text_files import id_field, literal, objects, text_field
from .catalog import benchmark

_GSM8K = "GSM8K's test.jsonl or test_socratic.jsonl"

_MARK = re.compile(r"<<[^<>]*=\s*([^<>=]*)>>")


@benchmark("gsm8k")
def read_gsm8k(path: str | Path) -> list[Case]:
    """Read the cases; socratic files give parts, one per step whose value is marked.

    Raises ``InputError`` naming file and line.
    """
    return [_gsm8k_case(row, n, where) for n, (where, row) in enumerate(objects(path, _GSM8K), 1)]


def _gsm8k_case(row: dict[str, object], n: int, where: str) -> Case:
    solution = text_field(row, "answer", where)
    working, mark, answer = solution.rpartition("####")
    if not mark or not answer.strip():
        raise InputError(f"{where}: field 'answer' does not end in '#### number'; give {_GSM8K}")
    steps = socratic_steps(working)
    parts = tuple(Part(q, a, "math", "number", worked=w) for q, a, w in steps if a is not None)
    why = "a step has no marked value" if steps else "no step questions; they are in test_socratic.jsonl"
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
        meta={"problem": why} if not steps or len(parts) < len(steps) else {},
    )


def socratic_steps(working: str) -> list[tuple[str, str | None, str]]:
    """(step question, value, working) of each socratic line; the value is None where no calculation is marked."""
    steps = []
    for line in working.strip().split("\n"):
        question, separator, text = line.partition(" ** ")
        if separator:
            values = _MARK.findall(text)
            value = values[-1].strip().replace(",", "") if values else None
            steps.append((question.strip(), value, clean(text).strip()))
    return steps


def clean(text: str) -> str:
    """The working without calculator marks."""
    return _MARK.sub("", text)


_MATH = "MATH's problems as JSON lines (problem, solution, level, type)"


@benchmark("math-hard")
def read_math_hard(path: str | Path, levels: Sequence[str] | None = None) -> list[Case]:
    """Read the cases, of the given levels only where ``levels`` are given (``Level 5`` is Math-Hard).

    Raises ``InputError`` naming file, line and field, and where no problem is of these levels.
    """
    found = enumerate(objects(path, _MATH))
    rows = [(n, where, row) for n, (where, row) in found if not levels or row.get("level") in levels]
    if not rows:
        raise InputError(f"{path}: no problem is of {', '.join(levels or ())}; give other levels")
    return [_math_case(row, f"{Path(path).stem}-{n:04d}", where) for n, where, row in rows]


def _math_case(row: dict[str, Any], name: str, where: str) -> Case:
    question = text_field(row, "problem" if "problem" in row else "question", where)
    if "answer" in row:
        answer, solution = text_field(row, "answer", where), row.get("solution")
    else:
        solution = text_field(row, "solution", where)
        answer = boxed(solution)
        if answer is None:
            raise InputError(f"{where}: field 'solution' has no \\boxed{{...}}; give {_MATH}")
    text, kind = typed_answer(answer)
    return Case(
        id=id_field(row, name, ("id", "unique_id")),
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


_MULTIARITH = "MultiArith.json: a JSON list of {iIndex, sQuestion, lEquations, lSolutions}"
_SIGNS: dict[type[ast.operator], tuple[str, str, Callable[[Fraction, Fraction], Fraction]]] = {
    ast.Add: ("+", "addition", operator.add),
    ast.Sub: ("-", "subtraction", operator.sub),
    ast.Mult: ("*", "multiplication", operator.mul),
    ast.Div: ("/", "division", operator.truediv),
}


@benchmark("multiarith")
def read_multiarith(path: str | Path) -> list[Case]:
    """Read the cases, each equation checked against its stored solution; raises ``InputError`` naming the item."""
    return [_multiarith_case(row, where, i) for i, (where, row) in enumerate(objects(path, _MULTIARITH))]


def _multiarith_case(row: dict[str, Any], where: str, index: int) -> Case:
    equation = _only(row, "lEquations", where)
    steps = equation_steps(str(equation), where)
    value, solution = steps[-1][2], _only(row, "lSolutions", where)
    try:
        differs = abs(value - Fraction(str(solution))) > 1e-6
    except (ValueError, ZeroDivisionError):  # no number, or NaN
        differs = True
    if differs:
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
    except (SyntaxError, RecursionError, MemoryError) as e:
        raise InputError(f"{where}: lEquations {equation!r:.200} is not an equation of the form X=...") from e
    steps: list[tuple[str, str, Fraction]] = []
    _solve(tree, steps, equation, where)
    if not steps:
        raise InputError(f"{where}: lEquations {equation!r} has no operation; nothing to take apart")
    return steps


def _solve(node: ast.expr, steps: list[tuple[str, str, Fraction]], equation: str, where: str) -> Fraction:
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf:
        return Fraction(str(value))
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        left, right = _solve(node.left, steps, equation, where), _solve(node.right, steps, equation, where)
        sign, name, of = _SIGNS[type(node.op)]
        if sign == "/" and right == 0:
            raise InputError(f"{where}: lEquations {equation!r} divides by zero")
        result = of(left, right)
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


_TOT = "JSON lines with question, label and question_type (Test of Time, arithmetic)"


@benchmark("tot")
def read_tot(path: str | Path) -> list[Case]:
    """Read the cases. Raises ``InputError`` naming file, line and field."""
    found = enumerate(objects(path, _TOT))
    return [_tot_case(row, f"{Path(path).stem}-{n:04d}", where) for n, (where, row) in found]


def _tot_case(row: dict[str, Any], name: str, where: str) -> Case:
    label = row.get("label", row.get("answer"))
    if label is None or label == "" or label != label:  # NaN
        raise InputError(f"{where}: fields 'label' and 'answer' are missing; give {_TOT}")
    answer, kind = typed_answer(_value(label))
    return Case(
        id=id_field(row, name),
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
    return label if (found := literal(label.strip(), object)) is None else found
