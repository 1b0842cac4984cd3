"""Answers in steps that change a state, options that are numbers or days, and the long decimals of programs."""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, OPEN = "correct", "incorrect", "invalid"

DOOR = "A door is open. Ann closes it. Ben opens it. Is the door still open?"
LAMP = "Is the lamp still lit?"
LIGHT = "Is the light still on?"
MAYOR = "Is Mr. Ito still the mayor of Nara?"
GATE = "Is the gate now locked?"
# (question, reply, what the reply says)
STATES = [
    (DOOR, "Ann closes the door, so it is now closed. Ben opens the door, so it is now open again.", "yes"),
    (DOOR, "The door is open. Ann closes it, so the door is closed. Ben does not touch it, so it stays closed.", "no"),
    (DOOR, "Step 1: Answer: The door is still open.\nAnswer: The door is closed.\nFinal Answer: It is shut.", "no"),
    (DOOR, "Step 1: Answer: The door is still open.\n\nFinal Answer: The door is now closed.", "no"),
    (DOOR, "Step 1: Answer: The door is now closed.\n\nFinal Answer: The door is now open.", "yes"),
    (DOOR, "The door was closed, but now it is open.", "yes"),
    (DOOR, "The door was open, but now it is closed.", "no"),
    (DOOR, "Ann closes it: the door is closed. Ben opens it: the door is open. Cy does not close it.", "yes"),
    (DOOR, "Ben does not close it, so it remains open.", "yes"),
    (DOOR, "So the final answer is that the door is closed.", "no"),
    (DOOR, "The door is no longer open.", "no"),
    (MAYOR, "Mr. Ito is the mayor of Nara.", "yes"),
    (MAYOR, "Mr. Ito is no longer the mayor of Nara; Ms. Abe is the mayor of Nara.", "no"),
    (GATE, "The gate was locked; then Joe unlocked it, so it is unlocked.", "no"),
    (GATE, "The gate is locked.", "yes"),
    (DOOR, "The door is open at the end because Ben opens it. It is closed only at first.", "yes"),
    (DOOR, "The door is closed now, but it is open at the start.", "no"),
    (DOOR, "The door is open. Without Ben, the door is closed.", "yes"),
    (LAMP, "The lamp is lit.", "yes"),
    (LIGHT, "The light is still on.", "yes"),
    (LIGHT, "The light was on, but now it's off.", "no"),
    (LIGHT, "She turns it off. He turns it on, so it is on.", "yes"),
    ("Is it still raining?", "It is still raining.", "yes"),
    ("Is it still raining?", "It is not raining.", "no"),
    ("Is Bo still married to Ann?", "They are still married.", "yes"),
]
UNTOLD = [
    (DOOR, "The door may be open."),
    (LAMP, "The lamp is lit. The lamp is now green."),
    (LIGHT, "The light is on the table."),
    (DOOR, "The door is open. Ann shuts the window, so it is closed."),
    (DOOR, "The door is open or closed."),
    ("Is the cup still on the table?", "The cup is under the table."),
    (MAYOR, "Mr. Ito was the mayor of Nara until 2012."),
    ("Is Ada still in Europe?", "Ada was in Europe. Ada is in France."),
    (DOOR, "Step 1: Answer: The door is still open.\nFinal Answer: The way is blocked."),
]


@pytest.mark.parametrize(("question", "reply", "says"), STATES)
def test_of_a_state_that_changes_the_last_one_counts(question: str, reply: str, says: str) -> None:
    for gold in ("yes", "no"):
        result = grade(reply, "stop", gold, "boolean", question=question)
        assert result.outcome == (RIGHT if gold == says else WRONG), result


@pytest.mark.parametrize(("question", "reply"), UNTOLD)
def test_another_state_than_the_one_asked_about_decides_nothing(question: str, reply: str) -> None:
    for gold in ("yes", "no"):
        assert grade(reply, "stop", gold, "boolean", question=question).outcome == OPEN


PENS, DAYS = ("12", "15", "18", "21"), ("03/04/2015", "04/03/2015", "05/04/2015")
PRICES, SHARES, LENGTHS = ("$1.50", "$15", "$2.50"), ("1/2", "1/3", "2/3", "3/4"), ("9 cm", "9 m", "10 cm")
# (options, reply, the option that it means)
VALUES = [
    (PENS, "Ann has fifteen pens.", "15"),
    (PENS, "Ann has 40 pens.", None),
    (PENS, "She starts with 12 pens and gets 3 more, so she has 15.", "15"),
    (DAYS, "Today is March 3, 2015. Tomorrow is March 4, 2015.", "03/04/2015"),
    (DAYS, "So it is May 5th, 2015.", None),
    (PRICES, "It costs 150 cents.", "$1.50"),
    (PRICES, "It costs $1.5.", "$1.50"),
    (SHARES, "The probability is 0.5.", "1/2"),
    (SHARES, "It is two thirds.", "2/3"),
    (("9 March 1997", "3 September 1997"), "It is on September 3, 1997.", "3 September 1997"),
    (LENGTHS, "9 cm", "9 cm"),
]


