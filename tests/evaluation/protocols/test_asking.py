"""What a protocol asks: formats, budgets and evidence, whichever protocol it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from composcope.errors import InputError
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.prompts import FORMATS
from composcope.evaluation.protocols import PROTOCOLS, asking, get, reduce
from composcope.evaluation.protocols.asking import MAX_TOKENS, default_format, recommended

CASE = Case("c", "Which?", "red", (Part("A?", "1", "math", "number"), Part("B?", "two", "date")))


@pytest.mark.parametrize("name", sorted(PROTOCOLS.own))
def test_unknown_formats_ways_and_options_are_refused_by_every_protocol(name: str) -> None:
    with pytest.raises(InputError, match="--format 'xmll'"):
        get(name, format="xmll")
    with pytest.raises(InputError, match="option not known"):
        get(name, wrong=1)
    also = {"compositionality-gap": "also", "double-gate": "recovery"}.get(name)
    if also:
        with pytest.raises(InputError, match="'cott'"):
            get(name, **{also: ("cott",)})
    with pytest.raises(InputError, match="'gap' is not known"):
        get("gap")
    assert reduce(get(name), []).case_sets


def test_formats_that_cases_or_protocols_recommend() -> None:
    cases = [replace(CASE, meta={"format": f}) for f in ("plain", "cot", "xml")]
    assert recommended(cases, "format") is None and recommended(cases[:1] * 2, "format") == "plain"
    five, six = replace(CASE, answer="a b c d e"), replace(CASE, answer="a b c d e f")
    long_part = replace(CASE, parts=(replace(CASE.parts[0], answer="a b c d e f"),))
    given = {
        "double-gate": [([CASE], "short"), ([CASE, five], "short"), ([CASE, six], None), ([long_part], None),
                        ([replace(CASE, unknowable=True)], None), ([replace(CASE, worked="x")], None)],
        "reasoning-gap": [([CASE], None)],
    }  # fmt: skip
    for name, rows in given.items():
        assert [default_format(cases, name) for cases, _ in rows] == [want for _, want in rows]


def test_budgets_are_those_of_the_format_unless_one_is_given() -> None:
    for given, want in ((None, MAX_TOKENS["plain"]), (7, 7)):
        asks = get("double-gate", format="plain", max_tokens=given).asks(CASE, {})
        assert {a.max_tokens for a in asks} == {want}
    pair = replace(CASE, meta={"question_2": "X?"})
    for given, want in ((None, MAX_TOKENS["cot"]), (7, 7)):
        assert {a.max_tokens for a in get("reasoning-gap", code=True, max_tokens=given).asks(pair, {})} == {want}
    asks = {a.role: a for a in get("double-gate", format="plain", recovery=("thinking", "xml")).asks(CASE, {})}
    assert asks["whole:thinking"].thinking is True and asks["whole:thinking"].format == "plain"
    assert (asks["whole:xml"].thinking, asks["whole:xml"].format) == (None, "xml")
    assert (asks["part:1"].kind, asks["part:1"].gold, asks["whole"].gold) == ("date", "two", "red")


def test_evidence_of_a_case_stands_before_every_question() -> None:
    for name in ("double-gate", "compositionality-gap", "scaffolding"):
        for ask in get(name).asks(replace(CASE, evidence=("A fact.",)), {}):
            assert "A fact." in str(ask.question) and str(ask.question) in ask.prompt


@pytest.mark.parametrize("format", FORMATS)
def test_an_ask_ends_where_its_format_says(format: str) -> None:
    assert asking._ask(CASE, CASE, "whole", "Which?", format, None).stop == FORMATS[format].stop
