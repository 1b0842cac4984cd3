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
    ("text", "German", "Germany", None, WRONG),
    ("text", "Greek", "Greece", None, WRONG),
    ("text", "Thai", "The country is Thailand.", None, WRONG),
    ("text", "Germany", "German", None, NONE),
    ("text", "Greece", "Greek", None, NONE),
    ("text", "Poland", "It is a Polish city.", None, NONE),
    ("text", "Africa", "The African continent.", None, NONE),
    ("text", "France", "It was founded by the French engineer Renault in Italy.", None, WRONG),
    ("text", "France", "The French team won in London.", None, NONE),
    ("text", "Sweden", "Swiss", None, WRONG),
    ("text", "Niger", "Nigeria", None, WRONG),
    ("text", "Spanish", "Spain", "What nationality was Goya?", NONE),
    ("text", "Spanish", "Spain", "Which language did Goya speak?", WRONG),
    ("text", "Japan", "日本です。", None, NONE),
    ("text", "Japan", "日本 (Nippon, called Zipangu by Marco Polo)", None, WRONG),
    ("text", "Vienna", "Die Hauptstadt ist Wien.", None, NONE),
    ("text", "Vienna", "La capitale de l'Autriche est Vienne.", None, NONE),
    ("text", "Vienna", "La capitale de l'Autriche est Vienna.", None, RIGHT),
    ("text", "Vienna", "The film was Das Leben der Anderen.", None, WRONG),
    ("text", "Germinal", "Le Rouge et le Noir", None, WRONG),
    ("text", "東京", "Osaka", None, NONE),
    ("text", "Africa", "South Africa", None, OPEN),
    ("text", "Africa", "Chad is a country in Central Africa.", None, RIGHT),
    ("text", "Africa", "Togo is the country, which lies in West Africa.", None, RIGHT),
]
_PROGRAM = "```python\nrows = 6\nprice = 7\nanswer = rows * price\nprint(answer){}\n```"
DATES = [
    ("date", "1969", "'69", None, RIGHT),
    ("date", "1869", "nineteen sixty-nine", None, WRONG),
    ("date", "1969", "It was in nineteen sixty-nine.", None, RIGHT),
    ("date", "2005", "two thousand and five", None, RIGHT),
    ("date", "1969", "It had sixty-nine members.", None, NONE),
    ("text", "1969", "Nineteen sixty-nine.", None, RIGHT),
]
NO_ANSWERS = [
    ("text", "Oslo", "I do not have information about that.", None, ABSTAIN),
    ("text", "Oslo", "I'm sorry, but I have no information on this topic.", None, ABSTAIN),
    ("text", "Oslo", "I do not have reliable data, but I think it is Oslo.", None, RIGHT),
    ("number", "42", _PROGRAM.format(""), None, NONE),
    ("number", "7", _PROGRAM.format(""), None, NONE),
    ("number", "42", f"Here is a program:\n\n{_PROGRAM.format('')}\n\nThe result is 42.", None, RIGHT),
    ("number", "42", f"Here is a program:\n\n{_PROGRAM.format('')}\n\nOutput:\n\n```\n42\n```", None, RIGHT),
    ("number", "42", _PROGRAM.format("  # Output: 42"), None, RIGHT),
    ("number", "42", _PROGRAM.format("  # Output: 43"), None, WRONG),
    ("number", "42", "```\n6 * 7 = 42\n```", None, RIGHT),
    ("number", "42", "```python\n42\n```", None, RIGHT),
]


@pytest.mark.parametrize(
    ("answer_type", "gold", "response", "question", "expected"), [*QUANTITIES, *NAMES, *DATES, *NO_ANSWERS]
)
def test_an_answer_in_an_unforeseen_wording_is_graded_as_a_reader_would(
    answer_type: str, gold: str, response: str, question: str | None, expected: set[str]
) -> None:
    result = grade(response, "stop", gold, answer_type, question=question)
    assert result.outcome in expected, result
