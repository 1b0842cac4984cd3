"""What has to hold of every metric of every protocol, whatever was drawn."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from composcope.evaluation import statistics
from composcope.evaluation.analyses.agentcoma import size_groups
from composcope.evaluation.analyses.base import Source
from composcope.evaluation.asks import Outcome
from composcope.evaluation.metrics import Metric, find
from composcope.evaluation.protocols import Graded, counting, metrics_from_rows
from composcope.evaluation.protocols.compare import compare

OUTCOMES: tuple[Outcome, ...] = ("correct", "correct", "correct", "incorrect", "abstained", "invalid")
SKILLS = (("add", "look up", "compare"), ("look up", "add", "compare"), ("compare", "add", "add"))
Key = tuple[str, frozenset[tuple[str, Any]]]


def _gated(i: int) -> list[str]:
    parts = [f"part:{p}" for p in range(1 + i % 2)]
    return [*parts, *(f"{p}:paraphrase:{j}" for p in parts for j in range(2) if i % 8), "whole", "whole:cot"]


def _gap(i: int) -> list[str]:
    return ["part:0", "part:1", *(["part:1:extra-context"] * bool(i % 5)), "whole", *(["whole:cot"] * bool(i % 3))]


def _chain(i: int) -> list[str]:
    more = ["pair:q1"] * bool(i % 5) + ["co-presented"] * bool(i % 3) + ["original"] * bool(i % 4)
    return ["part:0", "part:1", "whole", *more, *(["code"] * bool(i % 6))]


def _scaffolds(i: int) -> list[str]:
    return ["whole", "scaffold:1", "scaffold:2"]


ROLES: dict[str, Callable[[int], list[str]]] = {
    "double-gate": _gated, "compositionality-gap": _gap, "reasoning-gap": _chain, "scaffolding": _scaffolds,
}  # fmt: skip


def _rows(protocol: str, n: int, seed: int, name: str = "c") -> list[Graded]:
    draw = random.Random(seed)
    rows = []
    for i in range(n):
        of: dict[str, Any] = {"family": "fgg"[i % 3], "depth": (2, 4, 7)[i % 4 % 3], "depth_bin": (2, 4, 6)[i % 4 % 3],
                              "cluster": f"{name}k{i % 11}" if i % 2 else None, "unknowable": i % 13 == 0}  # fmt: skip
        of |= {"skills": SKILLS[i % 3]} if protocol == "scaffolding" else {"domain": "de"[i % 5 == 0]}
        rows += [Graded(f"{name}{i}", role, draw.choice(OUTCOMES), kind="date" if role == "part:0" else None, **of)
                 for role in ROLES[protocol](i)]  # fmt: skip
    return rows


def _table(rows: Sequence[Graded], protocol: str) -> dict[Key, Metric]:
    metrics = metrics_from_rows(rows, protocol).metrics
    found = {(m.metric, frozenset(m.group.items())): m for m in metrics}
    assert len(found) == len(metrics), "one row for each metric and group"
    return found


CONDITIONAL = ("quadrant", "abstention", "non_monotone", "gate_removed", "second_hop", "scaffold_success", "recovery")
"""Shares among cases that are told by their answers: an open one is outside, and does not enter the bounds."""


DIFFERENCES = ("gap", "independence_gap", "conflation", "delta_comp")
"""Differences of rates, which no interval may take beyond one."""


@pytest.mark.parametrize("protocol", ROLES)
def test_an_estimate_lies_in_its_intervals(protocol: str) -> None:
    metrics = _table(_rows(protocol, 24, 0), protocol).values()
    assert len(metrics) > 20
    for m in metrics:
        for low, high in ((m.low, m.high), (m.cluster_low, m.cluster_high)):
            if m.value is not None:
                assert low is None or low <= m.value + 1e-12, m
                assert high is None or high >= m.value - 1e-12, m
            if m.metric in DIFFERENCES:
                assert low is None or high is None or -1 <= low <= high <= 1, m
        assert (m.low is None) == (m.high is None) or m.metric == "d50"
        rate = m.interval == "clopper-pearson" and m.bound_low is not None and m.bound_high is not None
        assert not rate or m.value is None or m.bound_low <= m.value <= m.bound_high, m  # type: ignore[operator]


@pytest.mark.parametrize("protocol", ROLES)
def test_a_metric_over_few_cases_is_marked_whatever_else_it_says(protocol: str) -> None:
    seen = set()
    for m in _table(_rows(protocol, 24, 0), protocol).values():
        if m.metric == "d50":  # between rates that are marked; its note begins with where it is censored
            continue
        few = {"n < 5": m.n < 5, "n < 15": 5 <= m.n < 15}
        assert {said: said in (m.note or "").split("; ") for said in few} == few, m
        seen |= {said for said, holds in few.items() if holds and m.note != said}
    assert len(seen) == 2


def test_bottlenecks_come_most_frequent_first() -> None:
    found = [
        m for m in metrics_from_rows(_rows("scaffolding", 60, 3), "scaffolding").metrics if m.metric == "bottleneck"
    ]
    counts, names = [m.count or 0 for m in found], [str(m.group["skill"]) for m in found]
    assert counts == sorted(counts, reverse=True) and names != sorted(names) and len(set(counts)) > 2


@pytest.mark.parametrize("protocol", ROLES)
def test_a_share_is_its_count_over_its_n_and_has_no_bounds_without_open_answers(protocol: str) -> None:
    drawn = _rows(protocol, 24, 1)
    for m in _table(drawn, protocol).values():
        if m.value is not None and m.count is not None and m.metric not in ("conflation", "delta_comp"):
            assert m.value == pytest.approx(m.count / m.n), m
    closed = [replace(r, outcome="incorrect") if r.outcome == "invalid" else r for r in drawn]
    for m in _table(closed, protocol).values():
        assert m.n_invalid == 0, m
        if m.value is not None and m.bound_low is not None and m.metric != "conflation":
            assert m.bound_low == pytest.approx(m.value) and m.bound_high == pytest.approx(m.value), m


@pytest.mark.parametrize("protocol", ROLES)
def test_any_judgement_of_the_open_answers_lies_within_the_bounds(protocol: str) -> None:
    drawn = _rows(protocol, 17, 2)
    open_rows = _table(drawn, protocol)
    draw, compared = random.Random(0), 0
    for judge in (lambda: "correct", lambda: "incorrect", lambda: draw.choice(["correct", "incorrect"])):
        judged = [replace(r, outcome=judge()) if r.outcome == "invalid" else r for r in drawn]
        for key, m in _table(judged, protocol).items():
            was = open_rows.get(key)
            if was is None or m.value is None or m.metric in CONDITIONAL:
                continue
            low = -math.inf if was.bound_low is None else was.bound_low
            high = math.inf if was.bound_high is None else was.bound_high
            assert low - 1e-9 <= m.value <= high + 1e-9, (key, m.value, low, high)
            compared += was.n_invalid > 0
    assert compared > 10


@pytest.mark.parametrize("protocol", ROLES)
def test_the_order_of_the_rows_changes_nothing(protocol: str) -> None:
    drawn = _rows(protocol, 17, 3)
    mixed = drawn.copy()
    random.Random(1).shuffle(mixed)
    first, second = _table(drawn, protocol), _table(mixed, protocol)
    assert {*first} == {*second}
    for key, m in first.items():
        assert (m.count, m.n, m.n_invalid, m.value) == (
            second[key].count, second[key].n, second[key].n_invalid, pytest.approx(second[key].value),
        )  # fmt: skip


@pytest.mark.parametrize("protocol", ROLES)
def test_twice_as_many_cases_with_the_same_answers_are_twice_the_counts_and_the_same_shares(protocol: str) -> None:
    drawn = _rows(protocol, 17, 4)
    again = [replace(r, case=f"again {r.case}", cluster=r.cluster and f"again {r.cluster}") for r in drawn]
    once, twice = _table(drawn, protocol), _table([*drawn, *again], protocol)
    assert {*once} == {*twice}
    for key, m in once.items():
        other = twice[key]
        assert other.value == pytest.approx(m.value), key
        if m.count is not None:
            assert (other.n, other.n_invalid) == (2 * m.n, 2 * m.n_invalid), key
        for bound in ("bound_low", "bound_high"):
            assert getattr(other, bound) == pytest.approx(getattr(m, bound)), key
        if m.interval == "clopper-pearson" and m.n:
            assert other.high - other.low < m.high - m.low, key  # type: ignore[operator]


def _alone(protocol: str, n: int = 24, seed: int = 0, **more: Any) -> list[Graded]:
    return [replace(row, cluster=None, **more) for row in _rows(protocol, n, seed)]


def _gain(seed: int) -> Metric | None:
    sides = (counting.items(_alone("reasoning-gap", seed=drawn)) for drawn in (0, 1))
    return counting.gain(list(zip(*sides, strict=True)), "whole", {}, seed)


def _parts_right(seed: int) -> list[Graded]:
    rows = _alone("double-gate", seed=seed)
    return [row if row.role == "whole" else replace(row, outcome="correct") for row in rows]


SEEDED: dict[str, Callable[[int], object]] = {
    "double-gate": lambda seed: metrics_from_rows(_alone("double-gate"), "double-gate", seed=seed),
    "compositionality-gap": lambda seed: metrics_from_rows(
        _alone("compositionality-gap"), "compositionality-gap", seed=seed
    ),
    "reasoning-gap": lambda seed: metrics_from_rows(_alone("reasoning-gap"), "reasoning-gap", seed=seed),
    "scaffolding": lambda seed: metrics_from_rows(_alone("scaffolding"), "scaffolding", seed=seed),
    "compare": lambda seed: compare(_alone("double-gate"), _alone("double-gate", seed=1), seed=seed),
    "composition compared": lambda seed: compare(_parts_right(0), _parts_right(1), seed=seed),
    "pair gain": _gain,
    "sizes": lambda seed: size_groups([Source("m-1B", _alone("compositionality-gap", model="m-1B"))], seed=seed),
}


@pytest.mark.parametrize("name", SEEDED)
def test_every_interval_by_resampling_has_the_seed_that_is_given(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    resampled = statistics._resample

    def told(sums: np.ndarray, statistic: Any, seed: int, n: int) -> np.ndarray:
        seeds.append(seed)
        return resampled(sums, statistic, seed, 50)

    monkeypatch.setattr(statistics, "_resample", told)
    SEEDED[name](7)
    assert set(seeds) == {7}


def test_the_mean_of_levels_has_the_interval_of_a_skewed_mean() -> None:
    levels = [1, 1, 1, 1, 1, 1, 1, 1, 2, 5]
    rows = [Graded(f"c{i}", f"scaffold:{j}", "correct" if j >= k else "incorrect")
            for i, k in enumerate(levels) for j in range(1, 6)]  # fmt: skip
    rows += [Graded(f"c{i}", "whole", "incorrect") for i in range(len(levels))]
    metrics = metrics_from_rows(rows, "scaffolding").metrics
    plain, skewed = (
        statistics.bootstrap(np.array([(k, 1) for k in levels]), lambda s: s[..., 0] / s[..., 1], seed=0, skewed=skewed)
        for skewed in (False, True)
    )
    for name, least in (("mean_k", 1), ("mean_k_solvable", 0)):
        found = find(metrics, name)
        assert found is not None and found.high == skewed.high and found.low == max(least, skewed.low or 0)
    assert (skewed.high or 0) > (plain.high or 0)
