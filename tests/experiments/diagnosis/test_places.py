"""Where a decision stands: the token at which an operand is written, and the places that are read before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
