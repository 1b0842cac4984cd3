"""Wordings that protocols need beyond question and parts: reversed steps, the pair, what Q2 was made from, ladders."""

from __future__ import annotations

from composcope.evaluation.protocols import get
from composcope.evaluation.protocols.asking import recommended_format
from composcope.experiments.organism import benchmarks, world


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


def test_a_ladder_climbs_from_choosing_over_both_tags_to_the_sum() -> None:
    tags = world.world().tags
    for case in benchmarks.ladders(8):
        first, second = case.meta["chosen"]
        assert [p.answer for p in case.parts] == [
            f"{first} and {second}", str(tags[first]), str(tags[second]), case.answer
        ]  # fmt: skip
        assert case.parts[3].question == f"What is {tags[first]} {case.operation} {tags[second]}?"
        assert len({p.skill for p in case.parts}) == 3


def test_every_benchmark_recommends_the_format_that_organisms_are_trained_in() -> None:
    for name, make in benchmarks.BENCHMARKS.items():
        assert recommended_format(make(2, 0)) == "plain", name
