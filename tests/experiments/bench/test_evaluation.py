"""The benchmark of evaluating: how fast composcope is beside the others."""

from __future__ import annotations

from composcope.experiments.bench.evaluation import _rates, _ratios
from composcope.experiments.bench.timing import TaskTiming


def test_a_benchmark_is_compared_with_the_better_of_the_others_in_its_own_clock() -> None:
    taken = (("ours", "default", 2.0, 8.0), ("x", "default", 6.0, 10.0), ("y", "default", 5.0, 12.0),
             ("ours", "8", 1.0, 4.0), ("x", "8", 4.0, 3.0))  # fmt: skip
    rows = [TaskTiming("t", *one, None, None, None, 3, "", "") for one in taken]
    assert [line.split(": ")[1] for line in _ratios(rows, True)] == [
        "1.25 times as fast (processor time)", "0.75 times as fast (processor time)"]  # fmt: skip
    assert [line.split(": ")[1] for line in _ratios(rows, False)] == [
        "2.50 times as fast (wall clock)", "4.00 times as fast (wall clock)"]  # fmt: skip
    assert next(iter(_rates(rows[:2], 12))) == "asks/s: ours (default) 6.0, x (default) 2.0"