@pytest.mark.parametrize(("options", "reply", "meant"), VALUES)
def test_options_that_are_numbers_or_days_may_be_said_in_another_notation(
    options: tuple[str, ...], reply: str, meant: str | None
) -> None:
    given = tuple(zip("ABCD", options, strict=False))
    for letter, option in given:
        result = grade(reply, "stop", letter, "choice", options=given, question="Which one is it?")
        assert result.outcome == (RIGHT if option == meant else WRONG), (option, result)


@pytest.mark.parametrize(
    ("options", "reply"),
    [
        (PENS, "She has 12 pens. She gets 5 more. Therefore she has 17 pens."),
        (DAYS, "Today is 03/04/2015. Therefore tomorrow is 03/05/2015."),
        (LENGTHS, "It is 9 long."),
        (("2 May 2020", "3 May 2020"), "May 2"),
    ],
)
def test_an_option_that_is_only_named_on_the_way_to_another_value_is_not_chosen(
    options: tuple[str, ...], reply: str
) -> None:
    given = tuple(zip("ABCD", options, strict=False))
    assert grade(reply, "stop", "A", "choice", options=given, question="Which one is it?").outcome == OPEN


@pytest.mark.parametrize(
    ("options", "reply"),
    [
        (("1912", "1915", "1918"), "In 1912, 1,500 people died when it sank."),
        (("4:30", "5:15", "6:00"), "It leaves at 4:30 pm."),
    ],
)
def test_other_numbers_beside_a_year_or_time_that_is_an_option_decide_nothing(
    options: tuple[str, ...], reply: str
) -> None:
    given = tuple(zip("ABC", options, strict=True))
    outcomes = [grade(reply, "stop", c, "choice", options=given, question="When was it?").outcome for c in "ABC"]
    assert outcomes == [RIGHT, WRONG, WRONG]


# (what a program comes to, gold answer, expected)
PRINTED = [
    ("271 / 10.8", "25.1", RIGHT),
    ("271 / 10.8", "25.2", WRONG),
    ("271 / 10.8", "25", WRONG),
    ("1 - 1 / 22727", "0.99996", RIGHT),
    ("1 - 1 / 22727", "0.99995", WRONG),
    ("-1 / 7", "-0.143", RIGHT),
    ("1 / 7", "0.14", OPEN),
    ("1571405 / 15", "104760.33", RIGHT),
    ("1571405 / 15", "104760.53", WRONG),
    ("137 / 11", "12.5", WRONG),  # a half is exact
    ("12.3333333333333", "12.3", RIGHT),
]


@pytest.mark.parametrize(("value", "gold", "expected"), PRINTED)
def test_the_long_decimals_of_a_program_round_to_a_gold_answer_of_three_digits(
    value: str, gold: str, expected: str
) -> None:
    program = f"```python\ndef solution():\n    return {value}\n```"
    assert grade(program, "stop", gold, "number", format="code").outcome == expected


def test_the_numbers_of_steps_and_remarks_about_an_answer_are_no_answers() -> None:
    steps = "Step 1: Count the pens.\nStep 2: Count the pencils.\nStep 3: Give the sum."
    assert grade(steps, "stop", "3", "number", question="How many pens and pencils are there?").outcome == OPEN
    assert grade("Step 2: We have 5.\nStep 3: So 4 are left.", "stop", "4", "number").outcome == RIGHT
    for asked, reply in (("Which step is wrong?", "Step 3: The sign."), ("In which part is it?", "Part 3: At sea")):
        assert grade(reply, "stop", "3", "number", question=asked).outcome == RIGHT
    assert grade("After this the answer is 4, of 9.", "stop", "4", "number").outcome == RIGHT
    unsure = "The text does not answer the question directly; adding 5 and 3 gives 8."
    assert grade(unsure, "stop", "8", "number").outcome == RIGHT
    looping = "The answer is 90.\n" + 6 * "This answer is correct.\n"
    assert [grade(looping, "length", gold, "number").outcome for gold in ("90", "91")] == [RIGHT, WRONG]
