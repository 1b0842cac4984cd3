"""Shortcuts: what they predict, how an edit follows one, and which of them a run admits."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.cases import Case, Part
from composcope.experiments import plugins
from composcope.experiments.diagnosis import (
    asks,
    behaviour,
    evidence,
    following,
    hearing,
    hypotheses,
    rule,
    variants,
    weighing,
)
from composcope.experiments.diagnosis.evidence import Apart, Behaviour, Edit, Followed, Inside, Tally, behaviour_lines
from composcope.experiments.diagnosis.following import shortcuts
from composcope.experiments.diagnosis.job import _of_groups, behave
from composcope.experiments.organism import benchmarks, world
from composcope.experiments.run.diagnosis import Diagnosis

from .told import CHOICES, MIXED, OSLO, WORLD, answered, heard, wrote


def test_operands_have_changed_places_where_both_are_written_the_other_way_round() -> None:
    case = next(c for c in MIXED if len(set(asks.working(c.worked).values[:2])) == 2)
    first, second, *_ = (str(v) for v in asks.working(case.worked).values)
    same = replace(case, worked=str(case.worked).replace(first, second, 1))
    for one, operands, exchanged in ((case, (second, first), True), (case, (first, second), False),
                                     (case, (second, "998"), False), (same, (second, second), False)):  # fmt: skip
        assert behaviour.exchanged(heard(one, wrote(one, *operands))) == exchanged
    assert not behaviour.exchanged(heard(OSLO, {"whole": "krone"}))


def test_wrong_operands_with_the_value_of_the_other_one_are_counted_where_the_two_differ() -> None:
    case = next(c for c in MIXED if len(set(asks.working(c.worked).values[:2])) == 2)
    first, second, *_ = (str(v) for v in asks.working(case.worked).values)
    same = replace(case, worked=str(case.worked).replace(first, second, 1))
    for one, operands, count in (
        (case, (second, first), Tally(2, 2)), (case, (second, "998"), Tally(1, 2)), (case, (first, first), Tally(1, 1)),
        (case, (first, second), Tally(0, 0)), (same, ("998", "998"), Tally(0, 0)),
    ):  # fmt: skip
        assert behaviour._of_the_other([heard(one, wrote(one, *operands))]) == count
    told = [heard(case, wrote(case, second, "998"))] * 2
    group = {str(i): behaviour.behaviour(told, None) for i in range(3)}
    assert weighing.within(group)["0"].other_operands == Tally(6, 12)
    line = "wrong operands with the other operand's value: 2 of 4; in the cases weighed together 6 of 12"
    assert line in behaviour_lines(weighing.within(group)["0"])


def test_wrong_numbers_of_a_case_are_compared_with_the_items_of_other_cases() -> None:
    case, other = MIXED[0], MIXED[1]
    tags = [{str(world.world().tags[t]) for t in c.meta["things"]} for c in (case, other)]
    first, second, *_ = asks.working(case.worked).values
    here = next(t for t in tags[0] if t not in (first, second) and t in tags[1])
    told = {"a": [heard(case, wrote(case, here, "998"))], "b": [heard(other, wrote(other, "998", "998"))]}
    found = weighing.within({id: behaviour.behaviour(group) for id, group in told.items()})
    assert {(one.of_items, one.by_luck) for one in found.values()} == {(Tally(1, 4), 0.25)}
    said = "of the case: 1 of 2; in the cases weighed together 1 of 4 wrong ones, by luck 25 %"
    assert said in "\n".join(behaviour_lines(found["a"]))
    alone = weighing.within({"a": behaviour.behaviour(told["a"])})["a"]
    assert (alone.of_items, alone.by_luck) == (Tally(1, 2), None) and "not known by luck" in "\n".join(
        behaviour_lines(alone)
    )
    right = weighing.within({"a": behaviour.behaviour([heard(case, wrote(case, first, second))])})["a"]
    assert (right.of_items, right.by_luck) == (Tally(), 0.0), "right numbers say nothing"


@pytest.mark.parametrize(
    ("name", "places"),
    [("largest-item", (-1, -1)), ("smallest-item", (0, 0)), ("largest-items", (-1, -2)), ("smallest-items", (0, 1))],
)
def test_the_largest_and_the_smallest_tags_on_the_table_are_shortcuts(name: str, places: tuple[int, int]) -> None:
    for case in MIXED:
        first, *_, last = tags = [world.world().tags[thing] for thing in case.meta["things"]]
        assert hypotheses.HYPOTHESES["first-and-last-item"](case, MIXED) == (str(first), str(last))
        tags.sort()
        assert hypotheses.HYPOTHESES[name](case, MIXED) == tuple(str(tags[i]) for i in places)
    assert hypotheses.HYPOTHESES[name](OSLO, WORLD) == ()


@pytest.mark.parametrize(("place", "name"), [(0, "first-item"), (2, "item-3"), (-1, "last-item")])
def test_an_item_at_any_place_of_the_list_is_a_shortcut_where_its_own_part_has_the_answer(
    place: int, name: str
) -> None:
    items = CHOICES[0].question.partition(": ")[2].partition(".")[0].split(", ")
    tag = str(world.world().tags[items[place]])
    assert hypotheses.HYPOTHESES[name](CHOICES[0], []) == (tag,), "known to the organism's world"
    shelf = "On the shelf: ibis, mug, harp."
    steps = (Part(f"{shelf} Which sings?", "mug"), Part("What does the mug cost?", "6"))
    case = Case("c", f"{shelf} What does the one that sings cost?", "6", steps)
    asked = f"What does the {('ibis', 'mug', 'harp')[place]} cost?"
    part = {"question": asked, "answer": "9"}
    unread: list[object] = ["?", {"parts": 3}, {"parts": {"1": part}}, {"parts": []}, {"parts": ["?"]}, {"parts": [{}]}]
    for mate in (
        Case("m", "q", "9", (Part("?", "1"), Part(asked, "9"))),
        Case("m", "q", "9", meta={"variants": [*unread, {"question": "q", "parts": [{**part, "answer": "1"}, part]}]}),
    ):
        assert hypotheses.HYPOTHESES[name](case, [case, mate]) == ("9",)
    assert hypotheses.HYPOTHESES["item-12"](case, [case]) == ()


KITE, TAGS = world.KINDS["flying"], {t: str(n) for t, n in world.world().tags.items()}
ON_TABLE = f"On the table: tea, {KITE[0]}, oak."
CHOSEN = Part(f"{ON_TABLE} Which is the flying one?", KITE[0])
ONE_TAG = Case(
    "a", f"{ON_TABLE} What is the tag of the flying one?", TAGS[KITE[0]], (CHOSEN, CHOSEN), answer_type="number"
)
SUM = replace(
    ONE_TAG, question=f"{ON_TABLE} What is 30 plus the tag of the flying one?", worked=f"30 plus {TAGS[KITE[0]]} is 7"
)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sibling", TAGS[KITE[1]]), ("first-item", TAGS["tea"]), ("item-before", TAGS["tea"]),
        ("item-after", TAGS["oak"]), ("last-item", TAGS["oak"]),
    ],
)  # fmt: skip
def test_shortcuts_about_things_are_looked_for_in_any_case_that_lists_them(name: str, said: str) -> None:
    assert hypotheses.HYPOTHESES[name](ONE_TAG, [ONE_TAG]) == (said,)
    assert hypotheses.HYPOTHESES[name](SUM, [SUM]) == (None, said)
    assert hypotheses.HYPOTHESES[name](replace(ONE_TAG, question="What is the tag of the flying one?"), []) == ()
    assert hypotheses.HYPOTHESES[name](replace(SUM, worked="12 plus 7 is 19"), []) == (), "two numbers of one thing"


def test_a_list_with_an_unknown_thing_or_without_a_right_one_is_no_table() -> None:
    strange, two = ON_TABLE.replace("oak", "unicorn"), replace(CHOSEN, answer=f"{KITE[0]}, {KITE[1]}")
    assert hypotheses.shown(ONE_TAG) == (["tea", KITE[0], "oak"], [KITE[0]])
    for case in (replace(ONE_TAG, question=f"{strange} What is the tag?"), replace(ONE_TAG, parts=(two, CHOSEN))):
        assert hypotheses.shown(case) is None


def test_a_number_of_the_question_may_be_copied_into_a_working_and_is_then_the_source() -> None:
    assert hypotheses.HYPOTHESES["last-number"](SUM, [SUM]) == ("30", "30")
    assert hypotheses.copied_from("last-number", SUM, [SUM], 1) == "30"
    assert hypotheses.copied_from("first-item", SUM, [SUM], 1) == "tea"
    assert hypotheses.copied_from("last-number-then-first-item", SUM, [SUM], 1) == "tea"
    assert hypotheses.HYPOTHESES["last-number"](replace(SUM, answer_type="text"), []) == ()
    assert hypotheses.HYPOTHESES["last-number"](MIXED[0], MIXED) == ()
    in_order = hypotheses.HYPOTHESES["numbers-in-order"]
    three = replace(SUM, question="Out of 12 boxes, 7 are red and 3 are blue. How many are red or blue?")
    assert hypotheses.one_for_each(["last-number", "numbers-in-order"])(three, []) == ("3", "7")
    assert in_order(three, [three]) == ("12", "7") and in_order(replace(three, worked=None), [three]) == ()
    assert in_order(replace(SUM, question="Add 7 to it."), [SUM]) == () == in_order(MIXED[0], MIXED)
    assert hypotheses.copied_from("numbers-in-order", three, [three], 1) == "7"
    ends = [
        hypotheses.HYPOTHESES[f"{name}-number"](three, [three])[0] for name in ("first", "last", "largest", "smallest")
    ]
    assert ends == ["12", "3", "12", "3"]
    assert hypotheses.HYPOTHESES["largest-number"](replace(three, question="9 of 12, or 1.5?"), []) == ("12", "12")


def test_numbers_that_belong_to_no_thing_on_the_table_are_counted_in_any_case_that_lists_things() -> None:
    def written(case: Case, text: str) -> tuple[int, int]:
        given = {"whole:given:1": text.removeprefix("30")} if case is SUM else {}
        return behaviour.on_the_table(heard(case, {"whole": text, **given}))

    off = next(t for t in TAGS.values() if t not in (TAGS["tea"], TAGS[KITE[0]], TAGS["oak"]))
    assert written(ONE_TAG, TAGS["oak"]) == (1, 1) and written(ONE_TAG, off) == (0, 1)
    assert written(SUM, f"30 plus {TAGS['tea']} is 1") == (1, 1) and written(SUM, f"30 plus {off} is 1") == (0, 1)
    assert written(OSLO, "krone") == (0, 0)


@pytest.mark.parametrize(
    ("said", "copy"),
    [
        ("The currency of the country whose capital is Oslo is Oslo.", True),
        ("Oslo is the currency of Norway.", True),
        ("Oslo is indeed the official currency in Norway.", True),
        ("Oslo is a currency.", True),
        ("Oslo.", True),
        ("Oslo is in Norway.", False),
        ("Oslo is the capital of Norway.", False),
        ("Oslo is a Norwegian-speaking currency area.", False),
        ("Oslo is known for its fjord.", False),
    ],
)
def test_a_sentence_about_the_entity_is_a_copy_of_it_only_where_it_names_what_is_asked_for(
    said: str, copy: bool
) -> None:
    name = "entity-asked-about"
    found = following.followed(name, hypotheses.HYPOTHESES[name], [heard(OSLO, {"whole": said})], WORLD)
    assert (found.telling, found.hits, found.own) == (1, int(copy), copy)


def test_a_shortcut_that_luck_would_follow_as_often_is_not_looked_for() -> None:
    one, other = answered("last-item"), answered("nothing")
    alone = behave({"a": one}, MIXED)["a"].shortcut
    assert alone is not None and alone.name == "last-item" and alone.run.k == alone.run.n >= 4
    found = behave({"a": one, "b": other, "c": other}, MIXED)
    assert [b.shortcut for b in found.values()] == [None] * 3
    both = behave({"a": one, "b": answered("last-item")}, MIXED)
    assert [b.shortcut.name for b in both.values() if b.shortcut] == ["last-item"] * 2


def at_places(case: Case, *places: int) -> list[str]:
    """The tags of the things at these places of a case's table."""
    return [str(world.world().tags[case.meta["things"][place]]) for place in places]


