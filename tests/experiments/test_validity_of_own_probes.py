"""Probes of one's own put to the dose series: what is taken from their results, what is asked, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from exit_codes import done

from composcope.errors import InputError
from composcope.experiments.cli import main
from composcope.experiments.run import read_json
from composcope.experiments.validity import over_doses as validity
from composcope.experiments.validity import scores as validity_scores
from composcope.probes import Example, ProbeResult


def _example(i: int, role: str = "whole") -> Example:
    return Example(case=f"c{i}", role=role, kind="composition", group="failure", prompt_ids=(1, 2, 3),
                   response_ids=(4, 5), answer_ids=(4,), cue_tokens=0, question_span=(1, 3), family="f",
                   depth=2)  # fmt: skip


EXAMPLES = [_example(0), _example(0, "part:0"), _example(1)]


def _result(values: Any, axes: tuple[str, ...] = ("example",), **settings: Any) -> ProbeResult:
    return ProbeResult("mine", [], {"height": torch.as_tensor(values)}, {"height": axes}, settings)


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (_result([[1.0]], ("example", "layer")), "no tensor has 'example' as its only axis"),
        (_result([1.0, 2.0]), r"shape \(2,\) for 3 examples"),
        (_result([1.0, 2.0, 3.0], expected={"height": "up"}), "name tensors increasing or decreasing"),
        (_result([1.0, 2.0, 3.0], expected="up"), "name tensors increasing or decreasing"),
    ],
)
def test_a_result_that_cannot_be_examined_is_refused(result: ProbeResult, says: str) -> None:
    with pytest.raises(InputError, match=says):
        validity_scores._own("mine", result, EXAMPLES)


def _by_length(lm: Any, examples: Any) -> ProbeResult:
    return ProbeResult(
        "length", [], {"tokens": torch.tensor([float(len(e.prompt_ids)) for e in examples])}, {"tokens": ("example",)}
    )


@pytest.mark.long
def test_a_probe_of_ones_own_is_examined_beside_the_others_and_kept_while_its_code_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validity, "source_hash", lambda: "this code")  # sources may be edited while tests run
    words = ["--benchmark", "organism:mixed", "--limit", "4", "--quiet"]
    runs = {dose: tmp_path / dose for dose in ("none", "twin")}
    for dose, run in runs.items():
        assert main(["evaluate", "--model", f"organism:{dose}", *words, "--out", str(run)]) == done(run)
    rows = validity.examine(tmp_path, runs, n=3, probes={"length": _by_length})
    mine = [r for r in rows if r["probe"] == "length"]
    assert {r["question"] for r in mine} >= {validity.QUESTIONS[k] for k in ("dose", "members", "planted")}
    assert {r["probe"] for r in rows} > {"length"}
    assert rows == validity.examine(tmp_path, runs, n=3, probes={"length": _by_length})
    with pytest.raises(InputError, match="probe other"):
        validity.examine(tmp_path, runs, n=3, probes={"other": lambda lm, examples: ProbeResult("other", [])})
    assert read_json(tmp_path / "validity.json")["settings"]["own_probes"] == ["length"]


def test_the_study_takes_plugins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", "validity", "--plugin", str(tmp_path / "no.py"), "--out", str(tmp_path / "s")]) == 1
    assert "no.py: no such file" in capsys.readouterr().err
