# ruff: noqa: E501
"""The numbers below the probes' tables, each against scipy, a naive computation or values by hand."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from composcope.errors import InputError, NoCasesError
from composcope.evaluation import dependence
from composcope.probes import contrast, effects, matching, tables, trajectory
from composcope.probes.examples import Example
from composcope.probes.maps import map_test

NAN = float("nan")
A, B = np.array([1.0, 2, 4, 7, 7]), np.array([2.0, 3, 3, 9, 12, 1, 0.5])


def _example(case: str, group: str = "failure", role: str = "whole", kind: str = "composition", **more: Any) -> Example:
    of: dict[str, Any] = {"prompt_ids": (1, 2), "cluster": None} | more
    ids = of.pop("prompt_ids")
    return Example(case, role, kind, group, ids, (3,), (4,), 0, (0, 1), **of)


def test_means_of_independent_values_have_the_t_interval_of_scipy() -> None:
    for level in (0.9, 0.95):
        found = effects.mean_interval(A, level=level)
        theirs = stats.ttest_1samp(A, 0).confidence_interval(level)
        assert (found.value, found.low, found.high) == pytest.approx((4.2, theirs.low, theirs.high))
        apart = effects.difference_interval(A, B, level=level)
        theirs = stats.ttest_ind(A, B, equal_var=False).confidence_interval(level)
        assert (apart.low, apart.high) == pytest.approx((theirs.low, theirs.high))
    assert effects.welch_p(A, B) == pytest.approx(stats.ttest_ind(A, B, equal_var=False)[1])
    for tiny in (1e-170, 1e170):
        assert effects.welch_p(A * tiny, B * tiny) == pytest.approx(effects.welch_p(A, B))
        assert effects.mean_interval(A * tiny).low == pytest.approx(effects.mean_interval(A).low * tiny)


def test_means_of_one_value_and_of_none_have_no_interval() -> None:
    assert effects.mean_interval([3.0])[0] == 3.0 and math.isnan(effects.mean_interval([3.0]).low)
    assert math.isnan(effects.mean_interval([]).value) and effects.mean_interval([1.0]).interval == "none"
    same = effects.mean_interval([2.0, 2.0])
    assert same.value == 2 and math.isnan(same.low) and same.interval == effects.NO_SPREAD
    level = effects.difference_interval([2.0, 2.0], [5.0, 5.0])
    assert level.value == -3 and math.isnan(level.high) and math.isnan(effects.welch_p(np.ones(2), np.zeros(2)))
    for sides in (([2.0, 2.0], [5.0, 6.0]), ([5.0, 6.0], [2.0, 2.0])):
        one = effects.difference_interval(*sides)
        assert one.low < one.value < one.high
    few = effects.mean_interval([1.0, 2, 3, 4], ["a", "a", "b", "c"])
    assert math.isnan(few.low) and few.interval == dependence.FEW


def test_values_that_cannot_be_used_are_refused() -> None:
    for wrong, said in (([[1.0]], r"shape \(1, 1\)"), ([1.0, NAN, np.inf], "2 of 3")):
        with pytest.raises(InputError, match=said):
            effects.finite(wrong, "w")
    assert effects.mean_interval([True, False, True]) == effects.mean_interval([1.0, 0, 1])
    with pytest.raises(InputError, match="1 cluster ids for 2"):
        effects.codes(["a"], 2, "w")
    assert effects.codes(None, 2, "w") is None and effects.codes(["a", None], 2, "w") is None
    assert effects.codes([], 0, "w") is None
    assert list(effects.codes(["a", "b", "a"], 3, "w")) == [0, 1, 0]  # type: ignore[arg-type]


def _welch_width(x: np.ndarray, y: np.ndarray, level: float = 0.95) -> float:
    found = stats.ttest_ind(x, y, equal_var=False).confidence_interval(level)
    return float(found.high - found.low)


@pytest.mark.parametrize(("a", "b"), [(A, B), (np.tile(A, 9), np.tile(B, 4)), (A, A[::-1] + 1)])
def test_effects_have_hedges_factor_and_the_wider_of_two_intervals(a: np.ndarray, b: np.ndarray) -> None:
    n, m = len(a), len(b)
    pooled, j = (
        math.sqrt(((n - 1) * a.var(ddof=1) + (m - 1) * b.var(ddof=1)) / (n + m - 2)),
        1 - 3 / (4 * (n + m - 2) - 1),
    )
    d = (a.mean() - b.mean()) / pooled
    normal = 2 * stats.norm.ppf(0.975) * math.sqrt((n + m) / (n * m) + (j * d) ** 2 / (2 * (n + m)))
    u, v, per = (a - a.mean()) / pooled, (b - b.mean()) / pooled, d / (2 * (n + m - 2))
    linear = j * _welch_width(u - n * per * u**2, v + m * per * v**2)
    found = effects.hedges_g(a, b)
    assert found.value == pytest.approx(j * d) and found.high - found.low == pytest.approx(max(normal, linear))
    assert found.interval == ("normal" if normal > linear else "linearized, Welch t")
    assert (found.low + found.high) / 2 == pytest.approx(j * d)
    wider = effects.hedges_g(a, b, 0.99)
    assert wider.high - wider.low > found.high - found.low


def test_paired_effects_have_hedges_factor_and_the_wider_of_two_intervals() -> None:
    for d in (A, B, np.array([0.0, 0, 0, 0, 0, 0, 5])):
        n, sd, j = len(d), d.std(ddof=1), 1 - 3 / (4 * (len(d) - 1) - 1)
        z = d.mean() / sd
        normal = 2 * stats.norm.ppf(0.975) * math.sqrt(1 / n + (j * z) ** 2 / (2 * n))
        u = (d - d.mean()) / sd
        found = stats.ttest_1samp(u - n / (n - 1) * z / 2 * u**2, 0).confidence_interval()
        own = effects.hedges_g_paired(d)
        assert own.value == pytest.approx(j * z) and own.high - own.low == pytest.approx(
            max(normal, j * (found.high - found.low))
        )


def test_effects_where_nothing_varies_or_too_little_is_there() -> None:
    for none in (effects.hedges_g([2.0, 2], [2.0, 2]), effects.hedges_g_paired([0.0, 0, 0])):
        assert none.value == 0 and none.low == -none.high < 0 and none.interval == "normal"
    for nothing in (effects.hedges_g([1.0], [2.0, 3, 5]), effects.hedges_g([1.0, 2, 4], [3.0]), effects.hedges_g([1.0, 1], [2.0, 2]),
                    effects.hedges_g_paired([1.0]), effects.hedges_g_paired([1.0, 2]), effects.hedges_g_paired([2.0, 2, 2])):  # fmt: skip
        assert math.isnan(nothing.value)
    near: list[str] = list("aab")
    for same in (
        effects.hedges_g([1.0] * 3, [1.0] * 3, clusters=(near, list("ccd"))),
        effects.hedges_g_paired([0.0] * 3, clusters=near),
    ):
        assert same.value == 0 and math.isnan(same.low) and same.interval == effects.NO_SPREAD
    assert not math.isnan(effects.hedges_g([1.0, 2], [2.0, 4]).value)
    assert not math.isnan(effects.hedges_g_paired([1.0, 2, 4]).value)


def test_linearized_effects_of_clusters_alone_have_the_delta_methods_width() -> None:
    rng = np.random.default_rng(1)
    x, names = rng.normal(0.5, 1, 40), [i // 4 for i in range(40)]
    found = effects.hedges_g_paired(x, clusters=names)
    d, sd, j = x.mean(), x.std(ddof=1), 1 - 3 / (4 * 39 - 1)
    u = (x - d) / sd
    low, high = dependence.mean(u - 40 / 39 * d / sd / 2 * u**2, names).interval()
    assert found.value == pytest.approx(j * d / sd) and found.high - found.low == pytest.approx(j * (high - low))
    assert "linearized" in found.interval
    few = effects.hedges_g_paired(x[:8], clusters=names[:8])
    assert math.isnan(few.low) and few.interval == dependence.FEW


@pytest.mark.parametrize(
    ("a", "b", "delta"), [([1, 2], [3, 4], -1), ([3, 4], [1, 2], 1), ([1, 2], [1, 2], 0), ([1, 3, 5], [3], 0), ([2, 4, 5], [3], 1 / 3)]
)  # fmt: skip
def test_cliffs_delta_is_the_share_above_less_the_share_below(a: list[float], b: list[float], delta: float) -> None:
    assert effects.cliffs_delta(a, b) == pytest.approx(delta)


def test_the_smallest_detectable_effect_is_that_of_the_power_formula() -> None:
    for n, m, welch in ((10, 20, 18.1059), (5, None, None), (50, 50, 98), (40, 3, 2), (4, 7, 6.3684)):
        d = effects.smallest_detectable(n, m)
        df, scale = (n - 1, 1 / math.sqrt(n)) if m is None else (welch, math.sqrt(1 / n + 1 / m))
        t = stats.t.ppf(0.975, df)
        assert stats.nct.sf(t, df, d / scale) + stats.nct.cdf(-t, df, d / scale) == pytest.approx(0.8)
    assert effects.smallest_detectable(10, 20, power=0.9) > effects.smallest_detectable(10, 20)
    assert effects.smallest_detectable(10, 20, alpha=0.01) > effects.smallest_detectable(10, 20)
    assert effects.smallest_detectable(10, error=2 / math.sqrt(10), freedom=9) == pytest.approx(
        2 * effects.smallest_detectable(10)
    )
    for n, m, error in ((1, None, None), (2, 1, None), (9, 9, 0.0), (9, 9, math.inf)):
        assert math.isinf(effects.smallest_detectable(n, m, error=error, freedom=5.0))
    assert math.isinf(effects.smallest_detectable(5, error=1e3, freedom=4.0)), "beyond all that is looked at"
    assert math.isfinite(effects.smallest_detectable(2, 2)) and math.isfinite(effects.smallest_detectable(3))


def test_intervals_have_a_width_only_beyond_rounding() -> None:
    assert not effects.spreads(1.0, 1.0 + 1e-13) and effects.spreads(1.0, 1.0 + 1e-11)
    assert not effects.spreads(0.0, 1e-13, scale=1.0) and not effects.spreads(0.0, 0.0) and effects.spreads(0.0, 1e-13)
    orders = [
        x for order in itertools.permutations([0.1, 0.3, 0.7]) for x in order
    ]  # clusters differ by rounding alone
    level = effects.mean_interval(orders, [i // 3 for i in range(18)])
    assert level.value == pytest.approx(1.1 / 3) and math.isnan(level.low) and level.interval == effects.NO_SPREAD
    assert effects.constant(np.zeros(0)) and effects.constant(np.array([5.0, 5.0])) and not effects.constant(A)


def test_rows_of_two_groups_and_of_roles_use_the_named_tests() -> None:
    tests = {
        "welch": stats.ttest_ind(A, B, equal_var=False)[1], "mann-whitney": stats.mannwhitneyu(A, B)[1],
    }  # fmt: skip
    for name, p in tests.items():
        row = contrast.between({"a": A, "b": B}, test=name).table[-1]  # type: ignore[arg-type]
        assert row["p"] == row["p_adjusted"] == pytest.approx(p)
    assert (row["n"], row["n_first"], row["n_second"], row["value"]) == (12, 5, 7, pytest.approx(A.mean() - B.mean()))
    assert row["cliffs_delta"] == effects.cliffs_delta(A, B) and row["group"] == "a - b"
    d = A - B[:5]
    theirs = {"t": stats.ttest_1samp(d, 0)[1], "wilcoxon": stats.wilcoxon(d)[1]}
    for name, p in theirs.items():
        [row] = contrast.paired({"a": A.tolist(), "b": B[:5].tolist()}, test=name).table  # type: ignore[arg-type]
        assert row["p"] == pytest.approx(p) and row["value"] == pytest.approx(d.mean())
    exact = np.mean([abs(np.dot(s, d)) >= abs(d.sum()) - 1e-12 for s in itertools.product([1, -1], repeat=5)])
    [row] = contrast.paired({"a": A.tolist(), "b": B[:5].tolist()}, test="permutation", resamples=4000).table
    assert row["p"] == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("level", [0.8, 0.99])
def test_all_intervals_of_a_contrast_are_of_the_level_that_is_asked_for(level: float) -> None:
    first, _, between = contrast.between({"a": A, "b": B}, level=level).table
    [paired] = contrast.paired({"a": A.tolist(), "b": B[:5].tolist()}, level=level).table
    d = A - B[:5]
    for row, theirs in (
        (first, stats.ttest_1samp(A, 0)), (between, stats.ttest_ind(A, B, equal_var=False)), (paired, stats.ttest_1samp(d, 0))
    ):  # fmt: skip
        ends = theirs.confidence_interval(level)
        assert (row["low"], row["high"]) == pytest.approx((ends.low, ends.high))
    for row, effect in ((between, effects.hedges_g(A, B, level)), (paired, effects.hedges_g_paired(d, level))):
        assert (row["effect_low"], row["effect_high"]) == pytest.approx((effect.low, effect.high))


def test_groups_that_are_level_or_all_apart_have_the_p_that_their_labels_allow() -> None:
    level = contrast.between({"a": [1.0, 1], "b": [1.0, 1, 1]}).table[-1]
    assert (level["p"], level["test"]) == (1.0, "none (no variation)")
    for n, m, p in ((2, 3, 1 / 10), (3, 3, 2 / 20)):
        apart = contrast.between({"a": [1.0] * n, "b": [2.0] * m}).table[-1]
        assert apart["p"] == pytest.approx(p) and math.isnan(apart["effect"])
    [same] = contrast.paired({"a": [2.0] * 4, "b": [1.0] * 4}).table
    assert same["p"] == 2 ** (1 - 4)
    [clusters] = contrast.paired({"a": [2.0] * 6, "b": [1.0] * 6}, clusters=list("aabbcc")).table
    assert clusters["p"] == 2 ** (1 - 3)
    flat = {"a": [1.0, 1, 1], "b": [2.0, 2, 2]}
    apart = contrast.between(flat, clusters={"a": list("xxy"), "b": list("kll")}).table[-1]
    assert apart["p"] == pytest.approx(2 / 6), "two clusters of four"
    cross = {
        g: [frozenset(f"{g}{k}{n}" for n in pair) for k in range(3) for pair in ("ac", "ad", "bc", "bd")] for g in "ab"
    }
    blocks = contrast.between({"a": [1.0] * 12, "b": [2.0] * 12}, clusters=cross).table[-1]
    assert blocks["p"] == pytest.approx(2 / 20), "three of six blocks of crossed facts"
    both = contrast.between(flat, clusters={"a": list("xyz"), "b": list("xyk")}).table[-1]
    assert math.isnan(both["p"]) and "both groups" in both["test"]
    [none] = contrast.paired({"a": [2.0, 3], "b": [2.0, 3]}).table
    assert (none["p"], none["value"]) == (1.0, 0.0)
    one = contrast.between({"a": [1.0, 2, 3], "b": [1.0, 5]}, clusters={"a": list("xyz"), "b": ["k", "k"]}).table[-1]
    assert math.isnan(one["p"]) and "one cluster" in one["test"]
    [dropped] = contrast.paired({"a": {"x": 1.0, "y": 2, "z": 5}, "b": {"x": 2.0, "y": 2, "w": 1}}).table
    assert (dropped["n"], dropped["n_dropped"]) == (2, 2)


def test_clustered_tests_are_those_of_the_fit() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0, 1, 24), rng.normal(1, 1, 30)
    near = {"a": [i // 3 for i in range(24)], "b": [100 + i // 3 for i in range(30)]}
    row = contrast.between({"a": a, "b": b}, clusters=near).table[-1]
    fit = dependence.difference(a, b, (near["a"], near["b"]))
    assert (row["p"], row["low"]) == pytest.approx((fit.p, fit.interval()[0])) and row["test"] == "cluster-robust t"
    sd = math.sqrt((((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()) / (54 - 2))
    assert row["smallest_detectable"] == pytest.approx(
        effects.smallest_detectable(24, 30, error=fit.error / sd, freedom=fit.used)
    )
    with pytest.raises(InputError, match="use test='auto'"):
        contrast.between({"a": a, "b": b}, clusters=near, test="welch")
    half = contrast.between({"a": a, "b": b}, clusters={"a": near["a"]}).table[-1]
    alone = dependence.difference(a, b, (near["a"], [None] * 30))
    assert half["p"] == pytest.approx(alone.p), "values of a group without clusters are their own"


def _values(of: dict[tuple[str, str, str], float]) -> list[tuple[Example, float]]:
    return [(_example(case, group, kind, kind), v) for (case, group, kind), v in of.items()]


def test_rows_of_kinds_within_cases_take_the_cases_that_have_both() -> None:
    found = _values({("a", "failure", "part"): 1.0, ("a", "failure", "composition"): 3.0, ("b", "failure", "part"): 2.0,
                     ("b", "failure", "composition"): NAN, ("c", "failure", "composition"): 7.0, ("c", "failure", "part"): 4.0,
                     ("d", "success", "composition"): 5.0})  # fmt: skip
    rows = tables.group_rows("q", found)
    assert [(r["kind"], r["group"], r["n"]) for r in rows] == [
        ("composition", "failure", 2), ("composition", "success", 1), ("part", "failure", 3),
        ("composition", "failure - success", 3), ("composition - part", "failure", 2),
    ]  # fmt: skip
    assert rows[-1]["value"] == pytest.approx(((3 - 1) + (7 - 4)) / 2) and rows[-1]["n_dropped"] == 1
    assert rows[0]["sd"] == pytest.approx(2 * math.sqrt(2)) and math.isnan(rows[1]["sd"])
    with pytest.raises(NoCasesError, match="q: no examples"):
        tables.group_rows("q", [])


def test_rows_of_groups_and_of_kinds_are_as_sure_as_what_cases_share_allows() -> None:
    rng, found = np.random.default_rng(3), []
    for group in ("failure", "success"):
        for i, shared in enumerate(np.repeat(rng.normal(size=(8, 2)), 2, axis=0)):
            for kind, x in zip(("composition", "part"), shared + 0.1 * rng.normal(size=2), strict=True):
                found.append((_example(f"{group}{i}", group, kind=kind, cluster=f"{group}{i // 2}"), float(x)))
    near = [i // 2 for i in range(16)]
    sides = {(k, g): np.array([x for e, x in found if (e.kind, e.group) == (k, g)])
             for k in ("composition", "part") for g in ("failure", "success")}  # fmt: skip
    rows = tables.group_rows("q", found)
    assert len(rows) == 8
    for row in rows:
        kinds, groups = row["kind"].split(" - "), row["group"].split(" - ")
        a, *b = (sides[k, g] for k in kinds for g in groups)
        if len(groups) > 1:
            want = effects.difference_interval(a, b[0], (near, [i + 8 for i in near]))
        else:
            want = effects.mean_interval(a - b[0] if b else a, near)
        assert [row[k] for k in ("value", "low", "high")] == pytest.approx([*want[:3]]), row
        assert row["interval"] == want.interval


def test_parts_of_a_kind_are_averaged_within_their_case_before_cases_are() -> None:
    e = [_example("a", role=f"part:{i}", kind="part") for i in range(2)]
    cells = tables.by_case(
        [(e[0], 1.0), (e[1], 4.0), (_example("b", kind="part"), 10.0), (_example("c", kind="part"), NAN)]
    )
    assert cells == {("part", "failure"): {"a": 2.5, "b": 10.0}}
    row = tables.mean_row("q", "g", [1.0, NAN, 5.0], ["a", "b", "c"], layer=3)
    assert (row["n"], row["n_nan"], row["value"], row["layer"]) == (2, 1, 3.0, 3)
    values = [float(i // 2 + i % 2 / 10) for i in range(14)]
    near = [i // 2 for i in range(14)]
    row, alone = (tables.mean_row("q", "g", [*values, NAN], [*some, 0]) for some in (near, range(14)))
    want = effects.mean_interval(values, near)
    assert {k: row[k] for k in want._asdict()} == want._asdict()
    assert row["high"] - row["low"] > 1.2 * (alone["high"] - alone["low"])


def test_matched_rows_are_mean_differences_of_pairs_with_a_row_where_there_is_none() -> None:
    examples = [_example(f"{g}{i}", {"f": "failure", "s": "success"}[g]) for i in range(4) for g in "fs"]
    numbers = {"f0": 1.0, "s0": 3.0, "f1": 2.0, "s1": NAN, "f2": 5.0, "s2": 1.0, "f3": 4.0, "s3": 1.0}
    pairs = tuple((f"f{i}", f"s{i}") for i in range(4))
    matched = matching.Matched(pairs, (), (), (), 0.0)
    [row] = tables.matched_rows("q", examples, matched, lambda i, n: numbers[examples[i].case])
    assert (row["n"], row["value"], row["group"]) == (3, pytest.approx((-2 + 4 + 3) / 3), tables.MATCHED)
    [none] = tables.matched_rows("q", examples, matched, lambda i, n: NAN)
    assert none["n"] == 0 and "no matched pair has both values" in none["note"] and math.isnan(none["p"])
    assert tables.matched_rows("q", examples, None, lambda i, n: 1.0) == []
    assert tables.matched_pairs(examples[::2])[0] is None and tables.matched_pairs([])[0] is None


def test_regression_adjusts_for_what_varies_as_far_as_pairs_reach() -> None:
    rng = np.random.default_rng(5)
    d, x, y = (rng.normal(size=12) for _ in range(3))
    row, names = tables.adjusted(d, {"x": x, "level": np.ones(12), "y": y, "z": rng.normal(size=12)})
    design = np.column_stack([np.ones(12), x, y])
    assert names == ["x", "y"] and row["value"] == pytest.approx(np.linalg.lstsq(design, d, rcond=None)[0][0])
    assert row["unadjusted"] == pytest.approx(d.mean())
    residuals = d - design @ np.linalg.lstsq(design, d, rcond=None)[0]
    for level, near in ((0.95, None), (0.8, [i // 2 for i in range(12)])):
        row, _ = tables.adjusted(d, {"x": x, "y": y}, near, level)
        fit, left = (
            dependence.regression(d, design, near),
            effects.hedges_g_paired(row["value"] + residuals, level, near),
        )
        assert (row["p"], row["low"], row["high"]) == pytest.approx((fit.p, *fit.interval(level)))
        assert [row[k] for k in ("effect", "effect_low", "effect_high")] == pytest.approx([*left[:3]])
    assert tables.adjusted(d[:4], {"x": x[:4]}) == ({}, []) and tables.adjusted(d[:5], {"x": x[:5]})[1] == ["x"]
    alone, both = (tables.adjusted(d, {"x": x, **more}) for more in ({}, {"twice": 2 * x}))
    assert both[1] == ["x", "twice"] and both[0]["value"] == pytest.approx(alone[0]["value"]), "x gives the second"
    assert tables.adjusted(np.full(12, 2.0), {"x": x}) == ({}, [])


def test_maps_of_groups_are_means_over_cases_and_their_difference() -> None:
    rng = np.random.default_rng(6)
    maps = [
        (_example(f"{g}{i}", g), torch.tensor(rng.normal(g == "failure", 1, size=(2, 3))))
        for g in tables.GROUPS
        for i in range(6)
    ]
    extra = (replace(maps[0][0], role="part:1"), maps[0][1] + 2)
    gone = (_example("gone"), torch.full((2, 3), NAN))
    tensors, axes, rows = tables.cell_maps("m", "q", [*maps, extra, gone], ("layer", "head"), permutations=200, seed=1)
    failure = np.stack([m.numpy() for e, m in maps if e.group == "failure"])
    failure[0] += 1  # the mean of its two examples
    success = np.stack([m.numpy() for e, m in maps if e.group == "success"])
    assert tensors["m.composition.failure"].numpy() == pytest.approx(failure.mean(0), abs=1e-6)
    assert tensors["difference.composition"].numpy() == pytest.approx(failure.mean(0) - success.mean(0), abs=1e-6)
    [row] = rows
    found = map_test(failure, success, permutations=200, seed=1)
    cell = np.unravel_index(np.abs(found.statistic).argmax(), (2, 3))
    assert (row["layer"], row["head"]) == cell and row["p"] == row["p_adjusted"] == found.p[cell] and row["n"] == 12
    assert row["value"] == pytest.approx((failure.mean(0) - success.mean(0))[cell])
    error = abs(found.difference[cell] / found.statistic[cell])
    ends = row["value"] - found.threshold * error, row["value"] + found.threshold * error
    assert (row["low"], row["high"]) == pytest.approx(ends) and found.threshold > stats.t.ppf(0.975, 10)
    assert np.isnan(row["effect_low"]) and np.isnan(row["effect_high"])
    assert f"{int((found.p < 0.05).sum())} cells at p < 0.05" in row["note"] and {*axes.values()} == {("layer", "head")}
    labels: Any = [
        [f"{g}{max(i, 1)}" for i in range(6)] for g in tables.GROUPS
    ]  # the first two cases of each share one
    shared = [(replace(e, cluster=name), m) for (e, m), name in zip(maps, labels[0] + labels[1], strict=True)]
    near, _, _ = tables.cell_maps("m", "q", shared, ("layer", "head"), permutations=200, seed=1)
    failure[0] -= 1
    want, other = (
        map_test(failure, success, permutations=200, seed=1, clusters=c) for c in ((labels[0], labels[1]), (None, None))
    )
    assert near["p.composition"].numpy() == pytest.approx(want.p, abs=1e-6) != pytest.approx(other.p, abs=1e-6)
    few = tables.cell_maps("m", "q", [maps[0], maps[6], maps[7]], ("layer", "head"), permutations=9, seed=1)
    assert "p.composition" not in few[0] and few[2][0]["n"] == 0
    alone = tables.cell_maps("m", "q", maps[:3], ("layer", "head"), permutations=9, seed=1)
    assert [*alone[0]] == ["m.composition.failure"] and alone[2] == []


def test_one_samples_and_welchs_t_of_a_map_are_scipys() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(6, 2, 2)), rng.normal(size=(8, 2, 2))
    found = map_test(x, y, permutations=50, level=0.9)
    assert found.statistic == pytest.approx(np.asarray(stats.ttest_ind(x, y, equal_var=False)[0]))
    assert found.difference == pytest.approx(x.mean(0) - y.mean(0)) and found.n == (6, 8)
    together = map_test(x, y[:6], paired=True, permutations=50)
    assert together.statistic == pytest.approx(np.asarray(stats.ttest_1samp(x - y[:6], 0)[0]))
    assert np.round(found.p * 51) == pytest.approx(found.p * 51)
    assert found.p.min() >= 1 / 51 and found.threshold >= 0
    for wrong in ({"permutations": 0}, {"level": 1.0}, {"level": 0.0}):
        with pytest.raises(InputError):
            map_test(x, y, **wrong)  # type: ignore[arg-type]
    with pytest.raises(NoCasesError, match="1 and 8"):
        map_test(x[:1], y)


def _cosines(m: np.ndarray, n: int, labels: list[Any], which: str) -> float:
    """The mean over pairs that share nothing, pair by pair."""
    chosen = {"dd": lambda i, j: j < n, "rr": lambda i, j: i >= n, "dr": lambda i, j: i < n <= j}[which]
    pairs = [(i, j) for i, j in itertools.combinations(range(len(m)), 2) if chosen(i, j) and labels[i] != labels[j]]
    return float(np.mean([m[i, j] for i, j in pairs])) if pairs else NAN


def test_cosines_within_and_across_groups_are_means_over_pairs_that_share_nothing() -> None:
    rng = np.random.default_rng(8)
    raw = rng.normal(size=(2, 16, 16))
    m, labels = (raw + raw.transpose(0, 2, 1)) / 2, [f"k{i // 2}" for i in range(16)]
    rows = trajectory.separation_rows("cos", m, 6, labels, permutations=99, seed=2)
    assert [r["n"] for r in rows] == [12, 12, 40, 40, 60, 60, 16, 16]
    assert [r.get("n_cases") for r in rows] == [6, 6, 10, 10, 16, 16, None, None]
    for row, (name, layer) in zip(rows, itertools.product(("dd", "rr", "dr"), range(2)), strict=False):
        assert row["layer"] == layer and row["value"] == pytest.approx(_cosines(m[layer], 6, labels, name))
    for row in rows[6:]:
        dd, rr, dr = (_cosines(m[row["layer"]], 6, labels, name) for name in ("dd", "rr", "dr"))
        assert row["value"] == pytest.approx((dd + rr) / 2 - dr)
        assert row["p_map"] >= row["p"] and round(row["p"] * 100) == pytest.approx(row["p"] * 100)
    few = trajectory.separation_rows("cos", m[:, :3, :3], 2, labels[:3:1])
    assert {r["group"] for r in few} == {"within successes", "within failures", "across"}
    (*_, one) = trajectory.separation_rows("cos", m[:1, :2, :2], 1, ["a", "b"])
    assert (one["group"], one["value"], one["n"]) == ("across", pytest.approx(m[0, 0, 1]), 1)
    rr = next(r for r in rows if r["group"] == "within failures" and r["layer"] == 1)
    without = np.array([_cosines(np.delete(np.delete(m[1], [2 * g, 2 * g + 1], 0), [2 * g, 2 * g + 1], 1), 6,
                                 [x for i, x in enumerate(labels) if i // 2 != g], "rr") for g in range(3, 8)])  # fmt: skip
    error = math.sqrt(4 / 5 * ((without - without.mean()) ** 2).sum())
    off = np.sqrt(4 / 5) * (without - without.mean()) / error
    freedom = 1 / (1 / 4 + dependence.SKEWED * ((off**3).sum() * 5 / 3) ** 2)
    assert rr["high"] - rr["value"] == pytest.approx(stats.t.ppf(0.975, freedom) * error) and freedom < 4
    dd = next(r for r in rows if r["group"] == "within successes")
    assert math.isnan(dd["low"]) and dd["interval"] == dependence.FEW, "three clusters"


@pytest.mark.parametrize(("n", "cases", "tested"), [(3, 6, True), (2, 6, False), (2, 7, True), (1, 30, False)])
def test_labels_are_permuted_where_there_are_twenty_ways_to(n: int, cases: int, tested: bool) -> None:
    m = np.random.default_rng(9).normal(size=(1, cases, cases))
    rows = trajectory.separation_rows("cos", m + m.transpose(0, 2, 1), n, [None] * cases, permutations=19)
    last = rows[-1]
    assert (last["quantity"] == "cos_separation" and np.isfinite(last["p"])) == tested


def test_distances_of_cases_add_up_depth_operation_length_and_token() -> None:
    a = _example("a", depth=2, operation="o", prompt_ids=(1,) * 10)
    other = {
        "depth": {"depth": 4},
        "operation": {"operation": "p"},
        "length": {"prompt_ids": (1,) * 20},
        "token": {"prompt_ids": (*(1,) * 9, 2)},
    }
    wanted = {"depth": 2, "operation": 1, "length": math.log(2) / math.log(1.25), "token": 0.5}
    base: dict[str, Any] = {"depth": 2, "operation": "o", "prompt_ids": (1,) * 10}
    for name, more in other.items():
        b = _example("b", "success", **{**base, **more})
        assert matching.distance(a, b) == pytest.approx(wanted[name]) == matching.distance(b, a)
    assert math.isinf(matching.distance(a, _example("b", depth=None))) and matching.distance(a, a) == 0


def test_a_labeling_as_far_away_as_the_own_one_counts_against_it() -> None:
    m = np.kron(np.eye(2), np.ones((3, 3)))[None]
    row = trajectory.separation_rows("cos", m, 3, [None] * 6, permutations=3000)[-1]
    assert row["p"] == pytest.approx(2 / 20, abs=0.03), "the own labeling, and the one with its groups exchanged"


def test_a_labeling_that_is_the_own_one_up_to_rounding_counts_against_it() -> None:
    apart = np.r_[np.full((3, 8), 3.0), np.zeros((4, 8))]
    for seed in range(20):
        x = np.random.default_rng(seed).normal(size=(7, 8)) + apart
        m = trajectory.cosine_matrix(torch.tensor(x)[:, None], centered=True).numpy()
        row = trajectory.separation_rows("cos", m, 3, [None] * 7, permutations=1000)[-1]
        assert row["p"] > 0.01, "one labeling of 35 is the own one"
    alike = np.ones((1, 8, 8)) + 1e-16 * np.random.default_rng(0).normal(size=(8, 8))
    assert trajectory.separation_rows("cos", alike, 4, [None] * 8)[-1]["p"] == 1
