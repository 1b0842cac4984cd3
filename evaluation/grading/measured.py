"""How often the rules are wrong: counted on the labelled answers of the tests, by answer type.

``tests/evaluation/grading/test_labelled_answers.py`` holds these numbers against the labelled set and prints them;
``docs/grading.md`` says what they mean. Metrics carry the bounds that follow from them (``evaluation.doubts``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """What became of the labelled answers of one type."""

    right: int
    false_minus: int
    """Right answers that are graded incorrect or abstained."""
    wrong: int
    false_plus: int
    """Wrong answers that are graded correct."""
    invalid: int


MEASURED: dict[str, Counts] = {
    "boolean": Counts(right=103, false_minus=0, wrong=88, false_plus=0, invalid=39),
    "choice": Counts(right=79, false_minus=0, wrong=81, false_plus=0, invalid=34),
    "date": Counts(right=61, false_minus=0, wrong=56, false_plus=0, invalid=10),
    "list": Counts(right=23, false_minus=0, wrong=28, false_plus=0, invalid=7),
    "number": Counts(right=175, false_minus=0, wrong=193, false_plus=1, invalid=34),
    "ordered-list": Counts(right=10, false_minus=0, wrong=6, false_plus=0, invalid=1),
    "text": Counts(right=190, false_minus=1, wrong=184, false_plus=2, invalid=67),
}
