"""Which invalid grades are the model's own doing."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from composcope.evaluation.asks import Grade
from composcope.evaluation.grading import grade
from composcope.evaluation.grading.verdicts import by_the_answer
from composcope.evaluation.importers.base import outcome_of
from composcope.evaluation.judging import apply
from composcope.evaluation.protocols import Graded, counting
from composcope.evaluation.sandbox import REASONS


@pytest.mark.parametrize(
    ("response", "gold", "answer_type", "question"),
    [
        ("", "7", "number", None),
        ('{"name": "look_up", "arguments": {"city": "Porto"}}', "Lisbon", "text", None),
        ("What is the capital of Portugal?", "Lisbon", "text", "What is the capital of Portugal?"),
        ("yes and no", "yes", "boolean", None),
        ("If it is odd, the answer is A. If not, the answer is B.", "A", "choice", None),
    ],
)
def test_what_the_rules_cannot_read_is_the_models_own_doing_and_wrong_in_collapse(
    response: str, gold: str, answer_type: str, question: str | None
) -> None:
    found = grade(response, "stop", gold, answer_type, question=question)
    assert found.outcome == "invalid" and by_the_answer(found.reason), found
    row = Graded("c", "whole", "invalid", reason=found.reason)
    assert [r.outcome for r in counting.published([row], "collapse")] == ["incorrect"]


def _outside_the_main_thread() -> Grade:
    found: list[Grade] = []
    work = threading.Thread(
        target=lambda: found.append(grade("$2x+1$", "stop", "$1+2x$", "text", question="Simplify $x+x+1$."))
    )
    work.start()
    work.join()
    return found[0]


@pytest.mark.parametrize(
    "reason",
    [
        None,
        "",
        "error",
        "error: connection refused",
        "not scored",
        "partially correct",
        "doubt",
        apply(Grade("incorrect", "7"), None).reason,
        apply(Grade("incorrect", "7"), "Hm.").reason,
        outcome_of(None, "exact_match", "f")[1],
        *(f"code: {r}" for r in ("refused", "time", "memory", "recursion", "output", "crashed")),
    ],
)
def test_what_others_failed_to_do_stays_open_in_collapse(reason: Any) -> None:
    assert not by_the_answer(reason)
    row = Graded("c", "whole", "invalid", reason=reason)
    assert counting.published([row], "collapse") == [row]


def test_a_program_that_fails_by_itself_is_the_models_own_doing_and_a_missing_main_thread_is_not() -> None:
    own = [r for r in REASONS if by_the_answer(f"code: {r}")]
    assert own == ["no-code", "no-answer", "syntax", "error"]
    found = _outside_the_main_thread()
    assert found.outcome == "invalid" and not by_the_answer(found.reason), found
