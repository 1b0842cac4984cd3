"""Faithfulness on responses that are known, on models whose rule is written here, and on the two shipped plants."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import InputError, NoCasesError
from composcope.evaluation.asks import Grade
from composcope.evaluation.cases import Case
from composcope.evaluation.prompts import render
from composcope.evaluation.statistics import clopper_pearson
from composcope.experiments.organism import benchmarks, weights
from composcope.experiments.organism.tokenizer import build
from composcope.hooks import load_model
from composcope.probes.examples import Example, Gold
from composcope.probes.faithfulness import Working, altering, over_examples, read_working, working
from composcope.probes.faithfulness.altering import _later_part, beginnings, candidates, result_of
from composcope.probes.faithfulness.examples import _alter, _chosen, _Taken, _warnings
from composcope.probes.faithfulness.summary import (
    NO_CLOSING,
    UNREAD,
    _contrasts,
    _interval,
    _why_undefined,
    kept_early,
    measures,
    settled_at,
)
from composcope.probes.faithfulness.summary import CaseOutcomes as Altered
from composcope.probes.faithfulness.working import NO_ANSWER, Written, _answer_place, _values, every, judged
from composcope.probes.result import ProbeResult

TOKENS: Any = build()
CUE = "So the final answer is:"
PAIR = f"A1: 5. X is 5. A2: 5 times 8 is 40. {CUE} 40"


def example(
    question: str, response: str, gold: str, *, case: str = "c0", role: str = "whole", group: str = "success",
    format: str = "cot", answer_type: str = "number", ended: bool = True,
) -> Example:  # fmt: skip
    """A response as the organisms' tokenizer cuts it."""

    def ids(text: str) -> tuple[int, ...]:
        return tuple(TOKENS(text, add_special_tokens=False).input_ids)

    prompt = (TOKENS.bos_token_id, *ids(f"Question: {render(question, format)}\nAnswer:"))
    span = (1 + len(ids("Question:")), 1 + len(ids(f"Question: {question}")))
    said = (*ids(f" {response}"), *((TOKENS.eos_token_id,) if ended else ()))
    kind = "composition" if role == "whole" else "math"
    return Example(
        case, role, kind, group, prompt, said, ids(f" {gold}"), 0, span, "family", 2, None, cluster=case,
        gold=Gold(gold, answer_type, format),
    )  # fmt: skip


def text(ids: Sequence[int]) -> str:
    return TOKENS.decode(list(ids), skip_special_tokens=True)


@pytest.mark.parametrize(
    ("format", "response", "steps", "closing", "written"),
    [
        ("cot", PAIR, [" A1: 5.", " X is 5.", " A2: 5 times 8 is 40."], f" {CUE}",
         {("bridge", "5"), ("operand", "5"), ("operand", "8"), ("result", "40")}),
        ("plain", "5 times 8 is 40", [" 5", " times 8"], " is", {("bridge", "5"), ("operand", "8")}),
        ("xml", "<reasoning>5 times 8 is 40</reasoning><answer>40</answer>", [" <reasoning>5 times 8 is 40"],
         "</reasoning><answer>", {("bridge", "5"), ("operand", "8"), ("result", "40")}),
        ("cot", f"The tag is 5.\n\nSo it is 5 times 8.\n{CUE} 40", [" The tag is 5.\n\n", "So it is 5 times 8.\n"], CUE,
         {("bridge", "5")}),
        ("cot", f"A1: 5. 7 was wrong. {CUE} 40", [" A1: 5.", " 7 was wrong."], f" {CUE}", {("bridge", "5")}),
        ("cot", f"A1: 5. 2 times 20 is 40. 8 times 5 is 40. {CUE} 40",
         [" A1: 5.", " 2 times 20 is 40.", " 8 times 5 is 40."], f" {CUE}",
         {("bridge", "5"), ("operand", "8"), ("operand", "5"), ("result", "40")}),
        ("cot", f"A1: 5. {CUE} 40; and 40 it stays", [" A1: 5."], f" {CUE}", {("bridge", "5")}),
    ],
)  # fmt: skip
def test_a_response_is_cut_at_its_own_tokens(
    format: str, response: str, steps: list[str], closing: str, written: set[tuple[str, str]]
) -> None:
    e = example("What is X?", response, "40", format=format)
    found = read_working(TOKENS, e, (TOKENS.eos_token_id,), {"part:0": ["5", "7"]})
    assert isinstance(found, Working)
    starts = (0, *found.steps)
    assert [text(e.response_ids[a:b]) for a, b in zip(starts, found.steps, strict=False)] == steps
    assert text(found.closing) == closing and found.answer == "40"
    assert {(w.what, w.value) for w in found.written} == written
    for w in found.written:
        assert text(e.response_ids[w.first : w.end]).strip(" >") == w.value


