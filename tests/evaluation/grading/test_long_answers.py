"""Long answers: loops cost no more than their length, what was not read is never judged in silence."""

from __future__ import annotations

import time

import pytest

from composcope.evaluation.grading import grade, view

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
    "Es tut mir leid ",
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
