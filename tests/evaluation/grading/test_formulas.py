"""Gold answers that are formulas with variables: which golds are one, and which formula of an answer counts.

Judged by hand before grading.
"""

from __future__ import annotations

import threading

import pytest

from composcope.evaluation.asks import Grade
from composcope.evaluation.grading import formulas, grade

RIGHT, WRONG, NONE = "correct", "incorrect", "invalid"

SUM = "Simplify 7y - 3y."
SLOPE = "What is the derivative of x^3 - 4x?"
FACTORS = "Factor x^2 - 9."
EQUATION = "Solve 3x - 2 = 10."
LINE = "Which line goes through (0, -3) and (1, 1)?"
CURVE = "Which equation has the curve?"
CIRCLE = "What is the circumference of a circle with radius r?"

# (question, gold, response, expected)
ROWS = [
    (SUM, "4y", "4y", RIGHT),
    (SUM, "4y", "4 y", RIGHT),
    (SUM, "4y", "7y - 3y = 4y", RIGHT),
    (SUM, "4y", "The result is $4y$.", RIGHT),
    (SUM, "4y", "Subtract the coefficients: 4y", RIGHT),
    (SUM, "4y", "**4y**", RIGHT),
    (SUM, "4y", "It's 4y.", RIGHT),
    (SUM, "4y", "4y = 7y - 3y", RIGHT),
    (SUM, "4y", "It is 4y, not 10y.", RIGHT),
    (SUM, "4y", "7y - 3y = 10y. No, sorry, 4y.", RIGHT),
    (SUM, "4y", "-4y", WRONG),
    (SUM, "4y", "4y + 1", WRONG),
    (SUM, "4y", "7y - 3y = 4y^2", WRONG),
    (SUM, "4y", "7y - 3y = 4y²", WRONG),
    (SUM, "4y", "It is not 4y but 10y.", WRONG),
    (SUM, "4y", "y", WRONG),
    (SUM, "4y", "4", WRONG),
    (SUM, "4y", "7y - 3y", NONE),
    (SUM, "4y", "-3y + 7y", NONE),
    (SUM, "4y", "2y + 2y", NONE),
    (SUM, "4y", "4y or 10y", NONE),
    (SUM, "4y", "It isn't 4y.", NONE),
    (SUM, "4y", "four times y", NONE),
    (SUM, "4y", "To simplify 7y - 3y, we subtract.", NONE),
    (SUM, "4y", "First I get 4y, and then 10y.", NONE),
    (SLOPE, "3x^2 - 4", "The derivative is $3x^2 - 4$.", RIGHT),
    (SLOPE, "3x^2 - 4", "g'(x) = 3x² − 4", RIGHT),
    (SLOPE, "3x^2 - 4", "The derivative of x^3 - 4x is 3*x**2 - 4.", RIGHT),
    (SLOPE, "3x^2 - 4", "By the power rule\n\n\\[ \\frac{d}{dx}(x^3 - 4x) = 3x^2 - 4 \\]", RIGHT),
    (SLOPE, "3x^2 - 4", "-4 + 3x^{2}", RIGHT),
    (SLOPE, "3x^2 - 4", "3x^2 + 4", WRONG),
    (SLOPE, "3x^2 - 4", "The derivative is 3x^2 - 4x.", WRONG),
    (FACTORS, "(x+3)(x-3)", "The factored form is (x - 3)(x + 3).", RIGHT),
    (FACTORS, "(x+3)(x-3)", "x^2 - 9 = (x+3)(x-3)", RIGHT),
    (FACTORS, "(x+3)(x-3)", "x^2 - 9", NONE),
    (FACTORS, "(x+3)(x-3)", "(x - 3)(x - 3)", WRONG),
    (EQUATION, "x = 4", "4", RIGHT),
    (EQUATION, "x = 4", "Then 3x = 12 and x = 4.", RIGHT),
    (EQUATION, "x = 4", "x = 3", WRONG),
    (EQUATION, "x = 4", "3x = 12", NONE),
    (EQUATION, "x = 4", "y = 4", NONE),
    (LINE, "y = 4x - 3", "4x - 3", RIGHT),
    (LINE, "y = 4x - 3", "The line is f(x) = 4x - 3.", RIGHT),
    (LINE, "y = 4x - 3", "y = 4x + 3", WRONG),
    *(
        (CURVE, gold, said, expected)
        for gold, said, expected in (
            ("2x + 3y = 6", "2x + 3y = 6", RIGHT),
            ("2x + 3y = 6", "The line is $2x+3y=6$.", RIGHT),
            ("2x + 3y = 6", "6 = 2x + 3y", RIGHT),
            ("2x + 3y = 6", "So y = 2 - 2x/3.", RIGHT),
            ("2x + 3y = 6", "2x = 6 - 3y, so 2x + 3y = 6.", RIGHT),
            ("2x + 3y = 6", "2x + 3y = 7", WRONG),
            ("2x + 3y = 6", "2x - 3y = 6", WRONG),
            ("2x + 3y = 6", "2x + 3y = 6 or 2x + 3y = 5", NONE),
            ("2x + 3y = 6", "It is 6.", NONE),
            ("2x + 3y = 6", "2x + 3y", NONE),
            ("x^2 + y^2 = 9", "x^2 + y^2 = 9", RIGHT),
            ("x^2 + y^2 = 9", "x^2 + y^2 = 8", WRONG),
            ("\\frac{x^2}{9} + \\frac{y^2}{4} = 1", "x^2/9 + y^2/4 = 1", RIGHT),
            ("xy = 4", "y = 4/x", RIGHT),
            ("xy = 4", "4", NONE),
        )
    ),
    ("What is x + y?", "x + y = 3", "3", RIGHT),
    ("What is x + y?", "x + y = 3", "x + y = 3", RIGHT),
    ("What is x + y?", "x + y = 3", "4", WRONG),
    ("What is the inverse at x?", "f^{-1}(x) = 3", "3", RIGHT),
    (CIRCLE, "2πr", "2 \\pi r", RIGHT),
    (CIRCLE, "2πr", "C = 2*pi*r", RIGHT),
    (CIRCLE, "2πr", "πr^2", WRONG),
    ("Integrate 4x.", "2x^2 + C", "2x² + c", RIGHT),
    ("Integrate 4x.", "2x^2 + C", "2x^2", WRONG),
    ("What is a + 2a?", "3a", "That makes 3a.", RIGHT),
    ("What is a + 2a?", "3a", "3a^2", WRONG),
    ("Which terms are 4, 8, 12?", "4n", "The general term is 4n.", RIGHT),
    ("Which terms are 4, 8, 12?", "4n", "4^n", WRONG),
]


