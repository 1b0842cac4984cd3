"""Wordings that only a benchmark can give: without them a protocol says what is missing, and measures nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.asks import Grade
from composcope.evaluation.benchmarks.stad import case_from_item
from composcope.evaluation.builders import scaffolds
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.evaluation.protocols import get
from composcope.evaluation.protocols.asking import recommended_format
from composcope.evaluation.protocols.reasoning_gap import NO_LEAKAGE

PARTS = (Part("How many are 2 and 3?", "5", "math", "number"), Part("What is 5 times 2?", "10", "math", "number"))
CASE = Case("c1", "What is X times 2?", "10", PARTS, answer_type="number", depth=2)
ORIGINAL = {"question": "What is 4 times 2?", "answer": 8}


def rows_of(case: Case) -> list[Graded]:
    right = Grade("correct", "10", "numeric")
    return [Graded.of(case, a, right, ask_id=None, model="m", run=None) for a in get("reasoning-gap").asks(case, {})]


@pytest.mark.parametrize("question", ["What is twice the sum of 2 and 3?", "How many XL shirts are left?"])
def test_a_pair_whose_second_question_has_no_x_is_refused(question: str) -> None:
    with pytest.raises(InputError, match=r"'c1'.*needs a Q2 that uses X.*meta\.question_2"):
        get("reasoning-gap").asks(replace(CASE, question=question), {})


@pytest.mark.parametrize("meta", [{}, {"question_2": "Take X twice."}])
def test_the_pair_is_made_from_the_question_with_x(meta: dict[str, Any]) -> None:
    whole = {a.role: a for a in get("reasoning-gap").asks(replace(CASE, meta=meta), {})}["whole"]
    assert PARTS[0].question in whole.prompt and meta.get("question_2", CASE.question) in whole.prompt


def test_a_leakage_that_cannot_be_measured_is_said_once() -> None:
    cases = {c.id: c for c in (CASE, replace(CASE, id="c2"))}
    found = get("reasoning-gap").reduce([r for c in cases.values() for r in rows_of(c)], cases)
    assert found.warnings.count(NO_LEAKAGE) == 1
    assert not [m for m in found.metrics if m.metric == "leakage"]


def test_with_the_original_of_q2_the_leakage_is_measured() -> None:
    case = replace(CASE, meta={"original": ORIGINAL})
    found = get("reasoning-gap").reduce(rows_of(case), {case.id: case})
    assert NO_LEAKAGE not in found.warnings
    assert [m.n for m in found.metrics if m.metric == "leakage"][:1] == [1]


def test_a_benchmark_recommends_a_format_only_where_all_cases_agree() -> None:
    plain = replace(CASE, meta={"format": "plain"})
    assert recommended_format([plain, replace(plain, id="c2")]) == "plain"
    assert recommended_format([plain, CASE]) is None
    assert recommended_format([CASE]) is None
    with pytest.raises(InputError, match=r"meta\.format is 'plane'; use one of plain"):
        recommended_format([replace(CASE, meta={"format": "plane"})])


def test_scaffolded_cases_keep_the_format_of_what_they_were_made_from() -> None:
    items, dropped = scaffolds.from_cases([replace(CASE, meta={"format": "plain"})])
    assert not dropped
    assert recommended_format([case_from_item(i) for i in items]) == "plain"
