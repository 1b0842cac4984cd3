"""Q1's answer inside an answer to a pair: what the response says of X, in whatever words and however often."""

from __future__ import annotations

import pytest

from composcope.evaluation.grading import grade
from composcope.evaluation.grading.extract import PAIR_Q1
from composcope.evaluation.grading.lists import stopped_at_a_part

REPLIES = [
    ("A1: 3 + 6 is 9. X is 9. A2: 2 * 9 is 18. So the final answer is: 18", "9"),
    ("The Q1 answer is 9. Therefore X=9. Q2: 9 times 2 is 18. The final answer is 18.", "9"),
    ("X is the number of eggs left. She eats 3 of 12, so X = 9. Then 2 * X = 18.", "9"),
    ("X is the number of eggs left after day 3, so X = 9.", "9"),
    ("Here X = 12 - 3 = 9.\nUsing X, she earns 9 * 2 = $18.", "9"),
    ("First guess: X = 8. No: 12 - 3 is 9, so X is 9.", "9"),
    ("X: 9\nQ2: 18", "9"),
    ("x is 9 eggs. She sells X for 2 each and gets 18.", "9"),
    ("X = 9. 3 + X = 12 and 2X = 18, that is 18.", "9"),
    ("We know X = 9 and 2 * X = 18.", "9"),
    ("3 + 6 = 9\nX = 9\nX * 2 = 18", "9"),
    ("The Q1 answer is: 9 eggs\nThe Q2 answer is: 18", "9"),
]


@pytest.mark.parametrize(("reply", "answer"), REPLIES)
def test_the_last_statement_that_gives_x_a_value_counts(reply: str, answer: str) -> None:
    found = grade(reply, "stop", answer, "number", format=PAIR_Q1)
    assert (found.outcome, found.answer) == ("correct", answer)
    assert grade(reply, "stop", "7", "number", format=PAIR_Q1).outcome == "incorrect"


@pytest.mark.parametrize(
    ("reply", "finish", "reason"),
    [
        ("She has 9 eggs, so she earns 18.", "stop", "no-cue"),
        ("X is the number of eggs that are left.", "stop", "no-answer"),
        ("So 2 * X = 18.", "stop", "no-cue"),
        ("She eats 3 of 12 eggs, so X = 1", "length", "truncated"),
        ("She eats 3 of 12", "length", "truncated"),
    ],
)
def test_a_reply_that_gives_x_no_value_is_invalid(reply: str, finish: str, reason: str) -> None:
    found = grade(reply, finish, "9", "number", format=PAIR_Q1)
    assert (found.outcome, found.reason) == ("invalid", reason)


def test_a_cut_off_last_statement_leaves_the_word_to_the_finished_one_before_it() -> None:
    assert (
        grade("X = 9. So she earns 2 * 9, that is X = 1", "length", "9", "number", format=PAIR_Q1).outcome == "correct"
    )


Q1, Q2 = (
    "Q1: Tom has 6 boxes of 8 rolls and gives 5 away. How many are left?",
    "Q2: 27 are added to {}. How many does each of 14 get?",
)
PAIR, BOTH = (
    f"Let X be the answer to Q1.\n{Q1}\nUse X to answer Q2.\n{Q2.format('X')}",
    f"{Q1}\n{Q2.format(43)}\nAnswer both.",
)
CUE = "So the final answer is:"
LABELED = [
    (PAIR, f"Q1: 48 - 5 = 43\nQ2: 43 + 27 = 70, 70 / 14 = 5\n{CUE} 5"),
    (PAIR, f"### Q1\n- Rolls: 48\n\n**X = 43**\n\n### Q2\n- Take X = 43\n\n{CUE} 5"),
    (PAIR, f"**{Q1}**\n48 - 5 = 43\n**Q2**\n70 / 14 = 5\n{CUE} 5"),
    (PAIR, f"A1: 6 * 8 = 48. 48 - 5 = 43\nA2: 5\n{CUE}\nQ2: 5\n\nThis is the final answer."),
    (PAIR, f"**Answer to Q1:** 43 rolls\n\n**Answer to Q2:** 5 rolls\n\n{CUE} 5"),
    (PAIR, f"X is 43. {CUE} 5\n\nQ1: Ann has 4 pens. How many are left?\nQ2: X and 2 are? X is 9. {CUE} 11"),
    (PAIR, f"**Step 1: Q1**\nSo 43 are left.\n**Step 2: Q2**\nX + 27 = 70.\n{CUE} X = 43, and the answer to Q2 is 5."),
    (PAIR, f"{Q1}\nA1: 43\n{Q2.format(43)}\nA2: 5\n{CUE} 5"),
    (PAIR, f"Q1: 43 rolls are left.\nLet us go on to the second question.\nQ2: 5\n{CUE} 5"),
    (PAIR, f"Q1: 42\nQ2: 4\nWait.\nQ1: 43\nQ2: 5\n{CUE} 43 for Q1 and 5 for Q2"),
    (PAIR.replace("Use X to answer Q2.\n", ""), f"X = 43\n{CUE}\n1. 43\n2. 5"),
    (PAIR, f"X = 43\n{CUE} 5 rolls (with X = 43)"),
    (PAIR, f"X = 43\n{CUE} 43 is the answer to Q1 and 5 is the answer to Q2."),
    (BOTH, f"Q1: {CUE} 43\n\nQ2: {CUE} 5"),
    (BOTH, f"**Q1:** 43.\n\n**Q2:** 5.\n\n{CUE}\n\n- **Q1:** 43 rolls\n- **Q2:** 5 rolls"),
    *((BOTH, f"Q1: 43\nQ2: 5\n{CUE} {both}") for both in (
        "Q1: 43, Q2: 5", "43 and 5.", "43 are left, and 5 are given.", "43\n\n5", "43; 5", "(a) 43 (b) 5",
        "43, 5", "43 for Q1 and 5 for Q2.", "(Q1) 43, (Q2) 5", "1. 43\n2. 5", "\n| Q1 | 43 |\n| Q2 | 5 |",
        "The answer to Q1 is 43 and the answer to Q2 is 5.",
    )),
]  # fmt: skip