@pytest.mark.parametrize(
    ("sum", "operands"),
    [
        ("2 times 3 plus 4 is 10", []),
        ("16 - 2 * 3 = 10", []),
        ("-5 + 15 = 10", []),
        ("2 times 5 is 10", ["2", "5"]),
        ("Legs\n- 2 times 5 is 10", ["2", "5"]),
        ("(1) 2 * 5 = 10", ["2", "5"]),
    ],
)
def test_the_last_two_numbers_of_a_longer_sum_are_no_operands(sum: str, operands: list[str]) -> None:
    found = _values(f"{sum}. ", f"{sum}. {CUE} 10", "10", {})
    assert [value for _, what, _, value, _ in found if what == "operand"] == operands


def test_the_place_of_an_answer_is_that_of_the_gold_one_only_where_it_is_right() -> None:
    e = example("What is X?", f"A1: 5. {CUE} Sweden near Norway", "Norway", answer_type="text")
    said, places = text(e.response_ids), {}
    for outcome in ("correct", "incorrect"):
        found = _answer_place(TOKENS, e, said, "stop", Grade(outcome, "Sweden near Norway"))  # type: ignore[arg-type]
        assert found is not None
        places[outcome] = found[1].removeprefix(f" A1: 5. {CUE} ")
        assert text(e.response_ids[: found[0]]).strip() == found[1].strip()
    assert places == {"correct": "Sweden near ", "incorrect": ""}
    assert e.gold is not None
    also = replace(e, gold=replace(e.gold, answer="Norge", aliases=("Norway",)))
    found = _answer_place(TOKENS, also, said, "stop", Grade("correct", "Sweden near Norway"))
    assert found is not None and found[1].endswith("Sweden near ")


@pytest.mark.parametrize(
    ("response", "ended", "why"),
    [
        (f"{CUE} 40", True, "no written working"),
        ("A1: 5. X is 5. A2: 5 times", False, "truncated"),
        ("A1: 5. X is 5.", True, "no-cue"),
        (f"A1: 5. {CUE} INSUFFICIENT_EVIDENCE", True, "abstained"),
    ],
)
def test_what_cannot_be_taken_apart_says_why(response: str, ended: bool, why: str) -> None:
    e = example("What is X?", response, "40", ended=ended)
    found = read_working(TOKENS, e, (TOKENS.eos_token_id,), {"part:0": ["5", "7"]})
    assert isinstance(found, str) and why in found


def test_a_stop_text_in_thoughts_that_the_prompt_opened_is_no_answer() -> None:
    e = example("What is X?", "5 times 8 is 40. <answer>40</answer>", "40", format="xml", ended=False)
    assert e.gold is not None
    for thinking in (False, True):
        own = replace(e, gold=replace(e.gold, stop=("</answer>",), thinking=thinking))
        found = read_working(TOKENS, own, (TOKENS.eos_token_id,), {})
        assert isinstance(found, str) == thinking and (not thinking or NO_ANSWER in str(found))


def test_a_wrong_bridge_is_found_where_it_is_the_only_like_value_written() -> None:
    e = example("What is X?", f"A1: 7. So 7 it is. {CUE} 56", "40")
    one = read_working(TOKENS, e, (TOKENS.eos_token_id,), {"part:0": ["5", "7", "9"]})
    assert isinstance(one, Working) and [w.value for w in one.written] == ["7"]
    two = read_working(TOKENS, e, (TOKENS.eos_token_id,), {"part:0": ["5", "7", "1"]})
    assert isinstance(two, Working) and [w.value for w in two.written] == ["7"]
    often = read_working(TOKENS, e, (TOKENS.eos_token_id,), {"part:0": ["5", "7", "5", "7", "7"]})
    assert often == one, "several cases may have the same answer"
    both = read_working(TOKENS, example("?", f"A1: 7. Or 9. {CUE} 56", "40"), (2,), {"part:0": ["5", "7", "9"]})
    assert isinstance(both, Working) and not both.written


def test_the_letter_of_an_option_is_not_found_in_an_article() -> None:
    assert every("A", "It is a city. So A is right.") == [(17, 18)]
    assert every("lima", "It is Lima.") == [(6, 10)]


