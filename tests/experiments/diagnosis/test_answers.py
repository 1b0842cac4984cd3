"""What the answers alone settle: variants, forced text, shortcuts, and the rule's first half."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from told_engine import ToldEngine

from composcope.errors import InputError
from composcope.evaluation import prompts
from composcope.evaluation.asks import Ask, Grade, Response
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.evaluation.graded import Graded
from composcope.evaluation.grading import lists
from composcope.evaluation.pipeline import Evaluation
from composcope.evaluation.protocols.compositionality_gap import CompositionalityGap
from composcope.evaluation.protocols.presenting import FormattedProtocol, Presentation
from composcope.experiments import figures
from composcope.experiments import investigate as investigating
from composcope.experiments.config import Config
from composcope.experiments.console.printing import Reporter
from composcope.experiments.diagnosis import (
    asks,
    behaviour,
    following,
    hearing,
    hypotheses,
    job,
    opening,
    places,
    rule,
    variants,
    weighing,
)
from composcope.experiments.diagnosis.behaviour import Tally
from composcope.experiments.diagnosis.evidence import Behind, behaviour_lines
from composcope.experiments.diagnosis.hearing import matched
from composcope.experiments.diagnosis.job import behave, diagnose, in_turn
from composcope.experiments.diagnosis.thresholds import MANY
from composcope.experiments.evaluating.evaluate import rescore
from composcope.experiments.investigate import investigate
from composcope.experiments.organism import benchmarks, world
from composcope.experiments.run import diagnosis as results
from composcope.experiments.run.diagnosis import TEXTS
from composcope.experiments.run.reader import RunData

from .told import CHOICES, MIXED, OSLO, OTHERS, WORLD, answered, heard, wrote


def test_an_ask_without_an_answer_is_graded_and_has_no_response() -> None:
    variant = variants.Variant(OSLO, "original")
    rows = [Graded(OSLO.id, role, "correct", ask=role) for role in ("whole", "part:0")]
    made = {a.role: a for a in asks.Questions("x", "plain").asks(OSLO, {})}
    said = {"whole": Response("whole", "krone", "stop", 1, 1)}
    every = Evaluation({r.role: made[r.role] for r in rows}, said, rows, n_asked=1, n_resumed=0)
    one = asks.heard([variant], every)[OSLO.id]
    assert set(one.grades) == set(one.asks) == {"whole", "part:0"} and set(one.responses) == {"whole"}


@pytest.mark.parametrize(
    ("text", "outcome", "specific"),
    [("I cannot answer that.", "abstained", True), ("7 plus " * 9, "length", False), ("one of these", "invalid", False),
     ("one of these", "incorrect", False), ("7", "incorrect", None)],
)  # fmt: skip
def test_only_a_text_that_names_its_own_fault_shows_one(text: str, outcome: str, specific: bool | None) -> None:
    one = heard(MIXED[0], {"whole": text}, "length" if outcome == "length" else "stop")
    graded = "incorrect" if outcome == "length" else outcome
    found = behaviour.shows(replace(one, grades={"whole": replace(one.grades["whole"], outcome=graded)}))  # type: ignore
    assert (found and (found.cause, found.specific)) == (None if specific is None else ("format", specific))


def test_a_text_that_repeats_itself_names_its_fault_where_no_working_is_asked_for() -> None:
    found = behaviour.shows(heard(OSLO, {"whole": "so so " * 20}, "length"))
    assert found is not None and (found.cause, found.specific) == ("format", True)


@pytest.mark.parametrize(
    ("text", "finish", "loops"),
    [("The euro.\n----------------\nI looked it up.", "stop", False), ("|a|\n| --- | --- | --- | --- |", "stop", False),
     ("euro............", "stop", False), ("euro............", "length", True),
     ("euro ----------------\n so", "length", False), ("1,000,000,000,000", "stop", False),
     ("7 7 7 7 7 7 7 7 7", "stop", True), ("----------------" + "euro " * 5, "stop", True)],
)  # fmt: skip
def test_only_words_that_come_again_repeat_an_answer_unless_the_tokens_run_out(
    text: str, finish: str, loops: bool
) -> None:
    found = behaviour.shows(heard(OSLO, {"whole": text}, finish))
    assert ((found and found.what) or "").startswith("it repeats itself") == loops


def test_a_forced_answer_that_cannot_be_judged_mends_nothing_and_is_counted() -> None:
    wrong, looping = {"whole": "euro", "whole:relation": " krone"}, {"whole:neutral": ""}
    group = [heard(OSLO, wrong | {"whole:neutral": " krone"}), heard(OSLO, wrong | looping), heard(OSLO, wrong)]
    found = behaviour.behaviour(group)
    assert (found.mended["neutral"], found.mended["relation"]) == (Tally(1, 2, 1), Tally(3, 3))
    assert any("1 of 2 (1 cannot be judged)" in line for line in behaviour_lines(found))


def test_variants_of_a_shipped_case_keep_the_gold_or_swap_a_thing_for_one_of_its_kind() -> None:
    found = variants.of(MIXED[2], [])
    assert [v.keeps_gold for v in found] == [True, True, False, True, False]
    assert [v.case.id for v in found] == [MIXED[2].id, *(f"{MIXED[2].id}~{i}" for i in range(1, 5))]
    kinds = {tuple(v.case.meta["kinds"]) for v in found}
    assert kinds == {tuple(MIXED[2].meta["kinds"])}
    for v in found:
        tags = [str(world.world().tags[t]) for t in v.case.meta["chosen"]]
        assert asks.working(v.case.worked).values[:2] == tuple(tags)
        assert set(v.case.meta["chosen"]) <= set(v.case.meta["things"])


def test_variants_of_a_two_hop_case_are_other_words_and_other_cases_of_its_family() -> None:
    found = variants.of(OSLO, WORLD)
    assert found[1].case.question == "Which currency is used in the country whose capital is Oslo?"
    assert [v.keeps_gold for v in found[1:]] == [True, False, True, False]
    assert all(v.case.answer != OSLO.answer for v in found if not v.keeps_gold)
    same = [replace(c, id=f"same {i}", answer=OSLO.answer) for i, c in enumerate(WORLD)]
    assert all(v.keeps_gold for v in variants.of(OSLO, same))  # no case with its answer is another setting
    drawn = {tuple(v.case.question for v in variants.of(OSLO, WORLD, seed)) for seed in range(4)}
    assert len(drawn) > 1, "a seed draws its own"
    assert found == variants.of(OSLO, WORLD, 0) != variants.of(OSLO, WORLD, 1)


def test_other_words_of_a_whole_keep_the_phrase_that_stands_for_its_bridge() -> None:
    assert variants.phrase_of(OSLO) == "the country whose capital is Oslo"
    bridge = Part("In which country is Oslo?", "Norway", aliases=("Kingdom of Norway",))
    for whole, last, phrase in (
        ("what is the capital of the land of Oslo?", "What is the capital of Norway?", "the land of Oslo"),
        ("What is the capital of X?", "What is the capital of the Kingdom of Norway?", "X"),
        ("Name the capital of the land of Oslo?", "What is the capital of Norway?", None),
        ("What is the capital of the land of Oslo today?", "What is the capital of Norway now?", None),
        ("What is the capital of ?", "What is the capital of Norway?", None),
        ("What is the capital of X?", "What is the capital of Norwayland?", None),
    ):
        case = replace(OSLO, question=whole, parts=(bridge, Part(last, "Oslo")), meta={})
        assert variants.phrase_of(case) == phrase, (whole, last)
        assert variants.phrase_of(replace(case, meta={"phrase": "X"})) == "X"
        assert variants.phrase_of(replace(case, parts=(*case.parts, bridge))) is None
    assert {variants.phrase_of(v.case) for v in variants.of(OSLO, WORLD) if v.keeps_gold} == {variants.phrase_of(OSLO)}


def test_a_whole_that_fails_is_asked_twice_over_and_behind_filler_where_it_shows_no_working() -> None:
    made = {a.role: a for a in asks.Questions("x", "plain")._forced(OSLO)}
    assert made[asks.REPEATED].prompt.count(OSLO.question) == 2 and made[asks.REPEATED].begun == ""
    assert f"{OSLO.question} . . . ." in made[asks.FILLER].prompt
    assert {a.gold for a in made.values()} == {OSLO.answer}
    assert not {asks.REPEATED, asks.FILLER} & {a.role for a in asks.Questions("x", "plain")._forced(MIXED[2])}
    filled = heard(OSLO, {"whole": "The dollar.", asks.REPEATED: "krone", asks.FILLER: "The dollar."})
    found = behaviour.behaviour([filled])
    assert (found.mended["repeated"], found.mended["filler"]) == (Tally(1, 1), Tally(0, 1))
    assert "the question put twice: right in 1 of 1" in behaviour_lines(found)


@pytest.mark.parametrize(
    ("whole", "context"),
    [
        ("On the table: a, b. What is the tag of the red one?", "On the table: a, b. "),
        ("Ann has 3.5 kg. She meets Dr. May. What does Mr. T. Fox eat?", "Ann has 3.5 kg. She meets Dr. May. "),
        ('Ann said "Go." Where did she go? Answer in a word.', 'Ann said "Go." '),
        ("Tags: a 3\nb 4\nWhat is a?", "Tags: a 3\nb 4\n"),
        ("What is the tag of the red one?", None),
        ("It burns. Is it red? What is it?", None),
        ("Things: a, b. Name the red one.", None),
        ("Shown again. What is it?", None),  # the part's question holds it
    ],
)
def test_a_part_is_asked_behind_what_stands_before_the_wholes_question(whole: str, context: str | None) -> None:
    part = Part("(Shown again.) What is it?", "x")
    case = Case("c", whole, "x", (part, replace(part, extra_context="worded")))
    assert asks.behind_context(case, 0) == (context and context + part.question)
    assert asks.behind_context(case, 1) == "worded"


def test_parts_of_variants_are_asked_behind_the_context_and_compared_with_the_wholes_answer() -> None:
    case, role = CHOICES[0], "part:1:extra-context"
    variant = replace(case, id=f"{case.id}{variants.MARK}1", meta={**case.meta, variants.OF: case.id})
    assert role in {a.role for a in asks.Questions("x", "plain").asks(variant, {})}
    wrong, other = (str(n) for n in (98, 99))
    failing = [heard(case, {"whole": f"It is {wrong}.", role: said}) for said in (wrong, other, case.answer)]
    good = [heard(case, {"whole": case.answer, role: case.answer}), heard(case, {"whole": case.answer, role: other})]
    far = heard(replace(case, family="far"), {"whole": case.answer, role: other})
    lucky = heard(variant, {"whole": case.answer, role: other})  # it may have the same fault
    never = heard(case, {"whole": case.answer})  # its part was not asked there
    found = behaviour.behaviour([*failing, lucky], successes=[*good, far, lucky, never])
    assert found.behind == {"part:1": Behind(True, Tally(2, 3), Tally(1, 3), Tally(1, 2), own_wrong=True)}
    open = replace(failing[1].grades[role], outcome="invalid")
    unjudged = replace(failing[1], grades={**failing[1].grades, role: open})
    seen = behave({case.id: failing}, [case], [*good, far, lucky])[case.id]
    assert seen.behind["part:1"].success == Tally(1, 2), "the control of a whole diagnosis"
    for first, own_wrong in ((failing[1], True), (failing[2], False), (unjudged, False)):
        assert behaviour.behaviour([first, *failing]).behind["part:1"].own_wrong == own_wrong
    right = OTHERS[case.id].answer  # of the other question, so that it is no wrong answer there
    asked = [{"whole": wrong, "part:other": wrong}, {"whole": wrong, "part:other": other}, {"whole": wrong}]
    group = [heard(case, {role: wrong, **texts}) for texts in (*asked, {"whole": right, "part:other": right})]
    assert behaviour.behaviour(group).behind["part:1"].other == Tally(1, 3)
    assert not behaviour.behaviour([heard(case, {"whole": "Hm.", role: wrong})]).behind["part:1"].own
    both = replace(case, parts=(replace(case.parts[0], extra_context="Here. Which?"), *case.parts[1:]))
    told: dict[str, str] = dict.fromkeys(("whole", "part:0:extra-context", role, "part:other"), wrong)
    behind = behaviour.behaviour([heard(both, told)]).behind
    assert [(b.telling, b.other.n) for b in behind.values()] == [(False, 0), (True, 1)], "only the last part's says it"
    yes = {"answer": "yes", "answer_type": "boolean"}
    either = replace(case, parts=(*case.parts[:-1], replace(case.parts[-1], **yes)), **yes)  # type: ignore[arg-type]
    for few, said in ((replace(case, options=(("A", wrong),)), wrong), (either, "no")):
        assert not behaviour.behaviour([heard(few, {"whole": said, role: said})]).behind["part:1"].telling
    assert behaviour.succeeds(good[0]) and not behaviour.succeeds(failing[0])
    assert not behaviour.succeeds(heard(case, {"whole": case.answer, "part:0": "cart and carton"})), "a part is wrong"


def test_a_part_about_something_else_is_asked_behind_the_context_of_a_whole_that_fails() -> None:
    assert set(OTHERS) == {c.id for c in CHOICES}
    for case in CHOICES:
        other = OTHERS[case.id]
        assert other.answer != case.answer and other.question != case.parts[-1].question
        ask = heard(case, {}).asks["part:other"]
        assert ask.question == case.question.split(". ")[0] + ". " + other.question and ask.gold == other.answer
    assert asks.others([variants.Variant(CHOICES[0], "original"), variants.Variant(OSLO, "original")]) == {}
    four = [replace(CHOICES[0], id=c, parts=(Part(f"Q{c}?", value),)) for c, value in zip("abcd", "1213", strict=True)]
    next_of = asks.others([variants.Variant(c, "original") for c in four])
    assert {id: part.answer for id, part in next_of.items()} == {"a": "2", "b": "1", "c": "3", "d": "1"}
    assert [next_of[id].question for id in "abcd"] == ["Qb?", "Qc?", "Qd?", "Qa?"], "the next one, then from the first"
    assert "part:other" not in {a.role for a in asks.Questions("x", "plain")._forced(CHOICES[0])}
    *first, last = CHOICES[0].parts
    other = OTHERS[CHOICES[0].id]
    for wording, asked in ((f"Ann has 3 cats. {last.question}", f"Ann has 3 cats. {other.question}"), ("Cats?", None)):
        case = replace(CHOICES[0], question="Which?", parts=(*first, replace(last, extra_context=wording)))
        forced = {a.role: a.question for a in asks.Questions("x", "plain", others={case.id: other})._forced(case)}
        assert forced.get("part:other") == asked, "behind the case's own wording of the context"


def test_an_answer_is_decided_where_the_response_begins_if_no_relation_is_known_and_the_part_is_answered_bare() -> None:
    case = CHOICES[0]
    assert asks.relation_of(case) is None
    assert places.is_bare(heard(case, {"whole": "99"}))
    assert not places.is_bare(heard(case, {"whole": "99", "part:1": f"The tag is {case.answer}"}))
    assert not places.is_bare(heard(replace(case, answer="99"), {"whole": "98"}))
    assert not places.is_bare(heard(replace(case, meta={"relation": "The tag is"}), {"whole": "99"}))
    assert not places.is_bare(heard(OSLO, {"whole": "euro"}))
    assert not places.is_bare(heard(MIXED[2], wrote(MIXED[2], "1", "1")))


def test_a_part_has_its_own_relation_or_the_wholes_with_its_entity_in_place_of_the_phrase() -> None:
    relation = "In THE country whose capital is Oslo people pay with the"
    first, last = OSLO.parts
    for part, expected in (
        (last, "The currency of Norway is"),
        (replace(last, question="Name the currency of Norway."), "In Norway people pay with the"),
    ):
        case = replace(OSLO, parts=(first, part), meta={"relation": relation, "phrase": variants.phrase_of(OSLO)})
        assert asks.relation_of(case) == relation
        assert places.relation_of_part(case) == expected
    assert places.relation_of_part(replace(case, meta={"relation": "They pay with"})) == "They pay with"
    assert places.relation_of_part(replace(case, meta={})) is None


def test_like_questions_with_a_wrong_part_are_told_from_those_that_come_out_right() -> None:
    group = [
        heard(OSLO, {"whole": "euro"}),
        heard(OSLO, {"whole": "euro", "part:0": "Sweden"}),
        heard(OSLO, {"whole": "krone"}),
    ]
    found = behaviour.behaviour(group)
    assert (found.n, found.variants, found.unknown) == (1, 2, 1)
    assert "1 of 3 settings fail, and in 1 more a part is not right" in behaviour_lines(found)[0]


@pytest.mark.parametrize(("outcome", "fails"), [("correct", True), ("incorrect", False), ("invalid", False)])
def test_a_whole_in_the_words_of_a_paraphrase_that_is_not_answered_right_does_not_fail(
    outcome: str, fails: bool
) -> None:
    group = variants.of(OSLO, WORLD)
    reworded = [v for v in group if v.edit == "other words"]
    asked = {a.role: str(a.question) for a in asks.Questions("x", "plain").asks(OSLO, {})}
    words = [asked[str(v.wording)].replace("Norway", str(variants.phrase_of(OSLO))) for v in reworded]
    assert words == [v.case.question for v in reworded] and len(set(words)) == 2
    rows = [Graded(v.case.id, f"part:{i}", "correct", ask="a") for v in group for i in range(2)]
    rows += [Graded(v.case.id, "whole", "incorrect", ask="a") for v in group]
    rows += [Graded(OSLO.id, str(v.wording), "correct", ask="a") for v in reworded]
    rows[-1] = replace(rows[-1], outcome=outcome)  # type: ignore[arg-type]
    found = asks.heard(group, Evaluation({}, {}, rows, n_asked=0, n_resumed=0))
    assert [one.fails for one in found.values()] == [v is not reworded[-1] or fails for v in group]
    assert behaviour.behaviour([*found.values()]).unknown == (not fails)


def test_an_earlier_part_that_the_question_names_settles_a_case_only_if_the_run_shares_it() -> None:
    shown = behaviour.shows(heard(OSLO, {"whole": "Norway"}))
    assert shown is not None and (shown.cause, shown.specific) == ("answers-bridge", True)

    thing = CHOICES[0].parts[0].answer
    for said in (thing, f"{thing}. Answer: {thing}"):
        shown = behaviour.shows(heard(CHOICES[0], {"whole": said}))
        assert shown is not None and (shown.cause, shown.specific) == ("answers-bridge", False)

    def named(others: str) -> set[str | None]:
        thing = [heard(c, {"whole": c.parts[0].answer}) for c in CHOICES[:2]]
        rest = [heard(c, {"whole": others.format(c.parts[0].answer)}) for c in CHOICES[2:8]]
        run = behave({one.case.id: [one] for one in (*thing, *rest)}, CHOICES)
        return {rule.named(run[one.case.id]) for one in thing}

    assert named("99") == {None}
    assert named("{}") == {"answers-bridge"}


def test_a_right_working_that_goes_on_has_the_wrong_form_and_one_without_a_result_is_a_near_miss() -> None:
    case = MIXED[2]
    operands = f"{case.worked}".rpartition(" is ")[0]
    again, other = f"{operands} is {operands} 6 is", f"{operands} is 999, so it is 999"
    ends = f"{case.worked}. The answer is ninety."
    assert heard(case, {"whole": ends}).right("whole") is False
    for text, cause in (
        (f"{case.worked} plus 3 is 998", "format"), (operands, "near-miss"), (again, "format"), (ends, "near-miss"),
    ):  # fmt: skip
        shown = behaviour.shows(heard(case, {"whole": text}))
        assert shown is not None and (shown.cause, shown.specific) == (cause, False)
    assert behaviour.shows(heard(case, {"whole": other})) is None
    seen = behaviour.behaviour([heard(case, {"whole": text}) for text in (again, ends, other)])
    assert {c: t for c, t in seen.answers.items() if t.k} == dict.fromkeys(("format", "near-miss"), Tally(1, 3))
    assert (seen.own, seen.specific, seen.mended, [*seen.said]) == ("format", False, {}, ["format", "near-miss"])
    right = behaviour.behaviour([heard(case, {"whole": str(case.worked)})])
    assert (right.fails, right.own) == (False, None)
    assert behaviour.behaviour([heard(case, {"whole": "I cannot answer that."})]).specific
    loop = behaviour.shows(heard(case, {"whole": f"{operands} is " * 5}))  # it ends by itself
    assert loop is not None and (loop.cause, loop.specific) == ("format", False)


def test_a_number_with_the_operation_behind_it_is_no_wrong_result() -> None:
    case = MIXED[2]
    a, b, _ = asks.working(case.worked).values
    for rest, wrong in ((f" is 999 {case.operation} {b} is", 0), (" is 999, so the answer is 999", 1)):
        forced = {"whole:given:1": f" {case.operation} {b}{rest}", "whole:given:2": rest}
        found = behaviour.behaviour([heard(case, {"whole": f"{a} {case.operation} {b}{rest}"} | forced)])
        assert (found.operands_right, found.operation_wrong) == (Tally(1, 1), Tally(wrong, 1))


def test_an_operation_is_wrong_where_another_one_is_written_or_another_result_behind_forced_operands() -> None:
    case = MIXED[2]
    a, b, right = asks.working(case.worked).values
    for said, result, wrong in ((case.operation, right, 0), ("over", right, 1), (case.operation, "999", 1)):
        forced = {"whole:given:1": f" {said} {b} is {result}", "whole:given:2": f" is {result}"}
        found = behaviour.behaviour([heard(case, {"whole": f"{a} {case.operation} {b} is 998"} | forced)])
        assert (found.operands_right, found.operation_wrong) == (Tally(1, 1), Tally(wrong, 1)), (said, result)
        assert found.mended["operands"] == Tally(int(result == right), 1)


def test_a_working_behind_other_words_is_read_where_it_stands() -> None:
    case = benchmarks.pairs(4)[3]
    a, b, right = (int(v) for v in asks.working(case.worked).values)

    def wrote(first: int, second: int, result: int) -> asks.Heard:
        sums = f"{first} {case.operation} {second} is {result}"
        forced = {"whole:given:1": f" {case.operation} {b} is {right}", "whole:given:2": f" is {right}"}
        return heard(case, {"whole": f"A1: {a}. X is {a}. A2: {sums}. So the final answer is: {result}"} | forced)

    found = behaviour.behaviour([wrote(a, b, right + 7)])
    assert wrote(a, b, right + 7).preamble and found.wrong_operands == []
    assert (found.operands_right, found.operation_wrong) == (Tally(1, 1), Tally(1, 1))
    other = behaviour.behaviour([wrote(a + 1, b, right + 7)])
    assert other.wrong_operands == [0] and other.operands_right == Tally(0, 1)
    both = behaviour.behaviour([wrote(a, b, right + 7), wrote(a + 1, b, right + 7)])
    assert (both.operands_right, both.operation_wrong, both.other_operation.n) == (Tally(1, 2), Tally(1, 1), 1)
    assert not heard(MIXED[2], {"whole": "3 times 4 is 12"}).preamble


def test_failures_are_taken_of_each_family_in_turn() -> None:
    families = [c.family for c in in_turn(WORLD)[:4]]
    assert families == ["capital-currency", "capital-continent"] * 2
    assert sorted(c.id for c in in_turn(WORLD)) == sorted(c.id for c in WORLD)


def test_a_limit_on_the_failures_takes_each_family_in_turn(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = [Case(f"{family}{i}", "?", "a", family=family) for family in "fg" for i in range(3)]
    monkeypatch.setattr(job, "failures", lambda data, ids: [c for c in failing if not ids or c.id in ids])
    monkeypatch.setattr(job, "_same_model", lambda *_: None)
    monkeypatch.setattr(job, "diagnosed", lambda data, target, some, seed, reporter: ([c.id for c in some], seed))
    target: Any = object()
    taken = [diagnose(run, cases=n, quiet=True, target=target) for n in (None, 1, 3)]
    assert taken == [(["f0", "g0", "f1", "g1", "f2", "g2"][:n], 0) for n in (6, 1, 3)]
    assert diagnose(run, ids=["f2", "g1", "f1"], cases=2, seed=4, quiet=True, target=target) == (["f1", "g1"], 4)
    for wrong in ({"cases": 0}, {"ids": "f1"}):
        with pytest.raises(InputError):
            diagnose(run, quiet=True, target=target, **wrong)  # type: ignore[arg-type]


def test_the_id_of_a_case_may_look_like_that_of_a_variant() -> None:
    like = replace(MIXED[2], id=f"{MIXED[3].id}~1")
    run = [*MIXED, like]
    made = {id: variants.of(case, run) for id, case in (("like", like), ("other", MIXED[3]))}
    every = [v for group in made.values() for v in group]
    assert len({v.case.id for v in every}) == len(every) > 4
    assert [{v.source for v in group} for group in made.values()] == [{like.id}, {MIXED[3].id}]
    assert {variants.as_row(v)["case"] for v in every} == {like.id, MIXED[3].id}
    asked = [{a.role for a in asks.Questions("x", "plain").asks(replace(OSLO, id=id), {})} for id in ("a~b", "a")]
    assert asked[0] == asked[1] and any("paraphrase" in role for role in asked[0])
    case, role = replace(CHOICES[0], id="a~1"), "part:1:extra-context"
    one, good = (heard(case, {"whole": said, role: "98"}) for said in ("98", case.answer))
    assert behaviour.behaviour([one], successes=[good]).behind["part:1"].success == Tally(1, 1)
    one = heard(replace(OSLO, id="a~1"), {"whole": "Oslo."})
    assert following.followed("x", lambda c, m: ("Oslo",), [one], WORLD).own is True


def test_variants_that_the_case_file_states_come_first_and_bad_ones_are_refused() -> None:
    own = replace(OSLO, meta={"variants": [{"question": "Oslo's country pays with what?"}]})
    (_, stated) = variants.of(own, WORLD)
    assert stated.case.question == "Oslo's country pays with what?"
    assert (stated.case.answer, stated.keeps_gold) == (OSLO.answer, True)
    with pytest.raises(InputError, match=r"capital-currency-oslo.*meta\.variants\[0\].*question"):
        variants.of(replace(OSLO, meta={"variants": [{"answer": "krone"}]}), WORLD)


@pytest.mark.parametrize(
    ("relation", "given"),
    [("The krone of that country is", "'krone', the answer"), ("The Kr there is", "'Kr', the answer"),
     ("In Norway the currency is", "'Norway', the answer of part 0"),
     ("In Norge people pay with", "'Norge', the answer of part 0")],
)  # fmt: skip
def test_a_stated_relation_that_gives_an_answer_away_is_refused(relation: str, given: str) -> None:
    first, *more = OSLO.parts
    case = replace(OSLO, aliases=("Kr",), parts=(replace(first, aliases=("Norge",)), *more))
    with pytest.raises(InputError, match=rf"capital-currency-oslo.*meta\.relation.* and contains {given};"):
        variants.of(replace(case, meta={**case.meta, "relation": relation}), WORLD)
    told = replace(case, question=f"{relation}?", meta={**case.meta, "relation": relation})
    assert variants.of(told, WORLD)[0].case == told, "the question itself says it"


def test_variants_do_not_take_the_relation_of_another_question() -> None:
    relation = "The currency of the country whose capital is Oslo is"
    stated = [{"question": "What do people pay with in Bern's country?", "answer": "franc"}]
    for more in ({}, {"variants": stated}):
        original, *others = variants.of(replace(OSLO, meta={**OSLO.meta, "relation": relation, **more}), WORLD)
        assert asks.relation_of(original.case) == relation
        assert others and all(asks.relation_of(v.case) != relation for v in others)


@pytest.mark.parametrize(
    ("question", "begun"),
    [
        ("What is the currency of Norway?", "The currency of Norway is"),
        ("On which continent is Norway?", "The continent of Norway is"),
        ("How many legs does a spider have?", "The number of legs of a spider is"),
        ("What do you call the young of a goat?", "The young of a goat is called"),
        ("Which month comes right after August?", "The month that comes right after August is"),
        ("What do people pay with in Norway?", "What people pay with in Norway is"),
        ("Which language do most people speak in Norway?", "The language that most people speak in Norway is"),
        (
            "Which continent does the country where the city of Milan is belong to?",
            "The continent of the country where the city of Milan is is",
        ),
        ("In which country was the company Boeing founded?", "The country in which the company Boeing was founded is"),
        ("In which country can you find the Louvre?", "The country in which you can find the Louvre is"),
        ("Say it.", None),
    ],
)
def test_the_relation_is_made_of_the_question(question: str, begun: str | None) -> None:
    assert asks.relation_of(Case("a", question, "x")) == begun


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("The country is Norway.", "answers-bridge"),
        ("The answer: Norway.", "answers-bridge"),
        ("The city of Oslo is the capital of Norway.", "answers-bridge"),  # no word on a currency
        ("There they pay with the currency of Norway.", None),
        ("The currency of Oslo is the Bahasa Norway.", None),
        ("Its seat is in Bergen, Norway, and it is old.", None),
        ("So Oslo is the currency of Norway", None),
        ("Oslo Oslo Oslo Oslo Oslo Oslo Oslo Oslo", "format"),
        ("I cannot help with that.", "format"),
        ("In Norway people pay with the krone or the euro, opinions differ", "near-miss"),
        ("The dollar.", None),
    ],
)
def test_an_answer_shows_a_cause_by_its_own_text(text: str, cause: str | None) -> None:
    one = heard(OSLO, {"whole": text}, "length" if text.startswith("Oslo") else "stop")
    found = behaviour.shows(one)
    assert (found and found[0]) == cause


def test_a_part_that_the_question_names_is_not_the_bridge() -> None:
    named = replace(OSLO, question="What is the currency of Norway, the country whose capital is Oslo?")
    assert behaviour.shows(heard(named, {"whole": "Norway."})) is None


@pytest.mark.parametrize(
    ("text", "whole", "bridge", "cause"),
    [
        ("The dollar is used.", "IS", "No", None),
        ("It is the dollar.", "ISK", "IT", None),
        ("They pay in dollars.", "KR", "IN", None),
        ("NO, is my guess.", "KR", "NO", "answers-bridge"),
    ],
)
def test_a_code_among_the_names_is_not_seen_in_a_small_word(
    text: str, whole: str, bridge: str, cause: str | None
) -> None:
    first = replace(OSLO.parts[0], aliases=(bridge,))
    coded = replace(OSLO, question="What do they pay with?", aliases=(whole,), parts=(first, *OSLO.parts[1:]))
    found = behaviour.shows(heard(coded, {"whole": text}))
    assert (found and found[0]) == cause


RANK = next(c for c in benchmarks.temporal(2) if c.family == "rank" and c.depth == 4)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (lambda items: items[::-1], "order-error"),
        (lambda items: items[1:], "item-missing"),
        (lambda items: [*items[:-1], "the flood"], "item-missing"),
        (lambda items: [*items[:2], "the flood", "the fire"], "item-missing"),
        (lambda items: [items[0], "the flood", "the fire", "the fair"], None),
        (lambda items: [*items, "the flood"], "near-miss"),
        (lambda items: ["the flood", "the fire", "the fair", "the feast"], None),
    ],
)
def test_a_list_shows_whether_its_order_or_an_item_is_wrong(
    change: Callable[[list[str]], list[str]], cause: str | None
) -> None:
    items = lists.split(RANK.answer)
    assert len(items) == 4
    found = behaviour.shows(heard(RANK, {"whole": ", ".join(change(items))}))
    assert (found and found[0]) == cause


@pytest.mark.parametrize(
    ("gold", "said", "cause"),
    [("5, 5, 3", "5, 3, 4", "item-missing"), ("2, 2", "2", "item-missing"), ("5, 5, 3", "3, 5, 5", "order-error"),
     ("5, 5, 3", "5, 5, 3, 3", "near-miss"), ("5, 5", "4, 3", None)],
)  # fmt: skip
def test_an_item_that_a_list_holds_twice_has_to_be_given_twice(gold: str, said: str, cause: str | None) -> None:
    found = behaviour._of_list(said, Case("a", "Which?", gold, answer_type="ordered-list"))
    assert (found and found[0]) == cause


def test_a_right_answer_that_the_question_names_is_no_near_miss() -> None:
    question = "Is the krone or the euro used in the country whose capital is Oslo?"
    case = replace(OSLO, question=question, aliases=("NOK",))
    said = {"The euro, not the krone.": None, "The euro, not the NOK.": "near-miss"}
    assert {text: (behaviour._near(case, text) or (None,))[0] for text in said} == said
    assert (behaviour._near(OSLO, "The euro, not the krone.") or (None,))[0] == "near-miss"


def test_the_letter_of_an_option_does_not_stand_in_a_text_as_the_word_a_does() -> None:
    options = (("A", "dog"), ("B", "cat"))
    choice = Case("a", "Which animal barks?", "A", answer_type="choice", options=options)
    assert behaviour._near(choice, "The answer is (B), a cat.") is None
    assert behaviour._near(choice, "Either (A) or (B).") is not None
    assert behaviour._near(replace(choice, aliases=("dog",)), "It is a dog or a cat") is not None


@pytest.mark.parametrize(
    ("followed", "cause"), [("last-item", "shortcut:last-item"), ("operation", "wrong-operation"), ("nothing", None)]
)
def test_the_answers_to_variants_settle_shortcuts_and_wrong_operations(followed: str, cause: str | None) -> None:
    group = answered(followed)
    places = behaviour.behaviour(group).wrong_operands
    known = hypotheses.HYPOTHESES.items()
    best = following.best(following.followed(name, h, group, MIXED, places) for name, h in known)
    found = rule.from_behaviour(behaviour.behaviour(group, best))
    assert (found and found[0]) == cause


def test_the_right_result_written_otherwise_is_not_that_of_another_operation() -> None:
    gold = asks.working(MIXED[2].worked).values
    a, b = map(int, gold[:2])
    for result, other in ((f"{gold[2]}.0", False), (str(a + b), a + b != int(gold[2])), ("999", False)):
        texts = wrote(MIXED[2], *gold[:2]) | {"whole:given:2": f" is {result}"}
        found = behaviour.behaviour(
            [heard(MIXED[2], texts | {"whole": f"{gold[0]} {MIXED[2].operation} {gold[1]} is 999"})]
        )
        assert (found.other_operation, len(found.sums)) == (Tally(int(other), 1), int(other))


@pytest.mark.parametrize(
    ("first", "operation", "off", "k"),
    [(0, "times", 0, 1), (0, "times", 1, 0), (1, "times", 0, 0), (1, "times", -5, 0), (0, "plus", 0, 0)],
)
def test_a_working_with_the_right_operands_and_another_operation_shows_it_though_the_forced_one_is_done_right(
    first: int, operation: str, off: int, k: int
) -> None:
    case = replace(MIXED[2], worked="7 plus 5 is 12", answer="12", operation="plus")
    a, b = 7 + first, 5
    result = (a * b if operation == "times" else a + b) + off
    texts = {"whole": f"{a} {operation} {b} is {result}", "whole:given:1": f" {operation} 5 is 35",
             "whole:given:2": " is 12"}  # fmt: skip
    assert behaviour.behaviour([heard(case, texts)]).other_operation.k == k


@pytest.mark.parametrize(("answer", "n"), [("7", 0), ("12", 1)])
def test_a_step_of_the_working_after_a_neutral_beginning_mends_nothing(answer: str, n: int) -> None:
    case = replace(MIXED[2], worked=f"7 plus 5 is {answer}", answer=answer)
    found = behaviour.behaviour([heard(case, {"whole": "7 plus 4 is 11", "whole:neutral": f" {answer}."})])
    assert found.mended.get("neutral", Tally()).n == n
    case = replace(OSLO, answer=OSLO.parts[0].answer if n == 0 else OSLO.answer)
    found = behaviour.behaviour([heard(case, {"whole": "Rome", "whole:neutral": f" {case.answer}."})])
    assert found.mended.get("neutral", Tally()).n == n


def test_a_number_with_commas_between_its_thousands_is_one_number() -> None:
    found = asks.working("1,200 plus 300 is 1,500, not 5,6")
    assert found.values == ("1200", "300", "1500", "5", "6") and found.words[:3] == ("", "plus", "is")
    assert asks.working("3 minus 1,005 is -1,002").values == ("3", "1005", "-1002"), (
        "a number below zero keeps its sign"
    )
    case = Case("a", "What is 1,200 plus 300?", "1500", worked="1,200 plus 300 is 1,500", answer_type="number")
    assert asks.operands(case) == 2
    forced = [a.begun for a in asks.Questions("x", "plain")._forced(case) if a.role.startswith("whole:given")]
    assert forced == ["1,200", "1,200 plus 300"]
    assert [places._written(case.worked, "", None, i)[1] for i in range(3)] == ["1,200", "300", "1,500"]
    part = Part("How much?", "1500", answer_type="number")
    copied = replace(case, parts=(part,), worked=None, question="Of 1,200 and 300 apples, how many are left?")
    one = following.followed(
        "first-number", hypotheses.HYPOTHESES["first-number"], [heard(copied, {"whole": "1,200"})], []
    )
    assert (one.hits, one.telling, one.edits[0].said) == (1, 1, "1200")


def test_a_result_that_comes_too_early_is_no_operand() -> None:
    case = MIXED[2]
    gold = asks.working(case.worked)
    said = wrote(case, *gold.values[:2]) | {
        "whole:given:1": f" {gold.words[1]} the tag {gold.words[2]} {gold.values[1]}"
    }
    one = heard(case, said | {"whole": f"{gold.values[0]} {gold.words[1]} the tag {gold.words[2]} {gold.values[1]}"})
    assert one.next_value(1) == (None, f"{gold.words[1]} the tag {gold.words[2]}")
    assert behaviour.wrong_operands(one) == [1]
    assert behaviour.on_the_table(one) == (1, 1)


def test_an_operand_that_is_wrong_in_half_of_the_settings_is_not_wrong_in_most() -> None:
    gold = asks.working(MIXED[2].worked).values
    wrong = next(str(t) for t in world.TAGS if str(t) not in gold)
    half = [heard(MIXED[2], wrote(MIXED[2], wrong, gold[1])), heard(MIXED[2], wrote(MIXED[2], gold[0], wrong))]
    assert behaviour.behaviour(half).wrong_operands == []
    assert behaviour.behaviour([*half, half[0]]).wrong_operands == [0]
    assert behaviour.behaviour([*half, half[1]]).wrong_operands == [1]


def test_a_case_itself_fails_or_not_and_shows_its_cause_whatever_its_variants_do() -> None:
    case = MIXED[2]
    gold = asks.working(case.worked).values
    wrong = heard(case, wrote(case, *gold[:2]))
    right = heard(case, {"whole": case.worked or case.answer})
    for group, fails in (([wrong, right], True), ([right, wrong], False)):
        found = behaviour.behaviour(group)
        assert (found.fails, found.own_operands_right, found.n, found.variants) == (fails, fails, 1, 1)
        assert found.last == f"part:{len(case.parts) - 1}"


def test_a_diagnosis_asks_like_the_run_once_and_for_the_likeliest_answer() -> None:
    gap, how = CompositionalityGap("short", max_tokens=7), Presentation("raw", preamble="both", temperature=0.7, seed=3)
    for preamble, put in (("both", "yes"), ("no", "no")):
        made = asks.questions(FormattedProtocol(gap, replace(how, preamble=preamble)), OTHERS)  # type: ignore[arg-type]
        assert made.protocol == asks.Questions(gap.name, "short", 7, OTHERS)
        assert made.how == Presentation("raw", preamble=put, seed=3)  # type: ignore[arg-type]


def test_a_case_is_asked_in_all_wordings_and_is_told_the_bridge_alone() -> None:
    case = replace(OSLO, parts=(replace(OSLO.parts[0], paraphrases=("Oslo is in?",)), *OSLO.parts[1:]))
    like = replace(case, id="like", meta={"variant_of": case.id})
    questions, failed = asks.Questions("x", "plain"), {"whole": Grade("incorrect", None)}
    failed |= {f"part:{i}": Grade("correct", None) for i in range(2)}
    roles = {one.id: {a.role: a.prompt for a in questions.asks(one, failed)} for one in (case, like)}
    assert roles[case.id].keys() - roles["like"].keys() >= {"part:0:paraphrase:0"}
    assert not any("paraphrase" in role for role in roles["like"])
    told = roles["like"][asks.BRIDGE]
    assert case.parts[0].answer in told and case.answer not in told


def test_forced_text_is_fed_after_the_prompt_and_is_another_ask() -> None:
    from composcope.evaluation.engines.local import LocalEngine
    from composcope.evaluation.journal import ask_identity
    from composcope.experiments.organism import weights

    engine = LocalEngine(weights.path("control"))
    plain = Ask("a", "whole", MIXED[2].question, MIXED[2].answer, "number")
    forced = replace(plain, begun="4 times")
    (bare,), (fed,) = engine.prompt_ids([plain]), engine.prompt_ids([forced])
    assert engine.tokenizer.decode(list(fed[len(bare) :])) == " 4 times"
    assert fed[: len(bare)] == bare
    assert ask_identity(plain, {}) != ask_identity(forced, {})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "control"
    config = Config.read({"model": "organism:control", "benchmark": "organism:mixed", "limit": 12, "probes": []})
    investigate(config, out, quiet=True, contrast=False)
    return out


def test_a_diagnosis_is_written_read_back_and_repeated_without_asking(run: Path) -> None:
    found = diagnose(run, quiet=True)
    again = diagnose(run, quiet=True)
    read = results.read_diagnosis(run)
    assert read is not None
    assert [v.row() for v in found.verdicts] == [v.row() for v in again.verdicts] == [v.row() for v in read.verdicts]
    rows = [json.loads(line) for line in (run / "diagnosis" / "cases.jsonl").read_text().splitlines()]
    assert {"case", "cause", "block", "confidence", "mended_by", "evidence"} <= set(rows[0])
    assert sum(s.count for s in found.causes()) == len(found.verdicts)
    assert sum(s.share for s in found.causes("family", "mixed")) == pytest.approx(1)
    assert {"run", "model", "data", "seed", "versions"} <= set(found.about["made_with"])


def test_the_other_cases_of_a_run_and_of_a_family_count_before_a_cause_is_named(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: dict[str, list[asks.Heard]] = {}
    shortcuts, open_cases, given = following.shortcuts, opening.open_cases, list[object]()

    def lacking(opened: dict[str, Any], behaviours: object, held: object, families: object) -> dict[str, Any]:
        return {id: replace(one, uncomputed=Tally(1, 99)) for id, one in opened.items()}

    def opens(*told: Any, **more: Any) -> Any:
        given.append(more)
        return open_cases(*told, **more)

    def follows(*told: Any) -> following.Shortcuts:
        given.append(told[-1] is others)
        return shortcuts(*told)

    monkeypatch.setattr(hearing, "heard_in_run", lambda *_: others)
    monkeypatch.setattr(following, "shortcuts", follows)
    monkeypatch.setattr(opening, "open_cases", opens)
    monkeypatch.setattr(job.rule_inside, "intact", lambda _: True)
    monkeypatch.setattr(weighing, "uncomputed", lacking)
    found = diagnose(shutil.copytree(run, tmp_path / "copy"), cases=1, quiet=True)
    assert given[:2] == [True, {"fewest": MANY}]
    assert any("lack it: 1 of 99" in line for v in found.verdicts for line in v.evidence)


def test_the_seed_of_a_diagnosis_draws_variants_donors_and_noise_and_is_recorded(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, set[object]] = {}

    def spied(module: Any, name: str) -> None:
        own, words = getattr(module, name), inspect.signature(getattr(module, name))

        def called(*given: Any, **more: Any) -> Any:
            drawn.setdefault(name, set()).add(words.bind(*given, **more).arguments.get("seed"))
            return own(*given, **more)

        monkeypatch.setattr(module, name, called)

    for module, names in (
        (variants, ["of"]),
        (opening, ["settings", "open_cases", "open_settled", "_inputs", "measure"]),
    ):
        for name in names:
            spied(module, name)
    monkeypatch.setattr(job, "OF_SMALL", 2)  # so few cases are quick
    found = diagnose(run, cases=2, seed=4, quiet=True)
    assert found.about["seed"] == 4 and drawn.pop("of") == {4}
    assert {"settings", "open_cases", "open_settled"} <= drawn.keys() and all(seeds == {4} for seeds in drawn.values())


def test_a_diagnosis_that_replaces_one_of_more_cases_says_so_and_a_broken_one_is_replaced(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = diagnose(run, quiet=True)
    diagnose(run, cases=1)
    assert f"diagnosis of {len(found.verdicts)} cases by one of 1;" in capsys.readouterr().err
    for name in ("cases.jsonl", "summary.json", "table.csv"):
        (run / "diagnosis" / name).write_text("{")
    again = diagnose(run)
    assert "replaces the earlier" not in capsys.readouterr().err
    assert [v.row() for v in again.verdicts] == [v.row() for v in found.verdicts]


def test_the_summary_of_a_diagnosis_shows_cases_with_what_they_said_and_why(run: Path) -> None:
    found = diagnose(run, cases=1, quiet=True)
    (verdict,) = found.verdicts
    shown = " ".join(found.lines())
    assert verdict.question and verdict.said and verdict.gold
    for said in (verdict.case, verdict.question, repr(verdict.said), repr(verdict.gold), verdict.means):
        assert said in shown
    graded = next(r for r in RunData(run).graded if r.case == verdict.case and r.role == "whole")
    assert verdict.said == graded.answer
    again = results.read_diagnosis(run)
    assert again is not None and list(again.verdicts) == [verdict]


def test_a_two_hop_case_is_asked_in_two_other_wordings_and_beside_others_of_its_family_and_benchmark() -> None:
    words = ("Name the capital of Holland.", "Which city rules?", "The capital of the Netherlands is?",
             "The Netherlands has which capital?")  # fmt: skip
    parts = (Part("Where does Ada live?", "Netherlands", aliases=("Holland",)),
             Part("What is the capital of the Netherlands?", "Amsterdam", paraphrases=words))  # fmt: skip
    case = Case("a", "What is the capital of the country where Ada lives?", "Amsterdam", parts, family="f")
    mate = replace(case, id="m", question="What is the capital of the country where Bo lives?", answer="Oslo")
    mates = [mate, replace(mate, id="same", answer="Amsterdam"), replace(mate, id="g", family="g"),
             replace(mate, id="other", benchmark="other"), case]  # fmt: skip
    found = variants.of(case, mates)
    assert [(v.case.question, v.wording, v.keeps_gold) for v in found] == [
        (case.question, None, True),
        ("Name the capital of the country where Ada lives.", "part:1:paraphrase:0", True),
        (mate.question, None, False),
        ("The capital of the country where Ada lives is?", "part:1:paraphrase:2", True),
    ]
    stated = [
        {"question": case.question, "answer": "x"},
        {"question": "Where?", "answer": "y"},
        {"question": "Where to?"},
    ]
    own = variants.of(replace(case, meta={"variants": stated}), mates)
    assert [(v.case.question, v.keeps_gold) for v in own[1:]] == [("Where?", False), ("Where to?", True)]
    assert all("variant_of" not in variants.as_row(v).get("meta", {}) for v in own)
    swapped = [v.case for c in MIXED for v in variants.of(c, [])[1:]]
    assert all(len({*asks.working(c.worked).values[:2]}) == 2 for c in swapped if c.answer)


def test_a_diagnosis_asks_in_the_prompting_that_the_model_was_found_to_need(monkeypatch: pytest.MonkeyPatch) -> None:
    def questions(protocol: FormattedProtocol, others: object) -> None:
        raise LookupError(protocol.how.prompting)

    monkeypatch.setattr(asks, "questions", questions)
    data, target = (
        SimpleNamespace(config=Config.read({"model": "m", "benchmark": "b", "protocol": "scaffolding"})),
        SimpleNamespace(prompting="raw"),
    )
    with pytest.raises(LookupError, match="raw"):
        hearing._ask(data, target, [], Reporter(None, quiet=True))  # type: ignore[arg-type]


def test_as_many_other_failures_are_asked_as_are_missing() -> None:
    some = [Case(id, f"{id}?", "x", (Part("p", "y"),)) for id in "abcd"]
    data: Any = SimpleNamespace(cases={c.id: c for c in some}, name="run", protocol="scaffolding")
    for n, ids in ((0, "ab"), (2, "ab"), (3, "abc"), (9, "abcd")):
        assert [*hearing.with_variants(data, some[:2], some[2:], n, 0, Reporter(None, quiet=True))] == [*ids]


def test_the_whole_of_a_reasoning_gap_is_asked_as_the_run_asks_it() -> None:
    first, words = Part("What is the tag of the kite?", "6"), ("What is {} minus 2?", "{} minus 2 is what?")
    case = Case(
        "a", words[0].format("X"), "4", (first, Part(words[0].format(6), "4", paraphrases=(words[1].format(6),)))
    )
    stated = {"question_2": "What is X less 2?", "variants": [
        *[{"question": f"{words}?"} for words in "abcd"],
        {"question": "e", "parts": [{"question": q, "answer": "6"} for q in ("And the cart?", "What is 6 less 2?")]},
    ]}  # fmt: skip
    asked = {}
    for name, own in (("words", case), ("stated", replace(case, meta=stated)), ("other", case)):
        protocol = "scaffolding" if name == "other" else "reasoning-gap"
        data: Any = SimpleNamespace(cases={"a": own}, name="run", protocol=protocol)
        (group,) = hearing.with_variants(data, [own], [], 1, 0, Reporter(None)).values()
        asked[name] = [v.case.question for v in group]
    pairs = [prompts.pair(first.question, text.format("X")) for text in words]
    assert asked == {
        "words": pairs, "other": [text.format("X") for text in words],
        "stated": [prompts.pair(q1, "What is X less 2?") for q1 in (first.question, "And the cart?")],
    }, "variants of which the run puts the same pair do not take the place of others"  # fmt: skip


def test_successes_of_the_failing_families_are_the_control_for_a_part_behind_its_context(run: Path) -> None:
    data = RunData(run)
    failing = [v.case for v in diagnose(run, quiet=True).verdicts]
    found = [case.id for case in matched(data, failing)]
    right = {r.case for r in data.graded if r.role == "whole" and r.outcome == "correct"}
    assert found and set(found) <= right - set(failing)
    assert not matched(data, [])


def test_a_family_has_so_many_successes_for_its_control_and_only_with_a_part_to_ask_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def case(id: str, context: str | None = "It rains. ") -> Case:
        parts = (Part("Where?", "a"), Part("When?", "b", extra_context=context))
        return Case(id, "Where and when?", "b", parts, family=id[0])

    some = [case("f-bare", None), *(case(f"{family}{i}") for family in "fgh" for i in range(4)), case("f-wrong")]
    graded = [Graded(c.id, role, "correct") for c in some for role in ("whole", "part:0", "part:1")]
    wrong = {("f0", "whole"), ("f1", "whole"), ("g0", "whole"), ("f-wrong", "part:0")}
    graded = [replace(r, outcome="incorrect") if (r.case, r.role) in wrong else r for r in graded]
    graded = [r for r in graded if (r.case, r.role) != ("g1", "part:1")]  # was not asked
    outcomes = {c.id: {r.role: r.outcome for r in graded if r.case == c.id} for c in some}
    data: Any = SimpleNamespace(cases={c.id: c for c in some}, outcomes=outcomes, protocol="compositionality-gap")
    for company, expected in ((1, ["f2", "g2"]), (2, ["f2", "f3", "g2", "g3"]), (8, ["f2", "f3", "g2", "g3"])):
        monkeypatch.setattr(hearing, "OF_A_FAMILY", company)
        assert [c.id for c in matched(data, ["f0", "f1", "g0"])] == expected
    rainy = replace(case("f2", None), question="It rains. Where is X?")
    for data.protocol, expected in (("compositionality-gap", ["f2"]), ("reasoning-gap", [])):
        data.cases = {"f0": some[1], "f2": rainy}
        assert [c.id for c in matched(data, ["f0"])] == expected, "no part is asked behind a pair"


def test_wholes_that_no_rule_could_judge_are_named_as_left_out(run: Path, tmp_path: Path) -> None:
    open_run = shutil.copytree(run, tmp_path / "open")
    first, *others = [v.case for v in diagnose(run, quiet=True).verdicts]
    rows = [json.loads(line) for line in (open_run / "graded.jsonl").read_text().splitlines()]
    for row in rows:
        if (row["case"], row["role"]) == (first, "whole"):
            row |= {"outcome": "invalid", "answer": None, "reason": "no-answer"}
    (open_run / "graded.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for file in (open_run / "casesets").glob("*.jsonl"):
        file.write_text("".join(f"{line}\n" for line in file.read_text().splitlines() if f'"{first}"' not in line))
    found = diagnose(open_run, ids=others[:1], quiet=True)
    assert found.about["left_out"] == [first] and found.about["unjudged"] == 0
    one, both = (diagnose(open_run, ids=[first, *others[:n]], quiet=True) for n in (0, 1))
    assert one.sentence().startswith("Causes of 1 whole that could not be judged: ") and one.about["unjudged"] == 1
    assert both.about["failures"] == 1 + len(others) and "1 of these could not be judged" in both.sentence()


def test_a_diagnosis_of_some_failures_says_of_how_many_and_counts_what_mends_these_alone(run: Path) -> None:
    every = diagnose(run, quiet=True)
    some = diagnose(run, cases=1, quiet=True)
    assert some.about["failures"] == every.about["failures"] == len(every.verdicts) > 1
    counts = [re.findall(r"\d+", found.sentence().partition(":")[0]) for found in (some, every)]
    assert counts == [["1", str(len(every.verdicts))], [str(len(every.verdicts))]]
    for found in (some, every):
        evidence = [line for v in found.verdicts for line in v.evidence]
        texts = _sums(evidence, r"(.+): right in (\d+) of (\d+)")
        assert found.about["mended"] == {name: texts[said] for name, said in TEXTS.items() if said in texts} != {}
        inside = _sums(evidence, r"(.+) \([^)]+\): (?:mends|is right in) (\d+) of (\d+)")
        numbers = [sorted((c["count"], c["n"]) for c in by.values()) for by in (inside, found.about["interventions"])]
        assert numbers[0] == numbers[1]
    assert numbers[0], "some cases were opened"


def _sums(evidence: Sequence[str], pattern: str) -> dict[str, dict[str, int]]:
    """Counts by what stands before them, over all lines of evidence."""
    total: dict[str, dict[str, int]] = {}
    for found in filter(None, (re.match(pattern, line) for line in evidence)):
        before = total.setdefault(found[1], {"count": 0, "n": 0})
        total[found[1]] = {"count": before["count"] + int(found[2]), "n": before["n"] + int(found[3])}
    return total


def test_one_diagnosed_case_is_compared_with_other_failing_ones_and_the_user_is_told(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [v.case for v in diagnose(run, quiet=True).verdicts]
    found = diagnose(run, ids=every[:1])
    asked = {json.loads(line)["case"] for line in (run / "diagnosis" / "variants.jsonl").read_text().splitlines()}
    assert [v.case for v in found.verdicts] == every[:1]
    assert len(asked) == min(24, len(every)) > 1 and asked <= set(every)
    assert f"{len(asked) - 1} other failing cases" in capsys.readouterr().err
    monkeypatch.setattr(job, "COMPANY", 2)
    for n, of_small, quick, least in ((1, 3, 120.0, 3), (1, 3, 0.1, 2), (2, 3, 0.1, 2), (3, 3, 0.1, 2)):
        monkeypatch.setattr(job, "OF_SMALL", of_small)
        monkeypatch.setattr(job, "QUICK", quick)  # more of them only if they take no longer
        found = diagnose(run, ids=every[:n])
        rows = [json.loads(line) for line in (run / "diagnosis" / "variants.jsonl").read_text().splitlines()]
        asked = list(dict.fromkeys(row["case"] for row in rows))
        assert sorted(v.case for v in found.verdicts) == sorted(every[:n]) == sorted(asked[:n])
        assert len(asked) == max(n, least) < len(every), "those asked for count among them"
        assert ("1 other failing case " in capsys.readouterr().err) == (max(n, least) == n + 1)


def test_the_figure_of_causes_draws_the_shares_of_the_diagnosis(run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(run, tmp_path / "copy")
    found = diagnose(run, quiet=True)
    verdicts = (replace(found.verdicts[0], cause="lost"), *found.verdicts[1:])  # two causes: a share is not its limit
    found = replace(found, verdicts=verdicts, shares=results.count(verdicts, RunData(run).cases))
    results.write(found)
    drawn = figures.draw("causes", [run])
    every = {r["cause"]: (r["value"], r["count"], r["n"]) for r in drawn.rows if r["group"] == "all"}
    assert every == {s.cause: (s.share, s.count, s.n) for s in found.causes()} and every
    assert sum(value for value, _, _ in every.values()) == pytest.approx(1)
    marks = [float(x) for line in drawn.figure.axes[0].lines if line.get_marker() in ("o", "D")
             for x in np.ravel(line.get_xdata())]  # fmt: skip
    assert sorted(marks) == pytest.approx(sorted(r["value"] for r in drawn.rows))
    assert "were diagnosed" not in drawn.caption
    diagnose(run, cases=2, quiet=True)
    assert f"Only 2 of {len(verdicts)} failures were diagnosed" in figures.draw("causes", [run]).caption


def test_what_cannot_be_diagnosed_is_refused_with_the_reason(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="case mixed-9999: control has no such case"):
        diagnose(run, ids=["mixed-9999"], quiet=True)
    right = tmp_path / "right"
    cases = tmp_path / "cases.jsonl"
    part = Part("What is the tag of the knife?", str(world.world().tags["knife"]), answer_type="number")
    variants_of = [Case("a", "What is the tag of the knife?", part.answer, (part,), answer_type="number")]
    write_cases(variants_of, cases)
    config = {"model": "organism:control", "benchmark": str(cases), "format": "plain", "probes": []}
    investigate(Config.read(config), right, quiet=True, contrast=False)
    with pytest.raises(InputError, match="no case failed with every part right"):
        diagnose(right, quiet=True)
    (right / "cases.jsonl").unlink()
    with pytest.raises(InputError, match=r"cases\.jsonl: no such file"):
        diagnose(right, quiet=True)
    served = (run / "config.yaml").read_text().replace("engine: transformers", "engine: openai")
    other = tmp_path / "served"

    shutil.copytree(run, other)
    (other / "config.yaml").write_text(served)
    with pytest.raises(InputError, match="a server answered, and its weights are needed here; give them with --model"):
        diagnose(other, quiet=True)
    with pytest.raises(InputError, match="organism:low: these are not the weights"):
        diagnose(run, "organism:low", quiet=True)


def test_a_measurement_that_was_not_finished_is_made_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = diagnose(run, quiet=True)
    kept = run / "diagnosis" / "inside.jsonl"
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join(lines)[:-20])
    assert diagnose(run).verdicts == before.verdicts
    again = kept.read_text().splitlines()
    assert again[: len(lines) - 1] == lines[:-1] and all(map(json.loads, again))
    assert "not finished" in capsys.readouterr().err


def test_named_cases_that_did_not_fail_are_said_to_be_left_out(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = RunData(run)
    failing = [case.id for case in job.labelled_failures(data)]
    right = [id for id in data.cases if id not in failing][:2]
    found = diagnose(run, ids=[right[0], failing[0], right[1], failing[1]], cases=1)
    said = next(line for line in capsys.readouterr().err.splitlines() if "left out" in line)
    assert len(found.verdicts) == 1 and all((id in said) == (id in right) for id in (*right, *failing[:2]))


@pytest.mark.parametrize("asked", [True, False])
def test_a_run_that_is_graded_as_a_paper_does_is_diagnosed_so(tmp_path: Path, asked: bool) -> None:
    tags = list(world.world().tags.items())[:3]
    part = [Part(f"What is the tag of the {thing}?", str(tag), answer_type="number") for thing, tag in tags]
    cases = [Case(f"c{i}", p.question, p.answer, (p,)) for i, p in enumerate(part)]
    write_cases(cases, tmp_path / "cases.jsonl")
    config = {"model": "organism:control", "benchmark": str(tmp_path / "cases.jsonl"), "format": "plain", "probes": []}
    paper = {"asking": {"compat": "agentcoma"}} if asked else {}  # to it, an answer without a cue is wrong
    investigate(Config.read(config | paper), tmp_path / "run", quiet=True, contrast=False)
    if not asked:
        rescore(tmp_path / "run", Reporter(None, quiet=True), "agentcoma")
    found = diagnose(tmp_path / "run", quiet=True)
    assert len(found.verdicts) == 3
    assert not any("variants: 0 of" in v.evidence[0] for v in found.verdicts)
    assert not any("asked again" in str(v.settle) for v in found.verdicts)


def test_answers_that_the_judge_of_a_run_has_judged_keep_their_grade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags = list(world.world().tags.items())[:3]
    known = [Part(f"What is the tag of the {thing}?", f"lucky {tag}") for thing, tag in tags]
    cases = [Case(f"c{i}", part.question, f"unlucky {i}", (part,)) for i, part in enumerate(known)]
    write_cases(cases, tmp_path / "cases.jsonl")
    told = ToldEngine("judge", lambda ask, _: "Verdict: no" if "unlucky" in ask.prompt else "Verdict: yes")
    monkeypatch.setattr(investigating, "open_judge", lambda config: told)
    config = {"model": "organism:control", "benchmark": str(tmp_path / "cases.jsonl"), "format": "plain", "probes": []}
    investigate(Config.read(config | {"judge": "organism:twin"}), tmp_path / "run", quiet=True, contrast=False)
    n = len(told.asked)
    found = diagnose(tmp_path / "run", quiet=True)
    assert len(found.verdicts) == 3 and all("variants: 3 of 3" in v.evidence[0] for v in found.verdicts)
    assert n and len(told.asked) == n, "the judge is not asked again"


def test_settings_that_several_cases_have_as_variants_count_once_over_the_run() -> None:
    told = [heard(c, {"whole": "nothing"}) for c in WORLD if c.family == OSLO.family][:3]

    def beside(one: asks.Heard, of: Case) -> asks.Heard:
        case = replace(one.case, id=f"{of.id}~{one.case.id}", meta={**one.case.meta, variants.OF: of.id})
        return replace(one, variant=variants.Variant(case, "another case instead", False))

    groups = {one.case.id: [one, *(beside(o, one.case) for o in told if o is not one)] for one in told}
    own = replace(told[0].case, question="What is the money of Oslo's country called?", meta={variants.OF: OSLO.id})
    groups[told[0].case.id].append(replace(told[0], variant=variants.Variant(own, "other words")))
    found = behave(groups, WORLD)
    assert {one.fails_in_run for one in found.values()} == {Tally(4, 4)}, "three questions, and one in other words"
    assert [one.n for one in found.values()] == [4, 3, 3]


def test_a_failure_that_was_only_drawn_gets_no_cause_and_keeps_what_was_said(tmp_path: Path) -> None:
    settings = {"model": "organism:plant-no-cause", "benchmark": "organism:mixed", "limit": 60, "probes": []}
    config = Config.read(settings | {"asking": {"temperature": 1.0}})
    investigate(config, tmp_path / "drawn", quiet=True, contrast=False)
    found = diagnose(tmp_path / "drawn", quiet=True)
    right = [v for v in found.verdicts if v.settle and "asked again" in v.settle]
    assert len(right) >= len(found.verdicts) - 1 > 0
    assert all(v.cause == "undetermined" and v.said != v.gold for v in right)
    drawn = RunData(tmp_path / "drawn")
    put = {r.case: drawn.responses[str(r.ask)].text for r in drawn.graded if r.role == "whole"}
    assert all(str(v.said) in put[v.case] for v in found.verdicts)  # what the run drew, not what was asked again
