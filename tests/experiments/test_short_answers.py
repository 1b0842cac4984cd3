"""Answer-only asking, and what a run says of answers that nobody can use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.cases import Case, Part, write_cases
from composcope.evaluation.graded import Graded
from composcope.experiments.config import Asking, Config
from composcope.experiments.evaluating.ask_plan import make_protocol, with_target
from composcope.experiments.evaluating.benchmark import load_benchmark
from composcope.experiments.run import checks

SHORT = Case("c", "Which language do people speak in Oslo?", "Norwegian", (Part("Where is Oslo?", "Norway"),))


@pytest.mark.parametrize(
    ("change", "protocol", "format"),
    [
        ({}, "compositionality-gap", "short"),
        ({}, "double-gate", "short"),
        ({}, "reasoning-gap", None),
        ({}, "scaffolding", None),
        ({"unknowable": True}, "double-gate", None),
        ({"worked": "Oslo is in Norway, so Norwegian"}, "compositionality-gap", None),
        ({"answer": "one two three four five six"}, "compositionality-gap", None),
        ({"parts": (Part("Where is Oslo?", "in the south of the kingdom of Norway"),)}, "double-gate", None),
        ({"meta": {"format": "xml"}}, "compositionality-gap", "xml"),
    ],
)
def test_own_cases_with_short_golds_are_asked_for_the_answer_alone(
    tmp_path: Path, change: dict, protocol: str, format: str | None
) -> None:
    write_cases([replace(SHORT, **change)], tmp_path / "cases.jsonl")
    assert load_benchmark(str(tmp_path / "cases.jsonl")).format_for(protocol) == format


def test_other_benchmarks_keep_the_format_they_want() -> None:
    assert load_benchmark("organism:mixed", limit=2).format_for("compositionality-gap") == "plain"


def test_parts_and_whole_are_asked_in_the_same_words() -> None:
    made = make_protocol(Config(model="m", benchmark="b", protocol="compositionality-gap", format="short"))
    prompts = {a.role: a for a in made.asks(SHORT, {})}
    endings = {a.prompt.removeprefix(str(a.question)) for a in prompts.values()}
    assert len(endings) == 1 and endings != {""}
    assert len({a.max_tokens for a in prompts.values()}) == 1


class Template:
    def __init__(self, chat_template: str | None) -> None:
        self.chat_template = chat_template


@pytest.mark.parametrize(
    ("template", "prompting", "thinking", "format", "more"),
    [
        ("... <think> ...", "chat", None, "short", True),
        ("... <think> ...", "chat", False, "short", False),
        ("... <think> ...", "raw", None, "short", False),
        ("... <think> ...", "chat", None, "plain", False),
        ("no such thing", "chat", None, "short", False),
        (None, "chat", None, "short", False),
    ],
)
def test_models_that_may_think_first_keep_the_budget_of_thinking(
    template: str | None, prompting: str, thinking: bool | None, format: str, more: bool
) -> None:
    asked = Asking(thinking=thinking)
    how = Config(model="m", benchmark="b", protocol="compositionality-gap", format=format, asking=asked)
    told = with_target(how, prompting, Template(template))
    budgets = {a.max_tokens for a in make_protocol(told).asks(SHORT, {})}
    assert (budgets == {told.asking.thinking_tokens}) == more
    assert ("may_think" in told.asking.changed()) == more


def rows(texts: list[str], outcome: str, *, format: str = "plain", reason: str = "stop", role: str = "whole"):
    asks, responses, graded = {}, {}, []
    for i, text in enumerate(texts):
        key = f"{role}-{i}"
        asks[key] = Ask(f"c{i}", role, "Q?", "gold", "text", format=format)
        responses[key] = Response(key, text, reason, 3, 5)  # type: ignore[arg-type]
        graded.append(Graded(case=f"c{i}", role=role, outcome=outcome, ask=key))  # type: ignore[arg-type]
    return graded, asks, responses


@pytest.mark.parametrize(
    ("bad", "outcome", "format", "reason", "facts"),
    [
        ("what?", "invalid", "plain", "stop", ["whole", "6 of 100", "6%", "invalid", "'c0'", "--format short"]),
        ("what?", "invalid", "short", "stop", ["6 of 100", "invalid", "--judge"]),
        ("cut", "invalid", "plain", "length", ["6 of 100", "cut off", "--answer-tokens"]),
        ("<think> so </think> cut", "invalid", "plain", "length", ["cut off", "--no-thinking"]),
        ("word " * 40, "correct", "plain", "stop", ["6 of 100", "verbose", "--format short"]),
    ],
)
def test_a_role_with_many_unusable_answers_is_named_with_what_mends_it(
    bad: str, outcome: str, format: str, reason: str, facts: list[str]
) -> None:
    first = rows([bad] * 6, outcome, format=format, reason=reason)
    rest = rows(["gold"] * 100, "correct", format=format)
    graded, asks, responses = ([*first[0], *rest[0][6:]], {**rest[1], **first[1]}, {**rest[2], **first[2]})
    [warning] = checks.asking_warnings(graded, asks, responses)
    assert all(fact in warning for fact in facts), warning
    five_percent = [*graded[:5], *rest[0][5:]]
    assert checks.asking_warnings(five_percent, asks, {**responses, "whole-5": rest[2]["whole-5"]}) == []


@pytest.mark.parametrize("format", ["cot", "xml"])
def test_long_answers_are_no_trouble_where_working_was_asked_for(format: str) -> None:
    assert checks.asking_warnings(*rows(["word " * 40] * 20, "correct", format=format)) == []


def test_an_ask_that_many_cases_share_counts_once() -> None:
    graded, asks, responses = rows(["gold"] * 10, "correct")
    shared = [replace(graded[0], case=f"s{i}", outcome="invalid") for i in range(50)]
    [warning] = checks.asking_warnings([*shared, *graded[1:]], asks, responses)
    assert "1 of 10" in warning


def test_an_ask_that_stands_in_two_roles_counts_in_both() -> None:
    graded, asks, responses = rows(["gold"] * 10, "invalid")
    again = [replace(row, role="pair:q1") for row in graded]
    warnings = checks.asking_warnings([*graded, *again], asks, responses)
    assert [w.split(":")[0] for w in warnings] == ["whole", "pair"]
