"""What contrasts and known-answer tests say where nothing varies, everything ties, or one cluster is all there is."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

from composcope.errors import InputError
from composcope.evaluation import statistics
from composcope.probes import contrast, effects, validity
from composcope.probes.result import ProbeResult, Row


def _last(result: ProbeResult) -> Row:
    return dict(result.table[-1])


def test_groups_that_differ_without_any_spread_get_the_p_of_their_labels_and_no_interval() -> None:
    equal = _last(contrast.between({"a": [1.0] * 5, "b": [2.0] * 5}))
    assert equal["p"] == pytest.approx(2 / math.comb(10, 5))
    assert math.isnan(equal["low"]) and equal["interval"] == effects.NO_SPREAD
    assert _last(contrast.between({"a": [1.0] * 2, "b": [2.0] * 5}))["p"] == pytest.approx(1 / math.comb(7, 2))


def test_a_difference_that_is_rounding_is_none() -> None:
    row = _last(contrast.between({"a": [0.1 + 0.2] * 4, "b": [0.3] * 4}))
    assert (row["p"], row["effect"]) == (1.0, 0.0)
    a = np.array([0.3, 0.7, 1.1, 2.3])
    shifted = _last(contrast.paired({"a": (a + 0.1).tolist(), "b": a.tolist()}))
    assert shifted["p"] == 2.0**-3 and shifted["value"] == pytest.approx(0.1)
    assert _last(contrast.paired({"a": (a * 3 / 3).tolist(), "b": a.tolist()}))["p"] == 1.0


def test_one_cluster_in_a_group_gives_no_p() -> None:
    values = {"a": [1.0, 1.1, 1.2, 1.0], "b": [2.0, 2.0, 2.1, 2.0]}
    row = _last(contrast.between(values, clusters={"a": list("xxxx"), "b": list("zzzz")}))
    assert math.isnan(row["p"]) and "one cluster" in row["test"] and math.isnan(row["low"])
    apart = {"a": [1.0] * 4, "b": [2.0] * 4}
    row = _last(contrast.between(apart, clusters={"a": list("xxyy"), "b": list("zzww")}))
    assert row["p"] == pytest.approx(2 / math.comb(4, 2))
    same = _last(contrast.paired({"a": [1, 2, 3, 4], "b": [0, 1, 2, 3]}, clusters=list("xxyy")))
    assert same["p"] == 0.5


def test_sequences_of_different_length_are_not_aligned() -> None:
    with pytest.raises(InputError, match=r"\[2, 3\] values"):
        contrast.paired({"a": [1, 2, 3], "b": [1, 2]})


def test_welch_is_the_librarys_without_its_warnings() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=7), rng.normal(0.5, 3, size=4)
    theirs: Any = stats.ttest_ind(x, y, equal_var=False)
    assert effects.welch_p(x, y) == pytest.approx(theirs.pvalue)
    bounds, ours = theirs.confidence_interval(0.9), effects.difference_interval(x, y, level=0.9)
    assert (ours.low, ours.high) == pytest.approx((bounds.low, bounds.high))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        contrast.between({"a": [1.0, 1.0, 1.0], "b": [1.0, 2.0, 3.0]})
        validity.planted_recovery([1.0, 2.0], n=2, trials=30)


def test_clusters_whose_means_never_differ_have_no_test_and_no_smallest_effect() -> None:
    values, near = [1.0, 3.0] * 6, [f"c{i // 2}" for i in range(12)]
    for error in (0.0, float("nan"), float("inf")):
        assert effects.smallest_detectable(12, 12, error=error, freedom=5.0) == float("inf")
    groups, clusters = {"a": values, "b": values}, {"a": near, "b": [f"d{c}" for c in near]}
    row = contrast.between(groups, clusters=clusters).table[-1]
    assert math.isnan(row["p"]) and row["smallest_detectable"] == float("inf")


def test_scores_that_all_tie_say_nothing_however_many_they_are() -> None:
    row = _last(validity.failure_auroc([1.0] * 20, [1.0] * 20))
    assert row["value"] == 0.5 and math.isnan(row["low"])
    row = _last(validity.dose_series({"a": [1.0] * 20, "b": [1.0] * 20}))
    assert row["value"] == 0 and math.isnan(row["low"])


def test_labels_are_shuffled_over_clusters_where_there_are_any() -> None:
    clusters = (list("aabbccddee"), list("ffgghhiijj"))
    low, high = list(range(1, 11)), list(range(11, 21))
    # Two of the 252 ways to label ten clusters are as far apart.
    assert validity.shuffled_p(low, high, clusters=clusters) == pytest.approx(2 / math.comb(10, 5), abs=0.006)
    assert validity.shuffled_p(low[:4], high[:4]) == pytest.approx(2 / math.comb(8, 4), abs=0.02)
    assert math.isnan(validity.shuffled_p(low, high, clusters=(clusters[0], list("eegghhiijj"))))
    row = _last(validity.failure_auroc(high, low, clusters=clusters))
    assert row["low"] == pytest.approx(0.025**0.2) and row["p"] < 0.02


def test_four_clusters_on_a_side_have_no_interval_and_no_p() -> None:
    clusters = (list("aabbccdd"), list("eeffgghhii"))
    row = _last(validity.failure_auroc(range(10, 18), range(10), clusters=clusters))
    assert row["value"] == 1 and math.isnan(row["low"]) and math.isnan(row["high"]) and math.isnan(row["p"])
    same = statistics.paired_difference([True] * 8, [True] * 8, seed=0, clusters=clusters[0])
    assert same.low is None and same.high is None


def test_cells_that_differ_without_any_spread_are_found() -> None:
    ones, zeros = np.ones((12, 2)), np.zeros((12, 2))
    for paired in (False, True):
        found = contrast.map_test(ones, zeros, paired=paired, permutations=200)
        assert found.p.tolist() == [pytest.approx(1 / 201)] * 2 and np.isfinite(found.threshold)
        below = contrast.map_test(zeros, ones, paired=paired, permutations=50)
        assert (below.statistic < 0).all() and (found.statistic > 0).all()
        assert contrast.map_test(ones, ones, paired=paired, permutations=50).p.tolist() == [1.0, 1.0]


def test_effects_that_cannot_be_planted_are_refused() -> None:
    for scores, effects_, trials, text in (
        ([1.0, 1.0, 1.0], (0.5,), 5, "all 3 scores are equal"),
        ([1.0, 2.0], (), 5, "0 effects"),
        ([1.0, 2.0], (0.5,), 0, "trials=0"),
    ):
        with pytest.raises(InputError, match=text):
            validity.planted_recovery(scores, n=5, effects=effects_, trials=trials)
    below = validity.planted_recovery(np.random.default_rng(0).normal(size=50), n=20, trials=50, effects=(-2, -0.5, 0))
    assert [r["effect"] for r in below.table[:3]] == [0, -0.5, -2] and -2 < below.table[-1]["value"] < -0.5


@pytest.mark.parametrize("scale", [1e-9, 1e-13, 1e-100, 1e-200, 1e100])
def test_the_size_of_the_numbers_does_not_matter(scale: float) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(1.5, size=(8, 3)), rng.normal(size=(8, 3))
    for paired in (False, True):
        small, plain = (contrast.map_test(a * s, b * s, paired=paired, permutations=200) for s in (scale, 1.0))
        assert np.array_equal(small.p, plain.p) and np.allclose(small.statistic, plain.statistic)
    columns = ("p", "effect", "effect_low", "cliffs_delta")
    for make in (contrast.between, contrast.paired):
        small, plain = (_last(make({"a": a[:, 0] * s, "b": b[:, 0] * s})) for s in (scale, 1.0))  # type: ignore[arg-type]
        assert all(small[c] == pytest.approx(plain[c]) for c in columns if c in plain)
        assert small["low"] == pytest.approx(plain["low"] * scale, rel=1e-6)


def test_planted_effects_and_their_cases_are_numbers() -> None:
    scores = [1.0, 2.0, 4.0, 3.0]
    for n, effects_ in ((2.5, (0.0,)), (3, (math.nan,))):
        with pytest.raises(InputError, match="whole number of cases"):
            validity.planted_recovery(scores, n=n, effects=effects_, trials=3)  # type: ignore[arg-type]