@pytest.mark.parametrize(
    ("places", "name"), [((3, 4), "item-4-then-item-5"), ((3, 3), "item-4"), ((0, 1), "first-items"), ((3, None), None)]
)
def test_each_operand_may_follow_a_shortcut_of_its_own(places: tuple[int, int | None], name: str | None) -> None:
    cases = benchmarks.mixed(40)
    run = {}
    for i, case in enumerate(cases):
        said = at_places(case, *(i % 6 if place is None else place for place in places))
        run[case.id] = [heard(case, wrote(case, *said))]
    found = behave(run, cases)
    names = {one.shortcut.name for one in found.values() if one.shortcut is not None}
    assert (name in names) if name else all("-then-" not in one for one in names)
    if name == "item-4-then-item-5":
        two = [one for one in found.values() if len(one.wrong_operands) == 2 and one.shortcut is not None]
        telling = [one.shortcut for one in two if one.shortcut is not None and one.shortcut.telling == 2]
        assert len(telling) > 10 and all(s.name == name and s.hits == 2 and s.own for s in telling)
        named = {rule.named(one) for one in two if one.shortcut and one.shortcut.telling == 2}
        assert named <= {f"shortcut:{name}", "format", None} and f"shortcut:{name}" in named
        assert [hypotheses.copied_from(name, cases[0], cases, i) for i in (0, 1)] == cases[0].meta["things"][3:5]
        assert following.luck(name, cases[0]) == following.luck("item-4", cases[0])