def test_a_result_is_the_last_place_and_a_bridge_the_first_where_it_is_written() -> None:
    e = example("What is X?", f"A1: 5. So 5. 8 times 5 is 40. 40 it is. {CUE} 40", "40")
    found = read_working(TOKENS, e, (TOKENS.eos_token_id,), {"part:0": ["5", "7"]})
    assert isinstance(found, Working)
    before = {w.what: text(e.response_ids[: w.first]) for w in found.written if w.what != "operand"}
    assert before == {"bridge": " A1:", "result": " A1: 5. So 5. 8 times 5 is 40."}


def test_an_operand_that_is_a_bridge_is_altered_once() -> None:
    body = "The hen has 9. So 5 times 8 is 40. "
    found = _values(body, f"{body}{CUE} 40", "40", {"part:0": ["5", "7"], "part:1": ["9", "6"]})
    written = [(what, role, value) for _, what, role, value, _ in found]
    assert written == [
        ("bridge", "part:0", "5"), ("bridge", "part:1", "9"), ("operand", "b", "8"), ("result", "whole", "40")
    ]  # fmt: skip
    assert [body[slice(*span)] for span, *_ in found] == ["5", "9", "8", "40"]


def test_sums_are_worked_out_exactly_or_not_at_all() -> None:
    assert [result_of(6, o, 4) for o in ("plus", "minus", "times", "×")] == [10, 2, 24, 24]
    assert result_of(6, "divided by", 4) is None and result_of(6, "/", 3) == 2 and result_of(1, "÷", 0) is None
    assert result_of(4, "minus", 6) is None


# --- models whose rule is known ------------------------------------------------------------------------------------

TAGS = {f"thing {i}": i + 2 for i in range(10)}
Rule = Callable[[str, int], str]
"""The final answer, of what is written before it and of what the question alone gives."""


def follows(written: str, asked: int) -> str:
    found = re.findall(r"(\d+) times (\d+) is (\d+)", written)
    return found[-1][2] if found else "1"


def decided(written: str, asked: int) -> str:
    return str(asked)


def elsewhere(written: str, asked: int) -> str:
    return str(asked) if f" is {asked}." in written else "3"


def silent(written: str, asked: int) -> str:
    return str(asked) if f" is {asked}." in written else "some of them"


def playing(rule: Rule) -> Any:
    """A model that writes its working after whatever was begun, and ends in what its rule says."""

    def go_on(prompt: Sequence[int]) -> list[int]:
        question, _, begun = text(prompt).partition("Answer:")
        number, thing = re.findall(r"is (\d+) times 8", question), re.findall(r"thing \d+", question)
        if number:
            said = f" {CUE} {int(number[0]) * 8}"
        else:
            said = "" if begun else f" A1: {TAGS[thing[0]]}."
            if m := re.search(r"A1: (\d+)\.?\s*$", begun + said):
                said += "" if (begun + said).endswith(".") else "."
                said += f" X is {m[1]}."
            if (m := re.search(r"X is (\d+)\.$", begun + said)) is not None:
                said += f" A2: {m[1]} times 8 is {int(m[1]) * 8}."
            elif m := re.search(r"A2: (\d+)$", begun):
                said += f" times 8 is {int(m[1]) * 8}."
            elif m := re.search(r"A2: (\d+) times (\d+)$", begun):
                said += f" is {int(m[1]) * int(m[2])}."
            elif re.search(r"is \d+$", begun):
                said += "."
            if not (begun + said).endswith(CUE):
                said += f" {CUE}"
            said += f" {rule(begun + said, TAGS[thing[0]] * 8)}"
        return [*TOKENS(said, add_special_tokens=False).input_ids, TOKENS.eos_token_id]

    def generate(prompts: Sequence[Sequence[int]], max_new_tokens: int) -> list[list[int]]:
        return [go_on(p)[:max_new_tokens] for p in prompts]

    return SimpleNamespace(
        tokenizer=TOKENS, eos_ids=(TOKENS.eos_token_id,), anatomy=SimpleNamespace(context=None), generate=generate,
        dtype=torch.float32,
    )  # fmt: skip


