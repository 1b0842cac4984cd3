"""Whole records of scaffolded items: every field that generation, or people's steps, give an item, and the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from composcope.evaluation.asks import Ask
from composcope.evaluation.benchmarks.stad import Check, StadItem, StadStep
from composcope.evaluation.builders import review
from composcope.evaluation.builders.scaffolds import Roles, Settings, from_cases, generate, items_from_cases
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.journal import Journal

EGGS = Case("eggs", "How many eggs are left?", "7", answer_type="number", evidence=("A nest has 9.",))
CUPS = replace(EGGS, id="cups", question="How many cups are left?")
SAID = {"answer_type": "number", "evidence": ["A nest has 9."]}


def teach(ask: Ask) -> str:
    """A teacher of eggs; of cups it gives one step only. It says "seven" where it is asked to verify."""
    stage = ask.role.partition(":")[0]
    if stage == "decompose":
        return json.dumps({"steps": ["Count them", "Take 2 away"][: 1 if "cups" in ask.prompt else 2]})
    if stage == "answer":
        return json.dumps([{"explanation": "9 are there", "answer": 9}, {"explanation": "9 - 2", "answer": 7}])
    if stage in ("scaffold", "stand-alone"):
        asked = ask.prompt.rpartition("\nQuestion: ")[2]
        return f"{'Rewritten question' if stage == 'scaffold' else 'Question'}: {ask.role} of {asked.splitlines()[0]}"
    return "So the final answer is: VII, by the hour"


def judge(ask: Ask) -> str:
    return '{"score": 1}'


def test_a_generated_item_has_every_field_of_its_stages_and_the_report_counts_them(engine: Any) -> None:
    teacher = engine("teacher", teach)
    made = generate(items_from_cases([EGGS, CUPS]), Roles([teacher], engine("judge", judge)), Settings(seed=5))
    text = "So the final answer is: VII, by the hour"
    steps = (
        StadStep("Count them", "9", "9 are there", "stand-alone:1 of How many eggs are left?"),
        StadStep("Take 2 away", "7", "9 - 2", "stand-alone:2 of How many eggs are left?"),
    )
    rewrite = "scaffold:1 of How many eggs are left?"
    checks = (Check(text, True, 'judge: {"score": 1}'),)
    assert made.items == [
        StadItem("eggs", "How many eggs are left?", "7", steps, (rewrite,), checks, "teacher", {"of_case": SAID})
    ]
    assert made.dropped == [{"id": "cups", "teacher": "teacher", "stage": "decompose", "reason": "single-step"}]
    assert made.report == {
        "items": 2, "kept": 1, "mean_k": 2.0, "k": {"2": 1}, "kept_by_teacher": {"teacher": 1},
        "dropped": {"decompose": 1}, "reasons": {"decompose: single-step": 1}, "unread": {},
    }  # fmt: skip
    seeds = {a.role.partition(":")[0]: (a.seed, a.temperature) for a in teacher.asked}
    assert seeds == dict.fromkeys(("decompose", "answer", "scaffold", "stand-alone"), (5, 0.2)) | {"verify": (0, 0.0)}
    facts = {a.role.partition(":")[0] for a in teacher.asked if "A nest has 9." in a.prompt}
    assert facts == {"decompose", "answer", "verify"}, (
        "a rewrite is of the question alone: its facts stay with the case"
    )


def test_what_teachers_lose_is_counted_over_all_of_them(engine: Any) -> None:
    def mumbles(stage: str) -> Callable[[Ask], str]:
        return lambda ask: "Well." if ask.role.startswith(stage) else teach(ask)

    teachers = [engine("one", mumbles("answer")), engine("two", mumbles("scaffold")), engine("three", teach)]
    made = generate(items_from_cases([EGGS]), Roles(teachers, engine("judge", judge)), Settings(attempts=2))
    assert [(d["teacher"], d["stage"]) for d in made.dropped] == [("one", "answer"), ("two", "scaffold")]
    assert made.report["kept_by_teacher"] == {"three": 1} and made.report["unread"] == {"answer": 2, "scaffold": 2}
    assert (made.report["items"], made.report["dropped"]) == (1, {"answer": 1, "scaffold": 1})
    before = [len(t.asked) for t in teachers[:2]]
    fewer = generate(items_from_cases([EGGS]), Roles([engine("four", teach), *teachers[:2]], engine("judge", judge)))
    assert fewer.report["kept_by_teacher"] == {"four": 1} and fewer.dropped == [], "what is kept goes to nobody else"
    assert [len(t.asked) for t in teachers[:2]] == before


def test_verdicts_of_a_judge_are_in_the_journal_and_not_asked_for_again(engine: Any, tmp_path: Path) -> None:
    judges = [engine("judge", judge), engine("judge", judge)]
    for one in judges:
        with Journal(tmp_path) as journal:
            generate(items_from_cases([EGGS]), Roles([engine("teacher", teach)], one), journal=journal)
    assert [len(one.asked) for one in judges] == [1, 0]


def test_steps_of_people_become_records_with_templates_in_place_of_rewrites() -> None:
    parts = (
        Part("How many are there?", "9", "math", "number", worked="they are 9", skill="count"),
        Part("How many are left?", "Big Apple", worked="9 - 2 = 7", skill="subtract"),
    )
    city = Case("c", "Where?", "New York City", parts, aliases=("Big Apple",), meta={"format": "short"})
    other = replace(city, id="d", parts=(parts[0], replace(parts[1], answer="Boston")))
    none, one = replace(city, id="e", parts=()), replace(city, id="f", parts=parts[1:])
    (item,), dropped = from_cases([city, other, none, one])
    steps = (
        StadStep("How many are there?", "9", "they are 9", "Situation: Where?\nAnswer only this: How many are there?",
                 "count"),
        StadStep("How many are left?", "Big Apple", "9 - 2 = 7",
                 "Situation: Where?\nKnown: How many are there? 9.\nAnswer only this: How many are left?", "subtract"),
    )  # fmt: skip
    assert replace(item, extra={}) == StadItem(
        "c", "Where?", "New York City", steps, ("Known: How many are there? 9. Where?",), (), "human"
    )
    said = item.extra["of_case"]
    assert (item.extra["format"], said["aliases"]) == ("short", ["Big Apple"])
    assert said["parts"][1]["aliases"] == ["New York City"], "the last step accepts what the whole does"
    assert [(d["id"], d["teacher"], d["stage"], d["reason"].partition(":")[0]) for d in dropped] == [
        ("d", "human", "answer", "last-answer-differs"), ("e", "human", "answer", "step-without-value"),
        ("f", "human", "answer", "single-step"),
    ]  # fmt: skip


@pytest.mark.parametrize(("given", "right"), [("VII", True), ("8", False)])
def test_the_judge_decides_what_the_rules_cannot_read_in_coverage(engine: Any, given: str, right: bool) -> None:
    steps = (StadStep("Count them", "9"), StadStep("Take 2 away", "7"))
    item = StadItem("eggs", "How many?", "7", steps)
    solver = engine("solver", lambda _: f"So the final answer is: {given}")
    share, verdicts = review.coverage(
        [item], solver, engine("judge", lambda a: f'{{"score": {int("VII" in a.prompt)}}}')
    )
    assert (share.count, share.n, verdicts) == (int(right), 1, {"eggs": right})
    [ask] = solver.asked
    assert (ask.max_tokens, ask.format, ask.temperature, ask.role) == (2000, "cot", 0.0, "coverage")
    assert review.coverage([item], engine("brief", teach), max_tokens=9)[0].n_unjudged == 1


def test_a_unit_that_only_the_question_tells_counts_when_samples_are_reviewed(engine: Any) -> None:
    parts = (Part("Q1?", "2", "math", "number"), Part("How many minutes does it last?", "90", "math", "number"))
    case = Case("c", "W?", "90", parts, answer_type="number")
    solver = engine("solver", lambda _: "So the final answer is: 1.5 hours")
    assert review.queue([case], [solver], samples=1, minimum=1) == []
