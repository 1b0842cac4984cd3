"""Answers to questions with labels of their own ("Q1: ... Q2: ...", as pairs have them): "Q1: 64, Q2: 576"."""

import re
from collections.abc import Sequence
from itertools import pairwise

from . import view

_NAME = r"(?:(?:answer|solution|result)\s(?:to|of|for)\s)?(?:Q|A|Question\s|Answer\s)"
_MARK = re.compile(
    rf"(?<!\w){_NAME}(?P<number>\d)[ \t]*(?:\([^()\n]{{0,40}}\)[ \t]*)?[*]{{0,2}}[ \t]*"
    r"(?:[:=)\u2192]|(?:is|answer\sis)\b:?|[*]{0,2}(?=\n))[*]{0,2}",
    re.IGNORECASE,
)
"""The label before a part of an answer: "Q1:", "**A1:**", "### Question 1" alone in its line, "The answer to Q1 is"."""
_BOTH = re.compile(r"\bAnswer both\.\s*\Z")
_NUMBER = r"[^\w\n]{0,3}\d[\d,.]*(?:\s[a-z]+)?[^\w\n]{0,3}"
_TWO = re.compile(rf"(?:{_NUMBER}(?:,|\band\b|&)|\W*1[.)]\s[^\n]*?\s2[.)])(?P<second>{_NUMBER})", re.IGNORECASE)
"""Two numbers, the answers to both of two questions: "64 and 576", "1. 64 2. 576"."""
_FOR = re.compile(r"[^\n]*\bfor Q1\b,?(?: and)?(?P<second>[^\n]*?) for Q2\W*", re.IGNORECASE)
"""The same with the labels behind: "64 for Q1 and 576 for Q2"."""
_HEADING = 30
"""Most characters in the line of a label before it: "### Step 2: Solve Q2"."""


def first_part(text: str, question: str | None) -> str | None:
    """What an answer has below the first label, up to the next one; None if it does not have both."""
    asked, marks = view.labels(question), [*_MARK.finditer(text)]
    if not asked:
        return None
    for mark, after in pairwise(marks):
        if mark["number"] == asked[0] != after["number"]:
            line = text.rfind("\n", mark.end(), after.start())
            end = line if 0 <= line and after.start() - line < _HEADING else after.start()
            said = view.sentences(text[mark.end() : end])
            return said[-1] if said else None
    return None


def of_the_last(segments: Sequence[str], following: Sequence[str], question: str | None) -> tuple[str, ...]:
    """The texts of an answer without what they say of the labels before the last one, whose question is graded.

    ``following``: what follows each of them, where that is known.
    """
    asked = view.labels(question)
    below = [*following, *[""] * len(segments)]
    return tuple(
        _of_the_last(s, f, asked, question or "") if asked else s for s, f in zip(segments, below, strict=False)
    )


def _of_the_last(segment: str, following: str, asked: tuple[str, ...], question: str) -> str:
    for said in (segment, following.strip(" \n*#")):
        marks = [*_MARK.finditer(said)]
        if marks and marks[-1]["number"] == asked[-1] and (said is segment or marks[0].start() == 0):
            return said[marks[-1].end() :].strip().partition("\n")[0]
    if _BOTH.search(question):
        for said in (segment.strip(), following.strip(" \n*#")):
            if two := _TWO.fullmatch(said) or _FOR.fullmatch(said):
                return two["second"].strip()
    return segment
