"""Contrasts, matching and validity: against scipy, on planted data, and where nothing can be said."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from composcope.errors import InputError, NoCasesError
from composcope.probes import contrast, effects, maps, trajectory, validity
from composcope.probes.examples import Example
from composcope.probes.matching import match

stats: Any = scipy_stats  # its result types do not declare pvalue and statistic

RNG = np.random.default_rng(7)
A, B = RNG.normal(1, 1, 40), RNG.normal(0, 1, 30)


def _row(result, group: str) -> dict:
    return next(r for r in result.table if r["group"] == group)


def test_between_gives_welch_difference_and_hedges_g() -> None:
    row = _row(contrast.between({"failure": A, "success": B}), "failure - success")
    welch = stats.ttest_ind(A, B, equal_var=False)
    assert row["value"] == pytest.approx(A.mean() - B.mean())
    assert (row["low"], row["high"]) == pytest.approx(tuple(welch.confidence_interval()))
    assert row["p"] == pytest.approx(welch.pvalue)
    pooled = np.sqrt((39 * A.var(ddof=1) + 29 * B.var(ddof=1)) / 68)
    assert row["effect"] == pytest.approx((1 - 3 / (4 * 68 - 1)) * (A.mean() - B.mean()) / pooled)
    error = np.sqrt(70 / 1200 + row["effect"] ** 2 / 140)
    normal = 2 * stats.norm.ppf(0.975) * error
    assert normal < row["effect_high"] - row["effect_low"] < 1.1 * normal, "linearized: the groups vary unequally"
    calm = effects.hedges_g(A[:10] / 9, B)
    assert calm.high - calm.low == pytest.approx(2 * stats.norm.ppf(0.975) * np.sqrt(40 / 300 + calm.value**2 / 80))
    assert row["n"] == 70 and row["p_adjusted"] == row["p"]
    wins = (A[:, None] > B).mean() - (A[:, None] < B).mean()
    assert row["cliffs_delta"] == pytest.approx(wins)


def test_effects_have_the_variance_of_their_own_size_also_where_cases_share_clusters() -> None:
    x = np.random.default_rng(3).normal(0, 1, 400)
    x = (x - x.mean()) / x.std()
    twins = [f"k{max(1, i)}" for i in range(400)]  # the first two are one cluster, so that the linearized way is taken
    one = effects.hedges_g_paired(x + 3)
    normal = 2 * 1.959964 * np.sqrt(1 / 400 + one.value**2 / 800)
    assert normal < one.high - one.low < 1.1 * normal, "the wider of both ways"
    a, b = x[:200] + 3, x[200:]
    for plain, shared in (
        (one, effects.hedges_g_paired(x + 3, clusters=twins)),
        (effects.hedges_g(a, b), effects.hedges_g(a, b, clusters=(twins[:200], [f"b{i}" for i in range(200)]))),
    ):
        assert shared.value == plain.value and shared.interval.startswith("linearized")
        assert shared.high - shared.low == pytest.approx(plain.high - plain.low, rel=0.12)
    fit = effects.mean_fit(np.arange(9.0), [*"aabcdefgh"])
    low, high = fit.interval(0.95)
    small = effects._linearized(1.0, fit, 4, 0.95)
    assert (small.low, small.high) == pytest.approx((1 - 0.4 * (high - low), 1 + 0.4 * (high - low)))
    assert np.isnan(effects.hedges_g_paired([1.0, 2.0]).value), "its factor would be 0"


def test_a_permutation_test_has_as_many_permutations_as_are_asked_for() -> None:
    groups = {"failure": A, "success": B + 9.0}
    (few, many) = (_row(contrast.between(groups, test="permutation", resamples=n), "failure - success")["p"]
                   for n in (99, 999))  # fmt: skip
    assert few == pytest.approx(1 / 100) and many == pytest.approx(1 / 1000)


def test_a_map_of_skewed_values_is_as_rarely_false_as_it_says() -> None:
    rng = np.random.default_rng(4)

    def drawn() -> float:
        x, y = np.exp(0.8 * rng.normal(size=(10, 40))), np.exp(0.8 * rng.normal(size=(40, 40)))
        return float(contrast.map_test(x, y, permutations=99).p.min())

    assert sum(drawn() < 0.05 for _ in range(150)) <= stats.binom.ppf(0.999, 150, 0.05)


def test_relabelled_maps_have_the_welch_t_of_every_labelling() -> None:
    rng = np.random.default_rng(5)
    pooled = rng.normal(size=7)
    of: list[float] = []
    for n in (2, 3):
        ways = [list(c) for c in combinations(range(7), n)]
        found = maps._relabelled(pooled[:, None] - pooled.mean(), n, np.arange(7), 2000, rng)
        of = [stats.ttest_ind(pooled[w], np.delete(pooled, w), equal_var=False).statistic for w in ways]
        assert sorted({round(t, 6) for t in found[:, 0]}) == pytest.approx(sorted({round(t, 6) for t in of}))
    twice = np.repeat(pooled, 2)[:, None] - pooled.mean()
    shared = maps._relabelled(twice, 6, np.arange(14) // 2, 2000, np.random.default_rng(1))
    assert shared is not None and set(np.round(shared[:, 0], 6)) <= {round(t, 6) for t in of}


def test_labels_are_permuted_within_clusters_that_reach_into_both_groups() -> None:
    rng = np.random.default_rng(6)
    left, unit = rng.normal(size=(9, 1)), np.array([0, 0, 1, 2, 0, 0, 3, 4, 4])  # four cases in the first group
    left -= left.mean(0)
    found = maps._relabelled(left, 4, unit, 1000, rng)[:, 0]
    of = []
    for cases in combinations([0, 1, 4, 5], 2):
        for clusters in combinations([1, 2, 3, 4], 2):
            chosen = np.isin(np.arange(9), cases) | np.isin(unit, clusters)
            order = np.argsort(~chosen, kind="stable")
            sums = maps._Sums.of(left[order], int(chosen.sum()), unit[order])
            of.append(round(float(sums.t(np.ones((1, sums.k)))[0, 0]), 6))
    assert len(set(of)) == 36 and set(np.round(found, 6)) == set(of)


def test_a_map_of_skewed_values_in_clusters_of_both_groups_is_as_rarely_false_as_it_says() -> None:
    rng = np.random.default_rng(7)
    near, first = np.repeat(np.arange(10), 4), np.tile([True, False, False, False], 10)

    def drawn() -> float:
        x = np.exp((rng.normal(size=(10, 40))[near] + rng.normal(size=(40, 40))) / np.sqrt(2))
        clusters = near[first].tolist(), near[~first].tolist()
        return float(contrast.map_test(x[first], x[~first], permutations=99, clusters=clusters).p.min())

    assert sum(drawn() < 0.05 for _ in range(150)) <= stats.binom.ppf(0.99, 150, 0.05)


def test_labels_of_clusters_that_lie_on_one_side_are_permuted_as_wholes() -> None:
    group = np.arange(16) % 8
    alike = (group[:, None] == group).astype(float)[None]
    null = trajectory._null(alike, np.ones((16, 16)), group < 4, group, 30, np.random.default_rng(0))
    assert null is not None and null == pytest.approx(np.full((1, 30), 0.25)), "no cluster is torn apart"


def test_every_pair_of_groups_is_one_family_for_holm() -> None:
    rows = [r for r in contrast.between({"a": A, "b": B, "c": A + 0.3}).table if "p" in r]
    raw = np.array([r["p"] for r in rows])
    order = np.argsort(raw)
    stepped = np.minimum(1, np.maximum.accumulate(raw[order] * [3, 2, 1]))
    assert [rows[i]["p_adjusted"] for i in order] == pytest.approx(stepped.tolist())
    for test in (contrast.between, contrast.paired):
        for named in (None, "mine"):
            groups: Any = {"a": A, "b": A + 0.3, "c": A[::-1]}
            table = test(groups, quantity="q", family=named).table
            assert {r["family"] for r in table if "p" in r} == {named or "q"}


def test_paired_uses_the_cases_that_have_both_roles_and_counts_the_rest() -> None:
    first = {f"c{i}": float(v) for i, v in enumerate(A)}
    second = {f"c{i}": float(v) for i, v in enumerate(B)}
    more = contrast.paired({"whole": first, "part": {**second, "new": 1.0}}).table[0]
    assert (more["n"], more["n_dropped"]) == (30, 11), "of either role"
    row = contrast.paired({"whole": first, "part": second}).table[0]
    assert (row["n"], row["n_dropped"]) == (30, 10)
    assert row["p"] == pytest.approx(stats.ttest_rel(A[:30], B).pvalue)
    wilcoxon = contrast.paired({"whole": first, "part": second}, test="wilcoxon").table[0]
    assert wilcoxon["p"] == pytest.approx(stats.wilcoxon(A[:30] - B).pvalue)


def test_shared_clusters_widen_intervals_and_weaken_p() -> None:
    centers = RNG.normal(0, 1, 12)
    values = np.repeat(centers, 10) + RNG.normal(0, 0.1, 120)
    clusters = [f"k{i // 10}" for i in range(120)]
    alone, shared = effects.mean_interval(values), effects.mean_interval(values, clusters)
    assert shared.interval == "CR2 t over clusters"
    assert shared.high - shared.low > 2 * (alone.high - alone.low)
    groups = {"a": values[:60], "b": values[60:]}
    near = {"a": clusters[:60], "b": clusters[60:]}
    naive = _row(contrast.between(groups), "a - b")
    robust = _row(contrast.between(groups, clusters=near), "a - b")
    assert robust["test"] == "cluster-robust t"
    assert robust["p"] > naive["p"] and robust["smallest_detectable"] > 2 * naive["smallest_detectable"]
    assert robust["effect"] == naive["effect"] and robust["effect_high"] > naive["effect_high"]
    with pytest.raises(InputError, match="share clusters"):
        contrast.between(groups, clusters=near, test="mann-whitney")
    one, of = validity.auroc(values[:60], values[60:]), validity.auroc(values[:60], values[60:], (near["a"], near["b"]))
    assert of.interval == "CR2 t over clusters (logit)" and of.high - of.low > 1.7 * (one.high - one.low)


def test_an_auroc_over_clusters_is_as_sure_as_the_clusters_allow() -> None:
    rng = np.random.default_rng(0)
    a, b = np.repeat(rng.normal(0.7, 1, 12), 3), np.repeat(rng.normal(0, 1, 12), 3)
    near = [i // 3 for i in range(36)], [20 + i // 3 for i in range(36)]
    one, three = validity.auroc(a[::3], b[::3]), validity.auroc(a, b, near)
    # Copies of each case say nothing more: DeLong's error of the twelve, with t instead of the normal distribution.
    logit = [np.log(x / (1 - x)) for x in (*one[:3], *three[:3])]
    widths = (logit[5] - logit[4]) / (logit[2] - logit[1])
    assert three.value == one.value and 1.0 < widths < 1.4
    few = validity.auroc(a[:12], b, (near[0][:12], near[1]))
    assert np.isnan([few.low, few.high]).all() and "fewer than 5 clusters" in few.interval
    row, alone = (validity.membership_auroc(a, b, clusters=c).table[0] for c in (near, (None, None)))
    assert row["effect_high"] - row["effect_low"] > 1.3 * (alone["effect_high"] - alone["effect_low"])
    assert row["p"] > alone["p"]


def test_the_effect_of_a_small_group_that_varies_more_has_an_interval_that_says_so() -> None:
    rng = np.random.default_rng(2)
    found = [effects.hedges_g(3 * rng.normal(size=8), rng.normal(size=40)) for _ in range(200)]
    assert sum(e.low <= 0 <= e.high for e in found) >= stats.binom.ppf(0.001, 200, 0.93)


@pytest.mark.parametrize("cluster", [1, 3])
def test_groups_that_differ_in_spread_alone_are_not_told_apart_by_shuffled_labels(cluster: int) -> None:
    rng = np.random.default_rng(1)
    near = [i // cluster for i in range(10 * cluster)], [20 + i // cluster for i in range(40 * cluster)]

    def drawn() -> float:
        x, y = (np.repeat(rng.normal(size=len(set(n))), cluster) + 0.3 * rng.normal(size=len(n)) for n in near)
        return validity.shuffled_p(3 * x, y, permutations=99, clusters=near)

    assert sum(drawn() < 0.05 for _ in range(200)) <= stats.binom.ppf(0.999, 200, 0.06)


def test_below_five_clusters_a_side_neither_interval_nor_p_is_claimed() -> None:
    values = {"a": RNG.normal(size=16), "b": RNG.normal(size=40)}
    near = {"a": [i // 4 for i in range(16)], "b": [f"b{i}" for i in range(40)]}
    row = _row(contrast.between(values, clusters=near), "a - b")
    assert np.isnan([row["p"], row["low"], row["effect_low"]]).all() and row["smallest_detectable"] == float("inf")
    assert "fewer than 5 clusters" in row["interval"] and "fewer than 5 clusters" in row["test"]
    sides = {"a": values["a"].tolist(), "b": [0.0] * 16}
    (pairs,) = contrast.paired(sides, clusters=near["a"]).table
    assert np.isnan([pairs["p"], pairs["low"], pairs["effect_low"]]).all()


def test_one_case_a_side_answers_that_no_contrast_is_possible() -> None:
    row = _row(contrast.between({"failure": [1.0], "success": B}), "failure - success")
    assert row["note"].startswith("no contrast possible")
    assert np.isnan(row["p"]) and np.isnan(row["p_adjusted"])


@pytest.mark.parametrize(
    ("groups", "error", "says"),
    [
        ({"a": A}, NoCasesError, "at least two groups"),
        ({"a": A, "b": []}, NoCasesError, "'b': 0"),
        ({"a": A, "b": [1.0, np.nan]}, InputError, "1 of 2 values"),
    ],
)
def test_groups_that_cannot_be_contrasted_are_refused(groups: dict, error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        contrast.between(groups)


def test_smallest_detectable_effect_is_found_with_the_stated_power() -> None:
    g = effects.smallest_detectable(25, 25)
    assert 0.78 < g < 0.83
    rng = np.random.default_rng(1)
    hits = sum(stats.ttest_ind(rng.normal(g, 1, 25), rng.normal(0, 1, 25)).pvalue < 0.05 for _ in range(1000))
    assert 0.76 < hits / 1000 < 0.84
    for n, m in ((3, 40), (5, 40)):
        g_few = effects.smallest_detectable(n, m)
        hits = sum(effects.difference_fit(rng.normal(g_few, 1, n), rng.normal(0, 1, m)).p < 0.05 for _ in range(1000))
        assert 0.76 < hits / 1000 < 0.84, (n, m, hits)
    assert effects.smallest_detectable(1, 5) == float("inf")
    assert (
        effects.smallest_detectable(25, 25, power=0.5) < 0.6 < g < 0.9 < effects.smallest_detectable(25, 25, power=0.95)
    )


def test_map_test_finds_the_planted_cell_and_no_other() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(0, 1, (40, 6, 5)), rng.normal(0, 1, (40, 6, 5))
    first[:, 2, 3] += 1.5
    found = contrast.map_test(first, second, seed=1)
    assert np.argwhere(found.p < 0.05).tolist() == [[2, 3]]
    assert np.argwhere(np.abs(found.statistic) > found.threshold).tolist() == [[2, 3]]
    assert found.statistic[2, 3] == pytest.approx(
        stats.ttest_ind(first[:, 2, 3], second[:, 2, 3], equal_var=False).statistic
    )
    others = np.delete(np.abs(found.statistic), 2 * 5 + 3)
    assert contrast.map_test(first, second, seed=1, level=0.05).threshold < others.max() < found.threshold
    paired = contrast.map_test(first, second, paired=True, seed=1)
    assert np.argwhere(paired.p < 0.05).tolist() == [[2, 3]]
    assert paired.statistic[2, 3] == pytest.approx(stats.ttest_rel(first[:, 2, 3], second[:, 2, 3]).statistic)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_cell_has_to_stand_out_from_flipped_signs_and_from_permuted_labels(
    order: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    each = [(np.array([0.02, 0.3]), 2.0), (np.array([0.1, 0.2]), 3.0)]
    drawn = iter(order)
    monkeypatch.setattr(maps, "_tested", lambda *_: each[next(drawn)])
    found = contrast.map_test(np.random.default_rng(0).normal(size=(6, 2)), np.zeros((6, 2)) + np.arange(6)[:, None])
    assert found.p.tolist() == [0.1, 0.3] and found.threshold == 3.0


def test_map_test_rarely_cries_wolf_anywhere_in_the_map() -> None:
    rng, false = np.random.default_rng(4), 0
    for trial in range(100):
        x = rng.normal(0, 1, (24, 50))
        false += (contrast.map_test(x[:12], x[12:], permutations=200, seed=trial).p < 0.05).any()
    assert false <= 12


def naive_flipped_t(x: np.ndarray, y: np.ndarray, near: list[int], signs: np.ndarray) -> float:
    """Welch's t of one cell after each cluster's distance from the common mean has got its sign."""
    left = np.concatenate([x, y]) - np.concatenate([x, y]).mean()
    left = left * signs[near]
    variance = 0.0
    parts = []
    for side, names in ((left[: len(x)], near[: len(x)]), (left[len(x) :], near[len(x) :])):
        k = len(set(names))
        sums = [sum(v - side.mean() for v, g in zip(side, names, strict=True) if g == name) for name in set(names)]
        variance += k / (k - 1) * sum(s**2 for s in sums) / len(side) ** 2
        parts.append(side.mean())
    return (parts[0] - parts[1]) / np.sqrt(variance)


def test_flipped_signs_give_the_welch_t_of_clusters() -> None:
    rng = np.random.default_rng(9)
    x, y = 3 * rng.normal(size=20), rng.normal(size=30)
    near = [i // 4 for i in range(50)]
    found = contrast.map_test(x[:, None], y[:, None], clusters=(near[:20], near[20:]), permutations=400, seed=3)
    assert found.statistic[0] == pytest.approx(naive_flipped_t(x, y, near, np.ones(13)))
    signs = np.random.default_rng(3).choice([-1.0, 1.0], size=(400, 13))
    null = np.abs([naive_flipped_t(x, y, near, s) for s in signs])
    assert found.p[0] == pytest.approx((1 + (null >= abs(found.statistic[0]) * (1 - 1e-12)).sum()) / 401)
    row = _row(contrast.between({"a": x, "b": y}, test="permutation"), "a - b")
    assert row["test"] == "studentized sign flips and labels, the larger p"


def test_map_test_keeps_clusters_together() -> None:
    rng = np.random.default_rng(5)
    centers = rng.normal(0, 1, (12, 4))
    x = np.repeat(centers, 10, axis=0) + rng.normal(0, 0.1, (120, 4))
    near = [i // 10 for i in range(120)]
    naive = contrast.map_test(x[:60], x[60:])
    kept = contrast.map_test(x[:60], x[60:], clusters=(near[:60], near[60:]))
    assert naive.p.min() < 0.01 < kept.p.min()
    own = {"first": x[:60], "second": np.zeros((60, 4)), "paired": True}
    assert contrast.map_test(**own).p.min() < 0.01 < contrast.map_test(**own, clusters=(near[:60], None)).p.min()
    both = contrast.map_test(x[:65], x[65:], clusters=(near[:65], near[65:]))
    assert np.isfinite(both.p).all()
    five = [[f"{side}{max(0, i - 5)}" for i in range(10)][::step] for side, step in (("x", 1), ("y", -1))]
    assert contrast.map_test(x[:10], x[40:50], clusters=(five[0], five[1]), permutations=9).n == (10, 10)
    with pytest.raises(NoCasesError, match="clusters a side"):
        contrast.map_test(x[:40], x[40:], clusters=(near[:40], near[40:]))


def _example(case: str, group: str, length: int, depth: int = 2, role: str = "whole") -> Example:
    ids = tuple(range(length))
    kind = "composition" if role == "whole" else "math"
    return Example(case, role, kind, group, ids, (1,), (1,), 0, (0, length), "pair", depth, "add")


def test_matching_may_answer_that_no_contrast_is_possible() -> None:
    found = match([_example("f", "failure", 20), _example("s", "success", 60)])
    assert not found.possible and found.note.startswith("no contrast possible")
    with pytest.raises(InputError, match="cannot match on"):
        match([_example("f", "failure", 20)], on=("colour",))


def test_auroc_equals_the_rank_statistic_and_its_interval_covers() -> None:
    e = validity.auroc(A, B)
    assert e.value == pytest.approx(stats.mannwhitneyu(A, B).statistic / (A.size * B.size))
    assert validity.auroc([1, 2, 2, 3], [2, 1, 0]).value == pytest.approx((0.5 + 1 + 2 * (0.5 + 1 + 1) + 3) / 12)
    parts = [np.mean(a > B) for a in A], [np.mean(A > b) for b in B]
    squares = [np.var(p, ddof=1) / len(p) for p in parts]
    freedom = sum(squares) ** 2 / sum(q**2 / (len(p) - 1) for q, p in zip(squares, parts, strict=True))
    logit = [np.log(v / (1 - v)) for v in (e.low, e.value, e.high)]
    half = stats.t.ppf(0.975, freedom) * np.sqrt(sum(squares)) / (e.value * (1 - e.value))
    assert np.diff(logit) == pytest.approx(half)
    rng, truth = np.random.default_rng(2), float(stats.norm.cdf(0.8 / np.sqrt(2)))
    covered = 0
    for _ in range(300):
        e = validity.auroc(rng.normal(0.8, 1, 30), rng.normal(0, 1, 40))
        covered += e.low <= truth <= e.high
    assert 0.91 <= covered / 300 <= 0.985
    draws = [validity.auroc(rng.normal(1.2, 1, 3), rng.normal(0, 1, 40)) for _ in range(200)]
    inside = [e.low <= stats.norm.cdf(1.2 / np.sqrt(2)) <= e.high for e in draws]
    assert np.mean(inside) >= 0.93, "89 % with the quantile of a normal distribution"
    tied = validity.auroc([1.0] * 9, [1.0] * 9, (list("aabbccdde"), list("ffgghhiij")))
    assert tied.value == 0.5 and np.isnan(tied.low) and np.isnan(tied.high), "every resample gives the same"
    perfect = validity.auroc([2.0, 3.0, 4.0], [0.0, 1.0])
    assert perfect.value == 1 and 0 < perfect.low < 1 and perfect.high == 1


def test_values_that_are_all_equal_have_no_interval_instead_of_one_of_no_width() -> None:
    for clusters in (None, ["a", "a", "b", "b"]):
        e = effects.mean_interval([0.25] * 4, clusters)
        assert e.value == 0.25 and np.isnan([e.low, e.high]).all() and e.interval == "no spread"
    together = effects.mean_interval([0.1, 0.9, 0.4], ["only", "only", "only"])
    assert np.isnan(together.low) and together.interval == "no interval: fewer than 5 clusters"
    same = effects.difference_interval([1.0, 1.0], [0.0, 0.0], (["a", "a"], ["b", "b"]))
    assert same.interval == "no spread" and np.isnan(same.high)
    assert effects.mean_interval([0.25, 0.2500001]).interval == "t"
    wide, narrow = (effects.mean_interval(A, level=level) for level in (0.95, 0.5))
    assert (wide.high - wide.low) / (narrow.high - narrow.low) == pytest.approx(
        stats.t.ppf(0.975, 39) / stats.t.ppf(0.75, 39)
    )


def _cosines(n: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(2, n, 6)) + 0.3
    x /= np.linalg.norm(x, axis=2, keepdims=True)
    return x @ x.transpose(0, 2, 1)


def test_cosines_leave_out_pairs_within_clusters_and_clusters_one_at_a_time() -> None:
    matrix, near = _cosines(28), [i // 2 for i in range(28)]
    rows = trajectory.separation_rows("cosine", matrix, 12, near, permutations=50)

    def naive(gone: int | None) -> dict[str, float]:
        kept = [i for i in range(28) if near[i] != gone]
        pairs = [(i, j) for i in kept for j in kept if i < j and near[i] != near[j]]
        of = {"within successes": (True, True), "within failures": (False, False), "across": (True, False)}
        means = {n: float(np.mean([matrix[1, i, j] for i, j in pairs if (i < 12, j < 12) == s])) for n, s in of.items()}
        apart = (means["within successes"] + means["within failures"]) / 2 - means["across"]
        return {**means, "within - across": apart}

    full, without = naive(None), [naive(g) for g in range(14)]
    for row in (r for r in rows if r["layer"] == 1):
        assert row["value"] == pytest.approx(full[row["group"]])
    sides = [np.array([w["within - across"] for w in part]) for part in (without[:6], without[6:])]
    v = [(len(s) - 1) / len(s) * ((s - s.mean()) ** 2).sum() for s in sides]
    off = [np.sqrt((len(s) - 1) / len(s)) * (s.mean() - s) / np.sqrt(sum(v)) for s in sides]
    skewness = sum((x**3).sum() * len(x) / (len(x) - 2) for x in off)
    below = (v[0] ** 2 / 5 + v[1] ** 2 / 7) / sum(v) ** 2
    half = stats.t.ppf(0.975, 1 / (below + 8 / 9 * skewness**2)) * np.sqrt(sum(v))
    assert rows[-1]["high"] - rows[-1]["value"] == pytest.approx(half)
    assert next(r for r in rows if r["group"] == "within successes")["n"] == 60  # 12 * 11 / 2 - 6


def test_cosines_of_too_few_clusters_have_no_interval_and_of_crossing_facts_take_cases_that_share_none() -> None:
    few = trajectory.separation_rows("cosine", _cosines(20), 8, [i // 2 for i in range(20)], permutations=50)
    assert np.isnan(few[-1]["low"]) and "fewer than 5" in few[-1]["interval"] and np.isfinite(few[-1]["p"])
    rng = np.random.default_rng(0)
    facts = [frozenset(rng.choice(30, 2, replace=False).tolist()) for _ in range(40)]
    crossed = trajectory.separation_rows("cosine", _cosines(40), 20, facts, permutations=50)[-1]
    assert crossed["n"] <= 15 and f"{crossed['n']} of 40 cases that share nothing" in crossed["note"]
    first = trajectory.separation_rows("cosine", _cosines(40), 20, facts, permutations=50)[0]
    assert first["n_cases"] < crossed["n"] and 2 * first["n"] == first["n_cases"] * (first["n_cases"] - 1)
    mixed = trajectory.separation_rows("cosine", _cosines(4), 2, ["a", "b", "a", "b"], permutations=50)[-1]
    assert np.isnan(mixed["p"]) and "too few ways" in mixed["test"]
    whole = trajectory.separation_rows("cosine", _cosines(10), 4, [i // 2 for i in range(10)], permutations=50)[-1]
    assert np.isnan(whole["p"]) and "too few ways" in whole["test"], "two of five clusters, not four of ten cases"
    one = trajectory.separation_rows("cosine", _cosines(10), 2, [*"aaaaaaaabc"], permutations=50)[-1]
    assert np.isnan([one["value"], one["p"], one["p_map"]]).all() and "no pair that shares nothing" in one["test"]


def test_the_p_of_a_map_is_that_of_its_largest_layer() -> None:
    null = np.random.default_rng(1).normal(size=(3, 99)) * [[1.0], [5.0], [0.2]]
    own = np.array([2.5, 1.0, 0.5])
    z = np.abs(own - null.mean(1)) / null.std(1)
    drawn = np.abs(null - null.mean(1, keepdims=True)) / null.std(1, keepdims=True)
    for layer, row in enumerate(trajectory._tests(own, null)):
        assert row["p"] == pytest.approx((1 + (drawn[layer] >= z[layer]).sum()) / 100)
        assert row["p_map"] == pytest.approx((1 + (drawn.max(0) >= z[layer]).sum()) / 100)
        assert row["p_map"] > row["p"]


def test_labels_are_permuted_over_clusters_and_not_over_their_cases() -> None:
    x = np.repeat(np.random.default_rng(4).normal(size=(12, 6)), 5, axis=0)
    x += 0.01 * np.random.default_rng(5).normal(size=x.shape)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    row = trajectory.separation_rows("cosine", (x @ x.T)[None], 30, [i // 5 for i in range(60)], permutations=200)[-1]
    matrix, side, near = x @ x.T, np.arange(60) < 30, np.repeat(np.arange(12), 5)

    def apart(donors: set[int]) -> float:
        mine = np.isin(near, list(donors))
        other = near[:, None] != near
        means = [matrix[np.outer(a, b) & other].mean() for a, b in ((mine, mine), (~mine, ~mine), (mine, ~mine))]
        return (means[0] + means[1]) / 2 - means[2]

    null = np.array([apart(set(some)) for some in combinations(range(12), 6)])
    z = (apart(set(near[side].tolist())) - null.mean()) / null.std()
    assert row["effect"] == pytest.approx(z, rel=0.2)


def test_a_dose_series_is_described_without_p_and_verdict() -> None:
    rng = np.random.default_rng(6)
    up = {name: rng.normal(i, 1, 30) for i, name in enumerate(("none", "control", "low", "twin"))}
    row = validity.dose_series(up).table[-1]
    assert row["monotone"] and row["low"] > 0 and not {"p", "verdict"} & set(row)
    assert not validity.dose_series(up, expected="decreasing").table[-1]["monotone"]
    assert not validity.dose_series({"a": [0, 1], "b": [1, 0]}).table[-1]["monotone"], "equal means do not rise"
    assert [r["n"] for r in validity.dose_series(up).table] == [30, 30, 30, 30, 120]
    for few, sizes in (({"a": [0, 1], "b": []}, "[2, 0]"), ({"a": [0, 1]}, "[2]")):
        with pytest.raises(NoCasesError) as caught:
            validity.dose_series(few)
        assert sizes in str(caught.value)
    for expected, group, above in (("increasing", "twin - control", True), ("decreasing", "control - twin", False)):
        row = validity.model_auroc(up["twin"], up["none"], expected=expected).table[0]
        assert "p" not in row and row["group"] == group and (row["value"] > 0.5) == above


def test_the_interval_of_a_trend_leaves_out_clusters_one_at_a_time() -> None:
    rng = np.random.default_rng(7)
    doses = {name: np.round(rng.normal(i / 2, 1, 12), 1) for i, name in enumerate("abc")}
    order, values = np.repeat([0, 1, 2], 12), np.concatenate(list(doses.values()))

    def naive(unit: np.ndarray, parts: list[np.ndarray]) -> float:
        """Half the width of the interval."""
        left = [np.array([stats.kendalltau(order[unit != g], values[unit != g])[0] for g in part]) for part in parts]
        v = [(len(x) - 1) / len(x) * ((x - x.mean()) ** 2).sum() for x in left]
        freedom = sum(v) ** 2 / sum(s**2 / (len(x) - 1) for s, x in zip(v, left, strict=True))
        null = stats.kendalltau(order, values, method="asymptotic")
        least = abs(null.statistic) / stats.norm.isf(null.pvalue / 2)
        return stats.t.ppf(0.975, freedom) * max(np.sqrt(sum(v)), least)

    alone = validity.dose_series(doses).table[-1]
    assert alone["value"] == pytest.approx(stats.kendalltau(order, values)[0])
    assert alone["high"] - alone["value"] == pytest.approx(naive(np.arange(36), np.split(np.arange(36), 3)))
    same = {name: [i // 2 for i in range(12)] for name in doses}
    shared = validity.dose_series(doses, clusters=same).table[-1]
    assert shared["high"] - shared["value"] == pytest.approx(naive(np.tile(np.arange(12) // 2, 3), [np.arange(6)]))
    few = validity.dose_series(doses, clusters={name: [i // 3 for i in range(12)] for name in doses}).table[-1]
    assert few["value"] == alone["value"] and np.isnan(few["low"]) and few["interval"] == effects.dependence.FEW


def test_ranks_of_groups_that_differ_in_spread_alone_are_not_told_apart() -> None:
    rng = np.random.default_rng(8)
    p = [contrast.between({"a": 3 * rng.normal(size=8), "b": rng.normal(size=40)}, test="mann-whitney").table[-1]["p"]
         for _ in range(200)]  # fmt: skip
    assert sum(x < 0.05 for x in p) <= stats.binom.ppf(0.999, 200, 0.06)
    apart = contrast.between({"a": range(10, 16), "b": range(6)}, test="mann-whitney").table[-1]["p"]
    assert apart == pytest.approx(2 / 924)


def test_shuffled_labels_give_uniform_p_for_no_difference_and_small_p_for_one() -> None:
    rng = np.random.default_rng(8)
    p = [validity.shuffled_p(rng.normal(size=15), rng.normal(size=15), permutations=200) for _ in range(200)]
    assert stats.kstest(p, "uniform").pvalue > 0.001
    assert validity.shuffled_p(A, B) < 0.01
    row = validity.failure_auroc(A, B).table[0]
    assert row["value"] > 0.5 and row["n"] == 70


def test_planted_recovery_rises_from_the_false_positive_rate_to_one() -> None:
    rows = validity.planted_recovery(RNG.normal(size=400), n=25, effects=(0, 0.4, 0.8, 1.6), trials=150).table
    rates = [r["value"] for r in rows[:-1]]
    assert rates[0] < 0.12 and rates[-1] > 0.97 and rates == sorted(rates)
    lax = validity.planted_recovery(A, n=10, effects=(0,), trials=40, alpha=0.5).table[0]
    assert 0.25 < lax["value"] < 0.75
    assert 0.6 < rows[-1]["value"] < 1.05  # effects.smallest_detectable(25, 25) is 0.81


def test_planted_recovery_takes_the_users_own_mechanism_and_test() -> None:
    rows = validity.planted_recovery(
        RNG.normal(size=200), n=20, effects=(0.0, 1.0), trials=50, plant=lambda x, e: x * (1 + 3 * e),
        test=lambda a, b: float(stats.levene(a, b).pvalue),
    ).table  # fmt: skip
    assert rows[0]["value"] < 0.2 < 0.8 < rows[1]["value"]


def test_the_seed_decides_which_signs_and_labels_are_drawn() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=12), rng.normal(0.5, 1, 14)

    def drawn(seed: int) -> list[float]:
        table = contrast.between({"a": a, "b": b}, test="permutation", resamples=200, seed=seed).table
        pairs = contrast.paired({"a": a.tolist(), "b": b[:12].tolist()}, test="permutation", resamples=200, seed=seed)
        found = contrast.map_test(a[:, None], b[:, None], permutations=200, seed=seed)
        p = validity.shuffled_p(a, b, permutations=200, seed=seed)
        planted = validity.planted_recovery(a, n=6, effects=(0.8,), trials=40, seed=seed).table[0]["value"]
        return [table[-1]["p"], pairs.table[0]["p"], float(found.p[0]), p, planted]

    assert drawn(5) == drawn(5)
    assert all(len(set(column)) > 1 for column in zip(*(drawn(seed) for seed in range(4)), strict=True))


def test_groups_whose_facts_cross_have_a_test_that_agrees_with_their_interval() -> None:
    rng = np.random.default_rng(0)
    facts = {g: [frozenset(rng.choice(range(lo, lo + 12), 2, replace=False).tolist()) for _ in range(30)]
             for g, lo in (("a", 0), ("b", 12))}  # fmt: skip
    for shift in (0.0, 2.0):
        values = {"a": rng.normal(size=30) + shift, "b": rng.normal(size=30)}
        row = contrast.between(values, clusters=facts).table[-1]
        assert row["test"] == "t of crossed random effects"
        assert (row["p"] < 0.05) == (not row["low"] <= 0 <= row["high"]) == (shift > 0)


def test_flipped_signs_of_roles_keep_clusters_together() -> None:
    d = [1.0] * 24
    roles = {"a": d, "b": [0.0] * 24}
    row = contrast.paired(roles, test="permutation", clusters=[i // 4 for i in range(24)]).table[0]
    assert row["test"] == "sign-flip permutation of clusters" and row["p"] == pytest.approx(2 / 64, abs=0.015)
    few = contrast.paired(roles, test="permutation", clusters=[i // 6 for i in range(24)]).table[0]
    assert np.isnan(few["p"])


@pytest.mark.parametrize("paired", [False, True])
def test_maps_of_very_small_numbers_are_tested_like_those_of_large_ones_on_either_side(paired: bool) -> None:
    rng = np.random.default_rng(1)
    values, nothing = rng.normal(1.0, 0.5, size=(9, 3)), np.zeros((9, 3))
    usual = maps.map_test(values, nothing, permutations=99, paired=paired)
    for scale in (1e-200, 1e200):
        for first, second, sign in ((scale * values, nothing, 1), (nothing, scale * values, -1)):
            found = maps.map_test(first, second, permutations=99, paired=paired)
            assert found.statistic == pytest.approx(sign * usual.statistic) and (found.p < 0.05).all()


def test_a_column_is_paired_by_its_index_and_a_group_that_is_not_there_has_no_clusters() -> None:
    first = pd.Series([1, 2, 3.0], index=list("xyz"))
    second = pd.Series([2, 2, 3.5], index=list("zyx"))
    by_id = contrast.paired(
        {"a": {str(k): v for k, v in first.items()}, "b": {str(k): v for k, v in second.items()}}
    ).table
    assert contrast.paired({"a": first, "b": second}).table == by_id
    assert by_id != contrast.paired({"a": list(first), "b": list(second)}).table
    with pytest.raises(InputError, match=r"no group 'failures'.*failure"):
        contrast.between({"failure": A, "success": B}, clusters={"failures": list(range(40))})


def test_clusters_of_roles_are_found_by_the_same_ids_or_refused() -> None:
    ids, near = [f"c{i}" for i in range(12)], [i // 2 for i in range(12)]
    roles = {"a": dict(zip(ids, A, strict=False)), "b": dict(zip(ids, B, strict=False))}
    by_id = contrast.paired(roles, clusters=dict(zip(ids, near, strict=True))).table
    assert by_id[0]["interval"] == "CR2 t over clusters"
    columns = {name: pd.Series(of) for name, of in roles.items()}
    assert contrast.paired(columns, clusters=pd.Series(near, index=ids)).table == by_id
    in_order = {name: list(of.values()) for name, of in roles.items()}
    assert contrast.paired(in_order, clusters=near).table == by_id
    assert contrast.paired(roles, clusters={"c0": "x", "c1": "x"}).table[0]["interval"] == "CR2 t over clusters"
    shuffled: Any = {name: column.reset_index(drop=True)[::-1] for name, column in columns.items()}
    with pytest.raises(InputError, match="the first for 0, and the first case is"):
        contrast.paired(shuffled, clusters=near)
    for of, clusters in ((roles, near), (in_order, near[:5]), (roles, {"C0": 1}), (columns, pd.Series(near))):
        with pytest.raises(InputError, match="clusters: "):
            contrast.paired(of, clusters=clusters)


def test_a_column_with_several_values_of_a_case_is_refused() -> None:
    once, twice = pd.Series([1.0, 2, 3], index=list("xyz")), pd.Series([1.0, 2, 3, 2], index=list("xyzy"))
    for roles in ({"a": once, "b": twice}, {"a": twice, "b": once}):
        with pytest.raises(InputError, match=r"role '[ab]': case 'y' has several values, 2.0 and 2.0"):
            contrast.paired(roles)
    for last, refused in (("k", False), ("l", True)):
        near = pd.Series(["k", "k", "k", last], index=list("xyzy"))
        if refused:
            with pytest.raises(InputError, match="clusters: case 'y' has several values, 'k' and 'l'"):
                contrast.paired({"a": once, "b": once + 1}, clusters=near)
        else:
            assert contrast.paired({"a": once, "b": once + 1}, clusters=near).table[0]["n"] == 3


def test_permuted_labels_of_too_few_clusters_give_a_row_that_says_so() -> None:
    near = {"a": [i // 10 for i in range(40)], "b": [f"b{i // 10}" for i in range(30)]}
    row = _row(contrast.between({"a": A, "b": B}, clusters=near, test="permutation"), "a - b")
    assert np.isnan(row["p"]) and "fewer than 5 clusters" in row["test"] and row["value"] == A.mean() - B.mean()