@pytest.mark.parametrize(("question", "gold", "response", "expected"), ROWS)
def test_a_formula_is_compared_as_one(question: str, gold: str, response: str, expected: str) -> None:
    assert grade(response, "stop", gold, "text", question=question).outcome == expected


@pytest.mark.parametrize(
    "gold", ["B12", "R2-D2", "3M", "7up", "C++", "AT&T", "Catch-22", "x-ray", "U-2", "A+", "501(c)(3)"]
)
def test_a_name_with_signs_is_no_formula(gold: str) -> None:
    assert not formulas.is_formula(gold)
    assert grade(gold, "stop", gold, "text").outcome == RIGHT
    assert grade(f"It is called {gold}.", "stop", gold, "text").outcome == RIGHT


@pytest.mark.parametrize("response", ["7z + 1", "z + 9z"])
def test_a_formula_that_needs_a_computation_is_undecided_outside_the_main_thread(response: str) -> None:
    found: list[Grade] = []
    asked = threading.Thread(target=lambda: found.append(grade(response, "stop", "10z", "text")))
    asked.start()
    asked.join()
    assert found[0].outcome == NONE


def test_another_name_of_a_formula_is_right() -> None:
    assert grade("The identity", "stop", "f(x) = x", "text", ["the identity"]).outcome == RIGHT