@pytest.mark.parametrize(
    ("own", "hits", "run", "follows"),
    [(True, 3, Tally(6, 18), True), (None, 3, Tally(6, 18), True), (False, 4, Tally(17, 20), False),
     (False, 3, Tally(18, 20), True), (False, 2, Tally(18, 20), False), (True, 2, Tally(20, 20), False)],
)  # fmt: skip
def test_most_edits_follow_a_shortcut_and_the_case_itself_unless_nearly_the_whole_run_does(
    own: bool | None, hits: int, run: Tally, follows: bool
) -> None:
    one = Behaviour(True, 5, 4, shortcut=Followed("item-4", hits, 5, own, run=run))
    assert rule.named(one) == ("shortcut:item-4" if follows else None)


def test_a_case_of_which_half_follows_a_shortcut_is_no_missing_bridge() -> None:
    assert not rule.half_followed(Behaviour(True, 4, 4, shortcut=Followed("item-4", 3, 8, True)))
    assert rule.half_followed(Behaviour(True, 4, 4, shortcut=Followed("item-4", 4, 8, True)))
    assert not rule.half_followed(Behaviour(True, 4, 4, shortcut=Followed("item-4", 1, 2, True)))


def copies(i: int, edits: int) -> list[asks.Heard]:
    """Cases that copy the last number of their question."""
    wholes = [replace(c, question=f"2 of 9 lie here. {c.question}") for c in CHOICES[i : i + edits]]
    return [heard(c, {"whole": "9"}) for c in wholes if c.answer != "9"]


