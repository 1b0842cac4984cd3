"""The benchmark of evaluating: how fast composcope is beside the others."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from composcope.experiments.bench import evaluation
from composcope.experiments.bench.evaluation import _rates, _ratios
from composcope.experiments.bench.timing import TaskTiming
from composcope.experiments.cli import main


def test_a_benchmark_is_compared_with_the_better_of_the_others_in_its_own_clock() -> None:
    taken = (("ours", "default", 2.0, 8.0), ("x", "default", 6.0, 10.0), ("y", "default", 5.0, 12.0),
             ("ours", "8", 1.0, 4.0), ("x", "8", 4.0, 3.0))  # fmt: skip
    rows = [TaskTiming("t", *one, None, None, None, 3, "", "") for one in taken]
    assert [line.split(": ")[1] for line in _ratios(rows, True)] == [
        "1.25 times as fast (processor time)", "0.75 times as fast (processor time)"]  # fmt: skip
    assert [line.split(": ")[1] for line in _ratios(rows, False)] == [
        "2.50 times as fast (wall clock)", "4.00 times as fast (wall clock)"]  # fmt: skip
    assert next(iter(_rates(rows[:2], 12))) == "asks/s: ours (default) 6.0, x (default) 2.0"


def test_every_option_of_the_bench_reaches_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {}

    def bench(*words: str, **options: Any) -> Any:
        given.update(options, words=words)
        return SimpleNamespace(document=lambda: {"schema": 1, "rows": []}, text=lambda: "the table")

    monkeypatch.setattr(evaluation, "bench_evaluation", bench)
    options = {"asks": 3, "batch_size": 5, "repeats": 7, "threads": 2, "device": "cpu", "dtype": "float16",
               "lm_eval_python": "/x/python"}  # fmt: skip
    words = [w for name, value in options.items() for w in (f"--{name.replace('_', '-')}", str(value))]
    assert main(["bench", "evaluation", "-m", "organism:twin", "-b", "organism:chain", *words, "--quiet"]) == 0
    assert given["words"] == ("organism:twin", "organism:chain") and {k: given[k] for k in options} == options
    assert capsys.readouterr().out == "the table\n"
    assert main(["bench", "evaluation", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"schema": 1, "rows": []}
