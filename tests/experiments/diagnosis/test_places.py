"""Where a decision stands: the token at which an operand is written, and the places that are read before it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from composcope.evaluation.asks import Ask
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.engines.local import LocalEngine
from composcope.experiments.diagnosis import asks, places
from composcope.experiments.organism import benchmarks

from .told import CASES, decisions


def test_the_words_of_an_entity_what_follows_them_and_the_prompts_end_are_searched() -> None:
    whole = places.Decision(tuple(range(30)), 1, "7", "oak", (9, 15), 26)
    found = whole.readings()
    assert {name: found[name] for name in ("entity-2", "entity-1", "entity+0", "entity+15")} == {
        "entity-2": 7, "entity-1": 8, "entity+0": 9, "entity+15": 24,
    }  # fmt: skip
    assert (found["end-1"], found["end-6"], found["decision"]) == (25, 20, 29)
    assert found["end-12"] == found["entity+5"] == 14, "one place may have two names"
    assert set(found.values()) == {29, *range(7, 26)}
    assert list(places.Decision(tuple(range(5)), 1, "7", "oak", (1,), 4).readings().values()) == [4, 1, 2, 3, 3, 2, 1]
    forced = places.Decision(tuple(range(40)), 1, "7", "oak", (17,), 20)  # 20 tokens of a response are forced
    named = {f"entity{j:+d}": 17 + j for j in (-2, -1, 0, 1, 2)} | {f"end-{j}": 20 - j for j in range(1, 13)}
    assert forced.readings() == {"decision": 39, **named}, "the bridge is looked for where it is asked about"
    assert set(replace(whole, at=()).readings().values()) == {29, *range(14, 26)}
    far = replace(whole, ids=tuple(range(60)), prompt=50).readings()  # beyond the words behind the entity
    assert set(far.values()) == {59, *range(7, 25), *range(38, 50)}


@pytest.mark.parametrize("operand", [0, 1])
def test_a_decision_ends_where_the_operand_is_written_and_knows_where_its_entity_stands(
    engine: LocalEngine, operand: int
) -> None:
    case, tokenizer = CASES[2], engine.tokenizer
    whole, part = decisions(engine, case, operand)
    assert tokenizer.decode([whole.gold]).strip() == asks.working(case.worked).values[operand]
    assert tokenizer.decode(list(whole.ids[whole.prompt :])).strip() == ("" if operand == 0 else "4 times")
    assert tokenizer.decode(list(whole.ids[: whole.at[0] + 1])).endswith(f"{case.meta['kinds'][operand]} one")
    assert tokenizer.decode([part.ids[part.at[0]]]).strip() == case.meta["chosen"][operand] == part.entity
    assert whole.gold == part.gold


def test_a_bare_answer_is_decided_where_the_response_begins(engine: LocalEngine) -> None:
    case = benchmarks.choices(3)[2]
    made = {a.role: a for a in asks.Questions("x", "plain").asks(case, {})}
    assert places.of_whole(engine, made["whole"], case, 0) is None
    whole = places.of_whole(engine, made["whole"], case, 0, bare=True)
    part = places.of_part(engine, made["part:1"], case, 0, bare=True)
    assert whole is not None and part is not None and whole.gold == part.gold
    assert [len(d.ids) - d.prompt for d in (whole, part)] == [0, 0]
    assert engine.tokenizer.decode([whole.gold]).strip() == case.answer == whole.value


def test_a_part_is_opened_behind_its_own_relation_and_not_the_wholes(engine: LocalEngine) -> None:
    case = replace(benchmarks.choices(3)[2], meta={"relation": "The tag of the wearable one is"})
    whole, part = decisions(engine, case, 0)
    written = [engine.tokenizer.decode(list(d.ids[d.prompt :])).strip() for d in (whole, part)]
    assert written == ["The tag of the wearable one is", "The tag of the boot is"]
    assert whole.gold == part.gold


def test_where_the_operands_are_right_the_decision_is_the_result(engine: LocalEngine) -> None:
    case, tokenizer = CASES[2], engine.tokenizer
    whole, part = decisions(engine, case, asks.operands(case))
    working = asks.working(case.worked)
    assert whole.value == working.values[-1] == tokenizer.decode([whole.gold]).strip()
    assert tokenizer.decode(list(whole.ids[whole.prompt :])).strip() == f"{case.worked}".rpartition(" ")[0]
    assert whole.gold == part.gold and whole.entity == part.entity == " ".join(f"{case.worked}".split()[:3])


def test_a_part_with_a_shorter_working_than_the_whole_has_no_decision_at_its_later_numbers(engine: LocalEngine) -> None:
    parts = [Part(f"What is {sum_}?", result, worked=f"{sum_} is {result}", answer_type="number")
             for sum_, result in (("2 times 3", "6"), ("6 plus 4", "10"))]  # fmt: skip
    worked = " and ".join(str(p.worked) for p in parts)
    case = Case("a", "What is 2 times 3 plus 4?", "10", tuple(parts), worked=worked, answer_type="number")
    made = {a.role: a for a in asks.Questions("x", "plain").asks(case, {})}
    assert asks.operands(case) == 5
    for operand in range(6):
        whole = places.of_whole(engine, made["whole"], case, operand)
        part = places.of_part(engine, made["part:1"], case, operand)
        assert whole is not None and (part is None) == (operand > 2)


def test_a_name_ends_at_the_last_byte_of_its_last_letter_and_has_all_bytes_of_its_letters() -> None:
    letters = {letter: i for i, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    bytewise = Tokenizer(models.BPE(vocab=letters, merges=[]))
    bytewise.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # type: ignore[assignment]
    bytewise.decoder = decoders.ByteLevel()  # type: ignore[assignment]
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bytewise)
    ids = tokenizer.encode("In Łódź, 東京 or Oslo\ufffd")
    whole, reached = places._reached(tokenizer, ids)
    made = places.Decision((*ids, 0), 1, "7", "oak", (), len(ids))
    for name in ("Łódź", "東京", "Oslo", "Oslo\ufffd"):
        (end,) = places._ends(whole, reached, name)
        assert str(tokenizer.decode(ids[: end + 1])).endswith(name)
        assert [ids[i] for i in places.words(tokenizer, made, name)] == tokenizer.encode(name)
    assert places._ends(whole, reached, "Osl", "slo") == (), "parts of words"


def test_a_value_that_does_not_go_on_from_the_prompt_has_no_decision() -> None:
    told = {"": [1, 2], "b": [1, 2, 3], "other": [1, 9, 3], "none": [1, 2]}

    class Words:
        tokenizer = SimpleNamespace(decode=lambda ids, **_: "q b c"[: 2 * len(ids)])

        def prompt_ids(self, asks: Any) -> list[list[int]]:
            return [told[a.begun] for a in asks]

    ask = Ask("c", "whole", "q", "b", "text", begun="")
    made = places._made(Words(), ask, "b", "b", "")
    assert made is not None and (made.ids, made.gold, made.value) == ([1, 2], 3, "b")
    for value in ("other", "none"):
        assert places._made(Words(), ask, value, "b", "") is None