@pytest.mark.parametrize(("question", "reply"), LABELED)
def test_an_answer_with_the_labels_of_its_question_is_read_below_them(question: str, reply: str) -> None:
    for format, right, wrong in (("cot", "5", "43"), (PAIR_Q1, "43", "5")):
        found = [grade(reply, "stop", gold, "number", format=format, question=question) for gold in (right, wrong)]
        assert [f.outcome for f in found] == ["correct", "incorrect"], format


SALES = "Sales:\nQ1: {}\nQ2: {}\nWhat is the total?"
DOGS = "Which is true?\nQ1: cats bark\nQ2: dogs bark"


@pytest.mark.parametrize(
    ("question", "reply", "right", "wrong"),
    [
        (SALES.format(100, 150), "250 (Q1: 100, Q2: 150)", "250", "150"),
        (SALES.format(100, 150), "250.\n\nQ1 is 100 and Q2 is 150", "250", "150"),
        (DOGS, "Q2: dogs bark", "Q2", "Q1"),
        (f"{Q1}\nQ2: 48 eggs for each of 20?\nAnswer both.", "1,048", "1048", "48"),
        (f"{Q1}\nQ2: 48 eggs for each of 20?\nAnswer both.", "960 eggs, 48 each", "960", "48"),
    ],
)
def test_a_question_or_an_answer_that_only_looks_like_a_pair_is_read_whole(
    question: str, reply: str, right: str, wrong: str
) -> None:
    kind = "number" if right.isdigit() else "text"
    for gold, outcome in ((right, "correct"), (wrong, "incorrect")):
        assert grade(f"{CUE} {reply}", "stop", gold, kind, format="cot", question=question).outcome == outcome


@pytest.mark.parametrize("reply", ["Q1: 43\nQ2: 5", "A1: 43\n\nA2: 5", "Q1: 43, Q2: 5"])
def test_a_last_answer_of_a_pair_at_which_the_reply_is_cut_off_is_invalid(reply: str) -> None:
    found = grade(f"{CUE} {reply}", "length", "57", "number", format="cot", question=BOTH)
    assert (found.outcome, found.reason) == ("invalid", "truncated")
    found = grade(
        f"{CUE} {reply}\n\nTo explain this at length, w", "length", "5", "number", format="cot", question=BOTH
    )
    assert found.outcome == "correct"


PARTS = (("cart and bread",), ("20", "twenty"))


def test_a_whole_answered_with_a_step_or_a_piece_of_it_is_wrong_and_says_where_it_stopped() -> None:
    for text in ("cart and bread", " cart", "Bread, cart"):
        found = stopped_at_a_part(text, PARTS)
        assert found is not None and (found.outcome, found.reason) == ("incorrect", "stops at part:0")
    found = stopped_at_a_part("Twenty", PARTS)
    assert found is not None and found.reason == "stops at part:1"


def test_anything_else_stays_unjudged() -> None:
    for text in ("", "I would have to think", "cart and horse", "the cart is wheeled"):
        assert stopped_at_a_part(text, PARTS) is None
