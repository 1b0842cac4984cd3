from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade
from composcope.evaluation.prompts import (
    FORMATS,
    PLACEHOLDER,
    co_presented_answer,
    pair_answer,
    placeholder,
    render,
    scaffold,
    self_ask,
    with_evidence,
    write_answer,
)


@pytest.mark.parametrize("name", FORMATS)
def test_the_question_leads_every_prompt(name: str) -> None:
    assert render("How many?", name).split("\n")[0] == "How many?"


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_written_in_a_format_is_graded_right_and_another_one_wrong(name: str) -> None:
    text = write_answer("63", "7 times 9 is 63", name)
    for stop in FORMATS[name].stop:
        assert text.endswith(stop), "an answer ends where generation stops"
    assert grade(text, "stop", "63", "number", format=name).outcome == "correct"
    assert grade(text, "stop", "64", "number", format=name).outcome == "incorrect"


def test_scaffolds_reveal_and_placeholders_hide_the_same_steps() -> None:
    steps = [("How many lamps?", "4"), ("How many boxes?", "2")]
    assert scaffold("How many in all?", steps[:1]) == "Known: How many lamps? 4. How many in all?"
    assert scaffold("How many in all?", []) == "How many in all?"
    hidden = placeholder("How many in all?", steps)
    assert hidden.count(PLACEHOLDER) == 2 and hidden.replace(PLACEHOLDER, "4", 1).replace(
        PLACEHOLDER, "2", 1
    ) == scaffold("How many in all?", steps)


@pytest.mark.parametrize("write", [pair_answer, co_presented_answer])
def test_the_second_answer_of_two_is_the_one_that_is_graded(write: object) -> None:
    text = write("5", "9 minus 4 is 5", "12", "5 plus 7 is 12")  # type: ignore[operator]
    assert text.startswith("A1: 9 minus 4 is 5. ") and write("5", None, "12", None).startswith("A1: 5. ")  # type: ignore[operator]
    assert grade(text, "stop", "12", "number", format="cot").outcome == "correct"
    assert grade(text, "stop", "5", "number", format="cot").outcome == "incorrect"


def test_evidence_and_follow_ups_come_before_what_they_serve() -> None:
    assert with_evidence("Who?", ["A is B.", "B is C."]) == "Facts: A is B. B is C.\nWho?"
    assert self_ask([("Who?", "Ada"), ("When?", "1812")]).index("Ada") < self_ask(
        [("Who?", "Ada"), ("When?", "1812")]
    ).index("1812")
