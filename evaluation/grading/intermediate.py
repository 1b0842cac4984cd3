"""Wholes answered with an intermediate result: judged wrong, because what was answered is known exactly.

A complete response such as "cart" to "What is the tag of the wheeled one plus ...?" holds no number, but it is no
missing answer either: it is the first step's result, or a piece of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..asks import Grade
from ..cases import Part
from . import lists


def stopped_at_a_part(response_text: str, parts: Sequence[Part]) -> Grade | None:
    """Incorrect if the response is nothing but a part's answer or items of it; None for anything else."""
    given = lists.split(response_text)
    for i, part in enumerate(parts):
        golds = [item for answer in (part.answer, *part.aliases) for item in lists.split(answer)]
        if given and all(any(lists.same(item, gold) for gold in golds) for item in given):
            return Grade("incorrect", response_text.strip(), None, f"stops at part:{i}")
    return None
