from __future__ import annotations

from composcope.evaluation.cases import Part
from composcope.evaluation.grading.lists import stopped_at_a_part

PARTS = (Part("Which ones?", "cart and bread", answer_type="list"), Part("The sum?", "20", answer_type="number"))


def test_a_whole_answered_with_a_step_or_a_piece_of_it_is_wrong_and_says_where_it_stopped() -> None:
    for text in ("cart and bread", " cart", "Bread, cart"):
        found = stopped_at_a_part(text, PARTS)
        assert found is not None and (found.outcome, found.reason) == ("incorrect", "stops at part:0")


def test_anything_else_stays_unjudged() -> None:
    for text in ("", "I would have to think", "cart and horse", "the cart is wheeled"):
        assert stopped_at_a_part(text, PARTS) is None
