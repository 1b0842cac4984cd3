"""Contrasts, matching and validity: against scipy and statsmodels, on planted data, and where nothing can be said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats as scipy_stats

from composcope.errors import InputError, NoCasesError
from composcope.probes import contrast, effects, trajectory, validity
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
    assert row["n"] == 70 and row["p_adjusted"] == row["p"]
    wins = (A[:, None] > B).mean() - (A[:, None] < B).mean()
    assert row["cliffs_delta"] == pytest.approx(wins)


def test_every_pair_of_groups_is_one_family_for_holm() -> None:
    rows = [r for r in contrast.between({"a": A, "b": B, "c": A + 0.3}).table if "p" in r]
    raw = np.array([r["p"] for r in rows])
    order = np.argsort(raw)
    stepped = np.minimum(1, np.maximum.accumulate(raw[order] * [3, 2, 1]))
    assert [rows[i]["p_adjusted"] for i in order] == pytest.approx(stepped.tolist())


def test_paired_uses_the_cases_that_have_both_roles_and_counts_the_rest() -> None:
    first = {f"c{i}": float(v) for i, v in enumerate(A)}
    second = {f"c{i}": float(v) for i, v in enumerate(B)}
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
    assert shared.interval == "cluster bootstrap"
    assert shared.high - shared.low > 2 * (alone.high - alone.low)
    groups = {"a": values[:60], "b": values[60:]}
    near = {"a": clusters[:60], "b": clusters[60:]}
    naive = _row(contrast.between(groups), "a - b")
    robust = _row(contrast.between(groups, clusters=near), "a - b")
    assert robust["test"] == "cluster-robust t"
    assert robust["p"] > naive["p"]
    with pytest.raises(InputError, match="share clusters"):
        contrast.between(groups, clusters=near, test="mann-whitney")


def test_cluster_bootstrap_covers_the_mean_about_as_often_as_it_says() -> None:
    rng, covered = np.random.default_rng(0), 0
    for trial in range(200):
        x = np.repeat(rng.normal(0, 1, 40), 3) + rng.normal(0, 0.5, 120)
        e = effects.mean_interval(x, [i // 3 for i in range(120)], seed=trial, resamples=400)
        covered += e.low <= 0 <= e.high
    assert 0.88 <= covered / 200 <= 0.99


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
    assert effects.smallest_detectable(1, 5) == float("inf")


def test_map_test_finds_the_planted_cell_and_no_other() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(0, 1, (40, 6, 5)), rng.normal(0, 1, (40, 6, 5))
    first[:, 2, 3] += 1.5
    found = contrast.map_test(first, second, seed=1)
    assert np.argwhere(found.p < 0.05).tolist() == [[2, 3]]
    assert found.statistic[2, 3] == pytest.approx(
        stats.ttest_ind(first[:, 2, 3], second[:, 2, 3], equal_var=False).statistic
    )
    paired = contrast.map_test(first, second, paired=True, seed=1)
    assert np.argwhere(paired.p < 0.05).tolist() == [[2, 3]]
    assert paired.statistic[2, 3] == pytest.approx(stats.ttest_rel(first[:, 2, 3], second[:, 2, 3]).statistic)


def test_map_test_rarely_cries_wolf_anywhere_in_the_map() -> None:
    rng, false = np.random.default_rng(4), 0
    for trial in range(100):
        x = rng.normal(0, 1, (24, 50))
        false += (contrast.map_test(x[:12], x[12:], permutations=200, seed=trial).p < 0.05).any()
    assert false <= 12


def test_map_test_keeps_clusters_together() -> None:
    rng = np.random.default_rng(5)
    centers = rng.normal(0, 1, (8, 4))
    x = np.repeat(centers, 10, axis=0) + rng.normal(0, 0.1, (80, 4))
    near = [i // 10 for i in range(80)]
    naive = contrast.map_test(x[:40], x[40:])
    kept = contrast.map_test(x[:40], x[40:], clusters=(near[:40], near[40:]))
    assert naive.p.min() < 0.01 < kept.p.min()
    with pytest.raises(InputError, match="both groups"):
        contrast.map_test(x[:45], x[45:], clusters=(near[:45], near[45:]))


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
    rng, truth = np.random.default_rng(2), float(stats.norm.cdf(0.8 / np.sqrt(2)))
    covered = 0
    for _ in range(300):
        e = validity.auroc(rng.normal(0.8, 1, 30), rng.normal(0, 1, 40))
        covered += e.low <= truth <= e.high
    assert 0.91 <= covered / 300 <= 0.985
    perfect = validity.auroc([2.0, 3.0, 4.0], [0.0, 1.0])
    assert perfect.value == 1 and 0 < perfect.low < 1 and perfect.high == 1


def test_values_that_are_all_equal_have_no_interval_instead_of_one_of_no_width() -> None:
    for clusters in (None, ["a", "a", "b", "b"]):
        e = effects.mean_interval([0.25] * 4, clusters)
        assert e.value == 0.25 and np.isnan([e.low, e.high]).all() and e.interval == "no spread"
    together = effects.mean_interval([0.1, 0.9, 0.4], ["only", "only", "only"])
    assert np.isnan(together.low) and together.interval == "no spread"
    same = effects.difference_interval([1.0, 1.0], [0.0, 0.0], (["a", "a"], ["b", "b"]))
    assert same.interval == "no spread" and np.isnan(same.high)
    assert effects.mean_interval([0.25, 0.2500001]).interval == "t"


def test_resampling_so_few_cases_that_nothing_can_differ_gives_no_interval_and_says_so() -> None:
    two = trajectory._ends(np.array([0.3, np.nan, 0.3, 0.3 + 1e-17]), 2)
    assert np.isnan(two["low"]) and two["interval"] == "no spread"
    assert two["note"] == "resampling 2 cases always gives the same value: no interval"
    three = trajectory._ends(np.array([0.3, 0.4, 0.5]), 3)
    assert three["low"] < three["high"] and three["note"] == "bootstrap over 3 cases: too narrow"
    assert trajectory._ends(np.array([0.3, 0.4, 0.5]), 12)["note"] == ""
    matrix = torch.rand(2, 5, 5, generator=torch.Generator().manual_seed(0))
    rows = trajectory._cosine_rows("cosine", matrix, 2, 200, 0)
    within = next(r for r in rows if r["group"] == "within successes")
    assert np.isnan(within["low"]) and within["interval"] == "no spread"
    separation = next(r for r in rows if r["group"] == "within - across")
    assert separation["low"] < separation["high"] and "over 2 cases: too narrow" in separation["note"]


def test_no_difference_among_a_handful_is_not_called_a_no() -> None:
    few = validity.failure_auroc([1.0, 2.0, 3.0], [1.5, 2.5, 0.5]).table[0]
    assert few["verdict"] == "cannot say (3 against 3)"
    rng = np.random.default_rng(1)
    assert validity.failure_auroc(rng.normal(size=20), rng.normal(size=20)).table[0]["verdict"] == "no"
    apart = validity.failure_auroc(rng.normal(9, 1, 8), rng.normal(0, 1, 8)).table[0]
    assert apart["verdict"] == "yes"


def test_a_dose_series_is_followed_or_not() -> None:
    rng = np.random.default_rng(6)
    up = {name: rng.normal(i, 1, 30) for i, name in enumerate(("none", "control", "low", "twin"))}
    row = validity.dose_series(up).table[-1]
    assert row["verdict"] == "yes" and row["monotone"] and row["p"] < 0.01 and row["low"] > 0
    assert validity.dose_series(up, expected="decreasing").table[-1]["verdict"] == "yes, reversed"
    flat = {name: rng.normal(0, 1, 30) for name in up}
    assert validity.dose_series(flat).table[-1]["verdict"] == "no"
    assert [r["n"] for r in validity.dose_series(up).table] == [30, 30, 30, 30, 120]


def test_shuffled_labels_give_uniform_p_for_no_difference_and_small_p_for_one() -> None:
    rng = np.random.default_rng(8)
    p = [validity.shuffled_p(rng.normal(size=15), rng.normal(size=15), permutations=200) for _ in range(200)]
    assert stats.kstest(p, "uniform").pvalue > 0.001
    assert validity.shuffled_p(A, B) < 0.01
    row = validity.failure_auroc(A, B).table[0]
    assert row["verdict"] == "yes" and row["value"] > 0.5 and row["n"] == 70


def test_planted_recovery_rises_from_the_false_positive_rate_to_one() -> None:
    rows = validity.planted_recovery(RNG.normal(size=400), n=25, effects=(0, 0.4, 0.8, 1.6), trials=150).table
    rates = [r["value"] for r in rows[:-1]]
    assert rates[0] < 0.12 and rates[-1] > 0.97 and rates == sorted(rates)
    assert 0.6 < rows[-1]["value"] < 1.05  # effects.smallest_detectable(25, 25) is 0.81


def test_planted_recovery_takes_the_users_own_mechanism_and_test() -> None:
    rows = validity.planted_recovery(
        RNG.normal(size=200), n=20, effects=(0.0, 1.0), trials=50, plant=lambda x, e: x * (1 + 3 * e),
        test=lambda a, b: float(stats.levene(a, b).pvalue),
    ).table  # fmt: skip
    assert rows[0]["value"] < 0.2 < 0.8 < rows[1]["value"]
