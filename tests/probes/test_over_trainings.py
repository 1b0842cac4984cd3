"""One number per training: Student's interval over trainings, and a verdict only where it excludes no effect."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from composcope.errors import InputError, NoCasesError
from composcope.probes import validity


def _row(values: list[float], **options: object) -> dict[str, object]:
    (row,) = validity.over_trainings(values, **options).table  # type: ignore[arg-type]
    return row


def test_the_interval_is_students_over_trainings() -> None:
    values = [0.30, 0.34, 0.41]
    row = _row(values)
    low, high = stats.t.interval(0.95, 2, loc=sum(values) / 3, scale=stats.sem(values))
    assert (row["low"], row["high"]) == (pytest.approx(low), pytest.approx(high))
    assert (row["n"], row["as_expected"], row["verdict"]) == (3, 3, "yes")
    assert row["interval"] == "Student t over trainings"


def test_three_trainings_that_disagree_say_nothing_however_they_lean() -> None:
    row = _row([0.1, 0.5, 0.7])
    assert row["low"] < 0 < row["value"] and row["verdict"] == "cannot say (3 trainings)"  # type: ignore[operator]
    assert row["as_expected"] == 3


def test_one_training_has_no_interval_and_no_verdict() -> None:
    row = _row([0.4])
    assert math.isnan(row["low"]) and math.isnan(row["sd"])  # type: ignore[arg-type]
    assert row["n"] == 1 and str(row["verdict"]).startswith("cannot say")


def test_trainings_that_never_differ_have_no_interval() -> None:
    row = _row([1.0, 1.0, 1.0])
    assert row["interval"] == "no spread" and str(row["verdict"]).startswith("cannot say")


def test_the_expected_direction_decides_between_yes_and_reversed() -> None:
    falling = [-0.3, -0.33, -0.31]
    assert _row(falling, expected="decreasing")["verdict"] == "yes"
    assert _row(falling, expected="decreasing")["as_expected"] == 3
    assert _row(falling)["verdict"] == "yes, reversed" and _row(falling)["as_expected"] == 0


def test_an_auroc_is_asked_against_a_half_and_cut_at_what_is_possible() -> None:
    row = _row([0.7, 0.9, 0.98], null=0.5, bounds=(0.0, 1.0))
    assert row["high"] == 1.0 and "cut at 0 and 1" in str(row["interval"])
    assert _row([0.61, 0.62, 0.6], null=0.5, bounds=(0.0, 1.0))["verdict"] == "yes"
    assert _row([0.5, 0.5001, 0.6], null=0.5)["as_expected"] == 2


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="outside 0 to 1"):
        validity.over_trainings([1.2], bounds=(0.0, 1.0))
    with pytest.raises(InputError, match="expected is 'up'"):
        validity.over_trainings([0.2], expected="up")
    with pytest.raises(NoCasesError, match="no training has a value"):
        validity.over_trainings([])
