"""How chat models write answers: lists in sentences, formulas below the cue, other languages, refusals, many notations.

Judged by hand before the grader was run on them.
"""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade

RIGHT, WRONG, NONE, ABSTAIN = "correct", "incorrect", "invalid", "abstained"
CUE = "So the final answer is: "

LISTS = [
    ("8 and 2", "A spider has 8 legs and a hen has 2 legs.", RIGHT),
    ("8 and 2", "A spider has 8 legs, while a hen has 2.", RIGHT),
    ("8 and 2", "8 legs and 2 legs", RIGHT),
    ("8 and 2", "Spider: 8, hen: 2", RIGHT),
    ("8 and 2", "eight and two", RIGHT),
    ("8 and 2", "A hen has 2 legs and a spider has 8 legs.", WRONG),
    ("8 and 2", "A spider has 8 legs and a hen has 4 legs.", WRONG),
    ("8 and 2", "A spider has 8 or 6 legs and a hen has 2 legs.", WRONG),
    ("8 and 8", "8 legs and 8 legs", RIGHT),
    ("violin and hammer", "The musical instrument is the violin and the tool is the hammer.", RIGHT),
    ("violin and hammer", "The musical instrument is the violin and the tool is not the hammer.", WRONG),
    ("violin and hammer", "violin (musical instrument), hammer (tool)", RIGHT),
    ("violin and hammer", "Musical instrument: violin; tool: hammer", RIGHT),
    ("violin and hammer", "violin / hammer", RIGHT),
    ("violin and hammer", "\n- Musical instrument: violin\n- Tool: hammer", RIGHT),
    ("violin and hammer", "\n1. **Hammer**\n2. **Violin**", WRONG),
    ("violin and hammer", "\n- Violin\n- Hammer\n- Bread", WRONG),
    ("violin and hammer", "the hammer and the violin", WRONG),
    ("violin and hammer", "violin or hammer, and hammer", WRONG),
    ("New York and York", "New York and York", RIGHT),
    ("York and New York", "New York and York", WRONG),
    ("Apollo 11 and Apollo 12", "Apollo 11 and Gemini 12", WRONG),
]
NUMBERS = [
    ("18", "\n$$\n18\n$$", RIGHT),
    ("18", "\n\\[\n18\n\\]", RIGHT),
    ("18", "\n```\n18\n```", RIGHT),
    ("12000", "12K", RIGHT),
    ("2500000", "$2.5M", RIGHT),
    ("300", "300 K", RIGHT),
    ("16", "16KB", RIGHT),
    ("1000000", "1.000.000", RIGHT),
    ("1234.5", "1.234,5", RIGHT),
    ("1234.5", "1 234,5", RIGHT),
    ("1.234", "1.234", RIGHT),
    ("1234.567", "1,234.567", RIGHT),
    ("100000", "1,00,000", RIGHT),
    ("37.5 °C", "37.5 degrees Celsius", RIGHT),
    ("37.5 °C", "37.5 degrees", RIGHT),
    ("37.5 °C", "37.5", RIGHT),
    ("37.5 °C", "37.5 °F", WRONG),
    ("90 degrees", "90°", RIGHT),
    ("4", "4 and 5", WRONG),
    ("4", "4, 5", WRONG),
    ("4", "between 4 and 5", WRONG),
    ("4", "4, which is 2 + 2", RIGHT),
    ("12", "12, 12", RIGHT),
    ("66 inches", "5 feet 6 inches", RIGHT),
    ("3", "the 3 hens give 18 eggs", RIGHT),
    ("18", "the 3 hens give 18 eggs", NONE),
    ("18", "in 2 weeks, 18 eggs", NONE),
    ("9", "8 because 10 minus 1 is 9", WRONG),
    ("9", "the sum is 8 (I first thought 9)", WRONG),
]
DATES = [
    ("1969-07-20", "20/07/1969", RIGHT),
    ("1969-07-20", "20.07.1969", RIGHT),
    ("1969-07-20", "1969/07/20", RIGHT),
    ("1969-07-20", "20-Jul-1969", RIGHT),
    ("1969-07-20", "20. Juli 1969", RIGHT),
    ("1969-07-20", "20 juillet 1969", RIGHT),
    ("1969-07-20", "20 de julio de 1969", RIGHT),
    ("1969-07-20", "21. Juli 1969", WRONG),
    ("1969-03-08", "8 mars 1969", RIGHT),
    ("2020", "Mars 2020", RIGHT),
]


@pytest.mark.parametrize(("gold", "answer", "expected"), LISTS)
def test_items_of_a_list_may_stand_in_words_of_their_own(gold: str, answer: str, expected: str) -> None:
    result = grade(CUE + answer, "stop", gold, "ordered-list", format="cot")
    assert result.outcome == expected, result


@pytest.mark.parametrize(("gold", "answer", "expected"), NUMBERS)
def test_numbers_are_read_in_the_notations_that_models_use(gold: str, answer: str, expected: str) -> None:
    result = grade(CUE + answer, "stop", gold, "number", format="cot")
    assert result.outcome == expected, result


@pytest.mark.parametrize(("gold", "answer", "expected"), DATES)
def test_dates_are_read_where_the_day_comes_first_and_in_other_languages(gold: str, answer: str, expected: str) -> None:
    result = grade(CUE + answer, "stop", gold, "date", format="cot")
    assert result.outcome == expected, result


@pytest.mark.parametrize("format", ["plain", "cot", "xml"])
@pytest.mark.parametrize(
    "response",
    [
        "I cannot provide an answer to this question.",
        "I apologize, but I can't assist with that request.",
        "I'm not able to help with that.",
        "I must decline to answer.",
        "As an AI language model, I cannot answer this question.",
        "Ich weiß es nicht.",
        "Je ne sais pas.",
        "我不知道。",
        "INSUFFICIENT_EVIDENCE",
        "<reasoning>Nothing is said of it.</reasoning>\nINSUFFICIENT_EVIDENCE",
    ],
)
def test_a_refusal_is_an_abstention_also_without_cue_or_tag(response: str, format: str) -> None:
    for answer_type in ("text", "number"):
        assert grade(response, "stop", "42", answer_type, format=format).outcome == ABSTAIN


def test_a_published_rule_for_missing_tags_stays_as_published() -> None:
    found = grade("INSUFFICIENT_EVIDENCE", "stop", "42", "number", format="xml", compat="collapse")
    assert (found.outcome, found.reason) == ("incorrect", "compat:no-answer-tag")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris? No, London.", WRONG),
        ("London? No, Paris.", RIGHT),
        ("Not London but Paris", RIGHT),
        ("It's Paris, isn't it?", RIGHT),
        ("I know this city, not Paris", WRONG),
    ],
)
def test_what_is_asked_back_or_denied_is_no_answer(answer: str, expected: str) -> None:
    assert grade(answer, "stop", "Paris", "text").outcome == expected


def test_a_tag_may_have_attributes_and_other_case() -> None:
    assert grade("<Answer type='number'>6</ANSWER>", "stop", "6", "number", format="xml").outcome == RIGHT
    assert grade("<answer>insufficient_evidence</answer>", "stop", "6", "number", format="xml").outcome == ABSTAIN


def test_the_examples_that_ship_are_right_in_the_sentences_of_a_chat_model() -> None:
    shelf = "The musical instrument is the violin, and the tool is the hammer.\n\n" + CUE + "violin and hammer."
    assert grade(shelf, "stop", "violin and hammer", "ordered-list", format="cot").outcome == RIGHT
