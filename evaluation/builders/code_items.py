"""GSM8K items with code-form solutions, and the numbers in them that can be replaced.

A *slot* is a number that stands exactly once in the question (as digits or as a word) and exactly once as a constant
in the solution: replacing it in both keeps question and solution about the same thing.
"""

import ast
import difflib
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..grading import words
from ..sandbox import run_code
from ..text_files import id_field, objects

WHAT = "JSON lines with question, code and answer, or GSM-Hard rows with input and code"

LARGEST = 10**15
"""Larger answers are left out: floating point, in which magnitudes are compared, would not hold them exactly."""
WORDS: dict[str, float] = {**words.SMALL, **words.TENS}
_DIGITS = r"(?<![\w.,:/])\d+(?:,\d{3})*(?:\.\d+)?"
_NUMBER = rf"{_DIGITS}(?![\d:/]|\.\d|,\d{{3}}|[^\W\d_]|\s*%)"
_JOINED = re.compile(rf"{_DIGITS}(?=[^\W\d_])")
"""A number joined to a word (12km, 2nd): an X in its place would not be a separate word."""
_X = re.compile(r"\bX\b")
_NO_UNIT = "".join(rf"(?<!\b{tens}[ -])" for tens in words.TENS)
_WORD = rf"{_NO_UNIT}\b(?:{'|'.join(w for w in WORDS if w not in ('zero', 'one'))})\b(?!-)"
"""A number in one word, which is no part of twenty-five or of twenty five."""
_MENTION = re.compile(rf"{_NUMBER}|{_WORD}(?!(?<=ty) (?:{'|'.join(words.SMALL)})\b)", re.IGNORECASE)
_ANY_NUMBER = re.compile(rf"\d+(?:,\d{{3}})*(?:\.\d+)?|\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)


@dataclass(frozen=True)
class CodeItem:
    """A question with a solution in code that comes to its answer."""

    id: str
    question: str
    code: str
    """Defines ``solution()`` without arguments; the question is not repeated in it."""
    answer: int


@dataclass(frozen=True)
class ReplaceableNumber:
    """A number of an item that can be replaced."""

    value: float
    span: tuple[int, int]
    """Its start and end in the question."""
    line: int
    start: int
    end: int
    """Place of its constant in the code: line from 1, byte columns."""


def has_x(item: CodeItem) -> bool:
    """Whether the question already has an X (Farm X, an island marked X), so that a second one would be ambiguous."""
    return _X.search(item.question) is not None


def slots(item: CodeItem) -> tuple[list[ReplaceableNumber], list[dict[str, Any]]]:
    """The replaceable numbers of an item, and the reason why each other constant of its code is not replaceable."""
    constants = code_constants(item.code)
    times = Counter(float(c.value) for c in constants)
    if has_x(item):
        return [], [{"constant": value, "reason": "question-has-x"} for value in sorted(times)]
    joined = {number_value(m.group()) for m in _JOINED.finditer(item.question)}
    mentions = [(number_value(m.group()), m.span()) for m in _MENTION.finditer(item.question)]
    everywhere = Counter(number_value(m.group()) for m in _ANY_NUMBER.finditer(item.question))
    found, refused = [], []
    for value in sorted(times):
        spans = [span for v, span in mentions if v == value]
        if times[value] > 1:
            refused.append({"constant": value, "reason": "several-in-code"})
        elif everywhere[value] > 1:
            refused.append({"constant": value, "reason": "several-in-question"})
        elif not spans:
            reason = "joined-to-a-word" if value in joined else "not-in-question"
            refused.append({"constant": value, "reason": reason})
        else:
            node = next(c for c in constants if float(c.value) == value)
            found.append(ReplaceableNumber(value, spans[0], node.lineno, node.col_offset, node.end_col_offset or 0))
    return found, refused


def number_value(text: str) -> float:
    """The value of a number in digits or as one word."""
    return WORDS.get(text.lower(), -1.0) if text[0].isalpha() else float(text.replace(",", ""))


def code_constants(code: str) -> list[Any]:
    """The number constants of a program (``ast.Constant`` nodes), in order."""
    nodes = [n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant)]
    numbers = [n for n in nodes if isinstance(n.value, int | float) and not isinstance(n.value, bool)]
    return sorted(numbers, key=lambda n: (n.lineno, n.col_offset))


def with_constant(code: str, slot: ReplaceableNumber, text: str) -> str:
    """The program with the slot's constant replaced by ``text``."""
    lines = code.split("\n")
    line = lines[slot.line - 1].encode()
    lines[slot.line - 1] = (line[: slot.start] + text.encode() + line[slot.end :]).decode()
    return "\n".join(lines)


def with_mention(question: str, slot: ReplaceableNumber, text: str) -> str:
    """The question with the slot's number replaced by ``text``."""
    return question[: slot.span[0]] + text + question[slot.span[1] :]


