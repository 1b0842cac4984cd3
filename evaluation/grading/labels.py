"""Answers to questions with labels of their own ("Q1: ... Q2: ...", as pairs have them): "Q1: 64, Q2: 576"."""

import re
from collections.abc import Sequence
from itertools import pairwise

from .. import prompts
from . import view

_BOTH = re.compile("(?s:.+)".join(map(re.escape, prompts.co_presented("\0", "\0").split("\0"))))
_PAIR = re.compile(re.escape(prompts.pair("\0", "").partition("\0")[0]) + r"(?s:.+)\nQ2: (?s:.+)")
"""Prompts with labels. Labels of other questions ("Q2: 150 sold") may be what is asked about."""
_NAME = r"(?:(?:answer|solution|result)\s(?:to|of|for)\s)?(?:Q|A|Question\s|Answer\s)"
_MARK = re.compile(
    rf"(?<!\w){_NAME}(?P<number>\d)[ \t]*(?:\([^()\n]{{0,40}}\)[ \t]*)?[*]{{0,2}}[ \t]*"
    r"(?:[:=)|\u2192]|(?:is|answer\sis)\b:?|[*]{0,2}(?=\n))[*]{0,2}",
    re.IGNORECASE,
)
"""The label before a part of an answer: "Q1:", "**A1:**", "### Question 1" alone in its line, "The answer to Q1 is"."""
_UNIT = r"(?:\s\(?(?!(?:each|apiece|per|for|of|in)\b)[a-z]+\)?){0,3}"  # "48 eggs, 24 each" answers one question
_NUMBER = rf"[^\w\n]{{0,3}}\d[\d,.]*{_UNIT}[^\w\n]{{0,3}}"
_TWO = re.compile(rf"{_NUMBER}(?:,(?!\d{{3}}\b)(?: and\b)?|;|\n+|\band\b|&)(?P<second>{_NUMBER})", re.IGNORECASE)
"""Two numbers, the answers to both of two questions: "64 and 576", not the one number "1,048"."""
_EACH = re.compile(
    rf"\W*(?:1|a|i)[.):]+\s[^\n]*?[\s(#](?:2|b|ii)[.):]+(?P<second>{_NUMBER})"
    r"|[^\n]*\b(?:for|to|in) Q1\b(?!\s+is\b)\W*(?:and\b)?(?P<labeled>[^\n]*?)(?: is the answer)? (?:for|to|in) Q2\W*",
    re.IGNORECASE,
)
"""The same with numbers before or labels behind: "1. 64 2. 576", "64 for Q1 and 576 for Q2"."""
_ASIDE = re.compile(r"(?<=\w)\s\([^()\n]*\b(?:X|Q1)\b[^()\n]*\)\W*\Z")
"""What an answer adds in brackets about the first question: "576 (with X = 64)"."""
_LEADS_ON = re.compile(r"\b(?:now|next|then|second|other|Q2|answer to Q1)\b", re.IGNORECASE)
_HEADING = 30
"""Most characters in the line of a label before it: "### Step 2: Solve Q2"."""


def first_part(text: str, question: str | None) -> list[str]:
    """What an answer to a pair has below its first label, up to the next one, the last such place first."""
    if not (_PAIR.fullmatch(question or "") or _BOTH.fullmatch(question or "")):
        return []
    found = []
    for mark, after in pairwise(_MARK.finditer(text)):
        if mark["number"] == "1" != after["number"]:
            line = text.rfind("\n", mark.end(), after.start())
            end = line if 0 <= line and after.start() - line < _HEADING else after.start()
            said = view.sentences(text[mark.end() : end])
            if said:  # "They have 64. Now to the second question."
                found.append(next((s for s in reversed(said) if not _LEADS_ON.search(s)), said[-1]))
    return found[::-1]


def of_the_last(segments: Sequence[str], following: Sequence[str], question: str | None) -> list[tuple[str, str]]:
    """The texts of an answer to two questions without what they say of the first; the last one is graded.

    ``following``: what follows each of them, where that is known. A text that is cut has nothing that follows.
    """
    pairs = list(zip(segments, [*following, *[""] * len(segments)], strict=False))
    both = _BOTH.fullmatch(question or "") is not None
    if not both and not _PAIR.fullmatch(question or ""):
        return pairs
    cut = [(_of_the_last(said, rest, both), (said, rest)) for said, rest in pairs]
    return [whole if last is None else (last, "") for last, whole in cut]


def _of_the_last(segment: str, following: str, both: bool) -> str | None:
    below = following.strip(" \n*#|")
    for said in (segment, below):
        marks = [*_MARK.finditer(said)]
        if marks and marks[-1]["number"] == "2" and (said is segment or marks[0].start() == 0):
            return said[marks[-1].end() :].strip().partition("\n")[0]
    for said in (segment.strip(), below):
        if found := _EACH.fullmatch(said):
            return (found["second"] or found["labeled"]).strip()
        if both and (found := _TWO.fullmatch(said)):
            return found["second"].strip()
    aside = _ASIDE.search(segment)
    return segment[: aside.start()] if aside else None
