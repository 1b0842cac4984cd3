"""Scaffold generation with a teacher, judge, solver and target that really compute (sums in words)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError, JournalError, NoCasesError
from composcope.evaluation import pipeline
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.benchmarks.stad import (
    StadItem,
    StadStep,
    case_from_item,
    placeholder_text,
    read_items,
    record_from_item,
)
from composcope.evaluation.builders import review as quality
from composcope.evaluation.builders import scaffold_teacher as parsing
from composcope.evaluation.builders import scaffolds
from composcope.evaluation.builders.scaffolds import Roles, Settings, from_cases, generate, items_from_cases
from composcope.evaluation.cases import Case, Part, read_cases, write_cases
from composcope.evaluation.journal import Journal
from composcope.evaluation.judging import agree
from composcope.evaluation.protocols.scaffolding import Scaffolding

OPERATIONS = {"Add": lambda v, n: v + n, "Subtract": lambda v, n: v - n, "Multiply by": lambda v, n: v * n}
STEP = re.compile(r"(Add|Subtract|Multiply by) (\d+)")


def _last(pattern: str, text: str) -> str:
    return re.findall(pattern, text, re.DOTALL)[-1]


def _running(question: str) -> tuple[list[int], list[tuple[str, str]]]:
    """Start value and the value after each operation; the operations."""
    values = [int(_last(r"Start with (\d+)", question))]
    steps = STEP.findall(question)
    for op, n in steps:
        values.append(OPERATIONS[op](values[-1], int(n)))
    return values, steps


def _question(start: int, steps: list[tuple[str, str]]) -> str:
    return f"Start with {start}. " + " ".join(f"{op} {n}." for op, n in steps) + " What is the result?"


def teach(ask: Ask) -> str:
    """A teacher that solves sums, and its flaws where a question asks for them by a word."""
    prompt = ask.prompt
    if prompt.startswith("You compare"):
        gold, given = _last(r"Right answer: (\S+)", prompt), _last(r"Given answer: (.*?)\n\nReply", prompt)
        if "[mute judge]" in prompt:
            return "Both look fine to me."
        return json.dumps({"score": int(re.findall(r"-?\d+", given)[-1:] == [gold])})
    if prompt.startswith("Somebody"):
        done, last = re.findall(r"^\d+\. .*: (-?\d+)$", prompt, re.MULTILINE), _last(r"Last step: (.*)", prompt)
        op, n = STEP.findall(last)[0]
        return f"So the final answer is: {OPERATIONS[op](int(done[-1]), int(n))}"
    question = _last(r"Question: ([^\n]*result\?)", "Question: " + prompt if ask.role.startswith("verify") else prompt)
    values, steps = _running(question)
    n_done = len(re.findall(r"^\d+\. ", prompt.rsplit("Done:", 1)[-1], re.MULTILINE))
    if prompt.startswith("Split"):
        if "[mumbles once]" in prompt and ask.seed == 0:
            return "Well, first one adds."
        if "[mumbles]" in prompt:
            return '{"steps": ["Add'
        return "Here:\n```json\n" + json.dumps([{"segment": f"{op} {n}"} for op, n in steps]) + "\n```"
    if prompt.startswith("Solve the question"):
        shift = 1 if "[miscounts]" in prompt else 0
        answers = [{"explanation": "by computing", "answer": v + shift} for v in values[1:]]
        return json.dumps(answers[:-1] if "[forgets]" in prompt else answers)
    if prompt.startswith("Rewrite"):
        if "[rambles]" in prompt:
            return "It would go on with fewer steps."
        return "**Rewritten question:** " + _question(values[n_done] + ("[garbles]" in prompt), steps[n_done:])
    if prompt.startswith("Write one step"):
        if "[down]" in prompt:
            return "!server gone"
        return f"Question: {_question(values[n_done], steps[n_done : n_done + 1])}"
    return f"It comes to that. So the final answer is: {values[-1]}"


def _case(name: str, *steps: str, start: int = 5, flaw: str = "", answer: int | None = None) -> Case:
    question = f"{flaw} " + f"Start with {start}. " + " ".join(f"{s}." for s in steps) + " What is the result?"
    value = _running(question)[0][-1]
    return Case(name, question.strip(), str(value if answer is None else answer), answer_type="number")


THREE = _case("three", "Add 4", "Multiply by 3", "Subtract 2")
TWO = _case("two", "Multiply by 10", "Add 7", start=3)
FOUR = _case("four", "Add 1", "Add 1", "Multiply by 2", "Add 30")
GOOD = [THREE, TWO, FOUR]
FLAWED = [
    _case("one-step", "Add 4"),
    _case("long", *[f"Add {n}" for n in range(1, 9)]),
    _case("mumbles", "Add 4", "Add 5", flaw="[mumbles]"),
    _case("forgets", "Add 4", "Add 5", flaw="[forgets]"),
    _case("miscounts", "Add 4", "Add 5", flaw="[miscounts]"),
    _case("garbles", "Add 4", "Add 5", flaw="[garbles]"),
    _case("rambles", "Add 4", "Add 5", flaw="[rambles]"),
    _case("down", "Add 4", "Add 5", flaw="[down]"),
    _case("mute", "Add 4", "Add 5", flaw="[mute judge]", answer=0),
]


def test_every_stage_fills_its_fields_from_the_teachers_replies(engine) -> None:
    made = generate(items_from_cases(GOOD), Roles([engine("teacher", teach)]))
    assert [i.id for i in made.items] == ["three", "two", "four"] and made.dropped == []
    item = made.items[0]
    assert [(s.segment, s.answer) for s in item.steps] == [
        ("Add 4", "9"),
        ("Multiply by 3", "27"),
        ("Subtract 2", "25"),
    ]
    assert item.scaffolds == (
        "Start with 9. Multiply by 3. Subtract 2. What is the result?",
        "Start with 27. Subtract 2. What is the result?",
    )
    assert [c and c.verdict for c in item.checks] == [True, True]
    assert [s.task for s in item.steps][1] == "Start with 9. Multiply by 3. What is the result?"
    assert (item.teacher, made.report["mean_k"], made.report["k"]) == ("teacher", 3.0, {"2": 1, "3": 1, "4": 1})


def test_only_what_the_teacher_writes_is_sampled_and_all_budgets_are_equal(engine) -> None:
    teacher = engine("teacher", teach)
    generate(items_from_cases(GOOD), Roles([teacher]))
    temperatures = {ask.role.partition(":")[0]: ask.temperature for ask in teacher.asked}
    assert temperatures == {"decompose": 0.2, "answer": 0.2, "scaffold": 0.2, "stand-alone": 0.2, "verify": 0.0}
    assert {ask.max_tokens for ask in teacher.asked} == {2000}


def test_an_item_may_have_as_many_steps_as_are_asked_for(engine) -> None:
    made = generate(items_from_cases(GOOD), Roles([engine("teacher", teach)]), Settings(max_steps=3))
    assert [i.id for i in made.items] == ["three", "two"]
    assert [(d["id"], d["reason"]) for d in made.dropped] == [("four", "too-many-steps: 4")]
    by_people = [replace(i, checks=(), scaffolds=()) for i in generate(items_from_cases(GOOD), roles(engine)).items]
    kept = generate(by_people, roles(engine), Settings(max_steps=2))
    assert [len(i.steps) for i in kept.items] == [3, 2, 4], "people may take as many steps as they like"


def roles(engine: Any) -> Roles:
    return Roles([engine("teacher", teach)])


def test_every_item_that_leaves_says_where_and_why(engine) -> None:
    roles = Roles([engine("teacher", teach)], judge=engine("judge", teach))
    made = generate(items_from_cases([*FLAWED, *GOOD]), roles)
    assert [i.id for i in made.items] == ["three", "two", "four"]
    reasons = {d["id"]: (d["stage"], d["reason"].split(":")[0]) for d in made.dropped}
    assert reasons == {
        "one-step": ("decompose", "single-step"),
        "long": ("decompose", "too-many-steps"),
        "mumbles": ("decompose", "unread"),
        "forgets": ("answer", "unread"),
        "miscounts": ("consistency", "last-answer-differs"),
        "garbles": ("verify", "not-solved"),
        "rambles": ("scaffold", "unread"),
        "down": ("stand-alone", "unread"),
        "mute": ("consistency", "unjudged"),
    }
    assert sum(made.report["dropped"].values()) == 9
    assert made.report["unread"] == {"decompose": 3, "answer": 3, "scaffold": 3, "stand-alone": 6}


def test_a_reply_that_cannot_be_read_is_asked_again_with_another_seed(engine) -> None:
    teacher = engine("teacher", teach)
    case = _case("again", "Add 4", "Add 5", flaw="[mumbles once]")
    made = generate(items_from_cases([case]), Roles([teacher]))
    assert [i.id for i in made.items] == ["again"] and made.report["unread"] == {"decompose": 1}
    assert [a.seed for a in teacher.asked if a.role == "decompose"] == [0, 1]


def test_the_judge_is_asked_only_where_the_rules_find_no_match(engine) -> None:
    judge = engine("judge", teach)
    generate(items_from_cases(GOOD), Roles([engine("teacher", teach)], judge=judge))
    assert judge.asked == []

    def wordy(ask: Ask) -> str:
        text = teach(ask)
        return text.replace("So the final answer is: ", "I get ") if ask.role.startswith("verify") else text

    made = generate(items_from_cases([TWO]), Roles([engine("wordy", wordy)], judge=judge))
    assert [i.id for i in made.items] == ["two"] and len(judge.asked) == 1
    without = generate(items_from_cases([TWO]), Roles([engine("wordy", wordy)]))
    assert without.items == [] and without.dropped[0]["reason"].startswith("unjudged")
    asked = Ask("two", "verify:1", "", TWO.answer, "number", "cot", question=TWO.question)
    cut = asked, Response("", "I get 37", "length", 0, 0)
    assert agree([cut], judge)[0].right is None and len(judge.asked) == 1, "what was cut off is no answer"

    def mixed(ask: Ask) -> str:
        return "So the final answer is: 1" if ask.role == "verify:2" else wordy(ask)

    [three] = generate(items_from_cases([THREE]), Roles([engine("mixed", mixed)])).dropped
    assert three["reason"] == "not-solved: at levels [1, 2]", "one of them was not judged, but the other is wrong"


def test_several_teachers_share_the_items(engine) -> None:
    def refuses(ask: Ask) -> str:
        return teach(ask) if "Start with 3" in ask.prompt.rsplit("Question:", 1)[-1] else "I would rather not."

    first, second = engine("first", refuses), engine("second", teach)
    fallback = generate(items_from_cases(GOOD), Roles([first, second]))
    assert {i.id: i.teacher for i in fallback.items} == {"three": "second", "two": "first", "four": "second"}
    assert [(d["id"], d["teacher"]) for d in fallback.dropped] == [("three", "first"), ("four", "first")]
    rotate = generate(items_from_cases(GOOD), Roles([second, engine("third", teach)], sharing="rotate"))
    assert [i.teacher for i in rotate.items] == ["second", "third", "second"]
    with pytest.raises(InputError, match="0 teachers"):
        Roles([])


def test_a_stopped_generation_goes_on_from_the_journal(engine, tmp_path: Path) -> None:
    class PowerCutError(RuntimeError):
        pass

    def until_cut(ask: Ask) -> str:
        if len(teacher.asked) > 11:
            raise PowerCutError
        return teach(ask)

    teacher = engine("teacher", until_cut)
    with Journal(tmp_path / "j") as journal, pytest.raises(PowerCutError):
        generate(items_from_cases(GOOD), Roles([teacher]), journal=journal)
    again = engine("teacher", teach)
    with Journal(tmp_path / "j") as journal:
        made = generate(items_from_cases(GOOD), Roles([again]), journal=journal)
    whole = engine("teacher", teach)
    assert made == generate(items_from_cases(GOOD), Roles([whole]))
    assert len(again.asked) == len(whole.asked) - 11
    again.provenance = {"engine": "another version"}
    with Journal(tmp_path / "j") as journal, pytest.raises(JournalError, match="--reuse"):
        generate(items_from_cases(GOOD), Roles([again]), journal=journal)


def test_stages_that_are_there_already_are_kept(engine) -> None:
    (item,) = generate(items_from_cases([THREE]), Roles([engine("teacher", teach)])).items
    half = StadItem(item.id, item.question, item.gold, item.steps, teacher="people")
    other = engine("other", teach)
    made = generate([half], Roles([other]))
    assert made.items[0].teacher == "people" and made.items[0].scaffolds == item.scaffolds
    assert {a.role.partition(":")[0] for a in other.asked} == {"scaffold", "verify"}
    with pytest.raises(InputError, match="2 answers for 3 sub-tasks"):
        broken = StadItem("x", "q", 1, (*item.steps[:2], StadStep("Subtract 2")))
        generate([broken], Roles([other]))


def test_records_of_the_released_shape_are_written_and_read_back(engine, tmp_path: Path) -> None:
    made = generate(items_from_cases(GOOD), Roles([engine("teacher", teach)]))
    path = tmp_path / "sums_final.jsonl"
    path.write_text("".join(json.dumps(record_from_item(i)) + "\n" for i in made.items))
    raw = json.loads(path.read_text().splitlines()[0])
    assert raw["sub-task"][0] == {"segment": "Add 4"} and raw["sub-task-answer"][2]["answer"] == "25"
    assert len(raw["scaffolding"]) == len(raw["scaffolding_verification"]) == 2 and len(raw["decompositions"]) == 3
    assert raw["scaffolding_verification"][0]["score"] == 1
    assert read_items(path) == made.items


CITY = Case(
    "city", "Which one is the seat of the UN?", "New York City", family="seats", cluster="un", chance=0.5,
    aliases=("NYC", "Big Apple"), evidence=("The UN has four seats.",), meta={"crossed": "cities", "format": "short"},
    parts=(
        Part("In which state is it?", "New York", aliases=("NY",)),
        Part("Which is it?", "B", answer_type="choice", options=(("A", "Boston"), ("B", "New York City"))),
    ),
)  # fmt: skip
ROAD = Case("road", "Which road leads to Boston?", "I-95 N", (Part("Where is it?", "1984"), Part("Which?", "I-95 N")))
CHOICE = Case(
    "choice", "Which is cold?", "B", (Part("What is ice?", "water"), Part("Which?", "B")), answer_type="choice",
    options=(("A", "fire"), ("B", "ice")),
)  # fmt: skip


@pytest.mark.parametrize("case", [CITY, ROAD, CHOICE])
def test_a_built_case_keeps_what_its_case_said(case: Case, tmp_path: Path) -> None:
    last = Part("Which is it?", "NYC") if case is CITY else case.parts[1]
    (item,), dropped = from_cases([replace(case, parts=(case.parts[0], last))])
    path = tmp_path / "records.jsonl"
    path.write_text(json.dumps(record_from_item(item)))
    built = case_from_item(item)
    assert dropped == [] and list(map(case_from_item, read_items(path))) == [built]
    for name in ("answer", "answer_type", "aliases", "options", "evidence", "family", "cluster", "chance", "crossed"):
        assert getattr(built, name) == getattr(case, name), name
    assert [p.answer_type for p in built.parts] == ["text", "text"]
    assert built.parts[0].aliases == case.parts[0].aliases and built.meta.get("format") == case.meta.get("format")
    write_cases([built], path)
    assert read_cases(path) == [built]


@pytest.mark.parametrize(("name", "value"), [("parts", 3), ("parts", ["x"]), ("aliases", "NYC"), ("alias", ["NYC"])])
def test_a_wrong_field_of_the_case_in_a_record_is_named(name: str, value: object) -> None:
    (item,), _ = from_cases([CHOICE])
    with pytest.raises(InputError, match=f"item 'choice', of_case.*{name}"):
        case_from_item(replace(item, extra={"of_case": {**item.extra["of_case"], name: value}}))


def test_options_of_human_steps_are_kept() -> None:
    (item,), _ = from_cases([replace(CHOICE, parts=(CHOICE.parts[0], replace(CITY.parts[1], answer="B")))])
    assert case_from_item(item).parts[1].options == CITY.parts[1].options
    fewer = {**item.extra["of_case"], "parts": item.extra["of_case"]["parts"][1:]}
    assert case_from_item(replace(item, extra={"of_case": fewer})).parts[1].answer == "B", "parts of another number"


def test_a_teacher_sees_evidence_and_options_and_may_answer_an_alias(engine) -> None:
    def rule(ask: Ask) -> str:
        if ask.prompt.startswith("Split"):
            return '{"steps": ["Find the state", "Find the city"]}'
        if ask.prompt.startswith("Solve"):
            return json.dumps(
                {"answers": [{"answer": "New York"}, {"answer": "ice" if "fire" in ask.prompt else "NYC"}]}
            )
        if ask.prompt.startswith(("Rewrite", "Write")):
            return "Rewritten question: Which one is it, now?\nQuestion: Which is it, now?"
        return f"So the final answer is: {'ice' if 'fire' in ask.prompt else 'Big Apple'}"

    teacher = engine("teacher", rule)
    made = generate(items_from_cases([CITY, CHOICE]), Roles([teacher]))
    assert [i.id for i in made.items] == ["city", "choice"], made.dropped
    solved = [a.prompt for a in teacher.asked if a.prompt.startswith(("Split", "Solve")) or a.role.startswith("verify")]
    assert len(solved) == 6 and all("four seats" in p or "(B) ice" in p for p in solved)
    city, choice = map(case_from_item, made.items)
    assert {"New York City", "NYC", "Big Apple"} == {city.parts[1].answer, *city.parts[1].aliases}
    assert choice.parts[1].options == CHOICE.options and city.parts[0].aliases == ()


def test_a_target_is_diagnosed_on_the_generated_cases(engine, tmp_path: Path) -> None:
    items = generate(items_from_cases(GOOD), Roles([engine("teacher", teach)])).items
    cases = [case_from_item(i) for i in items]

    def one_step_only(ask: Ask) -> str:
        if "[VALUE]" in ask.prompt:
            return "So the final answer is: unclear"
        values, steps = _running(ask.prompt)
        return f"So the final answer is: {values[-1] if len(steps) < 2 else 0}"

    target = engine("target", one_step_only)
    with Journal(tmp_path / "j") as journal:
        found = pipeline.evaluate(cases, Scaffolding(), target, journal)
    reduced = Scaffolding().reduce(found.graded, {c.id: c for c in cases})
    assert {e.case: e.value for e in reduced.case_set("scaffold-k").entries} == {"three": 2, "two": 1, "four": 3}
    assert all(r.outcome == "correct" for r in found.graded if r.role.startswith("part:"))
    assert {r.role for r in found.graded if r.case == "two"} == {
        "whole",
        "part:0",
        "part:1",
        "scaffold:1",
        "placeholder:1",
    }
    two = next(c for c in cases if c.id == "two")
    assert two.meta["placeholders"] == ["Start with [VALUE]. Add 7. What is the result?"]


def test_values_that_the_question_holds_already_are_blanked_by_template(engine) -> None:
    case = _case("same", "Add 4", "Subtract 4", start=4)
    (item,) = generate(items_from_cases([case]), Roles([engine("teacher", teach)])).items
    clash = StadItem(item.id, "Start with 8? " + item.question, item.gold, item.steps, item.scaffolds, item.checks)
    assert case_from_item(clash).meta["placeholders"] == [f"Known: Add 4 [VALUE]. {clash.question}"]


@pytest.mark.parametrize(
    ("scaffold", "answers", "blanked"),
    [
        ("A red lid on a dark red box.", ("red", "dark red"), "A [VALUE] lid on a [VALUE] box."),
        ("A Red lid, 1.5 kg, 1 box.", ("1", "1.5", "red"), "A [VALUE] lid, [VALUE] kg, [VALUE] box."),
        ("Two red lids and a red box.", ("red", "red"), "Two [VALUE] lids and a [VALUE] box."),
        ("A dark red box.", ("red", "dark red"), "A [VALUE] box."),
        ("A reddish lid.", ("red",), None),
        ("A red lid.", ("red", "blue"), None),
        ("A red cup.", ("red", "cup"), None),  # the question has a cup
    ],
)
def test_every_value_in_a_rewrite_is_blanked_where_it_stands_or_else_in_the_steps(
    scaffold: str, answers: Sequence[str], blanked: str | None
) -> None:
    steps = (*(StadStep(f"Find {i}", a) for i, a in enumerate(answers)), StadStep("Say it", "7"))
    item = StadItem("a", "What of the cup?", 7, steps, ("",) * (len(answers) - 1) + (scaffold,))
    by_template = "".join(f"Known: Find {i} [VALUE]. " for i in range(len(answers))) + "What of the cup?"
    assert placeholder_text(item, len(answers)) == (blanked or by_template)


def test_coverage_asks_from_the_steps_alone(engine) -> None:
    items = generate(items_from_cases(GOOD), Roles([engine("teacher", teach)])).items
    solver = engine("solver", teach)
    share, verdicts = quality.coverage(items, solver)
    assert (share.count, share.n, share.value) == (3, 3, 1.0) and set(verdicts.values()) == {True}
    assert not any("What is the result" in a.prompt or a.gold in a.prompt for a in solver.asked)
    mute = engine("solver", lambda ask: "!gone" if ask.case == "two" else "So the final answer is: 1")
    share, verdicts = quality.coverage(items, mute)
    assert (share.count, share.n, share.n_unjudged, verdicts["two"]) == (0, 2, 1, None)


def test_redundancy_counts_equal_pairs_over_intermediate_answers() -> None:
    def item(*answers: str) -> StadItem:
        return StadItem("i", "q", answers[-1], tuple(StadStep("s", a) for a in answers))

    share = quality.redundancy([item("5", "5.0", "7", "5"), item("1", "2"), item("3", "3", "3", "9")])
    assert (share.count, share.n) == (1 + 0 + 3, 3 + 1 + 3)
    written = quality.redundancy(
        [item("1/2", "3/6", "9"), item(r"\sqrt{12}", r"2\sqrt{3}", "9"), item("red", "blue", "9")]
    )
    assert (written.count, written.n) == (2, 6), "equal as numbers, though not as texts"
    assert quality.redundancy([]).value is None


def test_filtering_is_compared_by_accuracy_and_topics() -> None:
    correct = {f"i{n}": (None if n == 0 else n % 2 == 0) for n in range(40)}
    clusters = {f"i{n}": 0 if n < 20 else 1 if n < 30 else 2 if n < 37 else 3 for n in range(40)}
    kept = [f"i{n}" for n in range(40) if n % 4 < 3]
    found = quality.filtering(correct, kept, clusters)
    assert found["before"] == {"count": 19, "n": 39, "n_unjudged": 1, "value": 19 / 39}
    assert found["after"]["count"] == 19 and found["after"]["n"] == 29
    assert found["pearson"] > 0.95 and found["p"] < 0.05 and found["n_clusters"] == 4
    with pytest.raises(InputError, match="'other' is not among"):
        quality.filtering(correct, ["other"], clusters)
    for known, topics in (({k: v for k, v in correct.items() if k != kept[0]}, clusters), (correct, {})):
        with pytest.raises(InputError, match=repr(kept[0])):
            quality.filtering(known, kept[:1], topics)


def test_a_filter_that_loses_topics_correlates_less_than_random_subsets_do() -> None:
    topics = {f"{topic}-{n}": topic for topic, size in enumerate((60, 50, 40, 30, 20, 10)) for n in range(size)}
    judged = dict.fromkeys(topics, True)
    lost = [i for i, topic in topics.items() if topic != 4]
    by_chance = [np.random.default_rng(seed).permutation(list(topics))[: len(lost)].tolist() for seed in range(40)]
    found = quality.filtering(judged, lost, topics, seed=1)
    # The paper's p calls both alike: it asks whether there is any correlation, and there always is.
    assert found["p"] < 0.05 and found["p_random"] == pytest.approx(1 / 2001)
    assert found["pearson"] < found["random_low"] < found["random_high"]
    other = quality.filtering(judged, lost, topics, seed=2)
    assert other["random_low"] != found["random_low"] and other["pearson"] == found["pearson"], "its own random subsets"
    null = [quality.filtering(judged, kept, topics, seed=1) for kept in by_chance]
    assert all(row["p"] < 0.05 for row in null) and sum(row["p_random"] < 0.05 for row in null) <= 5
    assert 30 <= sum(row["random_low"] <= row["pearson"] <= row["random_high"] for row in null)


def test_topics_have_the_middle_95_percent_of_random_subsets_beside_them(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = np.arange(1001) / 1000
    monkeypatch.setattr(quality, "_of_random_subsets", lambda *_: drawn)
    topics = {f"i{n}": n % 3 for n in range(9)} | {"j": 0}
    found = quality.filtering(dict.fromkeys(topics, True), ["i0", "i1", "i2", "i3", "i4"], topics)
    assert (found["random_low"], found["random_high"]) == pytest.approx((0.025, 0.975))
    # all: 4, 3, 3; kept: 2, 2, 1; r = 0.5, of which 0 to 0.5 are no larger, and the items kept are one themselves
    assert found["pearson"] == pytest.approx(0.5) and found["p_random"] == pytest.approx(502 / 1002)


def test_a_request_holds_all_that_the_teacher_is_to_work_with() -> None:
    done = [("Add 4", "9"), ("Halve it", "4.5")]
    for request, facts in (
        (parsing.steps_request("How many?", 7), ("at most 7 steps", "Question: How many?")),
        (
            parsing.answers_request("How many?", ["Add 4", "Halve it", "Say it"]),
            ("exactly 3 answers", "Question: How many?\nSteps:\n1. Add 4\n2. Halve it\n3. Say it"),
        ),
        (
            parsing.rewrite_request("How many?", done),
            (parsing.REWRITTEN, "Question: How many?\nDone:\n1. Add 4: 9\n2. Halve it: 4.5"),
        ),
        (
            parsing.task_request("How many?", done, "Say it"),
            (parsing.TASK, "Question: How many?\nDone:\n1. Add 4: 9\n2. Halve it: 4.5\nStep: Say it"),
        ),
        (parsing.task_request("How many?", [], "Add 4"), ("Question: How many?\nDone:\n(nothing)\nStep: Add 4",)),
        (
            parsing.coverage_request([*done, ("Say it", "secret")]),
            ("1. Add 4: 9\n2. Halve it: 4.5\nLast step: Say it",),
        ),
    ):
        assert all(fact in request for fact in facts) and "secret" not in request, request
        if "Example" in request:
            assert request.rindex("How many?") > request.index("Example"), "what is asked comes last"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('[{"segment": "Say \\"hi\\""}, {"segment": "Look [here]"},]', ['Say "hi"', "Look [here]"]),
        ("Steps: {'steps': ['a', 'b']} (see [1])", ["a", "b"]),
        ('<think>["x", "y"]</think>{"steps": ["a"\n "b"]}', ["a", "b"]),
        ('{"steps": [{"step": "a", "description": "w"}, "b"]}', ["a", "b"]),
        ('[{"why": "w", "Segment": "a"}, {"note": "n", "description": "b", "step": 2}]', ["a", "b"]),
        ('{"steps": [{"step": 1, "description": "Add 4"}, {"step": 2, "description": "Sum"}]}', ["Add 4", "Sum"]),
        ('{"result": {"steps": ["Add 4", "Sum"]}}', ["Add 4", "Sum"]),
        ('["Write \\"]\\" behind it", "Write \\\\"]', ['Write "]" behind it', "Write \\"]),
    ],
)
def test_steps_are_read_in_many_dresses(reply: str, value: list[str]) -> None:
    assert parsing.steps(reply) == parsing.Parsed(value)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ('[{"explanation": "half: \\frac{1}{2}", "answer": "\\frac{1}{2}", "note": 1}]', "\\frac{1}{2}"),
        ('[{"explanation": "a } in here", "answer": 0}]', "0"),
        ('[{"explanation": "", "answer": "\\sqrt{2} \\times \\theta"}]', "\\sqrt{2} \\times \\theta"),
        ('[{"explanation": "a\\nb", "answer": true}]', "yes"),
        ('{"answers": [{"result": "3 hours"}]}', "3 hours"),
        ('{"steps": [{"answer": "2"}], "answers": [{"answer": "7"}]}', "7"),
        ('[{"answer": "3", "tried": [{"answer": "9"}]}]', "3"),
        ('[{"answer": "\\u00e9t\\u00e9"}]', "\u00e9t\u00e9"),
        ('[{"answer": "\\underline{5} \\uparrow \\u00e9"}]', "\\underline{5} \\uparrow \u00e9"),
        ('[{"answer": "old"}] or [draft} [{"answer": "new"}] and [no list', "new"),
        ('[{"answer": "old"}] and [two words]', "old"),
    ],
)
def test_answers_are_read_with_latex_extra_keys_and_zeros(reply: str, value: str) -> None:
    read = parsing.answers(reply, 1)
    assert read.value is not None and read.value[0][1] == value


def test_answers_to_another_number_of_steps_are_never_cut_to_fit() -> None:
    assert parsing.answers('[{"answer": 1}]', 2).problem == "1 answers for 2 steps"
    assert parsing.answers('[{"answer": 1}, {"answer": 2}]', 1).problem == "2 answers for 1 steps"
    assert parsing.answers('[{"answer": 1}, {"answer": ', 2).problem == "no list of answers: it is not closed"
    for reply in ('[{"explanation": "x"}]', '["3"]', '[{"answer": " "}]', '[{"answer": 1}, 2]', "[two words]"):
        assert parsing.answers(reply, 1).problem == "no list of answers", reply
    assert parsing.steps("[" * 5000).value is None


@pytest.mark.parametrize("end", ["</think>I would rather not.", "</think>", ""])
def test_what_a_teacher_only_thinks_is_no_reply(end: str) -> None:
    thought = '<think>["a", "b"] [{"answer": 1}]\nRewritten question: A?\n'
    assert parsing.steps(thought + end).value is None and parsing.answers(thought + end, 1).value is None
    assert parsing.marked(thought + end, parsing.REWRITTEN).value is None


def test_marked_texts_are_taken_whole_after_the_last_marker() -> None:
    read = parsing.marked("Rewritten question: draft?\n\n**Rewritten Question:** A?\n\nB?", "Rewritten question:")
    assert read.value == "A?\n\nB?"
    for reply, text in (('"Rewritten question: A?"', "A?"), ('Rewritten question: What is "x"', 'What is "x"')):
        assert parsing.marked(reply, "Rewritten question:").value == text
    assert parsing.marked("<think>Rewritten question: no</think>", "Rewritten question:").value is None
    assert (
        parsing.marked("Rewritten question:  ", "Rewritten question:").problem == "nothing after 'Rewritten question:'"
    )


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(InputError, match="max_steps is 1"):
        Settings(max_steps=1)


def test_items_of_one_id_and_stages_that_do_not_fit_are_refused_and_a_cut_off_reply_says_so(engine) -> None:
    roles, items = Roles([engine("teacher", teach)]), items_from_cases(GOOD)
    with pytest.raises(InputError, match="item id 'two' is used more than once"):
        generate([*items, items[1]], roles)
    steps = (StadStep("Add 4", "9"), StadStep("Add 5", "14"))
    for changes, said in (
        ({"steps": (steps[0], replace(steps[1], answer=None))}, "1 answers for 2 sub-tasks"),
        ({"steps": steps, "scaffolds": ("a", "b")}, "2 scaffolding for 2 sub-tasks"),
        ({"steps": steps, "scaffolds": (" ",)}, "an empty scaffold"),
    ):
        with pytest.raises(InputError, match=f"item 'three': {said}"):
            generate([replace(items[0], **changes)], roles)
    for reason, error, said in (
        ("length", None, "truncated: no list"),
        ("stop", None, "no list"),
        ("error", "down", "error: down"),
    ):
        response = Response("k", "Well", reason, 1, 1, error=error)  # type: ignore[arg-type]
        read = scaffolds._read(("i", "answer"), response, lambda _, text: parsing.answers(text, 1))
        assert str(read.problem).startswith(said)


@pytest.mark.parametrize(
    ("text", "finish", "problem"),
    [
        ("Question: A hall has 240 seats, of which", "length", "truncated: the text has no end"),
        ("Question: A hall has 240 seats. How many?", "stop", None),
        ('{"steps": ["Add 4", "Add 5"]} So', "length", None),
    ],
)
def test_a_question_of_the_teacher_that_was_cut_off_is_not_taken(text: str, finish: str, problem: str | None) -> None:
    response = Response("k", text, finish, 1, 1)  # type: ignore[arg-type]

    def takes(_: tuple[str, str], reply: str) -> parsing.Parsed[Any]:
        return parsing.steps(reply) if text.startswith("{") else parsing.marked(reply, parsing.TASK)

    found = scaffolds._read(("i", "x"), response, takes)
    assert found.problem == problem and (found.value is None) == (problem is not None)


def test_topics_are_compared_over_three_clusters_and_no_fewer() -> None:
    correct = {f"i{n}": True for n in range(6)}
    with pytest.raises(NoCasesError, match="2 clusters"):
        quality.filtering(correct, ["i0"], {i: n % 2 for n, i in enumerate(correct)})
    assert quality.filtering(correct, ["i0"], {i: n % 3 for n, i in enumerate(correct)})["n_clusters"] == 3
