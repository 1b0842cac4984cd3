"""Lists of names or numbers: "X and Y", comma lists, bullets, numbered lines, arrows, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from . import numbers, text

_ITEM_MARK = re.compile(r"(?:^|\n)[ \t]*(?:[-*•]|\(?\d{1,2}[.)])\s+")
_ARROW = re.compile(r"\s*(?:->|→|=>|>|⟶|➔)\s*")
_SEMICOLON = re.compile(r"\s*[;\n]\s*(?:and\b)?\s*", re.IGNORECASE)
_COMMA = re.compile(r"\s*(?:,\s*and\b|,(?!\d{3}(?!\d))|\n|\s+and\b|\s+then\b|\s+&)\s*", re.IGNORECASE)
_INTRODUCTION = re.compile(r"^[^:\n]{0,80}:\s*")


def split(answer: str) -> list[str]:
    """The items of a list answer in order, without marks, introductions and final punctuation."""
    answer = answer.strip()
    if (items := _json_items(answer)) is not None:
        return items
    if _ITEM_MARK.search(answer):
        rows = _ITEM_MARK.split(answer)
        # text before the first mark introduces the list
        items = [row.split("\n")[0] for row in rows[1:]] if "\n" in answer or len(rows) > 2 else rows[1:]
        return _clean(items)
    answer = _INTRODUCTION.sub("", text.strip_opening(answer))
    separator = _ARROW if _ARROW.search(answer) else _SEMICOLON if ";" in answer else _COMMA
    return _clean(separator.split(answer))


def _json_items(answer: str) -> list[str] | None:
    start, end = answer.find("["), answer.rfind("]")
    if start < 0 or end < start:
        return None
    try:
        loaded = json.loads(answer[start : end + 1])
    except (ValueError, RecursionError):
        return _clean(_COMMA.split(answer[start + 1 : end]))
    return _clean([str(item) for item in loaded]) if isinstance(loaded, list) else None


def _clean(items: Sequence[str]) -> list[str]:
    cleaned = [re.sub(r"^\s*(?:and|then|both|first|finally|lastly)\b[\s:,]*", "", i, flags=re.I) for i in items]
    cleaned = [i.strip().strip("\"'`*“”").rstrip(".!").strip() for i in cleaned]
    return [i for i in cleaned if i]


def compare(answer: Sequence[str], gold: Sequence[str], ordered: bool) -> tuple[bool, str | None]:
    """(equal, reason): the same items, each once, in any order unless ``ordered``.

    The reason of a mismatch is ``incomplete`` (right but too few), ``extra`` (all and more), ``order`` (right items,
    wrong order) or None.
    """
    left, missing = list(answer), []
    for item in gold:
        hit = next((a for a in left if same(a, item)), None)
        if hit is None:
            missing.append(item)
        else:
            left.remove(hit)
    if not missing and not left:
        in_order = all(same(a, g) for a, g in zip(answer, gold, strict=True))
        return (True, None) if in_order or not ordered else (False, "order")
    if missing and not left:
        return False, "incomplete"
    return False, "extra" if left and not missing else None


def same(a: str, b: str) -> bool:
    """Two items are the same number, or the same text after normalization."""
    if text.normalize(a) == text.normalize(b):
        return True
    if not (re.fullmatch(r"[^A-Za-z]*\d[^A-Za-z]*", a) and re.fullmatch(r"[^A-Za-z]*\d[^A-Za-z]*", b)):
        return False
    x, y = numbers.parse(a), numbers.parse(b)
    return x is not None and y is not None and numbers.equal(x, y)