def test_two_telling_edits_settle_a_shortcut_that_the_other_cases_of_the_run_follow() -> None:
    few = copies(0, 2)
    alone = behave({"few": few}, CHOICES)["few"]
    assert alone.shortcut is None and rule.named(alone) is None
    found = behave({"few": few, **{str(i): copies(4 * i, 4) for i in range(1, 5)}}, CHOICES)["few"]
    assert found.shortcut is not None and found.shortcut.telling == 2
    assert rule.named(found) == f"shortcut:{found.shortcut.name}"
    pairs = f"over the run, {found.shortcut.run} different pairs of right and predicted answer do"
    assert any(pairs in line for line in behaviour_lines(found))


def test_a_pair_of_right_and_predicted_answer_counts_once_over_a_run() -> None:
    def one(*edits: tuple[str, str, bool]) -> Followed:
        found = [Edit(right, said, hit, 0.2) for right, said, hit in edits]
        return Followed("x", sum(e.hit for e in found), len(found), edits=found)

    again = [one(("7", "3", True), ("7", "3", True)), one(("7", "3", False)), one(("7", "4", False), ("8", "3", True))]
    assert evidence.pairs(again) == Tally(2, 3)
    assert evidence.pairs([one(("7", "3", True)), one(("7", "3", False))]) == Tally(0, 1)  # in most of its edits
    same = [one(*[("7", "3", True)] * 2) for _ in range(9)]
    assert not following.beyond_luck(evidence.pairs(same), same), "one wrong answer to one right one, nine times"
    other = [one(*((str(i), str(j), True) for j in range(2))) for i in range(9)]
    assert following.beyond_luck(evidence.pairs(other), other)


@pytest.mark.parametrize("luck", [1 / 20, 1 / 5, 1 / 3, 1 / 2])
@pytest.mark.parametrize("n_cases", [1, 4, 12])
def test_luck_admits_at_most_one_of_a_hundred_shortcuts(luck: float, n_cases: int) -> None:
    rng, admitted = random.Random(f"{luck}/{n_cases}"), 0
    for _ in range(2000):
        cases = []
        for i in range(n_cases):
            hits = [rng.random() < luck for _ in range(rng.randint(1, 5))]
            edits = [Edit(f"{i}/{j}", "x", hit, luck) for j, hit in enumerate(hits)]
            cases.append(Followed("x", sum(hits), len(hits), edits=edits))
        admitted += following.beyond_luck(evidence.pairs(cases), cases)
    assert admitted <= 20


