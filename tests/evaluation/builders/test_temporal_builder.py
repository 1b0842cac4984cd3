"""Temporal benchmarks built from made-up facts: published counts, and answers checked against the dates."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.builders import temporal
from composcope.evaluation.builders.facts import Fact, read_facts
from composcope.evaluation.builders.temporal import FAMILIES, DrawnFacts
from composcope.evaluation.cases import Case
from composcope.evaluation.grading import dates
from composcope.evaluation.grading.grade import grade


def _facts(n: int, step: int = 7, start: int = -60) -> list[Fact]:
    years = [y for y in range(start, start + (n + 1) * step, step) if y][:n]
    return [
        Fact(
            id=f"f{i}",
            event=f"the founding of town {i}",
            date=dates.show(dates.Date(year)),
            when=(year, 0, 0),
            paraphrases=tuple(f"Wording {w} of {i}?" for w in range(4)),
            question=f"When was town {i} founded?",
            unknowable=i == n - 1,
        )
        for i, year in enumerate(years)
    ]


FACTS = _facts(79)
YEARS = {f.event: f.years for f in FACTS}
CASES = temporal.build(FACTS)


def _named(case: Case) -> dict[str, float]:
    """Option letters with the years of their events, read back from the question."""
    return {m[1]: YEARS[m[2]] for m in re.finditer(r"\(([A-Z])\) (the founding of town \d+)", case.question)}


def test_seventy_nine_facts_in_four_wordings_give_the_published_counts() -> None:
    shape = temporal.shape(CASES)
    assert (shape["cases"], shape["sub_questions"], shape["atoms"], shape["probes"]) == (390, 2490, 79, 316)
    assert shape["rows"] == 3196
    assert set(shape["cells"].values()) == {30} and len(shape["cells"]) == 13
    assert shape["depth_bins"] == {2: 30, 4: 120, 6: 120, 8: 120}
    assert len({c.id for c in CASES}) == 390


def test_gated_boundaries_add_their_atoms_and_hide_their_dates() -> None:
    gated = temporal.build(FACTS, gate_boundaries=True)
    assert temporal.shape(gated)["sub_questions"] == 2490 + 90 * 1 + 180 * 2
    (one,) = [c for c in gated if c.id == "temporal_interval_decoy-d11-000"]
    assert (len(one.parts), one.depth, one.depth_bin) == (13, 11, 8)
    assert [p.atom for p in one.parts[-2:]] == one.meta["bounds"]
    assert not [c.question for c in gated if re.search(r"\(\d+( BC)?\)", c.question)]
    shown = [c for c in CASES if c.family == "temporal_interval_decoy"]
    assert all(re.search(r"between .* \(\d+( BC)?\) and .* \(\d+( BC)?\)\?", c.question) for c in shown)


def test_answers_follow_from_the_dates() -> None:
    for case in CASES:
        years, right = _named(case), case.answer.split(", ")
        assert len(years) == case.depth and len(case.parts) == case.depth
        bounds = [YEARS[f"the founding of town {b[1:]}"] for b in case.meta.get("bounds", [])]
        if case.family == "temporal_rank":
            assert right == sorted(years, key=lambda k: years[k])
        elif case.family == "temporal_successor":
            after = " after " in case.question
            assert right == [k for k in years if (years[k] > bounds[0]) == after]
            assert 0 < len(right) < len(years)
        elif case.family == "temporal_interval_decoy":
            assert right == [k for k in years if bounds[0] < years[k] < bounds[1]] and len(right) == 1
        else:
            pick = min if "first" in case.question else max
            assert right == [pick(years, key=lambda k: years[k])]
            assert abs(years["A"] - years["B"]) > 50
    before, after = _facts(2, step=1, start=-1)
    assert (before.when[0], after.when[0]) == (-1, 1) and after.years - before.years == 1, "there is no year 0"


def test_events_by_name_are_accepted_answers() -> None:
    for case in CASES[::17]:
        for text in (case.answer, *case.aliases):
            assert grade(text, "stop", case.answer, case.answer_type, aliases=case.aliases).outcome == "correct"
    rank = CASES[0]
    wrong = ", ".join(reversed(rank.answer.split(", ")))
    assert grade(wrong, "stop", rank.answer, rank.answer_type, aliases=rank.aliases).outcome == "incorrect"


def test_facts_are_used_about_equally_and_no_case_comes_twice() -> None:
    uses = Counter(p.atom for c in CASES for p in c.parts)
    assert len(uses) == 79 and max(uses.values()) < 2.5 * min(uses.values())
    keys = [(c.family, c.depth, frozenset(p.atom for p in c.parts), tuple(c.meta.get("bounds", []))) for c in CASES]
    assert len(set(keys)) == len(keys)


def test_positions_of_right_answers_are_not_predictable() -> None:
    first = Counter(c.answer[0] for c in CASES if c.family == "temporal_interval_decoy" and c.depth == 4)
    assert set(first) == set("ABCD") and max(first.values()) < 20


def test_seeds_decide_everything() -> None:
    assert temporal.build(FACTS, seed=0) == CASES
    assert temporal.build(FACTS, seed=1) != CASES


def test_cases_with_an_unknowable_fact_are_marked() -> None:
    marked = [c for c in CASES if c.unknowable]
    assert marked == [c for c in CASES if "town 78" in c.question], "also one that is a bound alone"
    assert any("f78" in c.meta.get("bounds", []) for c in marked)


def test_cross_domain_kinds_are_answered_by_the_dates_too() -> None:
    cases = temporal.build(FACTS, temporal.CROSS_DOMAIN, benchmark="cross")
    between = [c for c in cases if c.family == "event_betweenness"]
    for case in between:
        a, b, c = (YEARS[e] for e in re.findall(r"the founding of town \d+", case.question))
        assert case.answer == ("yes" if min(b, c) < a < max(b, c) else "no")
    assert 5 < sum(c.answer == "yes" for c in between) < 25
    for case in (c for c in cases if c.family == "timeline_binding"):
        date = re.search(r"belongs to (\d+(?: BC)?) on", case.question)
        assert date and [p.answer for p, k in zip(case.parts, "ABCDE", strict=False) if k == case.answer] == [date[1]]


def test_too_few_facts_say_so() -> None:
    with pytest.raises(
        InputError, match=r"8 facts do not make 30 different cases of temporal_rank at depth 8 \(made 1\)"
    ):
        temporal.build(_facts(8), [("temporal_rank", 8, 30)])
    with pytest.raises(InputError, match="family is 'rank'"):
        temporal.build(FACTS, [("rank", 4, 1)])
    with pytest.raises(InputError, match="30 options, which is more than letters"):
        temporal.build(_facts(30), [("temporal_rank", 30, 1)])
    close = _facts(20, step=1, start=1900)
    with pytest.raises(InputError, match="3 years apart"):
        temporal.build(close, [("temporal_rank", 8, 1)], min_gap=3)


def test_facts_are_read_from_json_lines_and_csv(tmp_path: Path) -> None:
    rows = [
        {"event": "the fall of Troy", "date": "1184 BC", "paraphrases": ["a?", "b?"]},
        {"id": "moon", "event": "the landing", "date": "1969-07-20", "paraphrases": ["c?", "d?"], "aliases": ["1969"]},
    ]
    lines = tmp_path / "facts.jsonl"
    lines.write_text("".join(json.dumps(r) + "\n" for r in rows))
    facts = read_facts(lines, paraphrases=2)
    assert [(f.id, f.when) for f in facts] == [("fact-001", (-1184, 0, 0)), ("moon", (1969, 7, 20))]
    assert facts[0].as_part().question == "In which year did this happen: the fall of Troy?"
    assert facts[1].question.startswith("On which date") and facts[1].aliases == ("1969",)
    table = tmp_path / "facts.csv"
    table.write_text("event,date,paraphrase_1,paraphrase_2\nthe fall of Troy,1184 BC,a?,b?\n")
    assert read_facts(table, paraphrases=2) == facts[:1]
    table.write_text("event,date,aliases,paraphrase_1\nthe landing,1969-07-20,July 1969,c?\n")
    assert read_facts(table)[0].aliases == ("July 1969",), "a text is one alias"
    lines.write_text(json.dumps({**rows[1], "aliases": [1969, "July 1969"]}))
    assert read_facts(lines)[0].aliases == ("1969", "July 1969"), "a number is an alias, too"
    table.write_text("event,date,aliases,paraphrase_1\nthe landing,13/02/1969,\"['1969', 'July 1969']\",c?\n")
    [landing] = read_facts(table)
    assert (landing.when, landing.aliases) == ((1969, 2, 13), ("1969", "July 1969"))
    lines.write_text(json.dumps({**rows[1], **dict.fromkeys(("id", "question", "aliases", "unknowable"), math.nan)}))
    [missing] = read_facts(lines)
    assert (missing.id, missing.question, missing.aliases) == ("fact-001", facts[1].question, ())
    every = {
        "id": "e", "event": "the end", "date": "July 1914", "paraphrases": ["When?"], "question": "The end came when?",
        "aliases": ["summer of 1914"], "unknowable": True,
    }  # fmt: skip
    lines.write_text(json.dumps(every) + "\n")
    wanted = Fact(
        "e", "the end", "July 1914", (1914, 7, 0), ("When?",), "The end came when?", ("summer of 1914",), True
    )
    assert read_facts(lines) == [wanted]
    part = wanted.as_part()
    assert [grade(said, "stop", part.answer, "date").outcome for said in ("July 1914", "August 1914", "1914")] == [
        "correct", "incorrect", "incorrect"
    ], "with its month"  # fmt: skip
    lines.write_text(json.dumps({k: v for k, v in every.items() if k != "question"}) + "\n")
    assert read_facts(lines)[0].question == "In which month did this happen: the end?"
    table.write_text("event,date,unknowable,paraphrase_1\nthe end,1914,TRUE,a?\nthe start,1913,no,b?\n")
    assert [f.unknowable for f in read_facts(table)] == [True, False]
    table.write_text("event,date,paraphrase_1,paraphrase_2\nthe end,1914,a?,\nthe start,1913,b?,c?\n")
    assert [f.paraphrases for f in read_facts(table)] == [("a?",), ("b?", "c?")]
    table.write_text("event,date,paraphrase_1\nthe end,02.03.1969,a?\n")
    assert [f.when for f in read_facts(table)] == [(1969, 3, 2)]  # points: the day comes first


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"event": "e", "date": "long ago", "paraphrases": ["a?"]}, "date is 'long ago'"),
        ({"event": "e", "date": "2005-06", "paraphrases": ["a?"]}, "date is '2005-06'"),
        (
            {"event": "e", "date": "02/03/1969", "paraphrases": ["a?"]},
            "'02/03/1969', which may be two dates; give 1969-03-02",
        ),
        ({"event": "e", "date": "1969-02-30", "paraphrases": ["a?"]}, "date is '1969-02-30'"),
        ({"event": "e", "year": "1914-1918", "paraphrases": ["a?"]}, "year is '1914-1918'"),
        ({"event": "e", "date": "1900", "paraphrases": ["a?", "a?"]}, "1 different paraphrases among 2"),
        ({"event": "e", "date": "1900"}, "0 different paraphrases"),
        ({"date": "1900", "paraphrases": ["a?"]}, "field 'event'"),
        ({"event": "e", "date": "1900", "paraphrases": "a?"}, "paraphrases is 'a?'"),
        ({"event": "e", "date": "1900", "paraphrases": ["a?", " "]}, "paraphrases is ['a?', ' ']"),
        ({"event": "e", "date": "1900", "paraphrases": ["a?"], "aliases": ["1900", "soon"]}, "aliases has 'soon'"),
        ({"event": "e", "date": "1900", "paraphrases": ["a?"], "aliases": [" "]}, "aliases is [' ']"),
        ({"id": "x", "event": "e", "date": "1900", "paraphrases": ["a?"]}, "facts.jsonl:1; ids are"),
        ({"event": "e", "date": "1900", "paraphrases": ["a?"], "unknowable": "perhaps"}, "unknowable is 'perhaps'"),
        ({"event": "e", "date": "1900", "paraphrases": ["a?"], "aliases": {"a": 1}}, "aliases is {'a': 1}"),
        ({"event": "other", "date": "1900", "paraphrases": ["a?"]}, "has the event 'other' of "),
    ],
)
def test_facts_that_cannot_be_used_name_the_place(tmp_path: Path, row: dict[str, object], message: str) -> None:
    good = {"id": "x", "event": "other", "date": "1800", "paraphrases": ["x?"]}
    path = tmp_path / "facts.jsonl"
    path.write_text(json.dumps(good) + "\n" + json.dumps(row) + "\n")
    with pytest.raises(InputError, match=re.escape(message)) as error:
        read_facts(path)
    assert str(error.value).startswith(f"{path}:2: ")


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
        assert (len(drawn.options), len(drawn.bounds), FAMILIES[family].n_bounds) == (n_options, n_bounds, n_bounds)
        chosen = [*drawn.options, *drawn.bounds]
        assert len({f.id for f in chosen}) == len(chosen)
        apart = 50 if family == "pair_far_control" else 2
        assert all(abs(a.years - b.years) > apart - 1e-6 for i, a in enumerate(chosen) for b in chosen[:i])
        assert wording.chance == pytest.approx(chance)
        assert wording.anchor in chosen and all(re.search(rf"{f.event}\b", wording.question) for f in chosen)


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
        return ", ".join(k for k in letters if (letters[k].years > bounds[0]) == (" after " in question))
    if family == "temporal_interval_decoy":
        return ", ".join(k for k in letters if bounds[0] < letters[k].years < bounds[1])
    if family == "nearest_binding":
        return min(letters, key=lambda k: abs(letters[k].years - bounds[0]))
    if family == "constrained_ranking":
        return ", ".join(k for k in by_year if letters[k].years > bounds[0])
    if family == "timeline_binding":
        return next(k for k in letters if f"belongs to {letters[k].date} " in question)
    if family == "event_betweenness":
        middle, *outer = (YEARS[e] for e in re.findall(r"the founding of town \d+", question))
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
    places = set()
    for seed in range(40):
        drawn, wording = _drawn("temporal_interval_decoy", 4, seed)
        places.add(sorted(f.years for f in drawn.options).index(drawn.options[ord(wording.answer) - 65].years))
    assert places == {0, 1, 2, 3}, "the right event is not always early"
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


def test_events_of_one_date_are_not_compared_whatever_gap_is_asked_for() -> None:
    twice = [replace(f, when=FACTS[i // 2].when, date=FACTS[i // 2].date) for i, f in enumerate(FACTS)]
    for case in temporal.build(twice, temporal.D4V2[:9], min_gap=0):
        dates_ = [p.answer for p in case.parts]
        assert len({*dates_}) == len(dates_), case.question


def test_facts_too_close_to_each_other_are_not_compared() -> None:
    close = _facts(4, step=1, start=1000)
    found = [temporal._first_spread(close, n, gap) for n, gap in ((2, 2.0), (3, 2.0), (2, 3.0))]
    assert found == [(close[0], close[2]), None, (close[0], close[3])]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_two_events_of_a_question_are_closer_than_graders_tell_apart_though_others_are(family: str) -> None:
    close = _facts(120, step=1, start=1000)
    for seed in range(20):
        rng = random.Random(seed)
        drawn = FAMILIES[family].draw(rng.sample(close, len(close)), 5, rng, 3.0)
        assert drawn is not None
        years = sorted(f.years for f in (*drawn.options, *drawn.bounds))
        assert all(b - a >= 3 for a, b in pairwise(years))
        if family == "nearest_binding":
            distances = sorted(abs(f.years - drawn.bounds[0].years) for f in drawn.options)
            assert distances[0] >= 3 and all(b - a >= 3 for a, b in pairwise(distances))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_kind_of_question_is_drawn_from_as_many_facts_as_it_shows_and_from_no_fewer(family: str) -> None:
    options, bounds, _ = SHAPES[family]
    apart = [replace(f, when=(3 ** (i + 4), 0, 0)) for i, f in enumerate(_facts(options + bounds))]
    draw, seeds = FAMILIES[family].draw, range(40)
    assert draw(apart, 4, random.Random(0), 1.0) is not None
    assert all(draw(apart[1:], 4, random.Random(seed), 1.0) is None for seed in seeds)
    assert all(draw(apart, 4, random.Random(seed), 1e6) is None for seed in seeds)
    assert draw([], 4, random.Random(0), 1.0) is None
