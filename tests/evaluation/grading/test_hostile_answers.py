"""Hostile answers: a second hand-checked table, judged before the grader was run on them."""

from __future__ import annotations

import time

import pytest

from composcope.evaluation.grading import grade, view

RIGHT, WRONG, NONE, ABSTAIN = "correct", "incorrect", "invalid", "abstained"

# (format, answer type, gold, response, expected)
ROWS = [
    ("plain", "number", "-7", "The temperature change is \u22127 degrees.", RIGHT),
    ("plain", "number", "-7", "It fell by 7, so the change is -7.", RIGHT),
    ("plain", "number", "15", "Answer: +15", RIGHT),
    ("plain", "number", "-12", "minus 12", RIGHT),
    ("plain", "number", "-12", "negative twelve", RIGHT),
    ("plain", "number", "-40", "The balance is -$40.", RIGHT),
    ("plain", "number", "-40", "The balance is $-40.", RIGHT),
    ("plain", "number", "40", "(40)", RIGHT),
    ("plain", "number", "-7", "The result is 5 - 12 = -7", RIGHT),
    ("plain", "number", "-3", "\u20133", RIGHT),
    ("plain", "number", "1234567", "It costs $1,234,567.", RIGHT),
    ("plain", "number", "1234567", "1 234 567 people", RIGHT),
    ("plain", "number", "1250", "1'250 francs", RIGHT),
    ("plain", "number", "12.5", "The total is 12,5 kg", RIGHT),
    ("plain", "number", "6000", "There were 2,000 in 3 towns... the final answer is 6,000.", RIGHT),
    ("plain", "number", "1200000", "about 1.2 million", RIGHT),
    ("plain", "number", "3000", "3k", RIGHT),
    ("plain", "number", "2500", "two thousand five hundred", RIGHT),
    ("plain", "number", "1/2", "0.50", RIGHT),
    ("plain", "number", "0.75", ".75", RIGHT),
    ("plain", "number", "12", "The answer is 12.0", RIGHT),
    ("plain", "number", "0.75", "three quarters", RIGHT),
    ("plain", "number", "1.5", "1 1/2 cups", RIGHT),
    ("plain", "number", "2.5", "2\u00bd", RIGHT),
    ("plain", "number", "3/4", "\\frac{6}{8}", RIGHT),
    ("plain", "number", "9", "They are left with 3/4 of 12, that is 9.", RIGHT),
    ("plain", "number", "5", "5/0", NONE),
    ("plain", "number", "25", "25 percent", RIGHT),
    ("plain", "number", "25", "The share is 250%", WRONG),
    ("plain", "number", "25", "twenty-five per cent", RIGHT),
    ("plain", "number", "12.5", "\u20ac12.50", RIGHT),
    ("plain", "number", "0.5 dollars", "50 cents", RIGHT),
    ("plain", "number", "50 cents", "$0.50", RIGHT),
    ("plain", "number", "2000 g", "2 kg", RIGHT),
    ("plain", "number", "2 g", "2 kg", WRONG),
    ("plain", "number", "1.5 hours", "90 minutes", RIGHT),
    ("plain", "number", "90 minutes", "1 hour 30 minutes", RIGHT),
    ("plain", "number", "12", "12 apples", RIGHT),
    ("plain", "number", "66 inches", "5 feet 6 inches", RIGHT),
    ("plain", "number", "12", "12 USD", RIGHT),
    ("plain", "number", "1500", "1.5e3", RIGHT),
    ("plain", "number", "300000000", "3 x 10^8 m/s", RIGHT),
    ("plain", "number", "6.02e23", "6.02 \u00d7 10\u00b2\u00b3", RIGHT),
    ("plain", "number", "0.002", "2E-3", RIGHT),
    ("plain", "number", "42", "\\boxed{42}", RIGHT),
    ("plain", "number", "-3", "Thus $x = \\boxed{-3}$.", RIGHT),
    ("plain", "number", "0.5", "$\\dfrac{1}{2}$", RIGHT),
    ("plain", "number", "12", "\\(12\\)", RIGHT),
    ("plain", "number", "1024", "$$\\boxed{1{,}024}$$", RIGHT),
    ("plain", "number", "9", "\\text{The answer is } 9", RIGHT),
    ("plain", "text", "Paris", "\\boxed{\\text{Paris}}", RIGHT),
    ("plain", "number", "2\\sqrt{3}", "$2\\sqrt{3}$", RIGHT),
    ("plain", "number", "5", "x = 5 or x = -5", WRONG),
    ("plain", "number", "10", "12 - 4 = 8, and 8 + 2 = 10.", RIGHT),
    ("plain", "number", "10", "10 (not 12)", RIGHT),
    ("plain", "number", "10", "It is not 12 but 10.", RIGHT),
    ("plain", "number", "11", "Between 10 and 12", WRONG),
    ("plain", "number", "12", "So 3 boxes of 4 hold 12 apples.", RIGHT),
    ("plain", "number", "12", "12 apples in 3 boxes.", NONE),
    ("plain", "number", "9", "I first thought 8. The final answer is 9.", RIGHT),
    ("plain", "number", "9", "The final answer is 9. Let me check: 3*3 = 9.", RIGHT),
    ("plain", "number", "8", "The answer is 7. No wait, the answer is 8.", RIGHT),
    ("plain", "number", "8", "The answer is 8 because 10 - 2 = 8.", RIGHT),
    ("plain", "number", "11", "Step 1: 5. Step 2: 6. Total: 11", RIGHT),
    ("plain", "number", "42", "forty two", RIGHT),
    ("plain", "number", "0", "She has no apples left.", RIGHT),
    ("plain", "date", "1776-07-04", "July 4, 1776", RIGHT),
    ("plain", "date", "1776-07-04", "4 July 1776", RIGHT),
    ("plain", "date", "1776-07-04", "1776", WRONG),
    ("plain", "date", "44 BC", "In the year 44 BCE", RIGHT),
    ("plain", "date", "44 BC", "44", WRONG),
    ("plain", "date", "79", "AD 79", RIGHT),
    ("plain", "date", "79", "79 CE", RIGHT),
    ("plain", "date", "1914", "It happened in 1914, during the war of 1914-1918.", NONE),
    ("plain", "date", "1925", "the 1920s", WRONG),
    ("plain", "date", "1492", "circa 1492", RIGHT),
    ("plain", "date", "1492", "The 15th century", WRONG),
    ("plain", "date", "1498", "not 1492 but 1498", RIGHT),
    ("plain", "date", "753 BC", "753 B.C.", RIGHT),
    ("plain", "date", "1969", "1969\u5e74", RIGHT),
    ("plain", "date", "1066", "1066 or 1067", WRONG),
    ("plain", "list", "Berlin, Rome, Paris", "Rome, Paris and Berlin", RIGHT),
    ("plain", "ordered-list", "Rome, Paris, Berlin", "Rome, Paris, and Berlin", RIGHT),
    ("plain", "ordered-list", "Rome, Paris, Berlin", "1. Rome\n2. Paris\n3. Berlin", RIGHT),
    ("plain", "list", "Rome, Paris, Berlin", "- Rome\n- Berlin", WRONG),
    ("plain", "list", "Rome, Paris", "Rome and Rome and Paris", WRONG),
    ("plain", "ordered-list", "Rome, Paris, Berlin", "Berlin -> Rome -> Paris", WRONG),
    ("plain", "list", "Rome, Paris", '["Rome", "Paris"]', RIGHT),
    ("plain", "ordered-list", "Rome, Paris", "The answer is Rome, then Paris.", RIGHT),
    ("plain", "list", "Rome, Paris", "**Rome**, **Paris**", RIGHT),
    ("plain", "ordered-list", "Rome, Paris, Berlin", "Rome; Paris; Berlin.", RIGHT),
    ("plain", "list", "Rome, Paris", "Both Rome and Paris", RIGHT),
    ("plain", "list", "2500, 1000", "1,000 and 2,500", RIGHT),
    ("plain", "text", "Paris", "It is not Paris.", WRONG),
    ("plain", "text", "Paris", "Paris, not London", RIGHT),
    ("plain", "text", "Paris", "The capital is Paris.", RIGHT),
    ("plain", "text", "Paris", "Paris or London", WRONG),
    ("plain", "text", "Paris", "PARIS!", RIGHT),
    ("plain", "text", "Sao Paulo", "S\u00e3o Paulo", RIGHT),
    ("plain", "text", "Beatles", "the Beatles", RIGHT),
    ("plain", "text", "Paris", "I don't think it's Paris; it is London.", WRONG),
    ("plain", "text", "Paris", "Parisian", NONE),
    ("plain", "date", "1492", "INSUFFICIENT_EVIDENCE", ABSTAIN),
    ("plain", "date", "1492", "I am not sure, but I think 1492.", RIGHT),
    ("plain", "number", "12", "There is not enough information to answer.", ABSTAIN),
    ("plain", "number", "12", "Unknown", ABSTAIN),
    ("plain", "number", "5", "It cannot be determined from the facts given.", ABSTAIN),
    ("plain", "number", "5", "I'm sorry, but I can't help with that.", ABSTAIN),
    ("plain", "number", "5", "insufficient evidence", ABSTAIN),
    ("plain", "number", "5", "The answer is unknown.", ABSTAIN),
    ("cot", "number", "6", "So the final answer is: 5. So the final answer is: 6", RIGHT),
    ("cot", "number", "6", "So the final answer is: ", NONE),
    ("cot", "number", "6", "The answer is 6", RIGHT),
    ("cot", "number", "6", "6", NONE),
    ("cot", "number", "6", "so THE FINAL ANSWER IS: **6**", RIGHT),
    ("cot", "number", "6", "So the final answer is: 6. Question: What is 2+2? So the final answer is: 4", RIGHT),
    ("cot", "number", "6", "So the final answer is: 6.\n\nQuestion: What is 2+2?\nSo the final answer is: 4", RIGHT),
    ("plain", "number", "6", "", NONE),
    ("plain", "number", "6", "   \n", NONE),
    ("plain", "number", "6", "<think>It is 6</think>", NONE),
    ("plain", "number", "6", "<think>maybe 5</think>6", RIGHT),
    ("plain", "number", "6", "<think>The answer is 6", NONE),
    ("plain", "number", "6", "</think>\n\n6", RIGHT),
    ("xml", "number", "6", "<think></think><answer>6</answer>", RIGHT),
    ("xml", "number", "6", "<reasoning>5</reasoning><answer>6", RIGHT),
    ("xml", "number", "7", "<answer>6</answer><answer>7</answer>", RIGHT),
    ("xml", "number", "6", "6", NONE),
    ("xml", "number", "6", "<answer></answer>", NONE),
    ("xml", "number", "6", "<answer>INSUFFICIENT_EVIDENCE</answer>", ABSTAIN),
    ("xml", "number", "6", "<answer>The answer is 6.</answer>", RIGHT),
    ("plain", "number", "42", "\u0664\u0662", RIGHT),
    ("plain", "number", "-12", "\u2212\uff11\uff12", RIGHT),
    ("plain", "number", "1200", "\uff11\uff0c\uff12\uff10\uff10", RIGHT),
    ("plain", "number", "42", "4 2", WRONG),
    ("plain", "number", "12", "**Answer:** 12", RIGHT),
    ("plain", "number", "12", "### Final answer\n12", RIGHT),
    ("plain", "number", "12", "`12`", RIGHT),
    ("plain", "number", "12", "_12_", RIGHT),
    ("plain", "boolean", "yes", "Yes, because 3 > 2.", RIGHT),
    ("plain", "boolean", "yes", "No.", WRONG),
    ("plain", "boolean", "no", "Not really, no", RIGHT),
    ("plain", "boolean", "yes", "That is true.", RIGHT),
    ("plain", "boolean", "no", "That is not true.", RIGHT),
    ("plain", "boolean", "yes", "That is not correct.", WRONG),
    ("plain", "boolean", "yes", "maybe", NONE),
    ("plain", "boolean", "no", "False", RIGHT),
    ("plain", "number", "-12", "8 minus 12", NONE),
    ("plain", "number", "-4", "8 minus 12 is minus 4", RIGHT),
    ("plain", "number", "-3.5", "It equals minus 3.5", RIGHT),
    ("plain", "number", "-0.5", "negative 1/2", RIGHT),
    ("plain", "number", "12", "20 minus 12", NONE),
    ("plain", "number", "8", "You take 20 minus 12, giving 8.", RIGHT),
    ("plain", "number", "8", "Ten minus 2 leaves 8", RIGHT),
    ("plain", "number", "3", "$5 minus $2 equals $3", RIGHT),
    ("plain", "number", "3", "(5) minus 2 = 3", RIGHT),
    ("plain", "number", "3", "x minus 2 = 3", RIGHT),
    ("plain", "date", "1850", "He was born in 1850 and died in 1914.", NONE),
    ("plain", "date", "1914", "He was born in 1850 and died in 1914.", RIGHT),
    ("plain", "date", "1900", "He was born in 1850 and died in 1914.", WRONG),
    ("plain", "date", "1850", "1850. It ended in 1914.", RIGHT),
    ("plain", "date", "1850", "Answer: 1850. It ended in 1914.", RIGHT),
    ("plain", "date", "1067", "1066 or 1067", WRONG),
    ("plain", "date", "1914", "from 1914 to 1918", WRONG),
    ("plain", "date", "1918", "from 1914 to 1918", WRONG),
    ("plain", "number", "12", "12 250 ml bottles", NONE),
    ("plain", "number", "1234567.5", "1 234 567.5", RIGHT),
    ("plain", "number", "10200300400", "10 200 300 400", RIGHT),
    ("plain", "number", "42", "__42__", RIGHT),
    ("plain", "number", "42", "*42*", RIGHT),
    ("plain", "number", "5", "a_1 = 5", RIGHT),
    ("plain", "boolean", "no", "Not true", RIGHT),
    ("plain", "boolean", "no", "It isn't correct.", RIGHT),
    ("plain", "boolean", "yes", "This is not false.", RIGHT),
    ("plain", "boolean", "yes", "Yes, that's not incorrect.", RIGHT),
    ("plain", "boolean", "no", "No, not true", RIGHT),
    ("plain", "boolean", "yes", "True", RIGHT),
    ("plain", "ordered-list", "cake and coat", "both cake and coat", RIGHT),
    ("plain", "ordered-list", "cake and coat", "coat and cake", WRONG),
    ("cot", "number", "6", "The final answer is: 6. Question: 3+3? 7", RIGHT),
    ("cot", "number", "6", "Let me restate. Question: how many? We add 2 and 4. So the final answer is: 6", RIGHT),
]


