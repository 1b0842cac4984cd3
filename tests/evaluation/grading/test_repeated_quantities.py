"""Answers that repeat a quantity of the question in its own unit, alone and next to a right or a wrong number."""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

TWO_DAYS = ("How many hours are there in two days?", "48 hours")
KILOMETRE = ("How many metres is half a kilometre?", "500 m")
DOZEN = ("How many eggs are in three dozen?", "36")
WEEKS = ("How many days are there in five weeks?", "35 days")
METRE = ("How many centimetres is one metre?", "100 cm")
GRAMS = ("How many kilograms are 2500 grams?", "2.5 kg")
HOURS = ("How many minutes is three hours?", "180 minutes")
BARE = ("How many minutes is three hours?", "180")
MIXED = ("How many minutes are 1 hour 30 minutes?", "90 minutes")
WRONG = [
    (TWO_DAYS, "two days"), (TWO_DAYS, "The answer is two days."), (TWO_DAYS, "2 days"),
    (TWO_DAYS, "There are two days."), (TWO_DAYS, "Two days is 2 days"), (TWO_DAYS, "Two days are 20 hours."),
    (TWO_DAYS, "There are 20 hours in two days."), (KILOMETRE, "half a kilometre"), (DOZEN, "three dozen"),
    (DOZEN, "Three dozen eggs"), (DOZEN, "Three dozen is equal to 32 eggs"), (DOZEN, "3 dozen is 32"),
    (WEEKS, "5 weeks"), (WEEKS, "There are five weeks"), (WEEKS, "Five weeks have 30 days."),
    (WEEKS, "There are 5 x 7 = 40 days in five weeks."), (METRE, "1 m"), (GRAMS, "2500 grams"),
    (HOURS, "3 hours is 120 minutes"), (BARE, "3 hours is 120 minutes"), (BARE, "3 hours"),
    (MIXED, "1 hour 30 minutes"),
]  # fmt: skip
RIGHT = [
    (TWO_DAYS, "Two days are 48 hours"), (TWO_DAYS, "48"), (TWO_DAYS, "48 hours are two days."),
    (TWO_DAYS, "2880 minutes"), (TWO_DAYS, "There are 48 hours in two days."), (KILOMETRE, "500"),
    (KILOMETRE, "Half a kilometre is 500 metres."), (DOZEN, "3 dozen is 36"), (DOZEN, "36 is three dozen."),
    (DOZEN, "There are 36 eggs in three dozen."), (WEEKS, "There are 5 x 7 = 35 days in five weeks."),
    (METRE, "1 m is 100 cm"), (GRAMS, "2500 grams is 2.5 kilograms."), (HOURS, "3 hours is 180 minutes"),
    (BARE, "3 hours is 180 minutes"), (MIXED, "1 hour 30 minutes is 90 minutes."),
    (("Is it 3 or 5?", "3"), "3"), (("Which is longer, 2 days or 40 hours?", "2 days"), "2 days"),
    (("How many eggs are more, 3 dozen or 30?", "36"), "3 dozen"),
    (("Which lasts longer in hours, 2 days or 40 hours?", "48 hours"), "2 days"),
    (("Which of the numbers 4, 7 and 9 is even?", "4"), "4"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "response", "expected"), [*((*row, "incorrect") for row in WRONG), *((*row, "correct") for row in RIGHT)]
)
def test_a_repeated_quantity_is_no_answer_and_hides_none(asked: tuple[str, str], response: str, expected: str) -> None:
    question, gold = asked
    for format in ("short", "plain"):
        result = grade(response, "stop", gold, "number", format=format, question=question)
        assert result.outcome == expected, result
