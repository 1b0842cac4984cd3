"""Answers that a rule decides, each beside the like answer that the same rule could get wrong."""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, OPEN = {"correct"}, {"incorrect"}, {"invalid"}
NOT_RIGHT = {"incorrect", "invalid"}

# (answer type, gold, response, question or None, expected)
NUMBERS = [
    ("number", "1.5 hours", "One and a half hours.", None, RIGHT),
    ("number", "1.5", "one and a half", None, RIGHT),
    ("number", "1.5", "one half", None, WRONG),
    ("number", "0.5", "one half", None, RIGHT),
    ("number", "0.5", "one and a half", None, WRONG),
    ("number", "1.25", "one and a quarter", None, RIGHT),
]


@pytest.mark.parametrize(("answer_type", "gold", "response", "question", "expected"), NUMBERS)
def test_an_answer_and_its_mirror_are_graded_as_a_reader_would(
    answer_type: str, gold: str, response: str, question: str | None, expected: set[str]
) -> None:
    assert grade(response, "stop", gold, answer_type, question=question).outcome in expected