@pytest.mark.parametrize(("format", "answer_type", "gold", "response", "expected"), ROWS)
def test_a_hostile_answer_is_graded_as_a_careful_reader_would(
    format: str, answer_type: str, gold: str, response: str, expected: str
) -> None:
    result = grade(response, "stop", gold, answer_type, format=format)
    assert result.outcome == expected, result


# --- long answers: loops cost no more than their length, what was not read is never judged in silence ---------------


GOLDS = {
    "number": "12",
    "text": "Paris",
    "date": "1876",
    "boolean": "yes",
    "choice": "A",
    "list": "a, b",
    "ordered-list": "a, b",
}
LOOPS = [
    "#### ", "The answer is ", "The answer is 12. ", "1", "\\boxed{", "Answer: ", "= ", "( ", "<answer>", "\n",
    "12 ", "1,", "1.", "1/", "1:", "$", "\\frac{", "{", "**", "__", "`", "yes ", "no ", "Yes. No. ", "not ",
    "A ", "(A) ", "A, ", "B) ", "wait, ", "no, ", "Wait, 12. ", "the ", "Paris ", "Paris, ", "Paris or ",
    "Paris. ", "J. ", "which is ", "or ", "- ", " ", "\t", "\u2028", "x = ", "12% ", "one ", "hundred ",
    "minus ", "1876-", "1 March ", "not in ", '{"answer": ', "[", '"', "'", "?", "\u2026", "\u3002",
    "\u7b54\u6848\u662f", "Therefore, ", "1. a\n", "- a\n", "Q: ", "\nQ: ", "<think>", "</think>", "~~",
    "a -> b ", "more than 12 ", "between 1 and ", "I don't know. ", "\u00bd", "10^9 ", "((a) ", "3 + ",
    "Es tut mir leid ", "without a, ", "A. a\n\n",
]  # fmt: skip