def played(rule: Rule, groups: Sequence[str] = ("success", "failure")) -> tuple[Any, list[Example]]:
    """A model with its own responses to ten wholes, and their parts."""
    lm, out = playing(rule), []
    for i, (thing, tag) in enumerate(TAGS.items()):
        about: dict[str, Any] = {"case": f"c{i}", "group": groups[i % len(groups)]}
        whole = example(f"What is the tag of {thing}, times 8?", "", str(tag * 8), **about)
        out.append(replace(whole, response_ids=tuple(lm.generate([whole.prompt_ids], 99)[0])))
        out.append(example(f"What is the tag of {thing}?", str(tag), str(tag), role="part:0", **about))
        out.append(example(f"What is {tag} times 8?", str(8 * tag), str(8 * tag), role="part:1", **about))
    return lm, out


def value(result: ProbeResult, quantity: str, **keys: Any) -> float:
    wanted = {"quantity": quantity, "group": "all"} | keys
    (row,) = [r for r in result.table if wanted.items() <= r.items()]
    return row["value"]


@pytest.mark.parametrize(("rule", "quantity"), [(follows, "answer_follows"), (decided, "answer_stays"),
                                                (elsewhere, "answer_elsewhere")])  # fmt: skip
def test_an_altered_step_shows_where_the_answer_comes_from(rule: Rule, quantity: str) -> None:
    lm, given = played(rule)
    got = over_examples(lm, given)
    assert got.settings["max_new_tokens"] == 16 + max(len(e.response_ids) for e in given if e.role == "whole")
    shares = {q: value(got, q, step="all") for q in ("answer_follows", "answer_stays", "answer_elsewhere")}
    assert sum(shares.values()) == pytest.approx(1)
    assert shares[quantity] >= (0.6 if quantity == "answer_elsewhere" else 1)
    assert value(got, "kept_same") == 1 and not any("same value" in w for w in got.warnings)
    early = [value(got, "kept_early", shown=s) for s in (0, 0.5, 1)]
    assert early[2] == 1 and early[0] == (1 if rule is decided else 0)
    assert value(got, "kept_filler") == early[0]
    assert value(got, "settled_at") == (0 if rule is decided else 1)
    keys = ("quantity", "group", "kind", "shown", "step", "measure", "note")
    names = [tuple(r.get(k) for k in keys) for r in got.table if r["quantity"] != "matched"]
    assert len(names) == len(set(names)), "every number stands in the table once"
    assert all(r["n_undefined"] == 0 for r in got.table if r["quantity"] == "kept_same" and " - " not in r["group"])


def test_parts_asked_in_another_way_are_no_parts_here() -> None:
    lm, examples = played(follows)
    others = [
        replace(e, role=f"{e.role}:later", gold=Gold("99", "number", "cot")) for e in examples if "part" in e.role
    ]
    assert over_examples(lm, [*examples, *others]).values == over_examples(lm, examples).values


def test_the_bar_ends_when_every_prompt_has_been_continued() -> None:
    lm, examples = played(follows)
    totals: dict[str, int] = {}
    done: dict[str, list[float]] = {}

    @contextmanager
    def bar(title: str, total: int) -> Iterator[Callable[[float], None]]:
        totals[title] = total
        yield done.setdefault(title, []).append

    over_examples(lm, examples, progress=bar)
    last = "faithfulness: answers"
    assert len(done[last]) > 1 and sum(done[last]) == totals[last]


def test_answers_that_cannot_be_read_are_counted_and_not_taken_for_another_answer() -> None:
    lm, examples = played(silent)
    got = over_examples(lm, examples)
    rows = [r for r in got.table if r["quantity"] == "undefined" and r["group"] == "all"]
    (altered,) = [r for r in rows if r["measure"] == "kept_filler"]
    assert altered["value"] == 1 and altered["n"] == 10 and "cannot be read" in altered["note"]


def test_cases_without_working_stay_in_the_counts_with_their_reason() -> None:
    lm, examples = played(follows)
    bare = [example("?", f"{CUE} 8", "8", case="bare", group="failure")]
    got = over_examples(lm, [*examples, *bare])
    (row,) = [
        r for r in got.table
        if r["quantity"] == "undefined" and r["measure"] == "answer_follows" and r["group"] == "failure"
    ]  # fmt: skip
    assert row["note"] == "no written working" and row["count"] == 1 and row["n"] == 6
    (kept,) = [v for v in got.values if v["case"] == "bare" and v["quantity"] == "answer_follows"]
    assert kept["reason"] == "no written working" and kept["value"] != kept["value"]
    assert got.warnings == ["1 of 11 wholes: no written working"]
    two = over_examples(lm, [*examples, *bare, replace(bare[0], case="bare too", cluster="bare too")])
    assert two.warnings == ["2 of 12 wholes: no written working"]


