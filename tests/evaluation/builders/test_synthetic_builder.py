"""In-context families: every answer is derived again from the evidence alone, by a reader that sees only the text."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.builders import synthetic
from composcope.evaluation.cases import Case

CASES = synthetic.build()


def _evidence(case: Case) -> list[str]:
    return [re.sub(r"^\[Evidence \d+\] ", "", e).rstrip(".") for e in case.evidence]


def _solve_kinship(case: Case) -> str:
    parent = {}
    for fact in _evidence(case):
        if m := re.fullmatch(r"(\w+) is the (mother|father) of (\w+)", fact):
            parent[m[2], m[3]] = m[1]
    *path, person = re.sub(r"^Who is |\?$", "", case.question).split(" of ")
    for kind in reversed(path):
        person = parent[kind.removeprefix("the "), person]
    return person


def _solve_numerical(case: Case) -> str:
    amount: dict[str, int] = {}
    steps = []
    for fact in _evidence(case):
        if m := re.fullmatch(r"(\w+) has (\d+) \w+", fact):
            amount[m[1]] = int(m[2])
        elif m := re.fullmatch(r"(\w+) has (\d+) (more|fewer) \w+ than (\w+)", fact):
            steps.append((m[1], int(m[2]) if m[3] == "more" else -int(m[2]), m[4]))
    while any(name not in amount for name, _, _ in steps):
        for name, step, other in steps:
            if other in amount:
                amount[name] = amount[other] + step
    if m := re.match(r"How many \w+ does (\w+) have", case.question):
        return str(amount[m[1]])
    listed = [n for n in amount if re.search(rf"\b{n}\b", case.question)]
    if case.question.startswith("Order"):
        return ", ".join(sorted(listed, key=lambda n: amount[n]))
    return (max if "the most" in case.question else min)(listed, key=lambda n: amount[n])


def _solve_spatial(case: Case) -> str:
    if m := re.match(r"In which town is (.*)\?", case.question):
        pairs = (fact.split(" is in ") for fact in _evidence(case))
        inside = {re.sub("^The ", "the ", a): b for a, b in pairs}
        place = m[1]
        while place in inside:
            place = inside[place]
        return place
    m = re.match(r"Going (\w+) from (\w+), which town is reached after (\d+)", case.question)
    assert m
    following = {}
    for fact in _evidence(case):
        b, direction, a = re.fullmatch(r"(\w+) is the next town (\w+) of (\w+)", fact).groups()  # type: ignore[union-attr]
        following.setdefault((direction, a), b)
    place = m[2]
    for _ in range(int(m[3])):
        place = following[m[1], place]
    return place


SOLVERS = {"kinship": _solve_kinship, "numerical": _solve_numerical, "spatial": _solve_spatial}


def test_answers_follow_from_the_evidence_alone() -> None:
    for case in synthetic.build(per_cell=40, seed=7):
        assert SOLVERS[case.family or ""](case) == case.answer, case


def test_the_default_has_the_papers_number_of_cases() -> None:
    assert len(CASES) == 165 and len({c.id for c in CASES}) == 165
    assert Counter(c.family for c in CASES) == {"kinship": 55, "numerical": 55, "spatial": 55}


def test_every_part_is_one_fact_of_the_evidence() -> None:
    for case in CASES:
        assert len(case.parts) == case.depth
        assert len(case.evidence) == len(case.parts) + 4
        for part in case.parts:
            assert any(part.answer in fact for fact in case.evidence)
            assert part.paraphrases == () and part.atom is None


def test_evidence_is_numbered_in_a_random_order() -> None:
    assert all(e.startswith(f"[Evidence {i}] ") for c in CASES for i, e in enumerate(c.evidence, 1))
    first = [c.parts[0].answer in c.evidence[0] for c in CASES]
    assert 0 < sum(first) < len(first) / 2


def test_answers_are_not_given_away_by_the_question_and_chances_are_probabilities() -> None:
    for case in CASES:
        assert case.chance is not None and 0 < case.chance <= 0.5
        if case.operation in ("order", "max", "min"):
            n = len(case.parts)
            assert case.chance == pytest.approx(1 / (math.factorial(n) if case.operation == "order" else n))
        if case.operation in ("ancestor", "containment", "adjacency", "offset"):
            assert not re.search(rf"\b{re.escape(case.answer)}\b", case.question)


def test_all_operations_occur() -> None:
    assert {c.operation for c in CASES} == {"ancestor", "offset", "max", "min", "order", "containment", "adjacency"}


def test_nobody_has_fewer_than_one() -> None:
    fewest: Any = SimpleNamespace(randint=lambda low, high: high if high < 10 else low, random=lambda: 0.9)
    assert synthetic._offsets("ABCD", "", "coins", fewest).worked == "A has 20; B has 11; C has 2; D has 11."


def test_seeds_decide_everything() -> None:
    assert synthetic.build(seed=0) == CASES
    assert synthetic.build(seed=1) != CASES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"families": ("kin",)}, "'kin' is unknown"),
        ({"depths": (1,)}, "2 to 9"),
        ({"depths": (9, 10)}, "2 to 9"),
        ({"distractors": -1}, "0 or more"),
        ({"distractors": 12}, "at most 11"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        synthetic.build(**options)


@pytest.mark.parametrize("idle", [0, 3, 6])
def test_guessing_in_a_made_up_world_is_right_as_often_as_there_are_answers(idle: int) -> None:
    for seed in range(12):
        for depth in (2, 4, 9):
            made = {f: synthetic.FAMILIES[f](depth, random.Random(seed), idle) for f in synthetic.FAMILIES}
            kin = made["kinship"]
            names = {w.strip(".") for f in (*kin.chain, *kin.distractors) for w in f.split() if w[0].isupper()}
            assert kin.n_choices == len(names) - 1 and len(kin.distractors) == idle
            assert [p.answer for p in kin.parts][-1] == kin.answer and len(kin.chain) == depth
            place = made["spatial"]
            assert place.n_choices == (1 + idle if place.operation == "containment" else depth + idle)
            number = made["numerical"]
            wanted = {"offset": 100, "max": depth, "min": depth, "order": math.factorial(depth)}
            assert number.n_choices == wanted[number.operation] and len(number.distractors) == idle
            if number.operation == "offset":
                amounts = [int(w.split(" has ")[1].strip(".")) for w in number.worked.split("; ")]
                assert all(2 <= abs(b - a) <= 9 for a, b in pairwise(amounts)) and str(amounts[-1]) == number.answer
                assert min(amounts) > 0
                words = [f.split() for f in number.chain[1:]]
                assert [b - a for a, b in pairwise(amounts)] == [
                    int(w[2]) * (1 if w[3] == "more" else -1) for w in words
                ]
