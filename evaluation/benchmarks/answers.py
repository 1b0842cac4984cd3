"""Gold answers of other people's files: their text, and how it is to be compared."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from ..grading import dates, numbers
from ..grading.grade import is_plain_number
from .files import number_text

_FORMULA = re.compile(r"\\[A-Za-z]+|\$|\^|\d\s*[-+*/=]\s*\d|\d\s*[A-Za-z]\b")

_ONE_NUMBER = re.compile(
    r"[-+]?[$€£]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?%?(?: (?:hundred|thousand|million|billion|trillion))?"
)


def typed_answer(value: Any) -> tuple[str, str]:
    """(text, answer type) of a gold answer: numbers, booleans, dates, lists, formulas (compared as numbers), text."""
    if isinstance(value, bool):
        return ("yes" if value else "no"), "boolean"
    if isinstance(value, int | float):
        return number_text(value), "number"
    if isinstance(value, list):
        return "; ".join(typed_answer(v)[0] for v in value), "list"
    if isinstance(value, dict):
        if set(value) == {"answer"}:
            return typed_answer(value["answer"])
        return json.dumps(value, ensure_ascii=False, sort_keys=True), "text"
    text = str(value).strip()
    return text, _type_of(text)


@lru_cache(maxsize=65536)
def type_of_words(text: str) -> str:
    """The answer type of an answer to a question about the world: yes or no, a date, a number, else text.

    Unlike in ``typed_answer`` nothing is a formula there: "I-95 N" and "$ign" are names.
    """
    if text.lower() in ("yes", "no"):
        return "boolean"
    if _ONE_NUMBER.fullmatch(text):
        return "number"
    date = dates.parse(text) if any(c.isdigit() for c in text) else None
    is_whole = date is not None and date.end - date.start == len(text)
    return "date" if date is not None and is_whole and (date.month or text[-1].isalpha()) else "text"


def _type_of(text: str) -> str:
    if text.lower() in ("yes", "no", "true", "false"):
        return "boolean"
    date = dates.parse(text)
    if date is not None and (date.month or text.lower().endswith(("bc", "bce", "ad", "ce"))):
        return "date"
    if ":" in text:
        return "text"  # a time of day is no number
    if is_plain_number(text) and len(numbers.find_all(text)) == 1:
        return "number"
    return "number" if _FORMULA.search(text) or re.fullmatch(r"\([\d\s,./-]+\)", text) else "text"
