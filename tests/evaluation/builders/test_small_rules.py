"""Rules of the builders, each with values found in another way: what is drawn, what guessing gives, what is asked."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.builders import classification, synthetic, temporal
from composcope.evaluation.builders.temporal import FAMILIES, DrawnFacts


def _fact(name: str, years: float) -> Any:
    return SimpleNamespace(id=name, event=f"event {name}", date=str(int(years)), years=years, unknowable=False)


FACTS = [_fact(c, 1000 + 10 * i) for i, c in enumerate("abcdefghijklmnopqrstuvwx")]
YEARS = {f.event: f.years for f in FACTS}


def _drawn(family: str, depth: int, seed: int, gap: float = 2.0) -> tuple[DrawnFacts, Any]:
    rng = random.Random(seed)
    facts = rng.sample(FACTS, len(FACTS))
    drawn = FAMILIES[family].draw(facts, depth, rng, gap)
    assert drawn is not None
    return drawn, FAMILIES[family].word(drawn, rng, False)


SHAPES: dict[str, tuple[int, int, float]] = {
    "temporal_rank": (4, 0, 1 / 24), "temporal_successor": (4, 1, 1 / 14), "temporal_interval_decoy": (4, 2, 1 / 4),
    "pair_far_control": (2, 0, 0.5), "event_betweenness": (3, 0, 0.5), "timeline_binding": (4, 0, 1 / 4),
    "nearest_binding": (3, 1, 1 / 3), "overlapping_intervals": (0, 4, 0.5), "constrained_ranking": (3, 1, 1 / (6 + 6)),
}  # fmt: skip
"""Options, bounds and the chance of a guess at depth 4."""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_kind_of_question_draws_its_facts_apart_and_is_guessed_as_often_as_it_says(family: str) -> None:
    for seed in range(20):
        drawn, wording = _drawn(family, 4, seed)
        n_options, n_bounds, chance = SHAPES[family]
        assert (len(drawn.options), len(drawn.bounds)) == (n_options, n_bounds) and FAMILIES[
            family
        ].n_bounds == n_bounds
        chosen = [*drawn.options, *drawn.bounds]
        assert len({f.id for f in chosen}) == len(chosen)
        apart = 50 if family == "pair_far_control" else 2
        assert all(abs(a.years - b.years) > apart - 1e-6 for i, a in enumerate(chosen) for b in chosen[:i])
        assert wording.chance == pytest.approx(chance)
        assert wording.anchor in chosen and all(f.event in wording.question for f in chosen)


def _right(family: str, drawn: DrawnFacts, question: str) -> str:
    """The answer by the dates alone."""
    letters = {chr(65 + i): f for i, f in enumerate(drawn.options)}
    by_year = sorted(letters, key=lambda k: letters[k].years)
    bounds = sorted(b.years for b in drawn.bounds)
    if family == "temporal_rank":
        return ", ".join(by_year)
    if family == "pair_far_control":
        return by_year[0] if "first" in question else by_year[-1]
    if family == "temporal_successor":
        after = "after" in question.split(" event ")[0] or " happened after " in question
        return ", ".join(k for k in letters if (letters[k].years > bounds[0]) == after)
    if family == "temporal_interval_decoy":
        return ", ".join(k for k in letters if bounds[0] < letters[k].years < bounds[1])
    if family == "nearest_binding":
        return min(letters, key=lambda k: abs(letters[k].years - bounds[0]))
    if family == "constrained_ranking":
        return ", ".join(k for k in by_year if letters[k].years > bounds[0])
    if family == "timeline_binding":
        return next(k for k in letters if f"belongs to {letters[k].date} " in question)
    if family == "event_betweenness":
        middle, *outer = (YEARS[e] for e in (question.split("Did ")[1].split(" happen")[0],
                                             question.split("between ")[1].split(" and ")[0],
                                             question.split(" and ")[1].split("?")[0]))  # fmt: skip
        return "yes" if min(outer) < middle < max(outer) else "no"
    (a, c, b, d) = (f.years for f in drawn.bounds)
    return "yes" if a < d and b < c else "no"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_answer_to_a_question_about_time_is_that_of_the_dates(family: str) -> None:
    answers = set()
    for seed in range(40):
        drawn, wording = _drawn(family, 4, seed)
        assert wording.answer == _right(family, drawn, wording.question), (seed, wording.question)
        answers.add(wording.answer)
        if wording.answer_type != "boolean":
            names = {chr(65 + i): f.event for i, f in enumerate(drawn.options)}
            named = [names[k] for k in wording.answer.split(", ")]
            assert "; ".join(named) in wording.aliases and wording.worked.endswith(f"So: {wording.answer}")
    assert len(answers) > 1, "not always the same"


def test_two_intervals_overlap_about_every_second_time_and_one_event_lies_between_the_bounds() -> None:
    said = [_drawn("overlapping_intervals", 4, seed)[1].answer for seed in range(80)]
    assert 25 < said.count("yes") < 55
    for seed in range(20):
        drawn, wording = _drawn("temporal_interval_decoy", 6, seed)
        low, high = sorted(b.years for b in drawn.bounds)
        assert sum(low < f.years < high for f in drawn.options) == 1 and len(drawn.options) == 6
        drawn, wording = _drawn("constrained_ranking", 5, seed)
        assert sum(f.years > drawn.bounds[0].years for f in drawn.options) >= 2
        drawn, wording = _drawn("temporal_successor", 4, seed)
        sides = {f.years > drawn.bounds[0].years for f in drawn.options}
        assert sides == {True, False}, "some before and some after"
        assert wording


def test_facts_too_close_to_each_other_are_not_compared() -> None:
    close = [_fact(c, 1000 + i) for i, c in enumerate("abcd")]
    assert temporal._first_spread(close, 2, 2.0) == (close[0], close[2])
    assert temporal._first_spread(close, 3, 2.0) is None and temporal._first_spread(close, 2, 3.0) == (
        close[0],
        close[3],
    )


def _memberships(tmp_path: Path, *pairs: tuple[str, str], **more: Any) -> list[classification.Membership]:
    file = tmp_path / "m.jsonl"
    file.write_text(
        "".join(json.dumps({"member": m, "class": c, "paraphrases": ["Which?"], **more}) + "\n" for m, c in pairs)
    )
    return classification.read_memberships(file)


def test_chains_go_up_one_class_at_a_time_and_end_in_the_class_of_their_last_step(tmp_path: Path) -> None:
    pairs = [
        ("rex", "dog"),
        ("dog", "mammal"),
        ("Mammal", "animal"),
        ("animal", "being"),
        ("tom", "cat"),
        ("cat", "mammal"),
    ]
    known = _memberships(tmp_path, *pairs, aliases="thing")
    cases = classification.build(known, (2, 3), 3, 0)
    up = {m.casefold(): c for m, c in pairs}
    for case in cases:
        start = case.parts[0].worked.split(":")[0]  # type: ignore[union-attr]
        steps = [up[start.casefold()]]
        while len(steps) < (case.depth or 0):
            steps.append(up[steps[-1].casefold()])
        assert [p.answer for p in case.parts] == steps and case.answer == steps[-1]
        assert case.question.count("the class") == case.depth and case.aliases == ("thing",)
        assert case.cluster == case.parts[-1].atom and case.chance == 1 / 5
    assert [c.depth for c in cases] == [2] * 3 + [3] * 3 and len({c.id for c in cases}) == 6
    assert classification.build(known, (2, 3), 3, 0) == cases
    with pytest.raises(InputError, match="make 5 chains of 2 steps, 6 are asked for"):
        classification.build(known, (2,), 6)
    with pytest.raises(InputError, match="at least 2"):
        classification.build(known, (1,), 1)


@pytest.mark.parametrize(
    ("pairs", "said"), [((("a", "b"), ("A", "c")), "two classes"), ((("a", "b"), ("b", "C"), ("c", "a")), "circle")]
)
def test_memberships_without_one_answer_are_refused(pairs: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        _memberships(tmp_path, *pairs)


@pytest.mark.parametrize("idle", [0, 3, 6])
def test_guessing_in_a_made_up_world_is_right_as_often_as_there_are_answers(idle: int) -> None:
    for seed in range(12):
        for depth in (2, 4):
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
                words = [f.split() for f in number.chain[1:]]
                assert [b - a for a, b in pairwise(amounts)] == [
                    int(w[2]) * (1 if w[3] == "more" else -1) for w in words
                ]
