"""Intervals and tests against hand-computed values and against properties that must hold everywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs
from scipy.optimize import minimize_scalar
from scipy.stats import beta, multinomial, norm

from composcope.evaluation import dependence
from composcope.evaluation import statistics as st
from composcope.evaluation.metrics import extreme_mean, find, truncated
from composcope.evaluation.protocols import Graded, counting, get


def test_clopper_pearson_of_36_in_165_matches_the_beta_quantiles() -> None:
    interval = st.clopper_pearson(36, 165)
    assert interval.low == pytest.approx(beta.ppf(0.025, 36, 130), abs=1e-9)
    assert interval.high == pytest.approx(beta.ppf(0.975, 37, 129), abs=1e-9)


def test_clopper_pearson_of_no_and_all_successes_has_the_closed_form() -> None:
    assert st.clopper_pearson(0, 10).low == 0.0
    assert st.clopper_pearson(0, 10).high == pytest.approx(1 - 0.025 ** (1 / 10))
    assert st.clopper_pearson(10, 10).low == pytest.approx(0.025 ** (1 / 10))
    assert st.clopper_pearson(10, 10).high == 1.0


def test_clopper_pearson_of_nothing_has_no_ends_and_impossible_counts_are_refused() -> None:
    assert st.clopper_pearson(0, 0).low is None
    with pytest.raises(ValueError, match="not between"):
        st.clopper_pearson(3, 2)


@given(hs.integers(1, 300).flatmap(lambda n: hs.tuples(hs.integers(0, n), hs.just(n))))
@settings(max_examples=80, deadline=None)
def test_clopper_pearson_always_contains_the_rate_and_never_is_nan(kn: tuple[int, int]) -> None:
    k, n = kn
    interval = st.clopper_pearson(k, n)
    assert interval.low is not None and interval.high is not None
    assert 0 <= interval.low <= k / n <= interval.high <= 1
    mirrored = st.clopper_pearson(n - k, n)
    assert interval.low == pytest.approx(1 - (mirrored.high or 0), abs=1e-9)


def test_a_rate_over_clusters_that_agree_has_a_wider_interval_than_over_cases() -> None:
    values = [True] * 40 + [False] * 40
    clusters = [i // 10 for i in range(80)]
    narrow = st.rate_interval(values, list(range(80)))
    wide = st.rate_interval(values, clusters)
    assert narrow == st.clopper_pearson(40, 80)
    assert narrow.low is not None and narrow.high is not None and wide.low is not None and wide.high is not None
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


@pytest.mark.parametrize("crossed", [False, True])
def test_the_interval_over_clusters_is_korn_and_graubards(crossed: bool) -> None:
    from scipy.stats import beta, t

    values = [i % 10 < 2 + i // 10 for i in range(80)]
    clusters = [frozenset({i // 10, f"item {i % 10}"}) if crossed else i // 10 for i in range(80)]
    fit, k, n = dependence.mean(values, clusters), sum(values), len(values)
    rate = k / n
    ratio = t.ppf(0.975, n - 1) / t.ppf(0.975, fit.freedom)
    effective = min(n, rate * (1 - rate) / fit.error**2 * ratio**2)
    hits = effective * rate
    found = st.rate_interval(values, clusters)
    assert dependence.effective(clusters) < effective < 0.9 * rate * (1 - rate) / fit.error**2 < n
    assert (found.low, found.high) == pytest.approx(
        (beta.ppf(0.025, hits, effective - hits + 1), beta.ppf(0.975, hits + 1, effective - hits))
    )


def test_clusters_that_balance_themselves_are_worth_no_more_than_their_cases() -> None:
    halves = [bool(i % 2) for i in range(40)]
    found, plain = st.rate_interval(halves, [i // 2 for i in range(40)]), st.clopper_pearson(20, 40)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


def test_no_interval_of_a_difference_goes_beyond_one() -> None:
    right, clusters = [i > 0 for i in range(30)], [i // 6 for i in range(30)]
    high = st.paired_difference(right, [False] * 30, seed=0, clusters=clusters)
    low = st.paired_difference([False] * 30, right, seed=0, clusters=clusters)
    assert high.method == dependence.CLUSTERED and (high.high, low.low) == (1.0, -1.0)


def test_the_interval_of_a_statistic_ends_where_its_values_do() -> None:
    columns = [(float(i > 0), 1.0) for i in range(30)]
    of = {"clusters": [i // 6 for i in range(30)], "seed": 0}

    def rate(sums: np.ndarray) -> np.ndarray:
        return sums[..., 0] / sums[..., 1]

    free, ended = (
        counting.statistic("r", columns, rate, {}, **of),
        counting.statistic("r", columns, rate, {}, **of, possible=(-1, 1)),
    )
    assert free.high is not None and free.high > 1 and ended.high == 1 and ended.low == free.low


def test_equal_outcomes_count_as_many_as_there_are_clusters() -> None:
    interval = st.rate_interval([True] * 60, [i // 10 for i in range(60)])
    assert interval.method == "clopper-pearson over clusters"
    assert interval.low == pytest.approx(0.025 ** (1 / 6)) and interval.high == 1.0
    uneven = st.rate_interval([True] * 60, [max(0, i - 50) for i in range(60)])
    assert uneven.low == pytest.approx(0.025 ** (1 / (60**2 / (51**2 + 9)))), "one large cluster is worth little"
    few = st.rate_interval([True] * 30, [i // 10 for i in range(30)])
    assert few.low is None and "fewer than 5 clusters" in few.method


def test_rare_outcomes_in_few_clusters_leave_the_rate_open() -> None:
    clusters = [i // 30 for i in range(300)]
    none, one, all_of_one = (st.rate_interval([i < hits for i in range(300)], clusters) for hits in (0, 1, 30))
    assert none.high == pytest.approx(1 - 0.025 ** (1 / 10)) and one.high is not None and one.high > (none.high or 0)
    assert all_of_one.high == pytest.approx(beta.ppf(0.975, 2, 9)), "ten clusters, one of which is right"
    rng, missed = np.random.default_rng(0), 0
    for _ in range(150):
        common = rng.normal(size=16).repeat(30)
        right = math.sqrt(0.8) * common + math.sqrt(0.2) * rng.normal(size=480) < norm.ppf(0.05)
        missed += 0.05 not in st.rate_interval(right.tolist(), [i // 30 for i in range(480)])
    assert missed < 16, "24 if the skewness of clusters is left out"


@pytest.mark.parametrize("hits", range(1, 8))
def test_where_labels_cross_and_one_kind_decides_cases_are_worth_no_more_than_its_labels(hits: int) -> None:
    found = st.rate_interval(
        [template < hits for template in range(8) for _ in range(24)],
        [frozenset([("template", t), ("entity", e)]) for t in range(8) for e in range(24)],
    )
    eight = st.clopper_pearson(hits, 8)
    assert eight.low is not None and eight.high is not None
    assert found.method == "korn-graubard, crossed"
    assert eight.low in found and eight.high in found, "eight templates, each all right or all wrong"


@given(
    hs.lists(hs.tuples(hs.booleans(), hs.booleans(), hs.integers(0, 4)), min_size=1, max_size=25),
    hs.integers(0, 3),
    hs.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_paired_difference_brackets_sensible_values_for_any_outcomes(
    rows: list[tuple[bool, bool, int]], seed: int, clustered: bool
) -> None:
    a, b, clusters = map(list, zip(*rows, strict=True))
    interval = st.paired_difference(a, b, seed=seed, clusters=clusters if clustered else None, n_resamples=100)
    for end in (interval.low, interval.high):
        assert end is None or (math.isfinite(end) and -1.0000001 <= end <= 1.0000001)
    if interval.low is not None and interval.high is not None:
        assert interval.low <= interval.high
    assert interval == st.paired_difference(
        a, b, seed=seed, clusters=clusters if clustered else None, n_resamples=100
    ), "the same seed gives the same interval"


@pytest.mark.parametrize(("n", "first", "second"), [(6, 0.15, 0.1), (10, 0.1, 0.05), (20, 0.05, 0.02), (40, 0.1, 0.0)])
def test_paired_differences_of_few_cases_that_differ_are_covered(n: int, first: float, second: float) -> None:
    covered = 0.0
    for a_only, b_only in ((a, b) for a in range(n + 1) for b in range(n + 1 - a)):
        chance = multinomial.pmf([a_only, b_only, n - a_only - b_only], n, [first, second, 1 - first - second])
        if chance > 1e-7:
            a, b = [True] * a_only + [False] * (n - a_only), [False] * (n - b_only) + [True] * b_only
            covered += chance * (first - second in st.paired_difference(a, b, seed=0))
    assert covered > 0.945, "draws of the cases alone covered 80 to 92 %"


@pytest.mark.parametrize(("a_only", "b_only", "n"), [(5, 1, 20), (2, 9, 44)])
def test_at_the_ends_of_the_score_interval_a_difference_is_just_not_rejected(a_only: int, b_only: int, n: int) -> None:
    seen = (a_only, b_only, n - a_only - b_only)
    for d, z in zip(st._of_scores(a_only, b_only, n), (norm.ppf(0.975), norm.ppf(0.025)), strict=True):
        share: Any = minimize_scalar(  # the likeliest share of b_only if the difference is d
            lambda q, d=d: -float(np.dot(seen, np.log([q + d, q, 1 - 2 * q - d]))),
            bounds=(max(0.0, -d) + 1e-9, (1 - d) / 2 - 1e-9), method="bounded", options={"xatol": 1e-10},
        )  # fmt: skip
        assert (a_only - b_only - n * d) / np.sqrt(n * (2 * share.x + d * (1 - d))) == pytest.approx(z, abs=1e-4)


def test_paired_difference_without_discordant_pairs_does_not_claim_certainty() -> None:
    interval = st.paired_difference([True] * 20, [True] * 20, seed=0)
    upper = 1 - 0.025 ** (1 / 20)
    assert interval.low == pytest.approx(-upper) and interval.high == pytest.approx(upper)
    one_sided = st.paired_difference([False] * 20, [True] * 20, seed=0)
    assert one_sided.low == pytest.approx(-1.0) and one_sided.high == pytest.approx(-1 + 2 * upper)


def test_pairs_without_discordance_count_as_many_as_there_are_clusters() -> None:
    right = [True] * 60
    alone = st.paired_difference(right, right, seed=0)
    shared = st.paired_difference(right, right, seed=0, clusters=[i // 10 for i in range(60)])
    assert (alone.high, shared.high) == pytest.approx((1 - 0.025 ** (1 / 60), 1 - 0.025 ** (1 / 6)))


def test_bootstrap_of_a_mean_agrees_with_the_normal_approximation() -> None:
    rng = np.random.default_rng(3)
    x = rng.random(400)
    interval = st.bootstrap(
        np.column_stack([x, np.ones(400)]), lambda s: s[..., 0] / s[..., 1], seed=0, n_resamples=4000
    )
    half = 1.96 * x.std(ddof=1) / 20
    assert interval.low == pytest.approx(x.mean() - half, abs=0.004)
    assert interval.high == pytest.approx(x.mean() + half, abs=0.004)


def _one(seed: int) -> list[object]:
    x = np.random.default_rng(2).random(25)
    a, b = (x < 0.6).tolist(), (x > 0.35).tolist()
    rows = [Graded(f"c{i}", r, "correct" if v else "incorrect")
            for i, (p, q) in enumerate(zip(a, b, strict=True))
            for r, v in (("part:0", p), ("part:1", True), ("whole", q))]  # fmt: skip
    gap = find(get("compositionality-gap", seed=seed).reduce(rows).metrics, "gap")
    assert gap is not None
    columns = np.column_stack([x, np.ones(25)])
    return [st.paired_difference(a, b, seed=seed, n_resamples=99), (gap.low, gap.high),
            st.bootstrap(columns, lambda s: s[..., 0] / s[..., 1], seed=seed, n_resamples=99)]  # fmt: skip


def test_the_seed_decides_which_resamples_are_drawn() -> None:
    assert _one(3) == _one(3)
    assert all(a != b for a, b in zip(_one(3)[::2], _one(4)[::2], strict=True))
    assert len({_one(seed)[1] for seed in range(12)}) > 1  # few values are possible: ends are shares of 25 cases


def test_resamples_without_a_value_are_said() -> None:
    columns = np.array([[1, 1], [0, 1], *[[0, 0]] * 6])  # a resample of 8 has neither of the two with chance 0.1
    found = st.bootstrap(columns, lambda s: s[..., 0] / s[..., 1], seed=0)
    assert found.method == "bootstrap (10% of resamples undefined)" and (found.low, found.high) == (0, 1)


def test_bootstrap_gives_the_percentile_interval_of_scipy() -> None:
    from scipy import stats

    rng = np.random.default_rng(5)
    x = (rng.random(60) < 0.3).astype(float)
    theirs = stats.bootstrap((x,), np.mean, method="percentile", n_resamples=20000, rng=1).confidence_interval
    ours = st.bootstrap(np.column_stack([x, np.ones(60)]), lambda s: s[..., 0] / s[..., 1], seed=2, n_resamples=20000)
    assert ours.low == pytest.approx(theirs.low, abs=1 / 60) and ours.high == pytest.approx(theirs.high, abs=1 / 60)


def test_the_bootstrap_of_few_cases_is_as_wide_as_students_interval() -> None:
    x = np.arange(10.0)
    found = st.bootstrap(np.column_stack([x, np.ones(10)]), lambda s: s[..., 0] / s[..., 1], seed=0, n_resamples=20000)
    assert found.low is not None and found.high is not None
    from scipy import stats

    student = 2 * stats.t.ppf(0.975, 9) * x.std(ddof=1) / np.sqrt(10)
    assert found.high - found.low == pytest.approx(student, rel=0.1)


def test_the_skewness_of_a_mean_follows_from_that_of_its_values() -> None:
    from scipy import stats

    x = np.asarray([1, 2, 2, 9, 30.0])
    found = st._skewness(np.column_stack([x, np.ones(5)]), lambda s: s[..., 0] / s[..., 1])
    assert found == pytest.approx(stats.skew(x) * 5**0.5 / (5 - 2))
    assert st._skewness(np.ones((5, 2)), lambda s: s[..., 0] / s[..., 1]) == 0


def test_percentiles_of_skewed_values_are_further_out() -> None:
    def width(x: list[int], skewed: bool) -> float:
        columns = np.column_stack([x, np.ones(len(x))])
        found = st.bootstrap(columns, lambda s: s[..., 0] / s[..., 1], seed=0, skewed=skewed)
        assert found.low is not None and found.high is not None
        return found.high - found.low

    even, long_tail = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5], [1, 1, 1, 1, 1, 1, 1, 1, 2, 5]
    assert width(even, True) == width(even, False) and width(long_tail, True) > 1.2 * width(long_tail, False)


def test_over_clusters_the_interval_of_a_ratio_is_made_on_its_logarithm() -> None:
    rng, clusters = np.random.default_rng(1), [i // 6 for i in range(60)]
    columns = np.column_stack([rng.random(60) < 0.3, rng.random(60) < 0.2]).astype(float)
    a, b = columns.mean(0)
    found = st.bootstrap(columns, lambda s: s[..., 0] / s[..., 1] - 1, seed=0, clusters=clusters, least=-1)
    log_ratio = dependence.mean(columns[:, 0] / a - columns[:, 1] / b, clusters)
    ends = log_ratio._replace(value=np.log(a / b)).interval(0.95)
    assert (found.low, found.high) == pytest.approx(np.exp(ends) - 1, rel=1e-3) and found.method.endswith("(log)")
    columns[:, 0] = 0
    none = st.bootstrap(columns, lambda s: s[..., 0] / s[..., 1] - 1, seed=0, clusters=clusters, least=-1)
    assert none.low is None and none.high is None, "its logarithm is infinite"


def test_over_clusters_the_interval_of_a_mean_is_that_of_the_clustered_mean() -> None:
    x, clusters = [float(i % 10 < 2 + i // 10) for i in range(80)], [i // 10 for i in range(80)]
    columns = np.column_stack([x, np.ones(80)])
    found = st.bootstrap(columns, lambda s: s[..., 0] / s[..., 1], seed=0, clusters=clusters)
    assert (found.low, found.high) == pytest.approx(dependence.mean(x, clusters).interval(0.95))


def test_mcnemar_counts_discordant_pairs_and_gives_the_binomial_p() -> None:
    a = [True] * 8 + [False] * 1 + [True] * 5
    b = [False] * 8 + [True] * 1 + [True] * 5
    result = st.mcnemar(a, b)
    assert (result.a_only, result.b_only) == (8, 1)
    assert result.p == pytest.approx(2 * (1 + 9) / 2**9)
    assert st.mcnemar([True], [True]).p == 1.0 and result.test == "exact McNemar"


def test_pairs_that_share_facts_are_no_more_significant_than_their_clusters() -> None:
    a = [True] * 40 + [False] * 10 + [True] * 30
    b = [False] * 40 + [True] * 10 + [True] * 30
    facts = [i // 10 for i in range(80)]  # four facts are lost, one is won, three stay
    alone, shared = st.mcnemar(a, b), st.mcnemar(a, b, facts)
    assert shared.p is not None and alone.p is not None and alone.p < 1e-4 < 0.1 < shared.p
    difference = [int(x) - int(y) for x, y in zip(a, b, strict=True)]
    assert shared.p == pytest.approx(dependence.mean(difference, facts).p) and shared.test == st.SHARED_PAIRS
    assert (shared.a_only, shared.b_only) == (40, 10)
    assert st.mcnemar(a, b, list(range(80))) == alone, "labels that nothing shares"


def test_the_paired_test_of_few_clusters_or_of_none_that_differ() -> None:
    few = st.mcnemar([True] * 40, [False] * 40, [i // 10 for i in range(40)])
    assert few.p is None and "fewer than 5" in few.test
    six = [i // 10 for i in range(60)]
    assert st.mcnemar([True] * 60, [False] * 60, six).p == pytest.approx(2 / 2**6)
    assert st.mcnemar([True] * 60, [True] * 60, six).p == 1.0


def test_a_difference_in_few_cases_is_no_more_significant_over_clusters_than_by_mcnemar() -> None:
    a = [i % 6 == 0 for i in range(60)]
    found = st.mcnemar(a, [False] * 60, [i // 6 for i in range(60)])
    assert found.p == st.mcnemar(a, [False] * 60).p


def test_holm_multiplies_by_the_number_of_tests_left_and_skips_missing_ones() -> None:
    assert st.holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert st.holm([None]) == [None]


def test_d50_interpolates_the_published_interval_family() -> None:
    result = st.d50([4, 6, 8], [164, 228, 320], [400, 400, 400])
    assert result.value == pytest.approx(5.125)
    assert result.low is not None and result.high is not None and result.low < 5.125 < result.high


def test_d50_is_censored_at_both_ends_and_undefined_where_a_rate_is() -> None:
    assert st.d50([2, 4], [9, 9], [10, 10]).censored == "<2"
    assert st.d50([2, 4, 8], [0, 1, 5], [10, 10, 10]).censored == ">8"
    undefined = st.d50([2, 4, 6], [0, 0, 9], [10, 0, 10])
    assert undefined.value is None and undefined.censored is None and "depth 4" in (undefined.note or "")
    assert st.d50([2, 4, 6], [0, 0, 0], [10, 10, 0]).censored == ">4"
    assert st.d50([2], [0], [0]).note == "undefined: no rate at any depth"


def test_the_band_of_d50_is_where_the_given_limits_cross_one_half() -> None:
    limits = [st.Interval(0.6, 0.8, "x"), st.Interval(0.0, 0.25, "x"), st.Interval(0.2, 0.75, "x")]
    found = st.d50([6, 2, 4], [7, 1, 4], [10, 10, 10], limits)
    assert (found.low, found.high) == (3.0, 5.5) and found.value == st.d50([6, 2, 4], [7, 1, 4], [10, 10, 10]).value
    few = st.Interval(None, None, "few clusters")
    partly = st.d50([2, 4, 6], [1, 4, 7], [10, 10, 10], [limits[1], few, few])
    assert (partly.low, partly.high, partly.high_censored) == (2 + 0.25 / 0.75 * 2, None, ">6"), "any rate may be there"
    for none in (st.d50([2, 4], [1, 7], [10, 10], [few, few]), st.d50([2, 4, 6], [1, 7, 0], [10, 10, 0], [few] * 3)):
        assert none.value is not None and (none.low_censored, none.high_censored) == (None, None)


def test_d50_takes_the_first_crossing_of_a_curve_that_is_not_monotone() -> None:
    assert st.d50([2, 4, 6, 8], [0, 8, 2, 9], [10] * 4).value == pytest.approx(2 + 0.5 / 0.8 * 2)
    late = st.d50([2, 4, 6, 8], [0, 1, 2, 7], [10] * 4)
    assert late.value == pytest.approx(6 + 0.3 / 0.5 * 2), "from the last depth below one half"


def test_truncation_cuts_where_rounding_would_go_up() -> None:
    assert truncated(100 * 46 / 65) == 70.76
    assert truncated(100 * 15 / 65) == 23.07
    assert truncated(100 * 29 / 100) == 29.0


@given(hs.lists(hs.integers(0, 9), max_size=4), hs.lists(hs.integers(0, 9), max_size=5))
def test_an_extreme_mean_is_that_of_the_best_choice_among_some_values(fixed: list[int], optional: list[int]) -> None:
    chosen = [[v for i, v in enumerate(optional) if (n >> i) & 1] for n in range(2 ** len(optional))]
    means = [sum(x) / len(x) for some in chosen if (x := [*fixed, *some])]
    for end in (min, max):
        assert extreme_mean(fixed, optional, end) == (pytest.approx(end(means)) if means else None)


def test_pairs_of_different_lengths_are_refused_and_what_does_not_vary_over_clusters_has_no_interval() -> None:
    for test in (lambda a, b: st.paired_difference(a, b, seed=0), st.mcnemar):
        with pytest.raises(ValueError, match="2 and 3"):
            test([True, False], [True, False, True])
    labels = [i // 2 for i in range(12)]
    same = st.bootstrap(np.ones((12, 2)), lambda s: s[..., 0] / s[..., 1], seed=0, clusters=labels)
    assert (same.low, same.high, same.method) == (None, None, dependence.CLUSTERED)
    for table, why in ((np.zeros((12, 2)), st.OTHER_CASES), (np.ones((4, 2)), dependence.FEW)):
        found = st.of_others(table, lambda s: s[..., 0] / s[..., 1], [(0, 1)], labels[: len(table)])
        assert found == st.Interval(None, None, why)
