"""Runs in 16 bits say how much their answers depend on the batch; runs in float32 have nothing to say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from exit_codes import done

from composcope.evaluation.asks import Ask
from composcope.experiments.cli import main
from composcope.experiments.evaluating.evaluate import SAMPLE, divergence_line, divergence_sample
from composcope.experiments.run import read_json


def test_a_run_in_bfloat16_measures_it_once_and_one_in_float32_never(
    taught: Path, case_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifests: dict[str, Any] = {}
    for dtype in ("bfloat16", "float32"):
        out = tmp_path / dtype
        command = ["evaluate", "-m", str(taught), "-b", str(case_file), "-o", str(out), "--format", "plain"]
        for _ in range(2):
            assert main([*command, "--dtype", dtype]) == done(out)
        manifests[dtype] = read_json(out / "manifest.json")
        said = (out / "log.txt").read_text()
        assert said.count("depend on the batch") == (dtype == "bfloat16")
    assert "batch_divergence" not in manifests["float32"]
    measured = manifests["bfloat16"]["batch_divergence"]
    assert measured["dtype"] == "bfloat16" and measured["n"] == SAMPLE
    assert measured["n_different"] == len(measured["margins"]) == len(measured["first_steps"])
    assert measured["low"] <= measured["rate"] == measured["n_different"] / measured["n"] <= measured["high"]


def test_the_sample_is_spread_over_all_greedy_asks() -> None:
    asks = [Ask(str(i), "whole", str(i), "1", "text", temperature=float(i % 2)) for i in range(100)]
    chosen = [int(ask.case) for ask in divergence_sample(asks, 5)]
    assert chosen == [0, 20, 40, 60, 80]
    assert len(divergence_sample(asks[:6], 5)) == 3 and divergence_sample(asks[1:2]) == []


def test_what_is_said_names_rate_interval_and_margin() -> None:
    measured = {"dtype": "bfloat16", "n": 16, "n_different": 4, "rate": 0.25, "low": 0.07, "high": 0.52}
    said = divergence_line({**measured, "margins": [0.0, 0.125, 0.25, 0.0]})
    assert "4 of 16 answers" in said and "25 % [7 %, 52 %]" in said and "0.062 logits apart" in said
    none = {**measured, "n_different": 0, "rate": 0.0, "low": 0.0, "high": 0.21, "margins": []}
    assert "0 of 16" in divergence_line(none)
