"""The Compositional GSM builder on hand-made items with code-form solutions."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import ks_2samp

from composcope.errors import InputError, NoCasesError
from composcope.evaluation import pipeline
from composcope.evaluation.asks import Ask
from composcope.evaluation.builders import code_items, compositional_gsm, review
from composcope.evaluation.builders.code_items import CodeItem, read_code_items, slots, with_constant, with_mention
from composcope.evaluation.builders.compositional_gsm import CandidatePair, Rules, _assign, build
from composcope.evaluation.case import Part
from composcope.evaluation.cases import read_cases, write_cases
from composcope.evaluation.journal import Journal
from composcope.evaluation.protocols.asking import default_protocol
from composcope.evaluation.protocols.reasoning_gap import ReasoningGap
from composcope.evaluation.sandbox import CodeResult, run_code


def _item(name: str, question: str, answer: int, *lines: str) -> CodeItem:
    return CodeItem(name, question, "def solution():\n" + "".join(f"    {line}\n" for line in lines), answer)


BAGS = _item(
    "bags",
    "A box holds five bags of 12 marbles. 7 marbles roll away. How many marbles are left?",
    53,
    "bags = 5",
    "per_bag = 12",
    "left = bags * per_bag - 7",
    "return left",
)
BOOKS = _item("books", "Mia reads 6 pages a day for 3 days. How many pages?", 18, "return 6 * 3")
SHARE = _item("share", "24 sweets are shared by 4 children. How many each?", 6, "each = 24 / 4", "return each")
STEPS = _item("steps", "Leo walks 10 steps, then 4 steps back. How far?", 6, "far = 10 - 4", "return far")
TEN = _item("ten", "Nine birds and 1 more. How many?", 10, "return 9 + 1")
ITEMS = [BAGS, BOOKS, SHARE, STEPS, TEN]


def test_slots_are_numbers_that_stand_once_in_question_and_code() -> None:
    found, refused = slots(BAGS)
    assert [s.value for s in found] == [5, 7, 12] and refused == []
    assert [BAGS.question[slice(*s.span)] for s in found] == ["five", "7", "12"]
    both = slots(_item("x", "4 cats and 4 dogs see 30% of 9:30 and 3/5. 8", 1, "return 4 + 30 + 9 + 3 + 8 + 8 + 2"))
    assert both[0] == []
    in_two_words = _item("y", "Twenty-five cats, thirty six dogs and forty cows", 1, "return 25 + 5 + 36 + 30 + 6 + 40")
    assert [s.value for s in slots(in_two_words)[0]] == [40]
    assert {(r["constant"], r["reason"]) for r in both[1]} == {
        (4, "several-in-question"),
        (30, "several-in-question"),
        (9, "not-in-question"),
        (3, "not-in-question"),
        (8, "several-in-code"),
        (2, "not-in-question"),
    }


def test_a_slot_is_replaced_at_its_place_also_after_letters_of_several_bytes() -> None:
    item = _item("e", "Zoë’s café sells 12 cakes.", 13, "s = 'Zoë’s café'; n = 12", "return n + 1")
    slot = slots(item)[0][0]
    assert with_mention(item.question, slot, "X") == "Zoë’s café sells X cakes."
    assert run_code(with_constant(item.code, slot, "40")).value == 41


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (6.0, 6),
        (0.1 * 30, 3),
        (4.35 * 1e8, 435_000_000),
        (6.004, None),
        (2_000_000_000.5, None),
        (True, None),
        ("6", None),
        (math.inf, None),
        (math.nan, None),
        (-0.0, 0),
    ],
)
def test_results_count_as_whole_numbers_up_to_rounding_only(value: Any, wanted: int | None) -> None:
    assert code_items.whole(value) == wanted


def test_pairs_follow_from_their_first_answer() -> None:
    built = build(ITEMS, rules=Rules(max_ratio=100, max_constant_ratio=100), seed=3)
    answers = {i.id: i.answer for i in ITEMS}
    assert built.cases
    for case in built.cases:
        first, second = case.id.split("+")
        x = case.meta["x"]
        assert case.parts[0].answer == str(x) == str(answers[first])
        assert case.parts[1].question.count(str(x)) >= 1 and "X" not in case.parts[1].question
        assert case.meta["question_2"].count("X") == 1 and case.meta["question_2"] in case.question
        assert int(case.answer) > 0 and int(case.answer) != answers[second]
        assert case.answer == case.parts[1].answer == run_code(case.meta["code"]).text
    firsts, seconds = zip(*(c.id.split("+") for c in built.cases), strict=True)
    assert len(set(firsts)) == len(firsts) and len(set(seconds)) == len(seconds)


@pytest.mark.parametrize(
    ("question", "code", "reason"),
    [
        ("A pirate digs 6 holes on an island marked X. He digs 3 each day. Days?", "return 6 / 3", "question-has-x"),
        ("Farm X has 6 goats, farm Y 3. All?", "return 6 + 3", "question-has-x"),
        ("A car goes 6km/hr for 3hours. How far?", "return 6 * 3", "joined-to-a-word"),
        ("A bull weighs 6kg and runs at 3MPH. Sum?", "return 6 + 3", "joined-to-a-word"),
    ],
)
def test_a_number_where_x_could_not_be_read_is_no_slot(question: str, code: str, reason: str) -> None:
    found, refused = slots(_item("x", question, 2, code))
    assert found == []
    assert {(r["constant"], r["reason"]) for r in refused} == {(6.0, reason), (3.0, reason)}


def test_a_question_with_an_x_of_its_own_is_no_first_question_either() -> None:
    farm = _item("farm", "Farm X has 7 goats and farm Y 2. How many goats?", 9, "return 7 + 2")
    built = build([*ITEMS, farm], rules=Rules(max_ratio=100, max_constant_ratio=100), seed=3)
    assert {"q1": "farm", "stage": "first", "reason": "question-has-x"} in built.rejected
    assert not [c for c in built.cases if "farm" in c.id]


def test_no_item_is_its_own_first_question() -> None:
    cakes = _item("cakes", "A café sells 12 cakes and one bun. How many pieces?", 13, "n = 12", "return n + 1")
    assert [slot.value for slot in slots(cakes)[0]] == [12], "one is an article, too"
    wide = Rules(max_ratio=100, max_constant_ratio=100)
    with pytest.raises(NoCasesError, match="none of 1 items makes a pair"):
        build([cakes], rules=wide)
    assert [case.id for case in build([cakes, BOOKS], rules=wide).cases if "cakes" in case.id.split("+")[1:]] == [
        "books+cakes"
    ]


def test_a_number_is_replaced_only_by_answers_within_the_ratio_on_either_side() -> None:
    sizes = [_item(f"size{n}", f"{n} and nothing?", n, f"return {n}") for n in (2, 4, 6, 24, 36, 48)]
    cakes = _item("cakes", "A café sells 12 cakes and one bun. How many pieces?", 13, "n = 12", "return n + 1")
    built = build([cakes, *sizes], rules=Rules(max_ratio=100, max_constant_ratio=2.1))
    tried = [(r["x"], r["constant"]) for r in built.rejected if {"x", "constant"} <= {*r}]
    tried += [(c.meta["x"], c.meta["constant"]) for c in built.cases]
    assert {x for x, constant in tried if constant == 12} == {6, 24}, "neither far larger nor far smaller"
    assert all(1 / 2.1 <= x / constant <= 2.1 for x, constant in tried)


def test_of_two_numbers_that_a_pair_may_replace_the_one_is_taken_that_moves_the_answer_less() -> None:
    (two, three, four), _ = slots(_item("s", "2 boxes, 3 bags and 4 cups?", 14, "return 2 + 3 * 4"))
    first, other = (_item(name, "?", 5, "return 5") for name in "ab")
    second, third = (_item(name, "?", 100, "return 100") for name in "cd")
    far, near, middle = (CandidatePair(first, second, s, n) for s, n in ((two, 1000), (three, 90), (four, 400)))
    for order in ((far, near, middle), (near, middle, far), (middle, far, near)):
        chosen, spare = _assign(order)
        assert chosen == [near] and spare == [c for c in order if c is not near]
    only = CandidatePair(first, third, two, 100)
    chosen, spare = _assign([near, only, CandidatePair(other, second, two, 5000)])
    assert {(c.first.id, c.second.id) for c in chosen} == {("a", "d"), ("b", "c")}, "as many pairs as possible"
    assert spare == [near] and _assign([]) == ([], [])


def test_a_pair_whose_joint_program_comes_to_something_else_is_struck_out_and_another_chosen() -> None:
    # The second solution has a helper of the name that the joint program gives to the first one.
    first = _item("first", "5 and 2?", 7, "return 5 + 2")
    shadow = "def solve_q1():\n    return 1\ndef solution():\n    return 4 * 3 + solve_q1() - 1\n"
    second = CodeItem("second", "Four boxes of 3. All?", shadow, 12)
    built = build([first, second, BOOKS], rules=Rules(max_ratio=100, max_constant_ratio=100), seed=1)
    failed = [r for r in built.rejected if r["stage"] == "joint"]
    assert ("first", "second", "joint-answer-differs") in {(r["q1"], r["q2"], r["reason"]) for r in failed}
    assert not {(r["q1"], r["q2"]) for r in failed} & {tuple(c.id.split("+")) for c in built.cases}
    assert all(run_code(c.meta["code"]).text == c.answer for c in built.cases) and built.cases


def test_equal_seeds_build_equal_benchmarks() -> None:
    rules = Rules(max_ratio=100, max_constant_ratio=100, tries=2)
    one, two = build(ITEMS, seed=1, rules=rules), build(ITEMS, seed=1, rules=rules)
    assert (one.cases, one.rejected) == (two.cases, two.rejected)


def _reasons(first: CodeItem, second: CodeItem, **rules: float) -> set[str]:
    wide: Any = {"max_ratio": 1e9, "max_constant_ratio": 1e9, **rules}
    # The other way round there is always a pair: something to build.
    spare = _item("spare", "Add 1000 and 17.", 1017, "return 1000 + 17")
    rejected = build([first, second, spare], rules=Rules(**wide)).rejected
    return {r["reason"] for r in rejected if r.get("q1") == first.id and r["q2"] == second.id}


@pytest.mark.parametrize(
    ("answer", "second", "rules", "reason"),
    [
        (3, BOOKS, {}, "same-number"),
        (3, STEPS, {}, "not-positive"),
        (5, SHARE, {}, "no-integer"),
        (50, BOOKS, {"max_ratio": 4}, "answer-too-far"),
        (100, _item("s", "Ann has 60 plums, 90 pears. Smallest?", 60, "return min(60, 90)"), {}, "answer-unchanged"),
        (7, _item("h", "Half of 8 eggs, twice?", 8, "half = 8 / 2", "return half * 2"), {}, "implausible-step"),
        (7, _item("z", "9 litres are poured out of 8.", 9, "return 9 // (8 - 7)"), {}, "code-error"),
        (7, _item("w", "6 is not 4.", 4, "n = 6", "while n != 4: n -= 1 + 1", "return n"), {}, "code-time"),
    ],
)
def test_every_candidate_left_out_says_why(answer: int, second: CodeItem, rules: dict[str, float], reason: str) -> None:
    first = _item("first", "?", answer, f"return {answer}")
    assert reason in _reasons(first, second, **rules)


def test_answer_magnitudes_of_the_pairs_follow_those_of_the_items() -> None:
    rng = random.Random(5)
    sums = [tuple(rng.sample(range(2, 10 ** rng.randint(1, 4)), 2)) for _ in range(60)]
    items = [_item(f"i{n}", f"{a} red, {b} blue. All?", a + b, f"return {a} + {b}") for n, (a, b) in enumerate(sums)]
    built = build(items, size=20, rules=Rules(tries=4), seed=2)
    assert len(built.cases) == built.magnitude["n_pairs"] == 20
    assert built.magnitude["statistic"] < 0.15
    pairs, answers = [int(c.answer) for c in built.cases], [i.answer for i in items]
    test: Any = ks_2samp(np.log10(pairs), np.log10(answers))
    assert built.magnitude == {
        "test": "ks_2samp of log10 answers", "n_pairs": 20, "n_items": 60, "statistic": test.statistic,
        "p": test.pvalue, "median_pairs": np.median(pairs), "median_items": np.median(answers),
    }  # fmt: skip
    assert np.median(pairs) != np.median(answers)
    for case in built.cases:
        of = case.meta["original"]
        assert (case.id, case.cluster) == (f"{of['q1']}+{of['q2']}", of["q2"]), "it varies the second item"
        assert case.crossed == (of["q1"],), "an item may be the first of one pair and the second of another"
    assert {r["reason"] for r in built.rejected if r["stage"] == "magnitude"} == {"quota-full"}


def test_no_pairs_is_an_error_that_says_so() -> None:
    with pytest.raises(NoCasesError, match="none of 1 items"):
        build([BAGS])
    with pytest.raises(NoCasesError, match="size is 99"):
        build(ITEMS, size=99, rules=Rules(max_ratio=100, max_constant_ratio=100))
    for name, value in {"max_ratio": 1.0, "max_constant_ratio": float("nan"), "tries": 0}.items():
        with pytest.raises(InputError, match=f"^{name} "):
            Rules(**{name: value})


def test_gsm_hard_rows_are_restored_and_checked_against_the_gold_answers(tmp_path: Path) -> None:
    question = "Ann buys five pens at $4 each and a pad for $2.50.\nShe gets 2 free. Cost?"
    doc = '    """' + question + '"""\n'
    good = {
        "input": question.replace("five", "8123456"),
        "code": "\ndef solution():\n" + doc + "    pad = 2.5 * 2\n    pens = 8123456\n    return pens * 4 + pad\n\n\n",
        "target": 1.0,
    }
    wrong = {**good, "code": good["code"].replace("* 4", "* 3")}
    good["code"] = "import math\n" + good["code"]
    other = {**good, "code": good["code"].replace("Cost?", "Price?"), "input": good["input"].replace("Cost", "Price")}
    path = tmp_path / "hard.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in (good, wrong, other)))
    items, rejected = read_code_items(path, {question.replace("\n", "  "): "25"})
    assert [(i.question, i.answer) for i in items] == [(question, 25)]
    assert (
        items[0].code == "import math\n\ndef solution():\n    pad = 2.5 * 2\n    pens = 5\n    return pens * 4 + pad\n"
    )
    assert [r["reason"].split(":")[0] for r in rejected] == ["code-answer-differs", "no-gold-answer"]


def test_changed_numbers_are_paired_by_place_also_after_numbers_of_several_words() -> None:
    before, after = "Ann has twenty five pens, 4 pads and 2.50 or three.", "Ann has 9 pens, 7123 pads and 81.5 or 55."
    assert list(code_items._changes(before, after)) == [("4", 7123), ("2.5", 81.5), ("3", 55)]
    assert list(code_items._changes("He has no pen at 4.", "He has 3 pens at home.")) == []
    assert list(code_items._changes("At the party two sang.", "At the party 7 sang.")) == [("2", 7)]


def test_a_program_loses_its_docstrings_unless_nothing_else_would_be_left() -> None:
    code = ['"""Of the file."""', "def f():", '    """How many eggs', '    are there?"""', "    a = 2", "    def g():",
            '        """Nothing else."""', "    return a"]  # fmt: skip
    kept = [line for i, line in enumerate(code) if i not in (2, 3)]
    assert code_items.without_docstring("\n".join(code)) == "\n".join(kept) + "\n"
    inner = [
        "def solution():",
        "    def eggs():",
        '        """The question."""',
        "        return 2",
        "    return eggs()",
    ]
    assert code_items.without_docstring("\n".join(inner)) == "\n".join([*inner[:2], *inner[3:]]) + "\n"


def test_files_of_another_shape_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text('{"question": "q", "answer": 3}\n')
    with pytest.raises(InputError, match=r"items.jsonl:1: fields .*neither"):
        read_code_items(path)


@pytest.mark.long
def test_gsm8k_items_are_restored_and_paired(shared: Path) -> None:
    gold = {}
    for line in (shared / "data" / "gsm8k_test.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        gold[row["question"]] = row["answer"].rpartition("####")[2].strip()
    items, rejected = read_code_items(shared / "data" / "gsm8k_code_solutions.jsonl", gold)
    assert (len(items), len(rejected)) == (651, 9)
    built = build(items[:45], rules=Rules(tries=8))
    assert len(built.cases) > 12
    assert built.magnitude["p"] > 0.5


def test_items_that_few_samples_solve_are_queued_and_a_person_settles_them(engine, tmp_path: Path) -> None:
    cases = build(ITEMS, rules=Rules(max_ratio=100, max_constant_ratio=100), seed=3).cases
    gold = {c.id: c.parts[1].answer for c in cases}
    easy, hard, shaky = cases[0].id, cases[1].id, cases[2].id

    def solve(ask: Ask) -> str:
        right = {easy: 16, hard: 3, shaky: 4}.get(ask.case, 16)
        if ask.case == hard and ask.repeat == 15:
            return "!server gone"
        return f"So the final answer is: {gold[ask.case] if ask.repeat < right else 1}"

    one, two = engine("solver-a", solve), engine("solver-b", solve)
    with Journal(tmp_path / "journal") as journal:
        records = review.queue(cases, [one, two], journal)
    assert len(one.asked) == len(two.asked) == 8 * len(cases)
    assert len({(a.case, a.seed) for a in one.asked + two.asked}) == 16 * len(cases)
    assert [(r["case"], r["agreeing"], r["outcomes"]["invalid"]) for r in records] == [(hard, 3, 1)]

    # Again: only what failed is asked again.
    with Journal(tmp_path / "journal") as journal:
        assert review.queue(cases, [one, two], journal) == records
    assert len(one.asked) + len(two.asked) == 16 * len(cases) + 1

    kept, left = review.settle(cases, records)
    assert [r["case"] for r in left] == [hard] and hard not in {c.id for c in kept}
    edit = {**records[0], "decision": "edit", "question": "Now 3?", "question_2": "Now X?", "answer": 4}
    (changed,) = [c for c in review.settle(cases, [edit])[0] if c.id == hard]
    assert (changed.answer, changed.parts[1].question, "Now X?" in changed.question) == ("4", "Now 3?", True)
    assert len(review.settle(cases, [{**edit, "decision": "drop"}])[0]) == len(cases) - 1
    for wrong, named in (
        ({"question_2": "Now 3?"}, "'question_2'.*without an X"),
        ({"answer": "few"}, "'answer'.*few"),
    ):
        with pytest.raises(InputError, match=f"review of .*{named}"):
            review.settle(cases, [{**edit, **wrong}])
    with pytest.raises(InputError, match="decision is 'maybe'"):
        review.settle(cases, [{**edit, "decision": "maybe"}])
    with pytest.raises(InputError, match="two records decide about it"):
        review.settle(cases, [edit, {**edit, "decision": "drop"}])


def test_samples_are_graded_as_the_part_that_is_reviewed_is(engine) -> None:
    """Its answer, the kind of answer, its other spellings and the prompt format; failures are no answers."""
    parts = (Part("Q1?", "2", "math", "number"), Part("Which way?", "north", "math", "text", aliases=("up",)))
    cases = [replace(build(ITEMS, rules=Rules(max_ratio=100, max_constant_ratio=100)).cases[0], parts=parts)]
    said = ("north", "up", "south", "!server gone")
    records = review.queue(
        cases, [engine("solver", lambda ask: said[ask.repeat] if ask.repeat == 3 else
                       f"So the final answer is: {said[ask.repeat]}")], samples=4, minimum=4,
    )  # fmt: skip
    assert [(r["agreeing"], r["outcomes"], r["samples"], r["answers"]) for r in records] == [
        (2, {"correct": 2, "incorrect": 1, "invalid": 1}, 4, {"north": 1, "up": 1, "south": 1})
    ]


def test_samples_are_graded_with_the_question_and_the_options_of_the_part(engine) -> None:
    options = (("A", "north"), ("B", "south"))
    parts = (Part("Q1?", "2", "math", "number"), Part("Which way is the pole?", "A", "math", "choice", options=options))
    cases = [replace(build(ITEMS, rules=Rules(max_ratio=100, max_constant_ratio=100)).cases[0], parts=parts)]
    said = ("north", "A", "south")
    found = review.queue(
        cases, [engine("solver", lambda ask: f"So the final answer is: {said[ask.repeat]}")], samples=3, minimum=3
    )
    assert [r["outcomes"] for r in found] == [{"correct": 2, "incorrect": 1}]


def test_the_benchmark_file_reads_back(tmp_path: Path) -> None:
    cases = build(ITEMS, rules=Rules(max_ratio=100, max_constant_ratio=100)).cases
    write_cases(cases, tmp_path / "cases.jsonl")
    back = read_cases(tmp_path / "cases.jsonl")
    assert default_protocol(back) == "reasoning-gap", "as the paper asks such pairs"
    assert [(c.id, c.question, c.parts, c.meta["x"]) for c in back] == [
        (c.id, c.question, c.parts, c.meta["x"]) for c in cases
    ]


def test_built_pairs_go_through_the_protocol_in_words_and_in_code(engine, tmp_path: Path) -> None:
    cases = build(ITEMS, rules=Rules(max_ratio=100, max_constant_ratio=100), seed=3).cases
    by_id = {c.id: c for c in cases}
    lost = cases[0].id

    def solve(ask: Ask) -> str:
        case = by_id[ask.case]
        if ask.role == "code":
            return "```python\n" + case.meta["code"] + "```"
        if ask.role == "whole":
            second = 0 if ask.case == lost else case.answer
            return f"The Q1 answer is {case.parts[0].answer}. So the final answer is: {second}"
        return f"So the final answer is: {ask.gold}"

    protocol = ReasoningGap(code=True)
    with Journal(tmp_path / "j") as journal:
        found = pipeline.evaluate(cases, protocol, engine("solver", solve), journal)
    roles = {r.role for r in found.graded}
    assert roles == {"part:0", "part:1", "whole", "pair:q1", "co-presented", "original", "code"}
    assert {(r.case, r.role) for r in found.graded if r.outcome != "correct"} == {(lost, "whole")}
    assert all(c.meta["independent"] != c.parts[0].question for c in cases)
    reduction = protocol.reduce(found.graded, by_id)
    assert reduction.case_set("second-hop-failure").ids == (lost,)


def test_a_step_that_a_new_number_makes_negative_or_broken_is_implausible() -> None:
    def ran(**variables: Any) -> CodeResult:
        return CodeResult(1, variables=variables)

    before = ran(a=4, b=0, c=2.5)
    for after, said in (
        ({"a": 4, "b": 0, "c": 7.25, "new": -1}, None),
        ({"a": 0, "b": 4, "c": 1}, None),
        ({"a": -1}, "a is -1"),
        ({"a": 4, "b": -0.5}, "b is -0.5"),
        ({"a": 4.5}, "a is 4.5"),
        ({"a": True, "b": "-1"}, None),
        ({"c": -2.5}, "c is -2.5"),
    ):
        assert compositional_gsm._implausible(before, ran(**after)) == said
    assert compositional_gsm._implausible(ran(a=-2), ran(a=-4)) is None


def test_what_a_bin_of_magnitudes_lacks_is_given_to_the_emptiest_of_the_others() -> None:
    def pairs(*answers: int) -> list[Any]:
        named: Any = SimpleNamespace
        return [named(answer=a, first=named(id="f"), second=named(id=f"{i:02d}")) for i, a in enumerate(answers)]

    rng, items = random.Random(0), [*[1] * 20, *[10] * 20, *[100] * 20]
    given = pairs(*[2] * 5, 11, *[101] * 9)
    chosen, surplus = compositional_gsm._match_magnitudes(given, items, 9, rng)
    assert Counter(c.answer for c in chosen) == {2: 4, 11: 1, 101: 4}
    assert len(chosen) + len(surplus) == 15 and {c.second.id for c in chosen}.isdisjoint(c.second.id for c in surplus)
    assert [c.second.id for c in chosen] == sorted(c.second.id for c in chosen)
    for size in (0, 16):
        with pytest.raises(NoCasesError, match=f"size is {size}, but 15 pairs"):
            compositional_gsm._match_magnitudes(given, items, size, rng)
    assert len(compositional_gsm._match_magnitudes(given, items, 15, rng)[0]) == 15
    chosen, surplus = compositional_gsm._match_magnitudes(pairs(2, 3), items, None, rng)
    assert (len(chosen), len(surplus)) == (1, 1), "two of one bin are never in proportion, and one pair is made"
    items, given = [*[1] * 10, *[5] * 30, *[9] * 20], pairs(*[2] * 12, 5, *[10] * 12)
    drawn = [compositional_gsm._match_magnitudes(given, items, 10, random.Random(seed))[0] for seed in (0, 1)]
    assert [Counter(c.answer for c in some) for some in drawn] == [{2: 3, 5: 1, 10: 6}] * 2, "in proportion"
    assert drawn[0] != drawn[1], "which of a bin are taken is drawn"
    for counts, most in (([10, 1], 3), ([40, 36], 76)):  # one of 20 pairs may be in a wrong bin
        assert compositional_gsm._largest_match(np.array([0.5, 0.5]), np.array(counts)) == most


def _reviewed() -> list[Any]:
    return build(ITEMS, rules=Rules(max_ratio=100, max_constant_ratio=100), seed=3).cases[:3]


EDIT = {"decision": "edit", "question": "Now 3?", "question_2": "Now X?", "answer": 4}


def test_a_person_keeps_drops_edits_or_leaves_open_and_every_other_decision_is_named() -> None:
    a, b, c = cases = _reviewed()
    decisions = [{"case": a.id, "decision": "drop"}, {"case": b.id, **EDIT}, {"case": c.id, "decision": "open"}]
    (changed,), left = review.settle(cases, decisions)
    assert (changed.id, changed.answer, changed.parts[1].question) == (b.id, "4", "Now 3?")
    second = replace(b.parts[1], question="Now 3?", answer="4")
    assert b.meta["code"] and changed == replace(
        b, question=changed.question, answer="4", parts=(b.parts[0], second),
        meta={k: v for k, v in b.meta.items() if k != "code"} | {"question_2": "Now X?", "edited": True},
    ), "all else stays, but the program of the old question"  # fmt: skip
    assert "Now X?" in changed.question and b.parts[0].question in changed.question and left == decisions[2:]
    assert review.settle(cases, [{"case": a.id, "decision": "keep"}]) == (cases, []) == review.settle(cases, [])
    for wrong, said in (
        ({"case": "zz", "decision": "keep"}, ("'zz'",)),
        ({"case": a.id, "decision": "maybe"}, (f"{a.id!r}", "decision is 'maybe'")),
        ({"case": a.id}, (f"{a.id!r}", "decision is None")),
        ({"case": a.id, **EDIT, "question": " "}, (f"{a.id!r}", "'question' is missing")),
        ({"case": a.id, **EDIT, "question": ["Now 3?"]}, (f"{a.id!r}", "'question' is missing")),
        ({"case": a.id, **EDIT, "question_2": None}, (f"{a.id!r}", "'question_2' is missing")),
        ({"case": a.id, **EDIT, "answer": ""}, (f"{a.id!r}", "'answer' is missing")),
        ({"case": a.id, **EDIT, "question_2": "Now 3?"}, (f"{a.id!r}", "'question_2' is 'Now 3?'")),
        ({"case": a.id, **EDIT, "answer": "few"}, (f"{a.id!r}", "'answer' is 'few'")),
    ):
        with pytest.raises(InputError) as caught:
            review.settle(cases, [wrong])
        assert all(fact in str(caught.value) for fact in said), caught.value


def test_a_review_asks_each_solver_its_share_and_queues_what_too_few_samples_reach(engine) -> None:
    cases = _reviewed()[:1]
    gold = cases[0].parts[1].answer
    one, two = (engine(n, lambda ask: f"So the final answer is: {gold if ask.repeat < 2 else 1}") for n in "ab")
    assert review.queue(cases, [one, two], samples=3, minimum=2, seed=5) == []
    (record,) = review.queue(cases, [one, two], samples=3, minimum=3, seed=5)
    assert record == {
        "case": cases[0].id, "question": cases[0].parts[1].question, "answer": gold, "agreeing": 2, "minimum": 3,
        "samples": 3, "outcomes": {"correct": 2, "incorrect": 1}, "answers": {gold: 2, "1": 1}, "decision": "open",
    }  # fmt: skip
    assert {(a.repeat, a.seed, a.temperature) for a in one.asked} == {(0, 5, 0.7), (2, 7, 0.7)}
    assert {(a.repeat, a.seed, a.role, a.format) for a in two.asked} == {(1, 6, "part:1", "cot")}
    for solvers, samples, minimum in (([], 3, 2), ([one], 3, 0), ([one], 3, 4)):
        with pytest.raises(InputError, match=f"minimum is {minimum} of {samples} samples by {len(solvers)} solvers"):
            review.queue(cases, solvers, samples=samples, minimum=minimum)
    with pytest.raises(InputError, match=f"case {re.escape(repr(cases[0].id))}: has 1 parts, part 1"):
        review.queue([replace(cases[0], parts=cases[0].parts[:1])], [one])


def test_an_id_of_two_items_with_code_and_no_item_at_all_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    row = {"id": "a", "question": "q?", "code": "def solution():\n    return 3\n", "answer": 3}
    path.write_text("".join(json.dumps({**row, "id": i}) + "\n" for i in "aba"))
    with pytest.raises(InputError, match=r"items\.jsonl: id 'a' is used 2 times"):
        read_code_items(path)
    with pytest.raises(NoCasesError):
        build([])
