"""Options of choices: how files and questions list them, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation import options
from composcope.evaluation.cases import Case, Part, read_cases, write_cases
from composcope.evaluation.grading import grade
from composcope.evaluation.protocols.asking import ask_part, ask_whole

COLOURS = (("A", "red"), ("B", "blue"))


@pytest.mark.parametrize(
    "value",
    [
        ["red", "blue"],
        {"A": "red", "B": "blue"},
        {"a": "red", "b": " blue "},
        ["A. red", "B) blue"],
        [{"label": "A", "text": "red"}, {"letter": "B", "text": "blue"}],
        [["A", "red"], ["B", "blue"]],
        {"label": ["A", "B"], "text": ["red", "blue"]},
    ],
)
def test_options_may_be_written_in_the_ways_that_data_sets_write_them(value: Any) -> None:
    assert options.parse(value, "file:1") == COLOURS


@pytest.mark.parametrize("value", [[1, 2.5], {"A": 1, "B": 2.5}, [["A", 1], ["B", 2.5]]])
def test_options_may_be_numbers(value: Any) -> None:
    assert options.parse(value, "file:1") == (("A", "1"), ("B", "2.5"))


def test_options_may_differ_in_case_alone_and_be_named_like_letters() -> None:
    for texts in (["AA", "Aa", "aa"], ["O", "B", "A", "AB"]):
        assert [text for _, text in options.parse(texts, "x")] == texts


def test_initials_of_names_are_no_letters_of_options() -> None:
    assert options.parse(["A. Lincoln", "G. Washington"], "x") == (("A", "A. Lincoln"), ("B", "G. Washington"))


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Which? Answer Choices: (A) red (B) blue", COLOURS),
        ("Which?\nA. red\nB. blue", COLOURS),
        ("Which?\n(A) red; (B) blue", COLOURS),
        ("Which?\n(A) x/2 (B)  (x+1) /24 (C) f(x)", (("A", "x/2"), ("B", "(x+1) /24"), ("C", "f(x)"))),
        ("Is plan (A) better than plan (C)?", ()),
        ("Which one?", ()),
    ],
)
def test_options_are_learned_from_the_question(question: str, found: Any) -> None:
    assert options.in_question(question) == found


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"answer": "F"}, ("answer", "'F'", "A, B")),
        ({"answer": "green"}, ("answer", "'green'", "A, B")),
        ({"options": ["red"]}, ("options", "two or more")),
        ({"options": ["red", "blue", "red "]}, ("options", "'red'", "A and as C", "once")),
        ({"options": {"A": "red", "B": "green", "C": "green"}}, ("options", "'green'", "B and as C")),
        ({"options": {"label": ["A", "B", "C"], "text": ["red", "blue"]}}, ("options", "3 labels for 2 texts")),
        ({"options": {"label": ["A", "B"], "text": None}}, ("options", "'label'")),
        ({"options": "red, blue"}, ("options", "list of texts")),
        ({"options": {"A": "red", "a": "blue"}}, ("options", "each once")),
        ({"options": {"1": "red", "2": "blue"}}, ("options", "'1'")),
        ({"answer_type": "text"}, ("options", "choice")),
        ({"options": None, "answer": "red"}, ("answer", "'red'", "options")),
        ({"options": ["A", "O", "B", "AB"]}, ("answer", "'B'", "letter of 'O'", "text of C", "'B) O'")),
        ({"options": None, "question": "Which? (A) red (B) blue", "answer": "C"}, ("answer", "'C'", "A, B")),
    ],
)
def test_a_benchmark_with_wrong_letters_is_refused_with_file_field_and_value(
    tmp_path: Path, changes: dict[str, Any], named: tuple[str, ...]
) -> None:
    row = {
        "id": "a",
        "question": "Which?",
        "answer": "B",
        "answer_type": "choice",
        "options": ["red", "blue"],
        **changes,
    }
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(InputError) as caught:
        read_cases(path)
    assert all(word in str(caught.value) for word in (f"{path}:1", *named)), caught.value


def test_options_survive_the_file_and_stand_in_the_prompt_once(tmp_path: Path) -> None:
    part = Part("Which?", "blue", answer_type="choice", options=COLOURS, paraphrases=("Say which.",))
    case = Case("a", "Which? (A) red (B) blue", "B", (part,), answer_type="choice", options=COLOURS)
    write_cases([case], tmp_path / "c.jsonl")
    (read,) = read_cases(tmp_path / "c.jsonl")
    assert read == case
    whole = ask_whole(read, "whole", read.question, "plain", None)
    wording = ask_part(read, 0, "part:0:paraphrase:0", "Say which.", "plain", None)
    assert whole.prompt == "Which? (A) red (B) blue" and whole.options == COLOURS
    assert wording.prompt == wording.question == "Say which. Answer Choices: (A) red (B) blue"


def test_an_answer_may_be_the_text_of_an_option_that_only_the_question_lists(tmp_path: Path) -> None:
    case = Case("a", "Which? (A) red (B) blue", "blue", answer_type="choice")
    write_cases([case], tmp_path / "c.jsonl")
    assert read_cases(tmp_path / "c.jsonl") == [case]


@pytest.mark.parametrize(
    ("question", "texts", "has_them"),
    [
        ("Is it red or blue?", ("red", "blue"), True),
        ("Which is hot: the stone, the fire or an ice cube?", ("stone", "fire", "ice cube"), True),
        ("Which?\n1) red\n2) blue", ("red", "blue"), True),
        ("Which? (A) the red one (B) the one in blue", ("red", "blue"), True),
        ("Which: C++, C or (D) f(x)?", ("C++", "C", "f(x)"), True),
        ("24 apples are in 12 boxes. How many are in one?", ("4", "2"), False),
        ("Did you know that yesterday was cold?", ("yes", "no"), False),
        ("Ann has 4 apples and buys 2 boxes of them. How many boxes are there?", ("4", "2"), False),
    ],
)
def test_options_are_added_to_a_question_unless_it_lists_them(
    question: str, texts: tuple[str, ...], has_them: bool
) -> None:
    found = options.listed(question, tuple(zip("ABC", texts, strict=False)))
    assert found.startswith(question) and ("Answer Choices: (A)" in found) is not has_them


@pytest.mark.parametrize(
    ("response", "outcome", "reason"),
    [
        ("B", "correct", None),
        ("blue", "correct", None),
        ("The answer is blue.", "correct", None),
        ("(B) blue", "correct", None),
        ("red", "incorrect", None),
        ("(B) red", "invalid", "letter and text differ"),
        ("red and blue", "invalid", "several choices"),
        ("(A) red (B) blue (C) green", "invalid", "several choices"),
        ("E", "invalid", "no-answer"),
        ("green", "invalid", "no-answer"),
    ],
)
def test_with_options_the_text_counts_as_much_as_the_letter(response: str, outcome: str, reason: str | None) -> None:
    for gold in ("B", "blue", "(B)"):
        found = grade(response, "stop", gold, "choice", options=COLOURS)
        assert (found.outcome, found.reason) == (outcome, reason)
        learned = grade(response, "stop", gold, "choice", question="Which? Answer Choices: (A) red (B) blue")
        assert learned == found


def test_a_gold_letter_that_is_no_option_is_refused() -> None:
    with pytest.raises(InputError, match=r"'C'.*A \(red\), B \(blue\)"):
        grade("B", "stop", "C", "choice", options=COLOURS)
