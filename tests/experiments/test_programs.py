"""Answers in code: what runs them is known before anything is asked, and stands with the run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.errors import InputError
from composcope.evaluation import protocols, sandbox
from composcope.evaluation.asks import Ask, Response
from composcope.evaluation.cases import Case, Part
from composcope.evaluation.engines.base import BaseEngine
from composcope.evaluation.journal import ask_identity
from composcope.experiments.console.printing import Reporter
from composcope.experiments.evaluating.ask_plan import AskOptions
from composcope.experiments.evaluating.evaluate import ask_and_grade
from composcope.experiments.run.writer import begin_run

CASES = [
    Case(
        name,
        f"What is X plus 2, where it {name}?",
        "9",
        (Part("What is 3 plus 4?", "7"), Part("What is 7 plus 2?", "9")),
        answer_type="number",
    )
    for name in ("runs", "refused")
]
PROGRAMS = {
    "runs": "```python\ndef solve_q1():\n    return 3 + 4\ndef solution():\n    return solve_q1() + 2\n```",
    "refused": "```python\nimport numpy\ndef solution():\n    return 9\n```",
}


class Scripted(BaseEngine):
    """An engine that answers programs as written above, and everything else with 9."""

    identity = {"model": "scripted"}  # noqa: RUF012
    provenance: dict[str, Any] = {}  # noqa: RUF012
    asked = 0

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for ask in asks:
            self.asked += 1
            text = PROGRAMS[ask.case] if ask.role == "code" else "The answer is 9."
            yield ask, Response(ask_identity(ask, self.identity), text, "stop", 1, 1)


def _evaluate(folder: Path, engine: Scripted, code: bool) -> dict[str, Any]:
    config = {
        "model": "scripted",
        "benchmark": "own",
        "protocol": "reasoning-gap",
        "format": "plain",
        "prompting": "chat",
        "asking": {"code": code},
    }
    with begin_run(folder, config, identity={"model": "scripted", "protocol": "reasoning-gap"}) as run:
        protocol = protocols.get("reasoning-gap", format="plain", code=code)
        plan = SimpleNamespace(cases=CASES, protocol=protocol, options=AskOptions("reasoning-gap"))
        ask_and_grade(run, plan, engine, None, Reporter(quiet=True), None)  # type: ignore[arg-type]
        return run.manifest.facts()


def test_a_run_with_programs_says_what_ran_them(tmp_path: Path) -> None:
    manifest = _evaluate(tmp_path / "run", Scripted(), code=True)
    assert manifest["sandbox"] == sandbox.describe()
    document = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    refused = next(m for m in document["metrics"] if m["metric"] == "code_refused")
    assert (refused["count"], refused["n"]) == (1, 2)
    assert [w for w in document["warnings"] if sandbox.in_words() in w]


def test_a_run_without_programs_starts_no_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox.running, "backend", lambda: pytest.fail("a sandbox was started"))
    assert "sandbox" not in _evaluate(tmp_path / "run", Scripted(), code=False)


def test_without_a_sandbox_programs_are_not_even_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise InputError("this machine has no sandbox for programs of a model")

    monkeypatch.setattr(sandbox.running, "backend", missing)
    engine = Scripted()
    with pytest.raises(InputError, match="no sandbox"):
        _evaluate(tmp_path / "run", engine, code=True)
    assert engine.asked == 0
