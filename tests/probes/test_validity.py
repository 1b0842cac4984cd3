"""Known answers: AUROCs, shuffled labels, doses, models told apart, planted effects, each computed in another way."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from composcope.errors import InputError, NoCasesError
from composcope.probes import validity
from composcope.probes.verdicts import CIRCULAR, EXPLORATORY, MATCHED, PRIMARY, PRIMARY_FAMILY, corrected, rank


@pytest.mark.parametrize(
    ("x", "y"),
    [("123456", "123456"), ("11123", "12345"), ("11123", "11122"), ("11222", "33341"), ("12", "34"), ("1122", "1111")],
)
def test_the_error_of_concordant_pairs_is_that_of_all_orders(x: str, y: str) -> None:
    first, second = (np.array([float(c) for c in some]) for some in (x, y))
    orders = [np.array(order) for order in itertools.permutations(second)]
    pairs = list(itertools.combinations(range(len(x)), 2))
    sums = [sum(np.sign(first[i] - first[j]) * np.sign(order[i] - order[j]) for i, j in pairs) for order in orders]
    assert validity._null_error(first, second) == pytest.approx(np.std(sums))


def test_aurocs_count_ties_half_and_have_delongs_interval_with_welchs_t() -> None:
    x, y = np.array([3.0, 1, 4, 2, 2]), np.array([2.0, 0, 1, 2.5])
    wins = [[(a > b) + 0.5 * (a == b) for b in y] for a in x]
    value = float(np.mean(wins))
    found = validity.auroc(x, y, level=0.9)
    v = np.array(wins)
    a, b = v.mean(1).var(ddof=1) / 5, v.mean(0).var(ddof=1) / 4
    quantile = stats.t.ppf(0.95, (a + b) ** 2 / (a**2 / 4 + b**2 / 3))  # Welch's degrees of freedom
    logit, half = math.log(value / (1 - value)), quantile * math.sqrt(a + b) / (value * (1 - value))
    assert found[:3] == pytest.approx((value, 1 / (1 + math.exp(-(logit - half))), 1 / (1 + math.exp(-(logit + half)))))
    for above, below, want in (
        ([2.0, 3], [0.0, 1, 1], (1.0, 0.025**0.5, 1.0)),
        ([0.0, 1], [2.0, 3, 4], (0.0, 0.0, 1 - 0.025**0.5)),
    ):
        assert validity.auroc(above, below)[:3] == pytest.approx(want)
    clustered = validity.auroc([2.0, 3, 4, 5, 6, 7], [0.0, 1, 1, 0, 1, 1, 1], (list("aabcde"), list("fffghij")))
    assert clustered[:2] == pytest.approx((1.0, 0.025 ** (1 / 5)))
    one = validity.auroc([1.5], [1.0, 2.0])
    assert one.value == 0.5 and math.isnan(one.low)
    for above, below in (([], [1.0]), ([1.0], [])):
        with pytest.raises(NoCasesError, match="AUROC"):
            validity.auroc(above, below)


def test_a_shuffled_p_is_the_share_of_labelings_as_far_from_the_middle() -> None:
    x, y = np.array([5.0, 6, 9]), np.array([1.0, 2, 6.5])
    pooled = np.concatenate([x, y])
    gap: Callable[[Any, Any], float] = lambda a, b: float(np.mean(a) - np.mean(b))  # noqa: E731
    null = [gap(pooled[list(c)], np.delete(pooled, list(c))) for c in itertools.combinations(range(6), 3)]
    exact = 2 * min(np.mean(np.array(null) >= gap(x, y) - 1e-9), np.mean(np.array(null) <= gap(x, y) + 1e-9))
    assert validity.shuffled_p(x, y, gap, permutations=4000) == pytest.approx(exact, abs=0.03)
    names = [*"ab"]
    for half in ((None, (names * len(y))[: len(y)]), ((names * len(x))[: len(x)], None)):
        assert validity.shuffled_p(x, y, permutations=99, clusters=half) == validity.shuffled_p(x, y, permutations=99)
    assert validity.shuffled_p(x, y, permutations=9, clusters=(list("abc"), list("dea"))) != validity.shuffled_p(
        x, y, permutations=9
    )
    far, near = (np.arange(10.0), list("aabbccddee")), (np.arange(10.0, 20.0), list("ffgghhiijj"))
    whole = validity.shuffled_p(far[0], near[0], gap, permutations=2000, clusters=(far[1], near[1]))
    assert whole == pytest.approx(2 / math.comb(10, 5), abs=0.01), "whole clusters change places"
    for p, n in ((0, 1), (9, 0)):
        with pytest.raises(InputError, match="give at least one"):
            validity.shuffled_p(x[: 3 * n], y, permutations=p)


def test_doses_are_monotone_only_where_every_mean_is_beyond_the_one_before() -> None:
    def last(expected: str = "increasing", **doses: list[float]) -> Any:
        return validity.dose_series(doses, expected=expected).table[-1]

    up = last(a=[1.0, 2], b=[2.0, 3], c=[4.0, 5])
    assert up["monotone"] and up["group"] == "a < b < c" and up["n"] == 6
    order = [0, 0, 1, 1, 2, 2]
    assert up["value"] == pytest.approx(stats.kendalltau(order, [1, 2, 2, 3, 4, 5])[0])
    uneven = last(a=[1.0, 2, 4, 5], b=[2.0])  # the order given counts, not how many scores there are
    assert uneven["value"] == pytest.approx(stats.kendalltau([0, 0, 0, 0, 1], [1, 2, 4, 5, 2])[0])
    assert not last(a=[1.0, 2], b=[1.0, 2])["monotone"] and last(a=[1.0, 2], b=[1.0, 2])["value"] == 0
    assert (
        last("decreasing", a=[3.0, 2], b=[1.0, 1])["monotone"]
        and not last("decreasing", a=[1.0, 1], b=[3.0, 3])["monotone"]
    )
    level = last(a=[1.0, 1], b=[1.0, 1])
    assert level["value"] == 0 and math.isnan(level["low"])
    with pytest.raises(NoCasesError, match="two doses"):
        validity.dose_series({"a": [1.0]})
    for ask in (lambda **way: validity.dose_series({"a": [1.0], "b": [2.0]}, **way),
                lambda **way: validity.model_auroc([1.0], [2.0], **way)):  # fmt: skip
        with pytest.raises(InputError, match="expected is 'up'"):
            ask(expected="up")


def test_two_models_are_told_apart_in_the_expected_direction() -> None:
    high, low = [3.0, 4, 5], [1.0, 2, 3]
    up = validity.model_auroc(high, low, names=("t", "c")).table[0]
    down = validity.model_auroc(high, low, names=("t", "c"), expected="decreasing").table[0]
    assert (
        (up["group"], down["group"]) == ("t - c", "c - t")
        and up["value"] == pytest.approx(1 - down["value"])
        and "p" not in up
    )
    more, less, near = (
        [2.0, 4, 5, 6, 7, 9, 1, 3, 2, 8, 4, 6],
        [1.0, 2, 3, 2, 5, 1, 2],
        ([*"aabbccddeeff"], [*"ghijklm"]),
    )
    for expected in ("increasing", "decreasing"):
        row = validity.model_auroc(more, less, expected=expected, clusters=near).table[0]
        own = validity.auroc(more, less, near)
        ends = [own.low, own.high] if expected == "increasing" else [1 - own.high, 1 - own.low]
        assert [row["low"], row["high"]] == pytest.approx(ends, abs=1e-9), "each model with its own clusters"
    failing = validity.failure_auroc(high, low, permutations=19).table[0]
    assert (
        failing["group"] == "failure - success"
        and (failing["n_first"], failing["n_second"]) == (3, 3)
        and failing["p"] >= 0.05
    )
    assert validity.membership_auroc(high, low, permutations=19).table[0]["group"] == "member - non-member"


def test_a_planted_effect_is_in_standard_deviations_of_the_scores() -> None:
    x = np.random.default_rng(0).normal(size=40)
    found = [[r["value"] for r in validity.planted_recovery(x * scale, n=12, trials=40).table] for scale in (1, 50)]
    assert found[0] == pytest.approx(found[1])


# --- one declared family a run; everything else is corrected together, and says so ----------------------------------


def row(quantity: str, p: float, group: str = MATCHED, kind: str = "composition", **more: object) -> dict:
    return {"quantity": quantity, "group": group, "kind": kind, "p": p, "note": "", **more}


def test_primary_tests_are_corrected_by_holm_and_all_others_together_by_benjamini_and_hochberg() -> None:
    rows = [row(name, p) for name, p in zip(list(PRIMARY)[:4], (0.01, 0.04, 0.5, 0.02), strict=True)]
    others = [row("lookback_ratio", 0.001, kind="math"), row("mass_sink", 0.03), row("min_k_pp", 0.2, "a - b")]
    undefined = row("mass_sink", math.nan)
    found = corrected([*rows, *others, undefined, {"quantity": "mean", "group": "failure"}])
    assert [r["p_adjusted"] for r in found[:4]] == pytest.approx([0.04, 0.08, 0.5, 0.06])
    assert [r["p_adjusted"] for r in found[4:7]] == pytest.approx(stats.false_discovery_control([0.001, 0.03, 0.2]))
    assert [r["family"] for r in found[:8]] == [PRIMARY_FAMILY] * 4 + [EXPLORATORY] * 4
    assert math.isnan(found[7]["p_adjusted"]) and "family" not in found[8]
    assert corrected(found)[:7] == found[:7]


def test_the_probability_of_the_answer_against_its_correctness_is_said_to_be_near_circular() -> None:
    found = corrected(
        [row(q, 0.01, g) for q in (*CIRCULAR, "min_k") for g in (MATCHED, "failure - success", "failure")]
    )
    said = [(r["quantity"], r["group"]) for r in found if "near-circular" in r["note"]]
    assert said == [(q, g) for q in CIRCULAR for g in (MATCHED, "failure - success")]
    assert corrected(found)[0]["note"] == found[0]["note"]


def test_contrasts_are_shown_matched_first_by_size_and_those_of_few_cases_last() -> None:
    rows = {
        "tiny": row("q", 0.1, "a - b", effect=-9100.0, n=6, n_first=3, n_second=3),
        "undefined": row("q", math.nan, effect=math.nan, n=30),
        "circular": row("answer_probability", 0.1, effect=5.0, n=30, note=next(iter(CIRCULAR.values()))),
        "loose": row("q", 0.1, "a - b", effect=3.0, n=60, n_first=30, n_second=30),
        "small": row("q", 0.001, effect=-0.2, n=30),
        "large": row("q", 0.9, effect=-0.8, n=30),
    }
    order = sorted(rows, key=lambda name: rank(rows[name]))
    assert order == ["large", "small", "loose", "circular", "tiny", "undefined"]


def test_clusters_of_a_dose_that_is_not_there_are_refused() -> None:
    with pytest.raises(InputError, match=r"no dose 'Low'.*low"):
        validity.dose_series({"low": [1.0, 2, 3], "high": [2.0, 3, 4]}, clusters={"Low": [0, 0, 1]})
