"""The reward, case by case against hand-computed values."""

from __future__ import annotations

from typing import Any

import pytest

from composcope.evaluation.prompts import FORMATS
from composcope.experiments.interventions.reward import Rewards, echoes, score
from composcope.probes.examples import Gold

GOLD = "Amber moot, Birch siege"
INSTRUCTION = FORMATS["xml"].instruction

TABLE = [
    # completion, right, tags, echo, total
    ("<reasoning>a 1402</reasoning><answer>Amber moot, Birch siege</answer>", True, 2, False, 1.2),
    ("<answer>Amber moot, Birch siege</answer>", True, 2, False, 1.2),
    ("<reasoning>a</reasoning><answer>Birch siege, Amber moot</answer>", False, 2, False, 0.2),
    ("<answer>Amber moot, Birch siege", True, 1, False, 1.1),
    ("Amber moot, Birch siege", False, 0, False, 0.0),  # no tag, no answer: wrong, as the paper counts
    ("", False, 0, False, 0.0),
    ("<answer>INSUFFICIENT_EVIDENCE</answer>", False, 2, False, 0.2),
    ("<answer>Amber moot</answer>", False, 2, False, 0.2),
    ("<answer></answer>", False, 2, False, 0.2),
    # the tags of the format itself, empty, are no copy of the template
    ("<reasoning></reasoning><answer>Amber moot, Birch siege</answer>", True, 2, False, 1.2),
    # the template stands inside the reasoning
    ("<reasoning><reasoning></reasoning> <answer></answer></reasoning><answer>Amber moot, Birch siege</answer>",
     True, 2, True, 1.0),
    (f"<reasoning>{INSTRUCTION}</reasoning><answer>x</answer>", False, 2, True, 0.0),
    (f"{INSTRUCTION} <answer>Amber moot, Birch siege</answer>", True, 2, True, 1.0),
    # a copy of the instruction and nothing else, also where its own tags are taken for the answer's
    (INSTRUCTION, False, 2, True, 0.0),
    # repeated tags earn nothing more, and the evaluation stops after the first answer
    ("<answer>x</answer><answer>Amber moot, Birch siege</answer><answer>", False, 2, False, 0.2),
    ("<answer>Amber moot, Birch siege</answer> or <answer>x</answer>", True, 2, False, 1.2),
]  # fmt: skip


@pytest.mark.parametrize(("completion", "right", "tags", "echo", "total"), TABLE)
def test_a_completion_earns_what_the_table_says(
    completion: str, right: bool, tags: int, echo: bool, total: float
) -> None:
    found = score(completion, GOLD, "ordered-list")
    assert (found.correct, found.tags, found.echo) == (right, tags, echo)
    assert found.total == pytest.approx(total)


def test_an_answer_that_was_cut_off_before_its_closing_tag_is_not_right() -> None:
    assert not score("<reasoning>one two three", "three", "text", truncated=True).correct


THOUGHT, SAID = "<answer>1402</answer>?", "<reasoning>r</reasoning><answer>1402</answer>"


@pytest.mark.parametrize(
    ("completion", "thinking", "truncated", "total"),
    [(f"<think>{THOUGHT}</think>{SAID}", True, False, 1.2),
     (f"{THOUGHT}</think>\n<answer>7</answer>", True, False, 0.2),
     (f"<think>{THOUGHT}</think>1402", False, False, 0.0),  # the template's own way may be to think
     (f"<think>{THOUGHT} and so on", False, False, 0.0), (THOUGHT, True, True, 0.0), (SAID, True, False, 1.2)],
)  # fmt: skip
def test_only_what_follows_a_block_of_thinking_counts_as_in_an_evaluation(
    completion: str, thinking: bool, truncated: bool, total: float
) -> None:
    found = score(completion, "1402", "date", thinking=thinking, truncated=truncated)
    graded = Gold("1402", "date", "xml", thinking=thinking).grade(
        completion, "length" if truncated else "stop", "collapse"
    )
    assert found.total == pytest.approx(total) and found.correct == (graded.outcome == "correct")


def test_years_within_one_year_match_under_the_consistency_rule() -> None:
    assert score("<answer>1401</answer>", "1402", "date").correct
    assert not score("<answer>1399</answer>", "1402", "date").correct


