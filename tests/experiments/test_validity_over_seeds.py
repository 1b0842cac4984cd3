"""Rows over trainings: which number of which training goes in, and what is said where one is missing."""

from __future__ import annotations

from typing import Any

from composcope.experiments.validity import over_seeds as over_seeds


def _row(question: str, model: str, value: float | None, **more: Any) -> dict[str, Any]:
    measure = "Kendall's tau-b" if question == "follows the dose" else "AUROC"
    return {"probe": "p", "short": "number", "question": question, "model": model, "headline": True,
            "measure": measure, "quantity": "number: x", "value": value, "verdict": "yes", **more}  # fmt: skip


def _trend(value: float | None, **more: Any) -> dict[str, Any]:
    return _row("follows the dose", "all doses", value, expected="decreasing", **more)


def test_a_trend_over_trainings_names_each_seed_and_how_many_go_as_expected() -> None:
    answers = {1: [_trend(-0.5)], 2: [_trend(-0.4)], 7: [_trend(0.1)]}
    (row,) = over_seeds.rows(answers)
    assert (row["seed 1"], row["seed 2"], row["seed 7"]) == (-0.5, -0.4, 0.1)
    assert row["n"] == 3 and row["as_expected"] == "2 of 3" and row["verdict"] == "cannot say (3 trainings)"
    assert row["expected"] == "decreasing" and "sign as expected in 2 of 3" in row["statement"]
    assert row["note"] is None and row["headline"]


def test_doses_and_questions_are_kept_apart() -> None:
    fails, members = "tells failure from success", "tells training members from held-out ones"
    mine = [_row(fails, "low", 0.8), _row(fails, "control", 0.6), _row(members, "twin", 0.4)]
    answers = {1: mine, 2: [{**r, "value": r["value"] + 0.01} for r in mine]}
    rows = over_seeds.rows(answers)
    assert [(r["question"], r["model"], r["seed 2"]) for r in rows] == [
        (fails, "low", 0.81), (fails, "control", 0.61), (members, "twin", 0.41000000000000003)]  # fmt: skip
    assert [r["verdict"] for r in rows] == ["yes", "yes", "yes, reversed"]
    assert rows[2]["as_expected"] == "0 of 2" and "above 0.5 in 0 of 2" in rows[2]["statement"]


def test_a_training_without_a_value_is_named_with_its_reason_and_not_counted() -> None:
    answers = {1: [_trend(-0.5)], 2: [_trend(None, note="too few cases")], 3: [_trend(-0.6)]}
    (row,) = over_seeds.rows(answers, without_trend=[3])
    assert row["n"] == 1 and row["as_expected"] == "1 of 1"
    assert row["note"] == "seed 2: too few cases; seed 3: not examined"
    assert row["value"] == -0.5 and row["verdict"].startswith("cannot say")
    (none,) = over_seeds.rows({1: [_trend(None, note="too few cases")]})
    assert none["n"] == 0 and none["value"] is None and none["verdict"] == "cannot say (0 trainings)"


def test_means_per_dose_are_joined_by_their_mean_over_trainings() -> None:
    about = {"probe": "p", "short": "n", "question": "follows the dose", "model": "all doses", "quantity": "number"}
    found = {seed: [{**about, "group": "none", "n": 9, "value": value}, {**about, "group": "twin", "value": None}]
             for seed, value in ((1, 1.0), (2, 3.0))}  # fmt: skip
    rows = over_seeds.means(found)
    assert [r["seed"] for r in rows] == [1, 1, 2, 2, "all", "all"]
    none, twin = rows[-2:]
    assert (none["group"], none["n"], none["value"], none["interval"]) == ("none", 2, 2.0, "Student t over trainings")
    assert (twin["n"], twin["interval"]) == (0, "none")
