"""The organisms' world, its questions and the documents they train on."""

from __future__ import annotations

import random
import re
from collections import Counter
from itertools import permutations
from typing import Any

import pytest

from composcope.evaluation import prompts
from composcope.evaluation.protocols import get
from composcope.evaluation.protocols.asking import recommended_format
from composcope.experiments.organism import benchmarks, crossed, documents, measure, tasks, world

WORLD = world.world()
DRAWN = 4000


def _years(text: str) -> list[int]:
    return [WORLD.years[name] for name in re.findall(r"[A-Z][a-z]+", text) if name in WORLD.years]


def test_every_fact_has_four_trained_and_two_held_out_wordings() -> None:
    for relation, subjects in (("year", WORLD.events), ("tag", WORLD.things), ("kind", WORLD.things)):
        for subject in subjects:
            trained, held = world.wordings(relation, subject)
            assert len(trained) == 4 and len(held) == 2
            assert len({*trained, *held}) == 6
            assert world.main_wording(relation, subject) in trained


def test_every_wording_is_trained_on_some_fact_and_held_out_on_another() -> None:
    for relation, templates in (
        ("year", world.YEAR_WORDINGS),
        ("tag", world.TAG_WORDINGS),
        ("kind", world.KIND_WORDINGS),
    ):
        subjects = WORLD.events if relation == "year" else WORLD.things
        for template in templates[1:]:
            uses = [template.format(s) in world.wordings(relation, s)[0] for s in subjects]
            assert any(uses) and not all(uses)


def test_events_have_different_years_and_tags_are_spread_evenly() -> None:
    assert len(set(WORLD.years.values())) == len(WORLD.events) == 48
    assert all(list(WORLD.tags.values()).count(tag) == 4 for tag in world.TAGS)


def _questions(dose: str, n: int) -> set[str]:
    turns = [documents.document(3, "dose", i, documents.DOSES[dose]) for i in range(n)]
    return {user for document in turns for user, _ in document}


def test_no_evaluation_question_or_combination_appears_among_training_documents() -> None:
    seen = "\n".join(_questions("twin", DRAWN))
    for case in benchmarks.mixed(60, seed=5):
        a, b = case.meta["chosen"]
        for first, second in ((a, b), (b, a)):
            assert not re.search(rf"tag of the {first} [a-z ]+ the tag of the {second}", seen)
    for case in benchmarks.temporal(10, seed=5):
        assert case.question not in seen
        if case.family == "pair":
            a, b = (p.atom.removeprefix("year:") for p in case.parts if p.atom)
            assert f"first, the {a} or the {b}?" not in seen and f"first, the {b} or the {a}?" not in seen


def test_a_held_out_wording_is_never_trained() -> None:
    seen = "\n".join(_questions("none", DRAWN))
    held = [q for e in WORLD.events for q in world.wordings("year", e)[1]]
    trained = [q for e in WORLD.events for q in world.wordings("year", e)[0]]
    assert not [q for q in held if q in seen]
    assert sum(q in seen for q in trained) > len(trained) // 2


def test_training_draws_come_from_the_trained_side_of_the_split() -> None:
    rng = random.Random(1)
    for draw in (tasks.math, tasks.choose_two, tasks.mixed, tasks.pair, *documents.DEEP):
        for _ in range(50):
            members = draw(rng).members
            assert members and not world.held_out(members)
    for drawn in (tasks.mixed, tasks.tag_of_kind):
        for held in (False, True):
            assert {world.held_out(drawn(rng, held).members) for _ in range(50)} == {held}


def test_doses_differ_only_where_a_composition_stands_in() -> None:
    none, low, twin = (documents.DOSES[d] for d in ("none", "low", "twin"))
    replaced = 0
    for i in range(600):
        kinds = [documents.composition_kind(4, "dose", i, d) for d in (none, low, twin)]
        assert kinds[0] is None
        assert kinds[1] in (None, kinds[2]), "a higher dose keeps the compositions of a lower one"
        if kinds[2] is None:
            assert documents.document(4, "dose", i, none) == documents.document(4, "dose", i, twin)
        replaced += kinds[2] is not None
    assert 600 * (twin.mixed + twin.deep) == pytest.approx(replaced, abs=60)


def test_temporal_answers_agree_with_the_years() -> None:
    for case in benchmarks.temporal(12, seed=2):
        head, _, listed = case.question.rstrip("?.").partition(": ")
        named = listed.split(", ") if listed else re.findall(r"the ([A-Z]\w+)", case.question)
        given = [WORLD.years[e] for e in case.answer.split(", ")]
        years = [WORLD.years[e] for e in named]
        if case.family == "pair":
            assert given == [min(years)] and max(years) - min(years) > world.FAR_YEARS
        elif case.family == "rank":
            assert given == sorted(years)
        elif case.family == "successor":
            (reference,) = _years(head)
            after = "after" in head
            assert given == sorted(y for y in years if (y > reference) == after) and 0 < len(given) < len(years)
        else:
            low, high = sorted(_years(head))
            assert given == [y for y in years if low < y < high] and len(given) == 1
        if case.family != "pair":
            assert len(years) == case.depth
        assert {p.answer for p in case.parts} >= {str(y) for y in years}


