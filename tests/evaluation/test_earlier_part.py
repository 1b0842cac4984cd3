from __future__ import annotations

from dataclasses import replace

import pytest

from composcope.evaluation.case import Case, Part
from composcope.evaluation.earlier_part import earlier_part

PORTO = Case(
    "porto", "What is the capital of the country where Porto is?", "Lisbon",
    (Part("In which country is Porto?", "Portugal", aliases=("Lusitania",)),
     Part("What is the capital of Portugal?", "Lisbon")),
)  # fmt: skip
RIVER = Case(
    "river", "How long is the river of the town where she was born?", "9 km",
    (Part("Who is she?", "Ada"), Part("Where was Ada born?", "Turu"), Part("How long is the river of Turu?", "9 km")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "part"),
    [("Portugal", 1), ("It is the country Portugal.", 1), ("the capital of the country Portugal", None),
     ("the capital in the Portugal", None), ("the capital from Portugal", None), ("Its capital? Old Portugal", None),
     ("Porto is in Portugal.", 1), ("Porto is the capital of Portugal.", None), ("Madrid", None),
     ("Portugal, so Lisbon", None), ("Capital Portugal", 1), ("Lusitania", 1)],
)  # fmt: skip
def test_a_name_that_an_answer_only_mentions_does_not_answer_an_earlier_part(answer: str, part: int | None) -> None:
    assert earlier_part(PORTO, answer) == part


def test_the_part_that_is_answered_is_named_and_the_last_one_is_none_of_them() -> None:
    assert [earlier_part(RIVER, said) for said in ("Ada", "Turu", "9 km")] == [1, 2, None]
    assert earlier_part(replace(RIVER, question="How long is the river of Turu?"), "Turu") is None
    assert earlier_part(replace(RIVER, answer_type="number"), "Ada") is None


def test_an_answer_that_names_the_whole_as_well_did_not_stop_at_the_bridge() -> None:
    both = replace(PORTO, aliases=("crown of Portugal",))
    assert (earlier_part(both, "Crown of Portugal"), earlier_part(both, "It is Portugal")) == (None, 1)
    assert earlier_part(replace(PORTO, answer="Portugal"), "Portugal") is None, "the whole has the same answer"
