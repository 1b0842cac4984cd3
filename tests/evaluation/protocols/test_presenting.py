"""How asks are put: examples, preamble, completion prompts, thinking, budgets, and the counting per way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation.asks import Ask, Grade
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.evaluation.grading import grade
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.protocols import get, presenting, reduce
from composcope.evaluation.protocols.asking import MAX_TOKENS
from composcope.evaluation.protocols.base import Reduction, uncounted
from composcope.evaluation.protocols.presenting import Exemplar, FormattedProtocol, Presentation, choose, examples_in
from composcope.evaluation.protocols.reasoning_gap import co_present

MIXED = Case(
    "m",
    "A shelf holds 2 spades and 9 cups. How many things dig?",
    "2",
    (
        Part("Which digs: spade or cup?", "spade", "commonsense"),
        Part("You have 2 spades. How many is that?", "2", "math", "number"),
    ),
    answer_type="number",
    meta={"reversed": {"question": "Of 2 spades and 9 cups, count what digs.", "answer": "2"}},
)
CHAIN = Case(
    "p",
    "There are X eggs and 2 more. How many eggs are there?",
    "8",
    (
        Part("Two rows hold 3 eggs each. How many eggs?", "6", "math", "number"),
        Part("There are 6 eggs and 2 more. How many eggs are there?", "8", "math", "number"),
    ),
    answer_type="number",
)


def asks_of(
    case: Case, protocol: str = "compositionality-gap", how: Presentation | None = None, **options
) -> dict[str, Ask]:
    presented = FormattedProtocol(get(protocol, **options), how or Presentation())
    return {ask.role: ask for ask in presented.asks(case, {})}


def test_the_defaults_leave_every_ask_as_the_protocol_made_it() -> None:
    protocol = get("compositionality-gap", also=("self-ask",))
    assert FormattedProtocol(protocol).asks(MIXED, {}) == protocol.asks(MIXED, {})


def test_worked_examples_stand_before_the_question_in_the_kind_of_each_ask() -> None:
    how = Presentation(exemplars=tuple(presenting.own("compositionality-gap", 2)))
    found = asks_of(MIXED, how=how, also=("self-ask",))
    assert "clear snow from a path: shovel" in found["part:0"].prompt
    assert "How many things do you carry?" in found["part:1"].prompt
    assert "carries out everything" in found["whole"].prompt
    assert "Follow up: Which of these" in found["self-ask"].prompt
    for ask in found.values():
        assert ask.prompt.count("Question: ") == 3 and ask.prompt.endswith(f"Question: {ask.question}")
        assert ask.prompt.count("So the final answer is: ") == 2
        assert ask.prompt.startswith("First come worked examples.") and "End with" in ask.prompt.split("\n\n")[0]


def test_steps_of_a_kind_without_examples_of_its_own_take_those_of_both_steps_in_turn() -> None:
    how = Presentation(exemplars=tuple(presenting.own("compositionality-gap", 2)))
    case = replace(MIXED, parts=(replace(MIXED.parts[0], kind="hop-1"), replace(MIXED.parts[1], kind=None)))
    found = asks_of(case, how=how)
    for role in ("part:0", "part:1"):
        assert found[role].prompt.count("Question: ") == 3
        assert "clear snow from a path: shovel" in found[role].prompt
    assert found["whole"].prompt == asks_of(MIXED, how=how)["whole"].prompt


def test_without_preamble_only_examples_and_question_remain() -> None:
    how = Presentation(exemplars=tuple(presenting.own("compositionality-gap", 1)), preamble="no")
    assert asks_of(MIXED, how=how)["whole"].prompt.startswith("Question: A caretaker")
    assert asks_of(MIXED, how=Presentation(preamble="no"))["whole"].prompt == MIXED.question


@pytest.mark.parametrize("prompting", ["chat", "raw"])
def test_a_program_is_asked_for_with_and_without_preamble(prompting: Any) -> None:
    alone = asks_of(CHAIN, "reasoning-gap", Presentation(prompting=prompting, preamble="no"), code=True)
    assert "Python code only" in alone["code"].prompt and "Python code only" not in alone["whole"].prompt
    shown = Presentation(prompting=prompting, preamble="no", exemplars=tuple(presenting.own("reasoning-gap", 1)))
    found = asks_of(CHAIN, "reasoning-gap", shown, code=True)["code"].prompt
    assert "def solve_q1()" in found and "Python code only" not in found


def test_both_preambles_are_asked_and_counted_apart() -> None:
    presented = FormattedProtocol(get("compositionality-gap"), Presentation(preamble="both"))
    asks = presented.asks(MIXED, {})
    assert {a.role for a in asks} == {r for a in ("part:0", "part:1", "whole") for r in (a, f"no-preamble/{a}")}
    rows = [
        Graded.of(
            MIXED,
            ask,
            Grade("incorrect" if ask.role == "no-preamble/whole" else "correct", "2"),
            ask_id=None,
            model=None,
            run=None,
        )
        for ask in asks
    ]
    found = presented.reduce(rows, {"m": MIXED})
    values = [find(found.metrics, "composition", **g) for g in ({}, {"prompt": "no-preamble"})]
    assert [m.value for m in values if m] == [1.0, 0.0]
    assert find(found.metrics, "gap", prompt="no-preamble").value == -1.0  # type: ignore[union-attr]
    assert [s.ids for s in found.case_sets] == [(), ("m",)]
    assert not found.warnings


def test_completion_prompts_end_in_answer_and_stop_at_the_next_question() -> None:
    how = Presentation("raw", tuple(presenting.own("compositionality-gap", 2)))
    ask = asks_of(MIXED, how=how)["whole"]
    assert ask.prompting == "raw" and ask.prompt.endswith(f"Question: {MIXED.question}\nAnswer:")
    assert ask.stop == ("\nQuestion:",)
    went_on = " Only spades dig. So the final answer is: 2\nQuestion:"
    assert grade(went_on, "stop", "2", "number", format=ask.format).outcome == "correct"


def test_all_eight_examples_of_the_reasoning_gap_are_right_and_written_as_answers_are_graded() -> None:
    other = replace(CHAIN.parts[0], question="How many legs do 2 hens have?")
    (case, _) = co_present([CHAIN, replace(CHAIN, id="q", parts=(other, CHAIN.parts[1]))])
    how = Presentation(exemplars=tuple(presenting.own("reasoning-gap", 8)))
    found = asks_of(case, "reasoning-gap", how, code=True)
    assert set(found) == {"part:0", "part:1", "whole", "pair:q1", "co-presented", "code"}
    assert found["whole"].prompt == found["pair:q1"].prompt
    others = asks_of(case, "reasoning-gap", replace(how, exemplars=(*how.exemplars, Exemplar("whole", "W?", "1"))))
    assert others["whole"].prompt == others["pair:q1"].prompt != found["whole"].prompt
    for role, ask in found.items():
        kind = {"part:0": "q1", "part:1": "q2", "whole": "pair", "pair:q1": "pair"}.get(role, role)
        chosen = presenting.choose(how.exemplars, ask, "reasoning-gap")
        assert len(chosen) == 8 and {e.kind for e in chosen} == {kind}
        if role == "pair:q1":
            continue
        for e in chosen:
            text = presenting.written(e, ask, "cot")
            assert text in ask.prompt and e.question in ask.prompt
            pairs = {x.question: x.answer for x in how.exemplars if x.kind == "pair"}
            gold = pairs[e.question] if role == "code" else e.answer
            assert grade(text, "stop", gold, "number", format=ask.format).outcome == "correct", text
    for pair in (e for e in how.exemplars if e.kind == "pair"):
        first = next(x.answer for x in how.exemplars if x.kind == "q1" and f"Q1: {x.question}\n" in pair.question)
        text = presenting.written(pair, found["pair:q1"], "cot")
        assert grade(text, "stop", first, "number", format="pair-q1").outcome == "correct"


def test_examples_come_from_a_file_by_role_kind_or_for_all(tmp_path: Path) -> None:
    path = tmp_path / "shots.jsonl"
    rows = [
        {"kind": "whole", "question": "W?", "answer": 4, "worked": "2 + 2 = 4"},
        {"kind": "self-ask", "question": "S?", "answer": "c"},
        {"kind": "*", "question": "A?", "answer": "b"},
    ]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    how = Presentation(exemplars=tuple(presenting.read(path)))
    found = asks_of(MIXED, how=how)
    assert "Question: W?\nAnswer: 2 + 2 = 4. So the final answer is: 4" in found["whole"].prompt
    assert "Question: A?\nAnswer: b. So the final answer is: b" in found["part:0"].prompt
    again = asks_of(MIXED, "double-gate", how, recovery=("self-ask",))
    assert "Question: S?" in again["whole:self-ask"].prompt and "Question: W?" in again["whole"].prompt


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", r"shots.jsonl:1: not valid JSON"),
        ('{"kind": "whole", "question": "Q"}', r"shots.jsonl:1: field 'answer' is None"),
        ('{"kind": "whole", "question": "Q", "answer": "a", "worked": 3}', r"'worked' is 3"),
        ('{"kind": "whole", "question": "Q", "answer": NaN}', r"shots.jsonl:1: field 'answer' is nan"),
        ('{"kind": "whole", "question": "Q", "answer": true}', r"shots.jsonl:1: field 'answer' is True"),
        ('{"kind": "whole", "question": "Q", "answer": "a", "wrked": "b"}', r":1: field 'wrked' .* mean 'worked'"),
        ("", "no rows"),
        ("[1]", r"shots.jsonl: item 0: .*int"),
        ('{"kind": "whole", "question": [], "answer": "a"}', r"shots.jsonl:1: field 'question' is \[\]"),
        ('{"kind": " ", "question": "Q", "answer": "a"}', r"shots.jsonl:1: field 'kind' is ' '"),
    ],
)
def test_a_file_of_examples_that_cannot_be_used_is_refused_by_line(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "shots.jsonl"
    path.write_text(line)
    with pytest.raises(InputError, match=said):
        presenting.read(path)


def test_numbers_of_an_example_are_written_as_one_writes_them_and_other_fields_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shots.jsonl"
    path.write_text('{"kind": "whole", "question": "Q", "answer": 12.0, "source": "mine"}')
    assert [e.answer for e in presenting.read(path)] == ["12"]


def test_missing_examples_are_said() -> None:
    with pytest.raises(InputError, match=r"--few-shot 3: give 1 to 2"):
        presenting.own("compositionality-gap", 3)
    with pytest.raises(InputError, match="no built-in examples for double-gate"):
        presenting.own("double-gate", 2)
    only = Presentation(exemplars=(presenting.Exemplar("whole", "q", "a"),))
    with pytest.raises(InputError, match=r"no worked example for role 'part:0' .*part:0, commonsense, part"):
        asks_of(MIXED, how=only)


@pytest.mark.parametrize("off", [None, False])
def test_thinking_again_has_its_own_budget_and_the_others_do_not_think(off: bool | None) -> None:
    how = Presentation(thinking_tokens=2000, thinking=off)
    found = asks_of(MIXED, "double-gate", how, recovery=("cot", "thinking"))
    think = found["whole:thinking"]
    assert (think.thinking, think.max_tokens, think.stop) == (True, 2000, ())
    assert think.prompt == found["whole"].prompt
    assert {a.thinking for r, a in found.items() if r != "whole:thinking"} == {False}
    assert found["whole"].max_tokens == 512 and found["whole:cot"].max_tokens == 1024
    for format, tokens in (("cot", 77), ("self-ask", 77), ("plain", MAX_TOKENS["plain"])):
        assert asks_of(MIXED, how=Presentation(cot_tokens=77), format=format)["whole"].max_tokens == tokens


def test_draws_have_the_seed_that_was_given() -> None:
    found = asks_of(MIXED, how=Presentation(temperature=0.7, seed=5))
    assert {(a.temperature, a.seed) for a in found.values()} == {(0.7, 5)}


def test_room_to_think_is_added_to_short_answers_and_never_taken_from_them() -> None:
    for own, room in ((50, 2000), (3000, 3000)):
        how = Presentation(may_think=True, thinking_tokens=2000)
        for format, most in (("short", room), ("xml", own)):
            found = asks_of(MIXED, "double-gate", how, format=format, max_tokens=own)
            assert {a.max_tokens for a in found.values()} == {most}


def test_thinking_needs_the_chat_template() -> None:
    with pytest.raises(InputError, match=r"--thinking needs.*use --prompting chat"):
        Presentation("raw", thinking=True)
    with pytest.raises(InputError, match="use --prompting chat"):
        asks_of(MIXED, "double-gate", Presentation("raw"), recovery=("thinking",))


def test_wholes_with_their_steps_reversed_are_asked_and_counted_against_the_same_parts() -> None:
    presented = FormattedProtocol(get("compositionality-gap", reversed=True))
    asks = presented.asks(MIXED, {})
    assert {a.role: a.gold for a in asks}["whole:reversed"] == "2"
    rows = [
        Graded.of(
            MIXED,
            a,
            Grade("correct" if a.role != "whole:reversed" else "incorrect", "2"),
            ask_id=None,
            model=None,
            run=None,
        )
        for a in asks
    ]
    assert find(presented.reduce(rows).metrics, "gap", prompt="reversed").value == -1.0  # type: ignore[union-attr]


def test_the_examples_of_a_prompt_can_be_found_again_for_the_probes() -> None:
    how = Presentation("raw", tuple(presenting.own("compositionality-gap", 2)))
    ask = asks_of(MIXED, how=how)["whole"]
    shown = examples_in(ask)
    assert shown is not None and shown.startswith("Question: A caretaker") and shown.endswith("answer is: 55")
    assert MIXED.question not in shown and examples_in(asks_of(MIXED)["whole"]) is None


@pytest.mark.parametrize("n", [1, 2])
def test_examples_for_steps_of_any_kind_take_both_kinds_of_steps_in_turn(n: int) -> None:
    every = presenting.own("compositionality-gap", n)
    by_kind = {k: [e.question for e in every if e.kind == k] for k in ("commonsense", "math", "part")}
    assert by_kind["part"] == [by_kind[("commonsense", "math")[i % 2]][i] for i in range(n)]
    with pytest.raises(InputError, match="--few-shot 0"):
        presenting.own("compositionality-gap", 0)
    parts = (MIXED.parts[0], replace(MIXED.parts[1], kind="date"))
    ask = get("compositionality-gap").asks(replace(MIXED, parts=parts), {})[1]
    assert [e.kind for e in choose(every, ask, "compositionality-gap")] == ["part"] * n
    with pytest.raises(InputError, match=r"no worked example for role 'part:1'.*date"):
        choose([e for e in every if e.kind == "math"], ask, "compositionality-gap")


@pytest.mark.parametrize(
    ("given", "said"),
    [({"prompting": "row"}, "--prompting row"), ({"preamble": "no!"}, "--preamble no!"),
     ({"thinking_tokens": 0}, "--thinking-tokens 0"),
     ({"cot_tokens": 0}, "--cot-tokens 0")],
)  # fmt: skip
def test_presentations_that_cannot_be_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Presentation(**given)
    assert Presentation(thinking_tokens=1, cot_tokens=1) and Presentation(thinking=False, prompting="raw")


def test_what_a_protocol_warns_of_without_its_preamble_is_said_and_rows_of_no_protocol_are_no_error() -> None:
    of = [Metric("m", {"depth": 2}), Metric("m", {"depth": 2, "prompt": "cot"})]
    protocol: Any = SimpleNamespace(
        name="scaffolding", reduce=lambda rows, _: Reduction(tuple(of), (), (f"{len(rows)} rows",))
    )
    rows = [Graded("c", role, "correct") for role in ("whole", "part:0", "no-preamble/whole")]
    found = reduce(protocol, rows)
    assert found.warnings == ("2 rows", "without preamble: 1 rows")
    bare = [{"depth": 2, "prompt": "no-preamble"}, {"depth": 2, "prompt": "no-preamble cot"}]
    assert [m.group for m in found.metrics] == [*(m.group for m in of), *bare]
    assert "1" in "".join(uncounted([Graded("c", "hint", "correct")], None))
    two = reduce(protocol, [*(replace(row, model="A") for row in rows), Graded("c", "whole", "correct", model="B")])
    assert [m.group for m in two.metrics] == [*(m.group for m in of), *({"model": "A", **group} for group in bare)]


def test_a_second_question_takes_no_examples_of_wholes() -> None:
    asked = asks_of(MIXED)["whole"]
    for role, whole in (("co-presented", False), ("code", False), ("whole", True)):
        assert ("whole" in presenting.kinds(replace(asked, role=role), "reasoning-gap")) is whole


@pytest.mark.parametrize("question", [None, "Another question?"])
def test_an_ask_that_does_not_begin_with_its_question_is_asked_as_it_is_or_not_at_all(question: str | None) -> None:
    own = replace(asks_of(MIXED)["whole"], question=question)
    protocol: Any = SimpleNamespace(name="own", format="cot", asks=lambda case, graded: [own])
    examples = tuple(presenting.own("compositionality-gap", 1))

    def asked(*how: Any, **more: Any) -> list[str]:
        return [ask.prompt for ask in FormattedProtocol(protocol, Presentation(*how, **more)).asks(MIXED, {})]

    assert asked() == asked("raw") == asked("raw", preamble="no") == [own.prompt]
    for how in ({"exemplars": examples}, {"preamble": "no"}, {"prompting": "raw", "exemplars": examples}):
        with pytest.raises(InputError, match=r"protocol own.*'whole'"):
            asked(**how)