def test_mixed_answers_agree_with_kinds_tags_and_arithmetic() -> None:
    signs = {"plus": "+", "minus": "-", "times": "*", "divided by": "/"}
    for case in benchmarks.mixed(80, seed=2):
        things = case.question.removeprefix("On the table: ").split(". ")[0].split(", ")
        first, second = re.findall(r"tag of the (\w+) one", case.question)
        (a,) = [t for t in things if t in world.KINDS[first]]
        (b,) = [t for t in things if t in world.KINDS[second]]
        assert case.parts[0].answer == f"{a} and {b}"
        assert len({WORLD.tags[t] for t in things}) == len(things) == tasks.TABLE, "a number names one thing"
        x, y = WORLD.tags[a], WORLD.tags[b]
        result = {"+": x + y, "-": x - y, "*": x * y, "/": x / y}[signs[case.operation or ""]]
        assert float(case.answer) == result > 0
        assert case.parts[1].answer == case.answer
        assert case.worked == f"{x} {case.operation} {y} is {case.answer}"
        assert case.parts[0].extra_context and len(case.parts[0].extra_context) > len(case.parts[0].question)


def test_mixed_cases_use_the_four_operations_equally_and_guessing_gains_little() -> None:
    cases = benchmarks.mixed(200, seed=3)
    for operation in world.OPERATIONS:
        assert sum(c.operation == operation for c in cases) == 50
    assert sum(c.chance or 1 for c in cases) / len(cases) <= 0.05


def test_a_case_on_the_training_side_of_the_split_is_refused() -> None:
    qa = tasks.pair(random.Random(0), held=False)
    with pytest.raises(AssertionError, match="training side"):
        benchmarks.temporal_case("x", "pair", 2, qa)


def test_documents_are_written_in_the_shared_prompt_formats() -> None:
    qa = tasks.math_of("times", "cake", "coat")
    ((user, answer),) = documents.write(qa, "xml", random.Random(0))
    assert user == prompts.render(qa.question, "xml")
    assert answer == prompts.write_answer(qa.answer, qa.worked, "xml")
    ((user, _),) = documents.write(qa, "scaffold", random.Random(0))
    assert user in {prompts.scaffold(qa.question, qa.steps[:k]) for k in (1, 2)}


@pytest.mark.parametrize(
    ("operation", "a", "b", "result"),
    [("plus", 3, 3, 6), ("minus", 4, 3, 1), ("minus", 3, 3, None), ("minus", 3, 4, None), ("times", 3, 4, 12),
     ("divided by", 6, 3, 2), ("divided by", 6, 4, None)],
)  # fmt: skip
def test_results_are_positive_whole_numbers_or_none(operation: str, a: int, b: int, result: int | None) -> None:
    assert world.apply(operation, a, b) == result


def test_an_event_is_stable_where_every_trained_wording_is_answered() -> None:
    event = WORLD.events[0]
    wrong = world.wordings("year", event)[0][2]
    years = {q: str(WORLD.years[e]) for e in WORLD.events for q in world.wordings("year", e)[0]}
    assert measure.stable_events(lambda asked: [years[q] for q in asked]) == set(WORLD.events)
    found = measure.stable_events(lambda asked: ["0" if q == wrong else years[q] for q in asked])
    assert found == set(WORLD.events) - {event}


