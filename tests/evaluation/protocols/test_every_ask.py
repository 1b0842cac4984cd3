"""Every ask of every protocol, field by field: what is asked, what is right, and how much room the answer has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from composcope.evaluation.asks import Ask, Grade
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.grading.extract import CODE, PAIR_Q1
from composcope.evaluation.prompts import FORMATS, render
from composcope.evaluation.protocols import get
from composcope.evaluation.protocols.asking import MAX_TOKENS
from composcope.evaluation.protocols.reasoning_gap import CODE_INSTRUCTION

PARTS = (
    Part("P0?", "1", "math", "number", ("one",), paraphrases=("P0a?",), atom="f0", extra_context="P0x?"),
    Part("P1?", "red", "color", "text", ("crimson",), paraphrases=("P1a?", "P1b?"), atom="f1"),
)
META = {
    "reversed": {"question": "R?", "answer": "blue"}, "question_2": "Q2 of X?", "independent": "I?",
    "original": {"question": "O?", "answer": "green"},
}  # fmt: skip
CASE = Case("c", "W?", "red", PARTS, aliases=("scarlet",), evidence=("E.",), meta=META)
THREE = Case("c", "W?", "red", (*PARTS, Part("P2?", "red", "last", aliases=("rouge",))), aliases=("scarlet",))

FIRST = ("1", "number", ("one",), "math", "f0")
SECOND = ("red", "text", ("crimson",), "color", "f1")
THIRD = ("red", "text", ("rouge",), "last", None)
WHOLE = ("red", "text", ("scarlet",), None, None)
PAIR = "Let X be the answer to Q1.\nQ1: P0?\nUse X to answer Q2.\nQ2: Q2 of X?"
AGAIN = {
    "whole:xml": ("W?", *WHOLE, "xml"), "whole:thinking": ("W?", *WHOLE, "cot"), "self-ask": ("W?", *WHOLE, "self-ask")
}  # fmt: skip
WORDED = {
    "part:0": ("P0?", *FIRST, "cot"), "part:0:paraphrase:0": ("P0a?", *FIRST, "cot"), "part:1": ("P1?", *SECOND, "cot"),
    "part:1:paraphrase:0": ("P1a?", *SECOND, "cot"), "part:1:paraphrase:1": ("P1b?", *SECOND, "cot"),
}  # fmt: skip
ALONE = {role: row for role, row in WORDED.items() if "paraphrase" not in role} | {"whole": ("W?", *WHOLE, "cot")}
EXPECTED: dict[str, tuple[Case, dict[str, Any], dict[str, Any]]] = {
    "double-gate": (
        CASE, {"recovery": ("xml", "self-ask", "thinking")},
        WORDED | {"whole": ("W?", *WHOLE, "cot")}
        | {("whole:self-ask" if role == "self-ask" else role): row for role, row in AGAIN.items()},
    ),
    "compositionality-gap": (
        CASE, {"also": ("xml", "self-ask", "thinking"), "reversed": True},
        ALONE | AGAIN | {"part:0:extra-context": ("P0x?", *FIRST, "cot"),
                         "whole:reversed": ("R?", "blue", "text", (), None, None, "cot")},
    ),
    "reasoning-gap": (
        CASE, {"code": True},
        ALONE | {
            "whole": (PAIR, *WHOLE, "cot"), "pair:q1": (PAIR, *FIRST[:4], None, PAIR_Q1), "code": (PAIR, *WHOLE, CODE),
            "co-presented": ("Q1: I?\nQ2: P1?\nAnswer both.", *SECOND, "cot"),
            "original": ("O?", "green", "text", (), "color", "f1", "cot"),
        },
    ),
    "scaffolding": (
        THREE, {},
        ALONE | {
            "part:2": ("P2?", *THIRD, "cot"), "scaffold:1": ("Known: P0? 1. W?", *WHOLE, "cot"),
            "scaffold:2": ("Known: P0? 1. Known: P1? red. W?", *WHOLE, "cot"),
            "placeholder:2": ("Known: P0? [VALUE]. Known: P1? [VALUE]. W?", *WHOLE, "cot"),
        },
    ),
}  # fmt: skip
"""By protocol: case, options, and by role the question, gold answer, type, aliases, kind, atom and format."""


def _asked(name: str, case: Case, options: Mapping[str, Any]) -> dict[str, Ask]:
    """All rounds, of a model that is right with two steps revealed only."""
    protocol, asks, graded = get(name, **options), {}, {}
    while new := protocol.asks(case, graded):
        asks |= {ask.role: ask for ask in new}
        graded |= {ask.role: Grade("correct" if ask.role == "scaffold:2" else "incorrect", None) for ask in new}
    return asks


@pytest.mark.parametrize(("tokens", "own"), [(None, "cot"), (77, "cot"), (None, "xml")])
@pytest.mark.parametrize("name", EXPECTED)
def test_an_ask_holds_its_own_question_and_answer_and_has_the_room_of_its_format_or_what_is_given(
    name: str, tokens: int | None, own: str
) -> None:
    case, options, expected = EXPECTED[name]
    asks = _asked(name, case, {**options, "max_tokens": tokens, "format": own})
    given = {role: (a.question, a.gold, a.answer_type, a.aliases, a.kind, a.atom, a.format) for role, a in asks.items()}
    before = "Facts: E.\n" if case.evidence else ""
    assert given == {
        role: (before + text, *rest, own if format == "cot" else format)
        for role, (text, *rest, format) in expected.items()
    }
    for role, ask in asks.items():
        wording = own if ask.format in (PAIR_Q1, CODE) else ask.format
        assert ask.max_tokens == (tokens or MAX_TOKENS["cot" if ask.format == CODE else wording]), role
        assert ask.stop == (() if ask.format == CODE else FORMATS[wording].stop), role
        program = f"{ask.question}\n{CODE_INSTRUCTION}"
        assert ask.prompt == (program if ask.format == CODE else render(str(ask.question), wording)), role
        assert (ask.case, ask.thinking) == ("c", True if role == "whole:thinking" else None), role


@pytest.mark.parametrize(
    ("outcome", "options", "roles"),
    [
        ("correct", {}, set()),
        ("correct", {"ask_all": True}, {"scaffold:1", "scaffold:2"}),
        ("incorrect", {}, {"scaffold:1", "scaffold:2", "placeholder:1"}),
        ("abstained", {}, {"scaffold:1", "scaffold:2", "placeholder:1"}),
        ("invalid", {}, {"scaffold:1", "scaffold:2", "placeholder:1"}),
        ("invalid", {"placeholders": False}, {"scaffold:1", "scaffold:2"}),
    ],
)
def test_steps_are_revealed_where_the_whole_is_not_known_to_be_right(
    outcome: Any, options: dict[str, Any], roles: set[str]
) -> None:
    protocol, graded = get("scaffolding", **options), {}
    while new := protocol.asks(THREE, graded):
        graded |= {a.role: Grade(outcome if a.role == "whole" else "correct", None) for a in new}
    assert {role for role in graded if role[:4] not in ("part", "whol")} == roles
