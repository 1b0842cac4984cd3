"""Each protocol asks a shipped organism and comes out with its own metrics and case sets, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from exit_codes import done

from composcope.experiments.cli import main


@pytest.mark.slow
@pytest.mark.parametrize(
    ("benchmark", "metrics", "sets"),
    [
        ("mixed", {"both", "composition", "gap", "press_gap"}, {"both-right-whole-wrong", "both-right-whole-right"}),
        ("temporal", {"atom_stability", "double_gate", "residual_failure"}, {"residual-failure", "gated-success"}),
        ("pairs", {"step:0", "composition", "independence_gap", "second_hop"}, {"second-hop-failure"}),
    ],
)
def test_a_protocol_runs_end_to_end_on_an_organism(
    benchmark: str, metrics: set[str], sets: set[str], tmp_path: Path
) -> None:
    run = tmp_path / benchmark
    words = ["--model", "organism:control", "--benchmark", f"organism:{benchmark}", "--limit", "4"]
    assert main(["evaluate", *words, "--out", str(run), "--quiet"]) == done(run)
    document = json.loads((run / "metrics.json").read_text())
    assert metrics <= {m["metric"] for m in document["metrics"]}
    assert sets <= {p.stem for p in (run / "casesets").glob("*.jsonl")}
    assert main(["study", "lengths", str(run)]) == 0
