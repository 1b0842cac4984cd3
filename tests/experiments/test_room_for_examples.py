"""Worked examples that fill a model's context are refused before anything is asked, with the option and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest
from exit_codes import done

from composcope.evaluation.cases import Case, Part
from composcope.experiments.cli import main
from composcope.experiments.evaluating import ask_plan
from composcope.experiments.evaluating.benchmark import LoadedBenchmark, default_protocol


def run(tmp_path: Path, *more: str) -> int:
    fixed = ["--model", "organism:control", "--benchmark", "organism:mixed", "--limit", "4"]
    return main(["evaluate", *fixed, "--out", str(tmp_path / "run"), *more])


def test_too_many_examples_are_refused_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--few-shot", "2", "-q") == 1
    said = capsys.readouterr().err
    assert "--few-shot 2" in said and "context of 320" in said and "fewer examples (--few-shot 1)" in said
    assert not (tmp_path / "run" / "graded.jsonl").exists()


def test_examples_that_fit_are_asked(tmp_path: Path) -> None:
    file = tmp_path / "few.jsonl"
    file.write_text('{"kind": "*", "question": "What is the tag of the kite?", "answer": "6"}\n')
    assert run(tmp_path, "--few-shot", str(file), "-q") == done(tmp_path / "run")
    assert (tmp_path / "run" / "graded.jsonl").is_file()


@pytest.mark.parametrize(
    ("format", "recommended", "own_cases", "protocols", "facts"),
    [
        (None, None, False, None, []),
        ("plain", "plain", False, None, ["plain", "benchmark", "--format"]),
        ("cot", None, False, None, ["cot", "--format"]),
        ("cot", "plain", False, None, ["cot", "--format", "recommends plain"]),
        ("short", None, True, None, ["short", "gold answers are short", "--format"]),
        (None, None, True, "cot", ["cot", "protocol's own", "--format"]),
        ("xml", None, True, "cot", ["xml", "--format"]),
    ],
)
def test_a_run_says_which_prompt_format_it_uses_and_why(
    format: str | None, recommended: str | None, own_cases: bool, protocols: str | None, facts: list[str]
) -> None:
    benchmark = LoadedBenchmark("b", (), "compositionality-gap", recommended, "hash", own_cases)
    said = ask_plan.format_notice(format, benchmark, protocols)
    assert all(fact in said for fact in facts) and bool(said) == bool(facts)


PROBED = Part("Q one?", "6", paraphrases=("One, asked?",))


@pytest.mark.parametrize(
    ("protocol", "case", "facts"),
    [
        ("double-gate", Case("c", "Q?", "8", (PROBED,)), ["paraphrases", "--protocol"]),
        ("compositionality-gap", Case("c", "Q?", "8", (PROBED,)), []),
        ("compositionality-gap", Case("c", "Q?", "8", (Part("Q one?", "6"),)), []),
        ("double-gate", Case("c", "Q?", "8", (PROBED,), meta={"protocol": "double-gate"}), ["own", "--protocol"]),
    ],
)
def test_a_run_says_why_a_protocol_was_taken(protocol: str, case: Case, facts: list[str]) -> None:
    benchmark = LoadedBenchmark("b", (case,), default_protocol([case]), None, "hash", True)
    said = ask_plan.protocol_reason(protocol, benchmark)
    assert all(fact in said for fact in facts) and bool(said) == bool(facts)