def test_the_question_says_whose_number_is_asked_for_as_in_an_evaluation() -> None:
    asked = "Sam has 14 marbles, and Tina three times as many. How many marbles does Tina have?"
    said = "<answer>Sam has 14 and Tina has 42.</answer>"
    assert [score(said, "42", "number", question=q).correct for q in (asked, None)] == [True, False]
    columns: dict[str, Any] = {"gold": ["42"], "answer_type": ["number"], "aliases": [[]]}
    rewards = [Rewards("xml", 99)(["p"], [said], **columns, question=[q])[0] for q in (asked, None)]
    assert rewards == pytest.approx([1.2, 0.2])


def test_formats_without_tags_or_instruction_know_no_bonus_and_no_echo() -> None:
    found = score("Amber moot, Birch siege", GOLD, "ordered-list", format="plain")
    assert found.total == pytest.approx(1.0)
    assert not echoes("anything <answer></answer>", "plain")
    tagged = score("<answer>Amber moot, Birch siege</answer>", GOLD, "ordered-list", format="xml-answer")
    assert tagged.total == pytest.approx(1.2)


def test_the_template_is_found_across_other_white_space() -> None:
    spaced = INSTRUCTION.replace(" ", "\n  ")
    assert echoes(f"<reasoning>{spaced}</reasoning><answer>1</answer>", "xml")


def test_the_trainer_gets_one_reward_per_completion_and_aliases_count() -> None:
    rewards = Rewards("xml", max_tokens=5)
    found = rewards(
        ["p", "p", "p"],
        [[{"role": "user", "content": "10"}, {"role": "assistant", "content": f"<answer>{a}</answer>"}]
         for a in ("decade", "10", "11")],
        gold=["10"] * 3,
        answer_type=["text"] * 3,
        aliases=[["decade"]] * 3,
        completion_ids=[[1, 2]] * 3,
    )  # fmt: skip
    assert found == pytest.approx([1.2, 1.2, 0.2])


def test_a_completion_that_fills_its_budget_was_cut_off_unless_it_ends_with_its_last_token() -> None:
    rewards = Rewards("cot", max_tokens=5, eos_ids={2, 7})
    ids = [[1] * 4, [1] * 5, [1] * 6, [1, 1, 1, 1, 2], [1, 1, 1, 1, 7]]
    found = rewards(["p"] * 5, ["The answer is 10"] * 5, gold=["10"] * 5, answer_type=["number"] * 5,
                    aliases=[[]] * 5, completion_ids=ids)  # fmt: skip
    assert found == pytest.approx([1.0, 0.0, 0.0, 1.0, 1.0])
    cut = {"gold": ["10"], "answer_type": ["number"], "aliases": [[]], "completion_ids": [[1] * 5]}
    told = [Rewards("xml", 5, thinking)(["p"], ["<answer>10</answer> or"], **cut)[0] for thinking in (True, False)]
    assert told == pytest.approx([0.0, 1.2]), "cut off while it was thinking, or after its answer"


def test_the_log_of_a_reward_is_the_share_that_is_right_and_that_echoes() -> None:
    said: dict[str, float] = {}
    rewards = Rewards("xml", max_tokens=99)
    copied = FORMATS["xml"].instruction
    answers = ["<answer>10</answer>", "<answer>11</answer>", copied, "<answer>10</answer>"]
    found = rewards(["p"] * 4, answers, gold=["10"] * 4, answer_type=["number"] * 4, aliases=[[]] * 4,
                    log_metric=said.__setitem__)  # fmt: skip
    assert said == {"reward/correct": 0.5, "reward/echo": 0.25} and found[:2] == pytest.approx([1.2, 0.2])


def test_a_choice_earns_its_reward_by_its_letter_or_by_its_text() -> None:
    options = [["A", "melted"], ["B", "frozen"]]
    how = {"prompts": ["q"] * 3, "gold": ["frozen"] * 3, "answer_type": ["choice"] * 3, "aliases": [[]] * 3,
           "options": [options] * 3, "question": ["Is the ice melted or frozen?"] * 3}  # fmt: skip
    said = ["B", "frozen", "A"]
    assert Rewards("plain", 16)(completions=[f" {text}" for text in said], **how) == [1.0, 1.0, 0.0]