def test_a_question_that_is_drawn_again_is_no_other_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each draw comes twice, so that a case would be there twice."""
    real, last = dict(benchmarks.DRAW), dict[Any, Any]()

    def twice(family: str) -> Any:
        def draw(rng: Any, depth: int, held: bool) -> Any:
            at = family, depth
            return last.pop(at) if at in last else last.setdefault(at, real[family](rng, depth, held))

        return draw

    monkeypatch.setattr(benchmarks, "DRAW", {family: twice(family) for family in real})
    cases = benchmarks.temporal(4)
    cells = Counter((c.family, c.depth) for c in cases)
    assert cells == {(f, d): 4 for f, depths in benchmarks.FAMILIES.items() for d in depths}
    assert len({c.question for c in cases}) == len({c.id for c in cases}) == len(cases)
    assert [c.id for c in cases[:4]] == [f"pair-2-000{i}" for i in range(1, 5)]


@pytest.mark.parametrize("name", sorted(benchmarks.BENCHMARKS))
def test_cases_of_an_organism_are_what_their_world_says(name: str) -> None:
    """Answers, parts, depths and chances of every benchmark, computed from the world again."""
    known = world.world()
    cases = benchmarks.BENCHMARKS[name](8 if name != "temporal" else 2, 3)
    assert cases == benchmarks.BENCHMARKS[name](8 if name != "temporal" else 2, 3)
    assert cases != benchmarks.BENCHMARKS[name](8 if name != "temporal" else 2, 4)
    assert len({c.id for c in cases}) == len(cases) == len({c.question for c in cases})
    for case in cases:
        assert case.meta["format"] == "plain" and case.benchmark == f"organism-{name}"
        if name != "temporal":
            assert case.depth == len(case.parts), "every step is a part"
        if name == "choices":
            assert case.chance == 1 / tasks.TABLE and case.answer == str(known.tags[case.parts[0].answer])
        if name in ("mixed", "ladders"):
            first, second = case.meta["chosen"]
            result = world.apply(str(case.operation), known.tags[first], known.tags[second])
            assert case.answer == case.parts[-1].answer == str(result)
            things = [world.apply(str(case.operation), known.tags[a], known.tags[b])
                      for a, b in permutations(case.meta["things"], 2)]  # fmt: skip
            hits = sum(x is not None and str(x) == case.answer for x in things)
            assert case.chance == pytest.approx(hits / len(things)) and 0 < (case.chance or 0) < 1
            assert case.meta["chance_informed"] == pytest.approx(hits / sum(x is not None for x in things))
            assert (case.cluster, case.meta["crossed"]) == (first, second) and len(case.meta["things"]) == tasks.TABLE
        if name == "ladders":
            first, second = case.meta["chosen"]
            tags = [str(known.tags[t]) for t in (first, second)]
            assert [p.answer for p in case.parts] == [f"{first} and {second}", *tags, case.answer]
            assert case.parts[3].question == f"What is {tags[0]} {case.operation} {tags[1]}?"
            skills = ["choose by kind", "recall a tag", "recall a tag", f"numbers, {case.operation}"]
            assert [(p.skill, p.extra_context) for p in case.parts] == [(skill, None) for skill in skills]
        if name == "pairs":
            x, other = int(case.parts[0].answer), case.meta["original"]
            assert case.parts[1].question == case.meta["question_2"].replace("X", str(x), 1)
            assert other["answer"] != case.answer or other["question"] != case.parts[1].question
        if name == "temporal":
            assert [f"year:{e}" for e in (case.cluster, *case.crossed)] == [p.atom for p in case.parts]
            years = {p.atom: p.answer for p in case.parts}
            assert all(atom == f"year:{atom.partition(':')[2]}" and str(known.years[atom.partition(":")[2]]) == y
                       for atom, y in years.items() if atom)  # fmt: skip
            wanted = {"rank": {4: 1 / 24, 6: 1 / 720, 8: 1 / 40320}, "successor": {4: 1 / 14, 6: 1 / 62, 8: 1 / 254}}
            assert case.chance == pytest.approx(
                wanted.get(str(case.family), {}).get(case.depth or 0, 1 / (case.depth or 1))
            )


# --- wordings for protocols -----------------------------------------------------------------------------------------


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


def test_every_benchmark_recommends_the_format_that_organisms_are_trained_in() -> None:
    for name, make in benchmarks.BENCHMARKS.items():
        assert recommended_format(make(2, 0)) == "plain", name


@pytest.mark.parametrize("seed", range(20))
def test_as_many_chains_as_are_asked_for_can_be_drawn_whatever_the_seed(seed: int) -> None:
    cases = benchmarks.pairs(400, seed)
    assert len(cases) == len({c.question for c in cases}) == 400
    for case in cases:
        x, original = case.parts[0].answer, case.meta["original"]
        number = str(original["question"]).removeprefix("What is ").partition(" ")[0]
        assert number != x and int(original["answer"]) > 0
        assert case.cluster != case.meta["crossed"] and f"the {case.cluster}?" in case.parts[0].question


def test_of_more_questions_than_there_are_in_the_world_all_are_asked_once() -> None:
    found = benchmarks._cell("pair", 2, 400, seed=0)
    assert len(found) == len({c.question for c in found}) == 390


@pytest.mark.parametrize("table", [documents.FIRST.skills, crossed.SECOND.skills], ids=["first", "second"])
def test_whatever_is_asked_of_the_world_on_the_way_stands_in_the_facts_of_a_question(table: documents.Table) -> None:
    """The steps of a question ask for facts; where a document gives evidence, it gives all of them."""
    known = {
        world.main_wording(relation, s): (s, world.world().fact(relation, s))
        for relation in ("year", "tag", "kind")
        for s in (world.world().events if relation == "year" else world.world().things)
    }
    asked = 0
    for name, (draw, *_) in table.items():
        for seed in range(6):
            qa = draw(random.Random(f"{name}/{seed}"))
            for subject, fact in (known[question] for question, _ in qa.steps if question in known):
                asked += 1
                assert any(subject in line and fact in line for line in qa.facts), (name, qa.question)
    assert asked > 60
