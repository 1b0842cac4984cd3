"""Wordings that protocols need beyond question and parts: reversed steps, the pair, what Q2 was made from, ladders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from composcope.evaluation.protocols import get
from composcope.evaluation.protocols.asking import recommended_format
from composcope.experiments.organism import benchmarks, measure, world


def test_a_reversed_whole_holds_the_same_words_with_the_sum_first() -> None:
    for case in benchmarks.mixed(8):
        other = str(case.meta["reversed"])
        assert other.startswith("What is the tag of ") and other.endswith(".") and other != case.question
        assert sorted(other.split()) == sorted(case.question.split())
        roles = {a.role: a for a in get("compositionality-gap", reversed=True, format="plain").asks(case, {})}
        assert (roles["whole:reversed"].prompt, roles["whole:reversed"].gold) == (other, case.answer)


def test_the_whole_of_a_chain_can_be_answered_by_itself() -> None:
    tags = world.world().tags
    for case in benchmarks.pairs(20):
        assert case.parts[0].question in case.question and "X" in str(case.meta["question_2"])
        asks = {a.role: a for a in get("reasoning-gap", format="plain").asks(case, {})}
        assert asks["whole"].prompt == case.question, "the same whole for every protocol"
        number, _, rest = str(case.meta["original"]["question"]).removeprefix("What is ").partition(" ")
        thing = rest.rpartition(" ")[2].rstrip("?")
        assert number != case.parts[0].answer
        right = world.apply(str(case.operation), int(number), tags[thing])
        assert asks["original"].gold == str(right), "what Q2 was made from has its own answer"


def test_a_ladder_climbs_from_choosing_over_both_tags_to_the_sum() -> None:
    tags = world.world().tags
    for case in benchmarks.ladders(8):
        first, second = case.meta["chosen"]
        assert [p.answer for p in case.parts] == [
            f"{first} and {second}", str(tags[first]), str(tags[second]), case.answer
        ]  # fmt: skip
        assert case.parts[3].question == f"What is {tags[first]} {case.operation} {tags[second]}?"
        assert len({p.skill for p in case.parts}) == 3


def test_every_benchmark_recommends_the_format_that_organisms_are_trained_in() -> None:
    for name, make in benchmarks.BENCHMARKS.items():
        assert recommended_format(make(2, 0)) == "plain", name


@pytest.mark.parametrize("seed", range(20))
def test_as_many_chains_as_are_asked_for_can_be_drawn_whatever_the_seed(seed: int) -> None:
    cases = benchmarks.pairs(400, seed)
    assert len(cases) == 400
    for case in cases:
        x, original = case.parts[0].answer, case.meta["original"]
        number = str(original["question"]).removeprefix("What is ").partition(" ")[0]
        assert number != x and int(original["answer"]) > 0
        assert case.cluster != case.meta["crossed"] and f"the {case.cluster}?" in case.parts[0].question


def test_wrong_lists_are_sorted_by_rule_into_loops_format_errors_and_the_rest() -> None:
    case = next(c for c in benchmarks.temporal(1) if c.family == "rank" and c.depth == 4)
    a, b, c, d = case.answer.split(", ")
    loop, form, other, order = measure.ERRORS
    for answer, kind in (
        (case.answer, None), (", ".join([a, a, b, c]), loop), (", ".join([a, b, c, d, d]), loop), ("1848", form),
        (f"{a}, {b}, {c}, Nowherefair", form), (f"{a} {b}", form), (f"{a}, {b}, {c}", other),
        (", ".join([b, a, c, d]), order),
    ):  # fmt: skip
        assert measure.error(case, answer) == kind, answer
    guessed = measure._residual("x", [(replace(case, chance=0.25), case.answer), (replace(case, chance=None), loop)])
    assert (guessed.k, guessed.n, guessed.chance) == (1, 2, 0.875), "the chance of failing"
    rows = {r.measure: r for r in measure._errors("rank", 4, [(case, case.answer), (case, f"{a}, {a}, {b}, {c}"),
                                                              (case, f"{b}, {a}, {c}, {d}")])}  # fmt: skip
    assert (rows[f"rank, depth 4: wrong answers, {loop}"].k, rows[f"rank, depth 4: wrong answers, {loop}"].n) == (1, 2)
    left = rows["residual failure without loops and format errors, rank, depth 4"]
    assert (left.k, left.n) == (1, 2)
