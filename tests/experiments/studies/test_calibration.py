"""Small versions of ``composcope study calibration``: the limits allow for the error of so few draws."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from composcope.evaluation.metrics import Metric
from composcope.experiments.cli import main
from composcope.experiments.run.reader import Row
from composcope.experiments.studies import calibration, simulated
from composcope.experiments.studies.calibration import SCENARIOS, simulate
from composcope.experiments.studies.simulated import Draw, Scenario

DRAWS = 60
MOST = int(stats.binom.ppf(0.999, DRAWS, calibration.MOST_FALSE))
CLAIMED = {s.name for s in SCENARIOS if s.claims}
LEAST = int(stats.binom.ppf(0.001, DRAWS, calibration.LEAST_COVERED))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name)
def test_tests_and_intervals_are_right_about_as_often_as_they_say(scenario: Scenario) -> None:
    row = simulate(scenario, DRAWS, seed=1)
    if not scenario.claims:
        assert row["false_positives"] is None and row["coverage"] is None
        return
    assert row["false_positives_n"] + row["coverage_n"] >= DRAWS
    assert row["false_positives"] is None or row["false_positives"] * DRAWS <= MOST
    assert row["coverage"] is None or row["coverage"] * DRAWS >= LEAST


def test_most_intervals_of_every_scenario_hold_the_truth_and_few_tests_find_what_is_not_there() -> None:
    for row in (simulate(scenario, 6, seed=5) for scenario in SCENARIOS):
        assert row["scenario"] not in CLAIMED or row["false_positives_n"] + row["coverage_n"] >= 6, row
        assert (row["false_positives"] or 0) < 0.5 and (row["plain_false_positives"] or 0) < 1, row
        assert (row["coverage"] is None or row["coverage"] > 0.5) and row["plain_coverage"] != 0, row


def test_simulations_would_notice_tests_that_are_wrong() -> None:
    shared = next(s for s in SCENARIOS if "shared by 10" in s.name)
    row = simulate(shared, 40, seed=1)
    assert row["plain_false_positives"] * 40 > stats.binom.ppf(0.999, 40, 0.06) and row["holds"] != "no"


def test_rates_are_shares_of_what_was_drawn_and_every_scenario_has_draws_of_its_own() -> None:
    seen: dict[str, list[float]] = {"one": [], "other": []}

    def drawn(name: str) -> Row:
        draws = iter([(0.01, 1.0), (0.5, 0.0), (0.5, 1.0), (float("nan"), float("nan"))])
        return simulate(Scenario(name, lambda rng: seen[name].append(rng.random()) or Draw(*next(draws))), 4, seed=1)

    rows = [drawn(name) for name in seen]
    other = [
        simulate(Scenario("one", lambda rng: Draw(rng.random())), 9, seed=seed)["false_positives"] for seed in range(9)
    ]
    assert len(set(other)) > 1, "each seed has its own draws"
    assert [(row["false_positives"], row["coverage"], row["coverage_n"]) for row in rows] == [(1 / 3, 2 / 3, 3)] * 2
    assert seen["one"] != seen["other"]


@pytest.mark.parametrize(
    ("p", "covered", "holds"),
    [(0.5, 1.0, "yes"), (0.01, 1.0, "no"), (0.5, 0.0, "no"), (float("nan"), float("nan"), "yes")],
)
def test_a_row_says_whether_it_holds(p: float, covered: float, holds: str) -> None:
    assert simulate(Scenario("s", lambda rng: Draw(p, covered)), 50)["holds"] == holds
    assert simulate(Scenario("s", lambda rng: Draw(0.5), claims=False), 5)["holds"] == "no"


def test_a_few_too_many_of_a_few_draws_are_within_simulation_error() -> None:
    few = iter([0.01] * 4 + [0.5] * 46)
    assert simulate(Scenario("s", lambda rng: Draw(next(few))), 50)["holds"] == "within simulation error"


def test_the_command_prints_the_table_and_keeps_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Scenario("uniform", lambda rng: Draw(float(rng.random()), float(rng.random() < 0.95), 0.01, 0.0))
    monkeypatch.setattr(calibration, "SCENARIOS", (drawn,))
    assert main(["study", "calibration", "--draws", "300", "--out", str(tmp_path / "c"), "--quiet"]) == 0
    assert "| uniform |" in capsys.readouterr().out
    (row,) = json.loads((tmp_path / "c" / "study.json").read_text())["rows"]
    assert row["draws"] == 300 and row["plain_false_positives"] == 1 and np.isclose(row["coverage"], 0.95, atol=0.04)


# --- simulations: which of the numbers that a run gives is asked whether its interval holds the truth ---------------


COVERS, MISSES = {"p": 0.1, "low": -1.0, "high": 1.0, "n": 4}, {"p": 0.9, "low": 1.0, "high": 2.0, "n": 4}
"""Rows whose interval holds 0, and does not."""


def _drawn(draw: Any) -> Draw:
    return draw(np.random.default_rng(0))


def test_simulations_tell_what_knows_of_sharing_from_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    own, plain = COVERS, MISSES
    monkeypatch.setattr(calibration, "cell_maps", lambda *_, **__: ({"map": 0}, [{**own, "cell": 7}]))
    monkeypatch.setattr(calibration, "between", lambda *_, **__: SimpleNamespace(table=[own, plain]))
    assert _drawn(calibration.largest_cell) == Draw(0.1, 1.0, 0.9, 0.0)
    told = lambda doses, clusters=None: SimpleNamespace(table=[plain, own if clusters else plain])  # noqa: E731
    monkeypatch.setattr(calibration, "dose_series", told)
    assert (_drawn(calibration.trend).covered, _drawn(calibration.trend).plain_covered) == (1, 0)
    rows = [{**plain, "quantity": "kl"}, {**own, "quantity": "flip_rate"}]
    monkeypatch.setattr(calibration, "against_controls", lambda *_, **__: rows)
    assert _drawn(calibration.donors)[:2] == (0.1, 1.0)
    monkeypatch.setattr(calibration, "matched_rows", lambda *_, **__: [own])
    assert _drawn(calibration.matched_on_length)[:2] == (0.1, 1.0)
    monkeypatch.setattr(simulated, "cosine", lambda dimensions, *shifts: 1.5 - sum(shifts))
    monkeypatch.setattr(calibration, "separation_rows", lambda *_, **__: [own, own, plain, own])
    assert _drawn(calibration.unequal_cosines)[:2] == (0.1, 1.0), "p of the separation, interval across groups"


def test_one_answer_in_ten_flips_whatever_is_put_in(monkeypatch: pytest.MonkeyPatch) -> None:
    flips: list[float] = []

    def kept(made: Any, *_: Any, **__: Any) -> list[dict[str, Any]]:
        flips.extend(float(one.values["flip_rate"]) for one in made)
        return [{**COVERS, "quantity": "flip_rate"}]

    monkeypatch.setattr(calibration, "against_controls", kept)
    rng = np.random.default_rng(0)
    for _ in range(30):
        calibration.donors(rng)
    assert len(flips) == 30 * 16 * 5 and np.mean(flips) == pytest.approx(0.1, abs=0.02)


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
    monkeypatch.setattr(calibration.statistics, "d50", lambda *args: given.append(args) or found)
    assert _drawn(calibration.depth_of_half).covered == covered
    ((depths, wrong, cases),) = given
    assert len(depths) == len(wrong) == 7 and cases == [30] * 7 and max(wrong) <= 30


def test_an_interval_covers_the_truth_between_its_ends_and_the_quoted_one_is_asked() -> None:
    shared = {"cluster_n": 9, "cluster_low": 0.1, "cluster_high": 0.2, "cluster_interval": "t"}
    both = Metric("m", n=9, value=0.5, low=0.45, high=0.55, **shared)
    assert [calibration._plainly(both, t) for t in (0.5, 0.6, 0.15)] == [1, 0, 0]
    assert [calibration._covers(both, t) for t in (0.5, 0.6, 0.15)] == [0, 0, 1]
    without = Metric("m", n=9, value=0.5)
    assert all(math.isnan(f(m, 0.5)) for f in (calibration._covers, calibration._plainly) for m in (None, without))
    assert math.isnan(simulated._inside({"low": math.nan, "high": math.nan}, 0))


def test_each_rate_stands_below_its_heading_and_none_is_no_rate() -> None:
    names = ("false_positives", "plain_false_positives", "coverage", "plain_coverage")
    rows = [{"scenario": "s", **dict(zip(names, rates, strict=True)), "holds": holds}
            for rates, holds in (((0.051, 0.2, 0.94, 0.8), "yes"), ((0.0, None, 1.0, None), "no"))]  # fmt: skip
    head, _, *lines = ([cell.strip() for cell in line.strip("|").split("|")] for line in calibration.table(rows))
    assert [head[i] for i in (0, 1, 3, 5)] == ["scenario", "false positives", "coverage", "holds"]
    assert lines == [["s", "5.1 %", "20.0 %", "94.0 %", "80.0 %", "yes"], ["s", "0.0 %", "", "100.0 %", "", "no"]]