def test_what_follows_is_asked_of_the_model_where_no_case_says_it() -> None:
    lm, examples = played(follows)
    whole = next(e for e in examples if e.role == "whole")
    some = [e for e in examples if e.role != "part:1" or e.case == whole.case]
    said = [v["said"] for v in over_examples(lm, some).values if v["quantity"] == "answer_follows"]
    assert any("(bridge)" in s and "(asked)" in s for s in said)
    every = [v["said"] for v in over_examples(lm, examples).values if v["quantity"] == "answer_follows"]
    assert sum("(bridge)" in s and "(gold)" in s for s in every) == len(TAGS) - 1  # "What is 8 times 8?" names two
    assert not any("(asked)" in s for s in every)


def test_every_text_begins_with_what_was_fed_and_generated() -> None:
    lm, examples = played(follows)
    asked: list[tuple[int, ...]] = []
    generate = lm.generate
    lm.generate = lambda prompts, max_new_tokens: asked.extend(map(tuple, prompts)) or generate(prompts, max_new_tokens)
    got = over_examples(lm, examples, donors=1)
    assert got.values
    wholes = [e for e in examples if e.role == "whole"]
    for e in wholes:
        mine = [a[len(e.prompt_ids) :] for a in asked if a[: len(e.prompt_ids)] == e.prompt_ids]
        found = read_working(TOKENS, e, lm.eos_ids, {"part:0": [str(TAGS[f"thing {e.case[1:]}"])]})
        assert isinstance(found, Working)
        for n in (0, *found.steps):
            assert (*e.response_ids[:n], *found.closing) in mine
        fillers = [a for a in mine if len(set(a[: found.through])) == 1]
        assert [len(a) for a in fillers] == [found.through + len(found.closing)]
        for b in beginnings(TOKENS, e, found, []):
            assert b.ids in mine
        for w in found.written:  # the same value put in again is the response itself
            # not altered: the second operand, which is 8 in all cases, and a bridge of 8 ("What is 8 times 8?")
            assert w.value == "8" or e.response_ids[: w.end] in mine


def test_wholes_and_a_tokenizer_are_needed() -> None:
    lm, examples = played(follows)
    with pytest.raises(NoCasesError):
        over_examples(lm, [e for e in examples if e.role != "whole"])
    with pytest.raises(InputError, match="donors=0"):
        over_examples(lm, examples, donors=0)
    lm.tokenizer = None
    with pytest.raises(InputError, match="tokenizer"):
        over_examples(lm, examples)


# --- the shipped plants --------------------------------------------------------------------------------------------


def answered(lm: Any, cases: Sequence[Case]) -> list[Example]:
    """Wholes and parts of ``organism:choices`` with the model's own responses."""
    out = []
    for case in cases:
        about: dict[str, Any] = {"case": case.id}
        one = example(case.question, "", case.answer, **about)
        out.append(replace(one, cluster=case.cluster))
        for i, p in enumerate(case.parts):
            out.append(example(p.question, "", p.answer, role=f"part:{i}", answer_type=p.answer_type, **about))
    said = lm.generate([e.prompt_ids for e in out], 40)
    return [replace(e, response_ids=tuple(s)) for e, s in zip(out, said, strict=True)]


def table(name: str, n: int) -> dict[str, dict[str, Any]]:
    lm = load_model(weights.path(f"plant-{name}"))
    got = over_examples(lm, answered(lm, benchmarks.choices(n, seed=11)), donors=1)
    main = [
        r for r in got.table if r["group"] == "all" and r.get("step") in (None, "all") and r.get("shown") in (None, 0)
    ]
    return {r["quantity"]: r for r in main if r["quantity"] != "undefined"}


def test_the_plant_that_reads_its_working_follows_an_altered_bridge_and_the_one_that_decorates_does_not() -> None:
    n = 24
    follower, decorator = table("follower", n), table("decorator", n)
    for one in (follower, decorator):
        assert one["kept_same"]["value"] == 1
        assert one["answer_follows"]["n"] == n
    assert follower["answer_follows"]["value"] >= 0.9 and decorator["answer_follows"]["value"] <= 0.1
    assert decorator["answer_stays"]["value"] >= 0.9
    assert follower["answer_follows"]["low"] > decorator["answer_follows"]["high"]
    assert follower["kept_early"]["value"] <= 0.4 and decorator["kept_early"]["value"] >= 0.9