def read_code_items(
    path: str | Path, answers: Mapping[str, str] | None = None
) -> tuple[list[CodeItem], list[dict[str, Any]]]:
    """Read items with code-form solutions; keep those whose code comes to their positive whole-number answer.

    Two shapes are read: ``{id, question, code, answer}``, and GSM-Hard's ``{input, code, target}`` (Gao et al. 2023,
    PAL), where one number was made absurdly large: the original is restored from the question kept in the code's
    docstring. ``answers`` maps questions to gold answers (GSM8K's test set) and is what a restored item is checked
    against; without it GSM-Hard rows are not usable.

    Returns the items and one record per row left out, with its reason. Raises ``InputError`` for unusable files.
    """
    known = {_squeeze(q): a for q, a in (answers or {}).items()}
    items: list[CodeItem] = []
    rejected: list[dict[str, Any]] = []
    for n, (where, row) in enumerate(objects(path, WHAT)):
        made = _item(row, n, known, where)
        if isinstance(made, CodeItem):
            items.append(made)
        else:
            rejected.append({"item": id_field(row, str(n)), "stage": "item", "reason": made})
    ids = Counter(i.id for i in items)
    if twice := [i for i, k in ids.items() if k > 1]:
        raise InputError(f"{path}: id {twice[0]!r} is used {ids[twice[0]]} times; give each item its own id")
    return items, rejected


def _item(row: Mapping[str, Any], n: int, known: Mapping[str, str], where: str) -> CodeItem | str:
    if "code" not in row or not ("input" in row or {"question", "answer"} <= row.keys()):
        raise InputError(f"{where}: fields {sorted(row)} are neither of the shapes; give {WHAT}")
    for name in ("code", "input" if "input" in row else "question"):
        if not isinstance(row[name], str):
            raise InputError(f"{where}: field {name!r} is {row[name]!r}, not text; give {WHAT}")
    if isinstance(row.get("answer"), list | dict):
        raise InputError(f"{where}: field 'answer' is {row['answer']!r}; give a whole number")
    try:
        hard = "input" in row
        question, code = _restored(row) if hard else (str(row["question"]), without_docstring(row["code"]))
    except SyntaxError as e:
        return f"code-syntax: {e.msg}"
    except (ValueError, RecursionError, MemoryError) as e:  # null bytes; nested too deeply for the parser
        return f"code-syntax: {e or 'nested too deeply'}"
    gold = known.get(_squeeze(question)) if hard else str(row["answer"])
    if gold is None:
        return "no-gold-answer"
    if not any(isinstance(n, ast.FunctionDef) and n.name == "solution" for n in ast.parse(code).body):
        return "code-without-solution()"
    result = run_code(code)
    if not result.ok:
        return f"code-{result.reason}"
    answer = whole(result.value)
    if answer is not None and abs(answer) > LARGEST:
        return "answer-too-large"
    if answer is None or str(answer) != gold.replace(",", "").removesuffix(".0"):
        return f"code-answer-differs: {result.text} for {gold}"
    if answer < 1:
        return f"answer-no-positive-integer: {answer}"
    return CodeItem(id_field(row, f"gsm8k-{n:04d}"), question, code, answer)


def whole(value: Any) -> int | None:
    """The result as an integer, up to floating-point rounding; None where it is not an integer."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):  # of any size: what floats can hold is not asked
        return value
    if not math.isfinite(value):
        return None
    nearest = round(value)
    # 1e-9 of a billion is a whole one
    return nearest if abs(value - nearest) <= min(1e-9 * max(1, abs(value)), 1e-3) else None


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _restored(row: Mapping[str, Any]) -> tuple[str, str]:
    """Question and code of a GSM-Hard row with the original number back in."""
    tree = ast.parse(row["code"])
    function = next((n for n in tree.body if isinstance(n, ast.FunctionDef)), None)
    question = (ast.get_docstring(function, clean=False) if function else None) or row["input"]
    code = without_docstring(row["code"])
    for old, new in _changes(question, row["input"]):
        for node in reversed(code_constants(code)):
            if float(node.value) == new:
                number = ReplaceableNumber(new, (0, 0), node.lineno, node.col_offset, node.end_col_offset)
                code = with_constant(code, number, old)
    return question, code


def _changes(question: str, changed: str) -> Iterable[tuple[str, float]]:
    """Pairs of (original number as code writes it, value it was replaced by)."""
    a, b = (re.findall(r"\d[\d,]*(?:\.\d+)?|\w+|\S", t) for t in (question, changed))
    for op, a0, a1, b0, b1 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if op == "replace" and a1 - a0 == b1 - b0 == 1 and b[b0][0].isdigit():
            value = number_value(a[a0]) if a[a0][0].isalnum() else -1.0
            if value >= 0:
                yield (str(int(value)) if value == int(value) else repr(value)), number_value(b[b0])


def without_docstring(code: str) -> str:
    """The program without docstrings: a solution must not carry its question along."""
    tree = ast.parse(code)
    lines: list[str | None] = list(code.split("\n"))
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        if ast.get_docstring(function, clean=False) is not None and len(function.body) > 1:
            first = function.body[0]
            for n in range(first.lineno, (first.end_lineno or first.lineno) + 1):
                lines[n - 1] = None
    return "\n".join(line for line in lines if line is not None).strip() + "\n"
