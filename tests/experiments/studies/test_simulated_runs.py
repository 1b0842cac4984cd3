"""Simulations: which of the numbers that a run gives is asked whether its interval holds the truth."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from composcope.evaluation.metrics import Metric
from composcope.experiments.studies import simulated_runs
from composcope.experiments.studies.simulated import Draw

COVERS, MISSES = {"p": 0.1, "low": -1.0, "high": 1.0, "n": 4}, {"p": 0.9, "low": 1.0, "high": 2.0, "n": 4}
"""Rows whose interval holds 0, and does not."""


def _drawn(draw: Any) -> Draw:
    return draw(np.random.default_rng(0))


def test_simulations_tell_what_knows_of_sharing_from_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    own, plain = COVERS, MISSES
    monkeypatch.setattr(simulated_runs, "cell_maps", lambda *_, **__: ({"map": 0}, [{**own, "cell": 7}]))
    monkeypatch.setattr(simulated_runs, "between", lambda *_, **__: SimpleNamespace(table=[own, plain]))
    assert _drawn(simulated_runs.largest_cell) == Draw(0.1, 1.0, 0.9, 0.0)
    told = lambda doses, clusters=None: SimpleNamespace(table=[plain, own if clusters else plain])  # noqa: E731
    monkeypatch.setattr(simulated_runs, "dose_series", told)
    assert (_drawn(simulated_runs.trend).covered, _drawn(simulated_runs.trend).plain_covered) == (1, 0)
    rows = [{**plain, "quantity": "kl"}, {**own, "quantity": "flip_rate"}]
    monkeypatch.setattr(simulated_runs, "against_controls", lambda *_, **__: rows)
    assert _drawn(simulated_runs.donors)[:2] == (0.1, 1.0)
    monkeypatch.setattr(simulated_runs, "matched_rows", lambda *_, **__: [own])
    assert _drawn(simulated_runs.matched_on_length)[:2] == (0.1, 1.0)
    monkeypatch.setattr(simulated_runs, "_mean_cosine", lambda: 1.5)
    monkeypatch.setattr(simulated_runs, "separation_rows", lambda *_, **__: [own, own, plain, own])
    assert _drawn(simulated_runs.unequal_cosines)[:2] == (0.1, 1.0), "p of the separation, interval across groups"


@pytest.mark.parametrize(
    ("low", "high", "covered"),
    [((3.0, None), (8.0, None), 1), ((8.0, None), (9.0, None), 0), ((3.0, None), (6.0, None), 0),
     ((None, "<2"), (6.0, None), 0), ((None, "<2"), (8.0, None), 1), ((3.0, None), (None, ">10"), 1),
     ((None, ">10"), (None, ">10"), 0)],
)  # fmt: skip
def test_an_end_beyond_what_was_asked_lies_on_its_side(
    low: Any, high: Any, covered: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = SimpleNamespace(low=low[0], low_censored=low[1], high=high[0], high_censored=high[1])
    given: list[Any] = []
    monkeypatch.setattr(simulated_runs.statistics, "d50", lambda *args: given.append(args) or found)
    assert _drawn(simulated_runs.depth_of_half).covered == covered
    ((depths, wrong, cases),) = given
    assert len(depths) == len(wrong) == 7 and cases == [30] * 7 and max(wrong) <= 30


def test_an_interval_covers_the_truth_between_its_ends_and_the_quoted_one_is_asked() -> None:
    shared = {"cluster_n": 9, "cluster_low": 0.1, "cluster_high": 0.2, "cluster_interval": "t"}
    both = Metric("m", n=9, value=0.5, low=0.45, high=0.55, **shared)
    assert [simulated_runs._plainly(both, t) for t in (0.5, 0.6, 0.15)] == [1, 0, 0]
    assert [simulated_runs._covers(both, t) for t in (0.5, 0.6, 0.15)] == [0, 0, 1]
    assert all(math.isnan(f(None, 0.5)) for f in (simulated_runs._covers, simulated_runs._plainly))