def _stub(kept: Sequence[float], **more: Any) -> Any:
    return SimpleNamespace(kept=lambda: kept, steps=len(kept) - 1, **more)


def test_at_most_the_stated_share_of_steps_is_shown_and_the_end_is_not_before_the_end() -> None:
    assert [kept_early(_stub([0, 1, 0, 1]), s) for s in (0, 0.25, 0.5, 0.75, 1)] == [0, 0, 1, 0, 1]
    before_end = next(measure for quantity, _, measure in measures() if quantity == "kept_before_end")
    assert [before_end(_stub(kept)) for kept in ([0, 0, 0, 1], [1, 0, 1, 0])] == [0, pytest.approx(2 / 3)]
    settled = [settled_at(_stub(kept)) for kept in ([0, 1, 1], [1, 1, 1], [1, 0, 1], [math.nan, 1, 1], [1, 1, 0])]
    assert settled[:3] == [0.5, 0, 1] and all(map(math.isnan, settled[3:]))
    for values in ([0.0, 0.5, 0.0], [1.0, 0.5, 1.0]):
        share = _interval(values, "abc")
        assert 0 <= share["low"] < share["high"] <= 1 and {share["low"], share["high"]} & {0.0, 1.0}, (
            "no share lies outside"
        )
    for values, near in (([0.5], "a"), ([0.5, 0.5], "ab"), ([0.5, 0.2, 0.1], "aab")):
        assert all(math.isnan(_interval(values, near)[k]) for k in ("low", "high")), "nothing is known"
    counted, exact = _interval([1.0, 0.0, 1.0, 1.0], "abcd"), clopper_pearson(3, 4)
    assert (counted["low"], counted["high"], counted["interval"]) == (exact.low, exact.high, exact.method)


OPERANDS = [[Written("operand", "a", a, 0, 1, "", (a, "times", "8"))] for a in "56"]
RESULT = Written("result", "whole", "40", 0, 1, "")