@pytest.mark.parametrize(
    ("followers", "of_one_edit", "admitted"), [(12, 0, True), (6, 0, True), (6, 30, True), (5, 0, False), (3, 0, False)]
)
def test_a_run_with_two_causes_admits_a_shortcut_that_only_some_of_its_cases_follow(
    followers: int, of_one_edit: int, admitted: bool
) -> None:
    cases = [Followed("x", 0, 1, edits=[Edit(f"one {i}", "x", False, 1 / 3)]) for i in range(of_one_edit)]
    for i in range(12):  # the luck of the run is the largest of its edits
        edits = [Edit(str(i // 2), str(j % 2), i < followers, 1 / 3 if i else 1 / 20) for j in range(4)]
        cases.append(Followed("x", sum(e.hit for e in edits), 4, edits=edits))
    assert evidence.pairs(cases).n == 12 + of_one_edit
    assert following.beyond_luck(evidence.pairs(cases), cases) == admitted


@pytest.mark.parametrize(
    ("name", "case", "luck"),
    [
        ("sibling", MIXED[0], 1 / 3),
        ("item-3", MIXED[0], 1 / 5),
        ("item-3", ONE_TAG, 1 / 2),  # three things on the table
        ("entity-asked-about", OSLO, 1 / 20),
        ("last-item", replace(OSLO, question="Which was first: the moot or the fair?"), 1),
        ("last-item", replace(OSLO, question="Which was first: the moot or the fair? Give its name."), 1),
        ("last-item", replace(OSLO, options=(("A", "x"), ("B", "y"), ("C", "z"), ("D", "u"))), 1 / 3),
        ("mine", OSLO, 1 / 5),
        (
            "first-number",
            replace(OSLO, question="Q1: Ann has 3 cats, and Bob has 4. How many?\nQ2: How many are X and 2?"),
            1 / 5,
        ),
    ],
)
def test_the_chance_to_follow_a_shortcut_by_luck_depends_on_the_answers_there_are(
    name: str, case: Case, luck: float
) -> None:
    assert following.luck(name, case) == pytest.approx(luck)


@pytest.mark.parametrize(
    ("case", "text", "entity", "hits"),
    [
        (OSLO, "The currency of the country whose capital is Oslo is Oslo.", "Oslo", 1),
        (OSLO, "Oslo", "Oslo", 1),
        (OSLO, "Oslo is the currency of Norway.", "Oslo", 1),
        (OSLO, "The currency of that country is called El Oslo.", "Oslo", 1),
        (OSLO, "The currency of Oslo is the dollar.", "Oslo", 0),
        (OSLO, "The currency of the country whose capital is Oslo is the dollar.", "Oslo", 0),
        (next(c for c in WORLD if "Santo Domingo" in c.question), "Santo Domingo.", "Santo Domingo", 1),
    ],
)
def test_the_entity_asked_about_is_a_shortcut_where_it_is_the_answer(
    case: Case, text: str, entity: str, hits: int
) -> None:
    say = hypotheses.HYPOTHESES["entity-asked-about"]
    assert say(case, WORLD) == (entity,)
    assert following.followed("x", say, [heard(case, {"whole": text})], WORLD)[:4] == ("x", hits, 1, hits == 1)
    assert not say(MIXED[2], MIXED)


def test_a_table_that_is_too_short_for_a_shortcut_says_nothing() -> None:
    """One thing on the table, and one operand: only what takes the first or the last thing of it has a value."""
    thing, tag = next(iter(world.world().tags.items()))
    parts = (Part("What is on the table?", thing), Part("What is its tag?", str(tag)))
    case = Case(
        "c", f"On the table: {thing}. What is its tag?", str(tag), parts, meta={"things": [thing], "chosen": [thing]}
    )
    assert hypotheses.shown(case) == ([thing], [thing])
    items = {name: say for name, say in hypotheses.HYPOTHESES.items() if "item" in name}
    first = {"first-item", "last-item", "first-items", "first-and-last-item", "largest-item", "smallest-item",
             "largest-items", "smallest-items"}  # fmt: skip
    assert {name: [*say(case, [case])] for name, say in items.items()} == {
        name: [str(tag)] * (name in first) for name in items
    }


def test_the_entity_asked_about_is_told_by_questions_of_its_own_family_alone() -> None:
    def case(name: str, question: str, family: str) -> Case:
        part = Part(question, "x")
        return Case(
            name, f"Where does the {question.removeprefix('Who is the ')[:-1]} live?", "y", (part,), family=family
        )

    ann, bob = (case(name, f"Who is the boss of {name}?", "work") for name in ("Ann Lee", "Bob"))
    cy = case("cy", "Who is the wife of Cy?", "home")
    say = hypotheses.HYPOTHESES["entity-asked-about"]
    assert say(ann, [ann, bob]) == say(ann, [ann, bob, cy]) == ("Ann Lee",) and say(ann, [ann, cy]) == ()
    assert say(replace(ann, question="Where does the boss live?"), [ann, bob]) == (), "the whole does not name it"


def test_the_usual_answer_is_that_of_the_family_and_the_best_shortcut_has_the_largest_share() -> None:
    mates = [Case(f"{a}{i}", "q", a, family=f) for f, a, n in (("f", "x", 3), ("f", "y", 2), ("g", "z", 9))
             for i in range(n)]  # fmt: skip
    assert hypotheses._usual(mates[-1], mates[:3]) == hypotheses._usual(mates[0], mates[-1:]) == ()
    assert hypotheses._usual(mates[0], mates) == ("x",)
    assert hypotheses._usual(mates[0], mates[1:]) == (), "x and y are as frequent"
    some = [Followed("many", 5, 9), Followed("all", 4, 4), Followed("none", 0, 9)]
    assert following.best(some) == some[1] and following.best(some[2:]) is None


@pytest.mark.parametrize("whatever", [True, False], ids=["one value per kind", "one value per right value"])
def test_a_value_that_a_model_gives_to_a_kind_whatever_is_right_is_the_usual_one(whatever: bool) -> None:
    cases, tags, kinds = benchmarks.mixed(24), world.TAGS, list(world.KINDS)

    def said(thing: str) -> str:  # the value never depends on the table, and it is no thing's most frequent one
        index = kinds.index(world.world().kinds[thing]) if whatever else tags.index(world.world().tags[thing])
        return str(tags[(index + 5) % len(tags)])

    run = {c.id: [heard(c, wrote(c, *map(said, c.meta["chosen"])))] for c in cases}
    shortcuts = [one.shortcut for one in behave(run, cases).values()]
    telling = [one for one in shortcuts if one is not None and one.name == "usual-of-kind"]
    assert len(telling) > 12 if whatever else not telling
    assert all(one.own and one.hits == one.telling for one in telling)
    assert not any(hypotheses.copied_from("usual-of-kind", c, cases, i) for c in cases for i in (0, 1)), "it is known"


def test_one_value_for_each_operand_whatever_is_asked_for_is_a_shortcut_and_not_one_of_a_kind() -> None:
    cases = benchmarks.mixed(24)
    run = {c.id: [heard(c, wrote(c, "998", "997"))] for c in cases}
    shortcuts = [one.shortcut for one in behave(run, cases).values()]
    assert all(one is not None and one.name == "usual-operand" and one.hits == one.telling == 2 for one in shortcuts)
    assert hypotheses.copied_from("usual-operand", cases[0], cases, 0) is None


def test_the_runs_other_failing_cases_count_for_what_the_run_admits_and_get_no_evidence_themselves() -> None:
    cases = benchmarks.mixed(24)
    run = {c.id: [heard(c, wrote(c, "998", "997"))] for c in cases}
    some, others = dict([*run.items()][:3]), {id: run[id] for id in [*run][3:]}
    alone, with_others = (behave(some, cases, followed=shortcuts(some, cases, more)) for more in ({}, others))
    assert {one.shortcut for one in alone.values()} == {None}, "three cases are too few"
    assert [*with_others] == [*some]
    assert all(one.shortcut is not None and one.shortcut.name == "usual-operand" for one in with_others.values())
    *rows, last = (row for [one] in run.values() for row in one.grades.values())
    asking = SimpleNamespace(temperature=0.0)
    data: Any = SimpleNamespace(config=SimpleNamespace(asking=asking), protocol="", graded=rows, asks={}, responses={})
    data.graded = [replace(row, outcome="correct") if row.case == last.case else row for row in (*rows, last)]
    assert [*hearing.heard_in_run(data, cases, some)] == [*others][:-1], "those that fail and are not asked again"
    asking.temperature = 0.5
    assert hearing.heard_in_run(data, cases, some) == {}, "drawn answers are none of the likeliest ones"


def test_a_second_number_counts_without_a_forced_one_only_where_the_first_is_right() -> None:
    case = MIXED[0]
    first, second, _ = asks.working(case.worked).values
    for written, expected in ((first, "997"), ("998", None)):
        one = heard(case, {"whole": f" {written} {case.operation} 997 is 1"})
        assert (one.next_value(0)[0], one.next_value(1)[0]) == (written, expected)
    forced = heard(
        case, {"whole": f" {first} {case.operation} 997 is 1", "whole:given:1": f" {case.operation} {second}"}
    )
    assert forced.next_value(1)[0] == second


def test_a_shortcut_of_one_group_of_cases_is_found_where_the_other_group_hides_it() -> None:
    cases = benchmarks.mixed(48)
    follow = [c for i, c in enumerate(cases) if i % 4 == 0]

    def said(case: Case) -> dict[str, str]:
        right = asks.working(case.worked).values
        wrong = [str(900 + (int(v) * 7 + cases.index(case)) % 90) for v in right[:2]]
        return wrote(case, *(("998", "997") if case in follow else wrong))

    run = {c.id: [heard(c, said(c))] for c in cases}
    found = behave(run, cases)
    assert not any(one.shortcut for one in found.values())
    groups = [frozenset(c.id for c in cases if (c in follow) == side) for side in (True, False)]
    opened = {id: Inside(apart=Apart("skip:decision:2", some, 48)) for some in groups for id in some}
    again = _of_groups(found, opened, run, cases)
    assert {id for id in again if again[id].shortcut} == groups[0]
    assert {one.shortcut.name for one in again.values() if one.shortcut} == {"usual-operand"}
    evidence = ["\n".join(behaviour_lines(one)) for one in again.values() if one.shortcut]
    assert all("over its group" in lines and "over the run, " not in lines for lines in evidence)
    for some in groups:  # and only their own answers say whether the model reaches any item
        written = [found[id].from_case for id in some]
        expected = Tally(sum(t.k for t in written), sum(t.n for t in written))
        assert {again[id].from_cases for id in some} == {expected} and expected.n
        assert {again[id].asked_in_run for id in some} == {found[id].asked_in_run for id in run}
    opened = {id: Inside() for id in groups[1]}
    assert {one.from_cases.n for one in _of_groups(found, opened, run, cases).values()} == {
        sum(found[id].from_case.n for id in groups[1])
    }


@pytest.mark.parametrize("same", [True, False])
def test_one_sum_that_is_written_whatever_operation_is_asked_for_is_no_usual_value(same: bool) -> None:
    cases, constant = benchmarks.mixed(24), {"whole": "998 plus 997 is 1995"}
    assert len({c.operation for c in cases}) > 1
    run = {c.id: [heard(c, constant if same else wrote(c, "998", "997"))] for c in cases}
    assert following.one_sentence([one for group in run.values() for one in group]) is same
    names = {one.shortcut.name if one.shortcut else None for one in behave(run, cases).values()}
    assert names == {None if same else "usual-operand"}
    few = [heard(c, constant if i % 5 < 3 else wrote(c, str(i), "997")) for i, c in enumerate(cases)]
    assert not following.one_sentence(few), "three of five"
    alike = [c for c in cases if c.operation == cases[0].operation]
    assert not following.one_sentence([heard(c, constant) for c in alike]), "one operation"


@pytest.mark.parametrize(
    "name", ["usual-operand", "operand-before", "operand-after", "item-3-then-operand-before", "item-3"]
)
def test_only_what_a_model_without_a_cause_falls_into_needs_nearly_the_whole_run(name: str) -> None:
    assert following.of_whole_run(name, Tally(9, 10))
    assert following.of_whole_run(name, Tally(17, 19)) == (name == "item-3")


def test_a_repeated_operand_is_no_shortcut_where_a_third_of_the_cases_says_something_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = [c for c in benchmarks.mixed(24) if len(set(asks.working(c.worked).values[:2])) == 2]
    run: dict[str, list[asks.Heard]] = {}
    for i, case in enumerate(cases):  # every third case writes something else as its second operand
        values = [str(v) for v in asks.working(case.worked).values]
        second = str(900 + i) if i % 3 == 0 else values[0]
        run[case.id] = [heard(case, wrote(case, values[0], second))]

    def named() -> bool:
        return any(
            one.shortcut is not None and one.shortcut.name == "operand-before" for one in behave(run, cases).values()
        )

    assert not named()
    monkeypatch.setattr(following, "of_whole_run", lambda name, run: True)
    assert named(), "luck alone would admit it"


def test_an_operand_with_the_value_of_the_other_is_a_shortcut_unless_the_two_have_changed_places() -> None:
    cases = [c for c in benchmarks.mixed(24) if len(set(asks.working(c.worked).values[:2])) == 2]

    def found(first: int, second: int) -> list[Followed | None]:
        def said(c: Case) -> list[asks.Heard]:
            values = asks.working(c.worked).values
            return [heard(c, wrote(c, str(values[first]), str(values[second])))]

        return [one.shortcut for one in behave({c.id: said(c) for c in cases}, cases).values()]

    for name, same in (("operand-before", 0), ("operand-after", 1)):
        assert hypotheses.HYPOTHESES[name](OSLO, WORLD) == ()
        assert all(one is not None and one.name == name and one.hits == 1 for one in found(same, same))
        assert not any(one is not None and one.name == name for one in found(1, 0))


def test_operands_that_have_changed_places_follow_no_shortcut_to_which_one_of_them_happens_to_belong() -> None:
    case = next(c for c in MIXED if len(set(asks.working(c.worked).values[:2])) == 2)
    first, second, *_ = map(str, asks.working(case.worked).values)

    def shortcut(case: Case, mates: Sequence[Case]) -> tuple[str, None]:
        return second, None

    for operands, hits in (((second, "998"), 1), ((second, first), 0)):
        one = following.followed("x", shortcut, [heard(case, wrote(case, *operands))], MIXED)
        assert (one.hits, one.telling) == (hits, 1)


def test_a_variant_with_fewer_operands_says_nothing_of_a_later_one() -> None:
    part = Part("How much?", "9", answer_type="number")
    three, one = (Case(worked, f"{worked}?", worked[-1], (part,), worked=worked, answer_type="number")
                  for worked in ("1 plus 2 plus 3 is 6", "4 is 4"))  # fmt: skip
    texts = {"whole": "1 plus 2 plus 9 is 12", "whole:given:2": " plus 9 is 12"}
    some = [heard(three, texts), heard(one, {"whole": "5 is 5", "whole:given:1": " is 9"})]
    found = following.followed("x", lambda case, mates: ("7", "8", "9"), some, [], [2])
    assert (found.hits, found.telling) == (1, 1)
    seen = behaviour.behaviour([some[0], some[0], some[1]])
    assert (seen.wrong_operands, seen.other_operand) == ([2], Tally()), "each of two has another one"
    forced = {"whole:given:1": " plus 2 plus 3 is 9", "whole:given:2": " plus 3 is 9", "whole:given:3": " is 9"}
    seen = behaviour.behaviour([heard(three, {"whole": "1 plus 2 plus 3 is 9"} | forced)])
    assert (seen.operation_wrong, seen.other_operation) == (Tally(1, 1), Tally(0, 1)), "other operations are of two"


def test_an_answer_that_is_given_whatever_is_right_is_the_usual_answer_of_its_family() -> None:
    every = [c for c in WORLD if c.family == OSLO.family]
    run = {c.id: [heard(c, {"whole": "Gold."})] for c in every[:12]}
    found = behave(run, WORLD)[every[0].id].shortcut
    assert found is not None and found[:4] == ("usual-answer", 1, 1, True) and found.run.k == found.run.n >= 8
    silent = {**run, every[12].id: [heard(every[12], {"whole": " "})]}
    still = behave(silent, WORLD)[every[0].id].shortcut
    assert still is not None and still[:4] == found[:4], "an empty answer says no value"
    two = {id: [heard(one.case, {"whole": ("Gold.", "Silver.")[i % 2]})] for i, (id, [one]) in enumerate(run.items())}
    assert not any(one.shortcut for one in behave(two, WORLD).values())


def test_what_a_model_says_to_a_case_and_its_own_variants_is_no_usual_answer_of_this_case() -> None:
    first, *more = [c for c in WORLD if c.family == OSLO.family]
    of = {**first.meta, "variant_of": first.id}
    own = [replace(first, id=f"{first.id}~{i}", answer=c.answer, meta=of) for i, c in enumerate(more[:3], 1)]
    every = [heard(c, {"whole": "Gold."}) for c in (first, *own)] + [heard(more[4], {"whole": "Silver."})]
    said = following.most_said(every)
    assert said(first, ()) == ("silver",) == said(own[0], ()) and said(more[5], ()) == ("gold",)
    tied = [heard(c, {"whole": text}) for c, text in zip(more[:4], ("Gold.", "Silver.") * 2, strict=False)]
    assert following.most_said(tied)(first, ()) == () and following.most_said(tied[:3])(first, ()) == ("gold",)


def test_a_question_that_is_a_variant_of_several_cases_counts_once_among_what_is_said() -> None:
    first, shared, *more = {c.answer: c for c in WORLD if c.family == OSLO.family}.values()
    copies = [replace(shared, id=f"{c.id}~1", meta={**shared.meta, "variant_of": c.id}) for c in more[:3]]
    every = [heard(c, {"whole": "Gold."}) for c in (shared, *copies)]
    every += [heard(c, {"whole": "Silver."}) for c in more[3:5]]
    assert following.most_said(every)(first, ()) == ("silver",)
    cases = benchmarks.mixed(24)
    sums = [heard(c, {"whole": f"{i} plus 997 is {997 + i}"}) for i, c in enumerate(cases[:3])]
    constant = [heard(c, {"whole": "998 plus 997 is 1995"}) for c in (*cases[3:6], *cases[3:6])]
    assert len({c.operation for c in cases[3:6]}) > 1 and not following.one_sentence([*sums, *constant])


def test_the_only_case_of_its_kind_follows_an_admitted_usual_value_by_its_own_variants() -> None:
    cases, kinds = benchmarks.mixed(40), world.world().kinds
    alone = next(c for c in cases if any(v.case.answer != c.answer for v in variants.of(c, [])))
    of_alone = {kinds[t] for t in alone.meta["chosen"]}
    rest = [c for c in cases if not of_alone & {kinds[t] for t in c.meta["chosen"]}]

    def group(case: Case, say: Callable[[str], str]) -> list[asks.Heard]:
        made = variants.of(case, [])
        texts = [wrote(v.case, *(say(t) for t in v.case.meta["chosen"])) for v in made]
        return [replace(heard(v.case, t), variant=v) for v, t in zip(made, texts, strict=True)]

    fixed = {kind: str(900 + i) for i, kind in enumerate(world.KINDS)}
    rng = random.Random(0)
    for say, follows in ((lambda t: fixed[kinds[t]], True), (lambda t: str(rng.randrange(500, 899)), False)):
        run = {c.id: group(c, lambda t: fixed[kinds[t]]) for c in rest} | {alone.id: group(alone, say)}
        found = behave(run, cases)
        usual = [found[c.id].shortcut for c in rest]
        assert sum(one is not None and one.name == "usual-of-kind" for one in usual) > len(rest) / 2
        one = found[alone.id].shortcut
        assert (one is not None and one.name == "usual-of-kind" and rule.follows(one)) is follows
    by_itself = behave({alone.id: group(alone, lambda t: fixed[kinds[t]])}, cases)
    assert by_itself[alone.id].shortcut is None, "no run admits it"


def test_right_answers_do_not_hide_the_wrong_one_that_is_said_most_often() -> None:
    first, *more = [c for c in WORLD if c.family == OSLO.family]
    usual = Counter(c.answer for c in more).most_common(1)[0][0]
    right = [c for c in more if c.answer == usual]
    every = [heard(c, {"whole": c.answer}) for c in right] + [heard(more[0], {"whole": "Gold."})]
    assert len(right) > 1 and more[0].answer != first.answer != usual
    assert following.most_said(every)(first, ()) == ("gold",)


def test_an_edit_that_a_shortcut_answers_rightly_tells_nothing() -> None:
    group = [heard(OSLO, {"whole": "The dollar."})]
    assert following.followed("x", lambda case, mates: (case.answer.upper(),), group, WORLD)[:3] == ("x", 0, 0)
    assert following.followed("x", lambda case, mates: (None,), group, WORLD)[:3] == ("x", 0, 0)


def test_a_shortcut_of_a_plugin_is_looked_for_and_what_it_returns_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hypotheses.HYPOTHESES, "added", {})
    monkeypatch.setattr(hypotheses.HYPOTHESES, "_given", {})
    path = tmp_path / "mine.py"
    path.write_text("HYPOTHESES = {'says-dollar': lambda c, mates: 'dollar', 'says-one': lambda c, mates: 1}\n")
    assert plugins.load_plugin(path) == {"HYPOTHESES": ("says-dollar", "says-one")}
    one = heard(OSLO, {"whole": "The dollar."})
    with pytest.raises(InputError, match=r"HYPOTHESES\['says-one'\] on case 'capital-currency-oslo': 1;"):
        behave({"oslo": [one]}, WORLD)
    del hypotheses.HYPOTHESES.added["says-one"]
    path.with_name("raises.py").write_text("HYPOTHESES = {'raises': lambda c, mates: {}['oops']}\n")
    plugins.load_plugin(path.with_name("raises.py"))
    with pytest.raises(InputError, match=r"raises\.py: HYPOTHESES\['raises'\] on case .*KeyError"):
        behave({"oslo": [one]}, WORLD)
    del hypotheses.HYPOTHESES.added["raises"]
    every = [c for c in WORLD if c.family == OSLO.family][:4]
    assert len({c.answer for c in every}) == 4
    run = {c.id: [heard(c, {"whole": "The dollar."})] for c in every}
    found = behave(run, WORLD)[every[0].id].shortcut
    assert found is not None and found[:4] == ("says-dollar", 1, 1, True) and found.run == Tally(4, 4)
    hypotheses.HYPOTHESES.added["says-euro"] = lambda case, mates: ("euro",)
    hypotheses.HYPOTHESES.added["says-nothing"] = lambda case, mates: ()
    tried = {row["name"]: row for row in shortcuts(run, WORLD).rows()}
    own = {name: (row["count"], row["n"], row["admitted"]) for name, row in tried.items() if row["own"]}
    told_apart = sum(c.answer != "euro" for c in every)
    assert own == {"says-dollar": (4, 4, True), "says-euro": (0, told_apart, False), "says-nothing": (0, 0, False)}
    assert tried["entity-asked-about"]["n"] == 4 and not tried["entity-asked-about"]["own"]
    printed = " ".join(Diagnosis(tmp_path, [], [], {"hypotheses": [*tried.values()]}).lines())
    assert "says-dollar: 4 of 4" in printed and "says-nothing" in printed and "entity-asked-about" not in printed
