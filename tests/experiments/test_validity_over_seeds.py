"""Rows over trainings: which number of which training goes in, and what is said where one is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from composcope.experiments.validity import over_seeds as over_seeds
from composcope.experiments.validity.scores import BASELINES

stats: Any = scipy_stats


def _row(question: str, model: str, value: float | None, **more: Any) -> dict[str, Any]:
    measure = "Kendall's tau-b" if question == "follows the dose" else "AUROC"
    return {"probe": "p", "short": "number", "question": question, "model": model, "headline": True,
            "measure": measure, "quantity": "number: x", "value": value, "verdict": "yes", **more}  # fmt: skip


def _trend(value: float | None, **more: Any) -> dict[str, Any]:
    return _row("follows the dose", "all doses", value, expected="decreasing", **more)


def _cases(question: str, model: str, seed: int, values: dict[int, list[float]]) -> list[dict[str, Any]]:
    """Numbers of cases by level; lengths and the rest say nothing."""
    rng = np.random.default_rng(seed)
    return [{"seed": seed, "question": question, "model": model, "level": level, "case": f"c{i}", "cluster": f"c{i}",
             "number": x, **{name: rng.normal() for name in BASELINES.values()}}
            for level, mine in values.items() for i, x in enumerate(mine)]  # fmt: skip


def _falling(slope: float, seed: int) -> dict[int, list[float]]:
    rng = np.random.default_rng([seed, 1])
    return {dose: (slope * dose + rng.normal(size=20)).tolist() for dose in range(4)}


DOSE, ALL = "follows the dose", "all doses"


def test_a_trend_over_eight_trainings_names_each_seed_and_how_many_go_as_expected() -> None:
    answers = {seed: [_trend(-0.5)] for seed in range(8)}
    cases = [row for seed in answers for row in _cases(DOSE, ALL, seed, _falling(-0.8, seed))]
    (row,) = over_seeds.rows(answers, cases)
    first = _falling(-0.8, 0)
    tau = stats.kendalltau(np.repeat(range(4), 20), np.concatenate(list(first.values()))).statistic
    assert row["seed 0"] == pytest.approx(tau) and row["n"] == 8 and row["as_expected"] == "8 of 8"
    assert row["verdict"] == "yes" and row["expected"] == "decreasing" and row["headline"] and row["note"] is None
    assert row["nothing"].endswith(" of 0"), "no trend, where 0.5 is no difference of two sides"
    assert row["p"] == pytest.approx(2 / 2**8) and row["seed"] == "all" and row["without_lowest"] < 0
    (few,) = over_seeds.rows(dict(list(answers.items())[:3]), cases)
    assert few["verdict"] == "cannot say: 3 trainings (8 are needed)" and "p" not in few and few["value"] < -0.3


def test_doses_and_questions_are_kept_apart() -> None:
    fails, members = "tells failure from success", "tells training members from held-out ones"
    answers = {1: [_row(fails, "low", 0.8), _row(fails, "control", 0.6), _row(members, "twin", 0.4)]}
    shifts = {(fails, "low"): 2.0, (fails, "control"): 0.5, (members, "twin"): -1.0}
    cases = [
        row
        for (q, m), shift in shifts.items()
        for row in _cases(q, m, 1, {0: [0, 1, 2], 1: [shift, 1 + shift, 2 + shift]})
    ]
    rows = over_seeds.rows(answers, cases)
    assert [(r["question"], r["model"], r["seed 1"]) for r in rows] == [
        (fails, "low", pytest.approx(8.5 / 9)), (fails, "control", pytest.approx(6 / 9)),
        (members, "twin", pytest.approx(2 / 9))]  # fmt: skip


def test_a_training_without_a_value_is_named_with_its_reason_and_not_counted() -> None:
    answers = {1: [_trend(-0.5)], 2: [_trend(None, note="too few cases")], 3: [_trend(-0.6)]}
    cases = [row for seed in (1, 3) for row in _cases(DOSE, ALL, seed, _falling(-0.8, seed))]
    (row,) = over_seeds.rows(answers, cases, without_trend=[3])
    assert row["n"] == 1 and row["as_expected"] == "1 of 1"
    assert row["note"] == "seed 2: too few cases; seed 3: not examined"
    assert row["value"] == row["seed 1"] and row["verdict"].startswith("cannot say: 1 training")
    (none,) = over_seeds.rows({1: [_trend(None, note="too few cases")]}, [])
    assert none["n"] == 0 and none["value"] is None and none["verdict"].startswith("cannot say: 0 trainings")


def test_means_per_dose_are_joined_by_their_mean_over_trainings() -> None:
    about = {"probe": "p", "short": "n", "question": "follows the dose", "model": "all doses", "quantity": "number"}
    found = {seed: [{**about, "group": "none", "n": 9, "value": value}, {**about, "group": "twin", "value": None}]
             for seed, value in ((1, 1.0), (2, 3.0))}  # fmt: skip
    rows = over_seeds.means(found)
    assert [r["seed"] for r in rows] == [1, 1, 2, 2, "all", "all"]
    none, twin = rows[-2:]
    assert (none["group"], none["n"], none["value"], none["interval"]) == ("none", 2, 2.0, "Student t over trainings")
    assert (twin["n"], twin["interval"]) == (0, "none")
    *_, mean = over_seeds.means({seed: [{**about, "group": "none", "value": seed / 2}] for seed in (0, 1)})
    assert (mean["n"], mean["value"]) == (2, 0.25), "0 is a value"


def test_the_note_names_the_seeds_and_says_how_to_leave_the_shipped_training_out_where_it_is_in() -> None:
    told = [over_seeds.note((3, 12), shipped) for shipped in (True, False)]
    assert all(t.startswith("2 trainings per dose (seeds 3, 12)") for t in told)
    assert ["--only-series" in t for t in told] == [True, False]
