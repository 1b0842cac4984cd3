"""Worked examples that fill a model's context are refused before anything is asked, with the option and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from composcope.experiments import asking
from composcope.experiments.cli import main


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
    assert run(tmp_path, "--few-shot", str(file), "-q") in (0, 2)
    assert (tmp_path / "run" / "graded.jsonl").is_file()


@pytest.mark.parametrize(
    ("format", "recommended", "said"),
    [
        (None, None, ""),
        ("plain", "plain", ", prompt format plain (the benchmark's own; --format changes it)"),
        ("cot", None, ", prompt format cot (--format)"),
        ("cot", "plain", ", prompt format cot (--format; the benchmark recommends plain)"),
    ],
)
def test_a_run_says_which_prompt_format_it_uses_and_why(format: str | None, recommended: str | None, said: str) -> None:
    assert asking.format_notice(format, recommended) == said


def test_the_protocols_own_prompt_format_is_said_too() -> None:
    said = ", prompt format cot (the protocol's own; --format changes it)"
    assert asking.format_notice(None, None, "cot") == said
    assert asking.format_notice("xml", None, "cot") == ", prompt format xml (--format)"
