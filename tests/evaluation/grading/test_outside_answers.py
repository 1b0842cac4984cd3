"""Answers in notations and wordings that a reader who had not seen the rules came up with, each beside near misses.

Judged by hand. OPEN: not right; whether wrong or undecided is not for this table to say.
"""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, NONE, ABSTAIN = {"correct"}, {"incorrect"}, {"invalid"}, {"abstained"}
OPEN = {"incorrect", "invalid"}

# (answer type, gold, response, question or None, expected)
QUANTITIES = [
    ("number", "3400000", "3 400 000 habitants", None, RIGHT),
    ("number", "1000000", "1 000 000", None, RIGHT),
    ("number", "400000", "3 400 000 habitants", None, WRONG),
    ("number", "45", "between 45 and 46 kg", None, OPEN),
    ("number", "45", "45 or 46 kg", None, OPEN),
    ("number", "45.3", "45.3, or about 45", None, RIGHT),
    ("number", "3:30 pm", "3:30 PM", None, RIGHT),
    ("text", "17:20", "It closes at 5:20 PM.", None, RIGHT),
    ("text", "17:20", "17.20", None, RIGHT),
    ("text", "17:20", "twenty past five in the afternoon", None, RIGHT),
    ("text", "17:20", "5:20", None, NONE),
    ("text", "17:20", "twenty past five", None, NONE),
    ("text", "17:20", "5:20 am", None, WRONG),
    ("text", "17:20", "twenty to five in the afternoon", None, WRONG),
    ("text", "17:20", "between 17:20 and 17:40", "When does the shop close?", OPEN),
    ("text", "6:50 am", "It is ten to seven in the morning.", None, RIGHT),
    ("text", "9:00 am", "nine o'clock", None, RIGHT),
    ("text", "9:00 am", "9 pm", None, WRONG),
    ("text", "noon", "12 pm", None, RIGHT),
    ("text", "noon", "12 am", None, WRONG),
    ("text", "2/5", "$\\frac{2}{5}$", None, RIGHT),
    ("text", "2/5", "\\boxed{\\dfrac{2}{5}}", None, RIGHT),
    ("text", "2/5", "4/10 = 2/5", None, RIGHT),
    ("text", "2/5", "two fifths", None, RIGHT),
    ("text", "2/5", "0.4", None, RIGHT),
    ("text", "2/5", "4/10", None, NONE),
    ("text", "2/5", "5/2", None, WRONG),
    ("text", "2/5", "1 2/5", None, WRONG),
]
NAMES = [
    ("text", "Oslo", "It could be Oslo, or maybe Bergen.", None, OPEN),
    ("text", "Oslo", "Bergen, or possibly Oslo.", None, OPEN),
    ("text", "Oslo", "Maybe Oslo, maybe Bergen.", None, OPEN),
    ("text", "Oslo", "Maybe Oslo.", None, RIGHT),
    ("text", "Oslo", "Oslo, or Christiania, as it was called.", None, RIGHT),
    ("text", "Africa", "South Africa", None, OPEN),
    ("text", "Africa", "Chad is a country in Central Africa.", None, RIGHT),
    ("text", "Africa", "Togo is the country, which lies in West Africa.", None, RIGHT),
]


@pytest.mark.parametrize(("answer_type", "gold", "response", "question", "expected"), [*QUANTITIES, *NAMES])
def test_an_answer_in_an_unforeseen_wording_is_graded_as_a_reader_would(
    answer_type: str, gold: str, response: str, question: str | None, expected: set[str]
) -> None:
    result = grade(response, "stop", gold, answer_type, question=question)
    assert result.outcome in expected, result