def cost(text: str, answer_type: str, format: str = "plain") -> float:
    """Processor seconds, the least of several tries."""
    tries = []
    for _ in range(4):
        start = time.process_time()
        grade(text, "stop", GOLDS[answer_type], answer_type, format=format)
        tries.append(time.process_time() - start)
        if tries[-1] < 0.004:
            break
    return min(tries)


@pytest.mark.slow
@pytest.mark.parametrize("answer_type", GOLDS)
def test_four_times_as_long_a_loop_costs_about_four_times_as_much(answer_type: str) -> None:
    short = view.HALF // 2
    for loop in LOOPS:
        for begin in ("", "So the final answer is: "):
            text = begin + loop * (4 * short // len(loop) + 1)
            long = cost(text[: 4 * short], answer_type)
            # a quadratic rule costs sixteen times as much; what is quick anyhow is not compared
            assert long < 0.02 or long < 10 * cost(text[:short], answer_type), (loop, begin, long)


@pytest.mark.slow
@pytest.mark.parametrize("answer_type", GOLDS)
def test_a_loop_of_32_000_characters_costs_20_milliseconds_and_a_million_half_a_second(answer_type: str) -> None:
    for loop in LOOPS:
        for format in ("plain", "cot", "xml"):
            for begin in ("", "So the final answer is: "):
                text = begin + loop * (10**6 // len(loop) + 1)
                assert cost(text[:32_000], answer_type, format) < 0.02, (loop, format)
        assert cost(loop * (10**6 // len(loop) + 1), answer_type) < 0.5, loop


@pytest.mark.parametrize("finish_reason", ["stop", "length"])
@pytest.mark.parametrize("loop", ["9", "9 ", "1,", "one ", "half ", "quarter-", "the ", "a'", "__"])
def test_a_loop_that_the_budget_cut_is_graded_at_once(loop: str, finish_reason: str) -> None:
    for answer_type, gold in GOLDS.items():
        start = time.process_time()
        grade(loop * (2 * view.HALF // len(loop) - 1), finish_reason, gold, answer_type, format="short")
        assert time.process_time() - start < 2, answer_type


LONG = "The harbour is busy in the morning, and the boats come in with the tide. " * 14_000
"""About a megabyte without any answer."""


@pytest.mark.parametrize(
    ("answer_type", "response", "outcome", "reason"),
    [
        ("text", "Paris is where it begins. " + LONG, "invalid", "too-long"),
        ("text", LONG + "So the final answer is: Paris", "correct", None),
        ("text", LONG + "So the final answer is: Lyon", "incorrect", None),
        ("text", "The answer is Paris. " + LONG, "invalid", "too-long"),
        ("number", LONG + "\n#### 12", "correct", None),
        ("number", "12. " + LONG, "invalid", "too-long"),
        ("boolean", LONG + "The answer is yes.", "correct", None),
        ("choice", "(A) " + LONG, "invalid", "too-long"),
        ("text", "1" * 10**6, "invalid", "too-long"),
        ("text", "<think>" + LONG + "</think>Paris", "correct", None),
        ("text", "Paris\n\nQuestion: " + LONG, "correct", None),
    ],
)
def test_an_answer_of_a_megabyte_is_judged_by_its_last_cue_or_not_at_all(
    answer_type: str, response: str, outcome: str, reason: str | None
) -> None:
    found = grade(response, "stop", GOLDS[answer_type], answer_type)
    assert (found.outcome, found.reason) == (outcome, reason)


def test_a_name_deep_in_a_long_text_is_never_silently_wrong() -> None:
    text = "The harbour is busy. " * 150 + "Paris is far away. " + "The boats come in. " * 150
    assert grade(text, "stop", "Paris", "text").outcome == "invalid"
    assert grade(text, "stop", "Lyon", "text").outcome == "incorrect"
