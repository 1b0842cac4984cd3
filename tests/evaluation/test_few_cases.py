"""Limits of functions of rates where a few cases decide, against published values and simulated truths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from composcope.evaluation.few_cases import limits, of_two_gates
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.protocols import Graded, counting, double_gate
from composcope.evaluation.protocols.compare import compare
from composcope.evaluation.protocols.compositionality_gap import independence_gap
from composcope.evaluation.protocols.reasoning_gap import code_gain
from composcope.experiments.studies import tables

Drawn = np.ndarray
OUTCOME = {True: "correct", False: "incorrect"}
KNOWN = [Graded("k", "part:0:paraphrase:0", "correct", atom="a", model="m"), Graded("k", "whole", "invalid", model="m")]
"""A fact that both models know, without which they are not compared."""


def difference(rates: np.ndarray) -> float:
    return rates[0] - rates[1]


def test_limits_of_a_difference_of_two_rates_are_newcombes() -> None:
    both, nan = [1.0, 0.0], float("nan")
    apart = [(v, nan) for v in both[:1] * 56 + both[1:] * 14] + [(nan, v) for v in both[:1] * 48 + both[1:] * 32]
    assert limits(apart, difference) == (pytest.approx(0.0524, abs=1e-4), pytest.approx(0.3339, abs=1e-4)), (
        "56 of 70 and 48 of 80, the first example of Newcombe (1998), with score limits"
    )
    table = [(1, 1)] * 12 + [(1, 0)] * 9 + [(0, 1)] * 2 + [(0, 0)] * 21  # of the same cases: method 10, by hand
    phi = (12 * 21 - 9 * 2 - 22) / np.sqrt(21 * 23 * 14 * 30)
    ends = [[*limits([[a] for a, _ in table], lambda r: r[0]), *limits([[b] for _, b in table], lambda r: r[0])]]  # type: ignore[misc]
    (l1, u1, l2, u2), p1, p2 = ends[0], 21 / 44, 14 / 44
    low = np.sqrt((p1 - l1) ** 2 - 2 * phi * (p1 - l1) * (u2 - p2) + (u2 - p2) ** 2)
    high = np.sqrt((u1 - p1) ** 2 - 2 * phi * (u1 - p1) * (p2 - l2) + (p2 - l2) ** 2)
    assert limits(table, difference) == (pytest.approx(p1 - p2 - low), pytest.approx(p1 - p2 + high))
    wide = np.sqrt(
        (p1 - l1) ** 2 + (p2 - l2) ** 2 + 2 * (p1 - l1) * (p2 - l2) * (phi + 22 / np.sqrt(21 * 23 * 14 * 30))
    )
    assert (limits(table, sum) or (0, 0))[0] == pytest.approx(p1 + p2 - wide), "a correlation that widens is as it is"
    low, high = limits(table, difference) or (0, 0)
    assert limits([row[::-1] for row in table], difference) == (pytest.approx(-high), pytest.approx(-low))


@pytest.mark.parametrize("table", [[], [(1.0, np.nan), (0.0, np.nan)], [(1.0, 0.0)] * 4])
def test_what_no_case_counts_in_and_what_is_infinite_has_no_limits(table: list[Any]) -> None:
    assert limits(table, lambda r: r[0] / r[1]) is None


def test_a_difference_between_two_gates_is_the_same_function_of_the_rates_of_its_parts() -> None:
    r = np.random.default_rng(0)
    single, failed = r.random(60) < 0.9, r.random(60) < 0.4
    double = single & (r.random(60) < 0.7)
    table, function = of_two_gates(np.column_stack([single, single & failed, double, double & failed]))
    expected = failed[single].mean() - failed[double].mean()
    assert function(np.nanmean(table, axis=0)) == pytest.approx(expected)


def test_a_difference_between_two_models_reaches_the_limits_of_both_failure_rates() -> None:
    a, b = ([*_rows({"part:0": np.ones(8), "whole": np.arange(8) >= n}), *KNOWN] for n in (2, 0))
    found, ends = find(compare(a, b).metrics, "delta_comp"), limits([[i < 2, 0] for i in range(8)], difference)
    assert found is not None and ends is not None and found.low == pytest.approx(ends[0])


def _together(r: np.random.Generator, n: int, rates: tuple[float, ...], shared: float) -> Drawn:
    u = np.sqrt(shared) * r.standard_normal((n, 1)) + np.sqrt(1 - shared) * r.standard_normal((n, len(rates)))
    return norm.cdf(u) < np.array(rates)


def _rows(roles: dict[str, Drawn]) -> list[Graded]:
    return [
        Graded(f"c{i}", role, OUTCOME[bool(v)], model="m")  # type: ignore[arg-type]
        for role, values in roles.items()
        for i, v in enumerate(values)
    ]


def _conflation(r: np.random.Generator) -> Metric | None:
    sub, double, rare = (r.random(40) < p for p in (0.9, 0.9, 0.05))
    often = r.random(40) < 0.5
    roles = {"part:0": sub, "part:0:paraphrase:0": double, "whole": ~np.where(double, rare, often)}
    return find(double_gate.cell_metrics(double_gate.gate_cases(_rows(roles)), {}, 0), "conflation")


def _delta_comp(r: np.random.Generator) -> Metric | None:
    sides = [_rows({"part:0": r.random(8) < 0.8, "whole": r.random(8) < p}) for p in (0.05, 0.1)]
    a, b = ([*rows, *KNOWN] for rows in sides)
    return find(compare(a, b).metrics, "delta_comp")


def _independence_gap(r: np.random.Generator) -> Metric:
    right = _together(r, 20, (0.9, 0.95, 0.98), 0.3).tolist()
    whole, *steps = zip(*right, strict=True)
    return independence_gap(whole, steps, {}, 0, counting.items(_rows({"whole": np.array(whole)})))


def _code_gain(r: np.random.Generator) -> Metric:
    code, text = _together(r, 8, (0.9, 0.95), 0.5).T
    return code_gain(counting.items(_rows({"code": code, "whole": text})), {}, 0)


def _pair_gap(r: np.random.Generator) -> Metric | None:
    right = _together(r, 8, (0.9, 0.95, 0.98, 0.85, 0.95, 0.98), 0.5).T
    roles = ("whole", "part:0", "part:1")
    a, b = (_rows(dict(zip(roles, some, strict=True))) for some in (right[:3], right[3:]))
    return find(tables.gains(a, b), "pair_gap")


@pytest.mark.parametrize(
    ("draw", "truth", "widest"),
    [
        (_conflation, 0.1 * 0.45, 0.18),
        (_delta_comp, 0.05, 0.95),
        (_independence_gap, 0.9 - 0.95 * 0.98, 0.5),
        (_code_gain, -0.05 / 0.95, 1.1),
        (_pair_gap, 0.05, 1.4),
    ],
)
def test_differences_of_rates_that_a_few_cases_change_are_covered(
    draw: Callable[[np.random.Generator], Metric | None], truth: float, widest: float
) -> None:
    r = np.random.default_rng(3)
    found = [m for _ in range(120) if (m := draw(r)) is not None and m.low is not None and m.high is not None]
    covered = [m.low <= truth + 1e-9 and truth - 1e-9 <= m.high for m in found]  # type: ignore[operator]
    assert len(found) > 60 and np.mean(covered) > 0.95, "draws of the cases alone covered 80 to 90 %"
    assert np.mean([m.high - m.low for m in found]) < widest  # type: ignore[operator]