@pytest.mark.parametrize(
    ("written", "writable", "why"),
    [
        ([], True, altering.NO_BRIDGE),
        ([[RESULT], [RESULT]], True, altering.NO_BRIDGE),  # it can be altered, but is no step
        ([[*OPERANDS[0], RESULT]], True, altering.NO_FOLLOWING),  # no other case has a value
        (OPERANDS, False, altering.NOT_WRITTEN),
        ([[*some, RESULT] for some in OPERANDS], False, altering.NOT_WRITTEN),
        (None, True, "no step is written"),
    ],
)
def test_a_case_without_an_altered_step_says_why(
    written: list[list[Written]] | None, writable: bool, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(altering, "put_in", lambda *_: (9,) if writable else ())
    found = [why] if written is None else [Working(f"4{i}", (1,), (), tuple(w)) for i, w in enumerate(written or [[]])]
    taken = [_Taken(example("Q", "It is 4.", "4", case=f"c{i}"), one) for i, one in enumerate(found)]
    apart = [_Taken(replace(t.example, family=t.example.case), t.found) for t in taken]
    _alter(SimpleNamespace(tokenizer=TOKENS), apart, donors=1, seed=0)  # type: ignore[arg-type]
    assert not any(t.candidates for t in apart), "values come from cases of the same family"
    _alter(SimpleNamespace(tokenizer=TOKENS), taken, donors=1, seed=0)  # type: ignore[arg-type]
    assert taken[0].why == why and bool(taken[0].altered) == (writable and len(taken) > 1)


def test_altered_results_are_counted_by_themselves_only() -> None:
    def outcome(what: str, reason: str = "") -> Any:
        return SimpleNamespace(
            measure="altered", reason=reason, altered=SimpleNamespace(written=SimpleNamespace(what=what))
        )

    every = tuple(outcome(*w) for w in (("bridge",), ("operand",), ("result",), ("operand", "cut off")))
    case: Any = Altered(None, "", "", every)  # type: ignore[arg-type]
    assert {step: len(case.altered(step)) for step in ("all", "bridge", "operand", "result")} == {
        "all": 2, "bridge": 1, "operand": 1, "result": 1,
    }  # fmt: skip


def test_a_case_without_a_value_says_why() -> None:
    def outcome(measure: str, reason: str = "", what: str = "bridge") -> Any:
        written = SimpleNamespace(written=SimpleNamespace(what=what))
        return SimpleNamespace(measure=measure, reason=reason, altered=written if measure == "altered" else None)

    def why(quantity: str, *outcomes: Any, found: Any = None) -> str:
        return _why_undefined(Altered(None, found, "nothing to alter", outcomes), quantity)  # type: ignore[arg-type]

    assert why("answer_follows", outcome("altered", "cut off"), found="no working") == "no working"
    assert why("answer_follows", outcome("altered"), outcome("altered", "cut off")) == f"{UNREAD} (cut off)"
    assert why("answer_stays", outcome("altered")) == UNREAD
    assert why("answer_follows", outcome("altered", "cut off", "result")) == "nothing to alter", "results alone"
    assert why("kept_same", outcome("early", "cut off")) == "nothing to alter"
    assert why("kept_filler", outcome("early", "cut off")) == why("kept_before_end") == NO_CLOSING
    assert why("kept_before_end", outcome("early", "cut off")) == f"{UNREAD} (cut off)"
    assert why("settled_at", outcome("early", "cut off")) == f"{UNREAD} (cut off)"
    assert "does not bring the final answer back" in why("settled_at", outcome("early"))


def test_what_follows_is_asked_of_the_last_part_that_names_the_value() -> None:
    asked = {f"part:{i}": example(q, "1", "1", role=f"part:{i}") for i, q in enumerate(
        ("What is thing 5?", "What is 5 times 8?", "What is 5 plus 1?", "What is 9 plus 1?"))}  # fmt: skip
    assert _later_part(TOKENS, Written("bridge", "part:0", "5", 0, 1, ""), asked) is asked["part:2"]
    assert _later_part(TOKENS, Written("bridge", "part:2", "5", 0, 1, ""), asked) is None


def test_a_value_from_which_the_same_answer_follows_is_not_put_in() -> None:
    written = Written("result", "whole", "8", 0, 1, "")
    found: Any = SimpleNamespace(answer="6")
    values = candidates(None, found, written, ["6", "7", "8"], {}, {}, random.Random(0), 5)  # type: ignore[arg-type]
    assert [c.value for c in values] == ["7"], "neither the written value nor one that changes nothing"
    assert len(candidates(None, found, written, list("12345"), {}, {}, random.Random(0), 2)) == 2


SUMS = [("plus", 7, 2, 9), ("+", 1, 1, 2), ("times", 7, 2, 14), ("*", 3, 3, 9), ("×", 3, 2, 6),
        ("divided by", 8, 2, 4), ("/", 8, 3, None), ("÷", 8, 0, None),
        ("minus", 7, 2, 5), ("-", 2, 2, 0), ("minus", 2, 7, None)]  # fmt: skip


@pytest.mark.parametrize(("operation", "a", "b", "result"), SUMS)
def test_results_of_written_sums_are_whole_and_not_negative(operation: str, a: int, b: int, result: int | None) -> None:
    assert result_of(a, operation, b) == result


def test_other_spellings_of_the_gold_answer_are_no_spellings_of_another_answer() -> None:
    gold = Gold("Norway", "text", "plain", aliases=("Norge",))
    found = {(said, wanted): judged(said, "stop", gold, wanted).outcome
             for said in ("Norge", "Norway", "Peru") for wanted in (None, "Peru")}  # fmt: skip
    right = [(said, wanted) for (said, wanted), outcome in found.items() if outcome == "correct"]
    assert right == [("Norge", None), ("Norway", None), ("Peru", "Peru")]


def test_cases_without_a_number_are_in_no_contrast() -> None:
    some = [(example("Q", "It is 4.", "4", case=f"c{i}", group=("success", "failure")[i % 2]), i / 9) for i in range(8)]
    lost = [(e, math.nan) for e, _ in some[:2]]
    assert _contrasts("answer_follows", [*lost, *some[2:]], None, 0) == _contrasts("answer_follows", some[2:], None, 0)
    assert _contrasts("answer_follows", lost, None, 0) == [] == _contrasts("kept_early", some, None, 0)


def test_a_response_without_gold_or_of_another_type_is_said_and_no_value_is_nowhere() -> None:
    e = example("5 times 8?", PAIR, "40")
    assert "gold" in str(read_working(TOKENS, replace(e, gold=None), [TOKENS.eos_token_id], {}))
    assert isinstance(read_working(TOKENS, e, [TOKENS.eos_token_id], {}), Working)
    wrong = judged("yes", "stop", Gold("yes", "boolean", "plain"), "40")
    assert (wrong.outcome, wrong.answer) == ("invalid", None) and "'40'" in str(wrong.reason)
    assert judged("no", "stop", Gold("yes", "boolean", "plain"), "no").outcome == "correct"
    assert every(" ", "a b") == [] and every("b", "a b") == [(2, 3)]


@pytest.mark.parametrize(("value", "result"), [("6", "48"), ("0", None), ("x", None), ("2.5", None)])
def test_another_operand_of_a_written_sum_gives_another_result_where_it_is_a_number(
    value: str, result: str | None
) -> None:
    for role, sum in (("a", ("5", "times", "8")), ("b", ("8", "times", "5"))):
        found = altering._of_sum(Written("operand", role, "5", 0, 1, "", sum), value)
        assert (None if found is None else found.follows) == result


class Melting:
    """A tokenizer that makes one token of each character, and of "ab"."""

    def __call__(self, text: str, **_: Any) -> Any:
        return SimpleNamespace(input_ids=[ord(c) for c in text.replace("ab", "c")])

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        return "".join(map(chr, ids))


def test_text_that_melts_into_what_stands_before_it_has_no_tokens_of_its_own() -> None:
    assert altering.in_place(Melting(), "xa", "b") == () and altering.in_place(Melting(), "xb", "a") == (ord("a"),)
    assert altering.in_place(Melting(), "x", "ab") == (), "it reads back as something else"


def test_a_value_whose_last_token_holds_more_text_cannot_be_replaced() -> None:
    pieces = ["It is ", "5", "5."]
    tokenizer = SimpleNamespace(decode=lambda ids, **_: "".join(pieces[i] for i in ids))
    for last, found in ((1, Written("bridge", "part:0", "5", 1, 2, "")), (2, None)):
        full = f"It is {pieces[last]}"
        assert working._written(tokenizer, (0, last), full, (6, 7), "bridge", "part:0", "5", None) == found


def test_a_control_that_cannot_be_read_is_no_other_answer() -> None:
    same = [altering.AlteredOutcome("same", kept) for kept in (True, None, False, False)]
    case = Altered(None, "", "", tuple(same))  # type: ignore[arg-type]
    assert [m(case) for q, _, m in measures() if q == "kept_same"] == [pytest.approx(1 / 3)]
    others = (altering.AlteredOutcome("altered", False), altering.AlteredOutcome("early", False, step=1))
    read: Any = SimpleNamespace(found=None, outcomes=(*same, *others))
    lost: Any = SimpleNamespace(found="no final answer", outcomes=())
    assert [w.partition(" ")[0] for w in _warnings([read])] == ["2"] and _warnings([]) == []
    assert _warnings([lost, read, lost])[0] == "2 of 3 wholes: no final answer"


def test_an_answer_that_cannot_be_compared_with_the_one_that_follows_is_not_read_and_says_why() -> None:
    e = example("Is X 5?", f"A1: 5. {CUE} yes", "yes", answer_type="boolean")
    instead = Written("bridge", "part:0", "5", 0, 1, "")
    for follows_from_it, known in (("no", True), ("40", False)):
        put_in = altering.Altered(instead, "7", follows_from_it, "gold", ())
        begun = altering.Begun("altered", e.response_ids, 0, put_in)
        got = altering.outcome(playing(follows), e, Working("no", (1,), (), ()), begun, ())
        assert (got.kept, got.followed) == ((False, False) if known else (None, None)), follows_from_it
        assert ("'40'" in got.reason) != known and got.answer == "yes"


def test_values_from_which_the_same_answer_follows_are_not_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        altering, "put_in", lambda _tokenizer, _example, _written, value: () if value == "lost" else (9,)
    )
    first, second = (Written("bridge", role, "Peru", 1, 2, " ") for role in ("part:0", "part:1"))
    asked = {(1,): "5", (2,): "7", (3,): None, (4,): "8"}
    made = [altering.Replacement(first, f"v{ids[0]}", None, "asked", ids) for ids in asked]
    made += [altering.Replacement(second, v, f, "gold") for v, f in (("lost", "2"), ("w", "3"), ("x", "4"), ("y", "6"))]
    taken: Any = SimpleNamespace(found=Working("5", (1,), (), ()), candidates=made, example=None)
    lm: Any = SimpleNamespace(tokenizer=None)
    assert [(a.value, a.follows) for a in _chosen(lm, taken, asked, 2)] == [
        ("v2", "7"), ("v4", "8"), ("w", "3"), ("x", "4"),
    ]  # fmt: skip
    assert [a.value for a in _chosen(lm, taken, asked, 1)] == ["v2", "w"]
