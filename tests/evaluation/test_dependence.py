"""Errors of means of observations that share something: against transcriptions of the formulas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import linalg
from scipy import stats as scipy_stats

from composcope.errors import InputError
from composcope.evaluation import dependence
from composcope.evaluation.dependence import Sides

stats: Any = scipy_stats  # its result types do not declare pvalue and statistic


def naive_cr2(
    y: np.ndarray, x: np.ndarray, group: np.ndarray, column: int, rho: float
) -> tuple[float, float]:  # fmt: skip
    """Standard error and Satterthwaite degrees of freedom, straight from Pustejovsky and Tipton (2018, eq. 3-5, 11)."""
    n, p = x.shape
    bread = np.linalg.inv(x.T @ x)
    hat = x @ bread @ x.T
    e = y - hat @ y
    meat, columns = np.zeros((p, p)), []
    for g in np.unique(group):
        mine = np.flatnonzero(group == g)
        adjust = np.real(linalg.fractional_matrix_power(np.eye(len(mine)) - hat[np.ix_(mine, mine)], -0.5))
        score = x[mine].T @ adjust @ e[mine]
        meat += np.outer(score, score)
        columns.append((np.eye(n) - hat)[:, mine] @ adjust @ x[mine] @ bread[:, column])
    c = np.column_stack(columns)
    working = (1 - rho) * np.eye(n) + rho * (group[:, None] == group)
    b = c.T @ working @ c
    return float(np.sqrt((bread @ meat @ bread)[column, column])), float(np.trace(b) ** 2 / (b**2).sum())


def naive_correlation(e: np.ndarray, group: np.ndarray, p: int) -> float:
    products = [e[i] * e[j] for i in range(len(e)) for j in range(len(e)) if i != j and group[i] == group[j]]
    return float(np.clip(np.mean(products) / (e @ e / (len(e) - p)), 0, 1))


@pytest.mark.parametrize("seed", range(6))
def test_clustered_regression_is_cr2_with_satterthwaite_degrees_of_freedom(seed: int) -> None:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 7, 30)
    x = np.column_stack([np.ones(30), rng.normal(size=30), rng.integers(0, 2, 30)])
    y = x @ [1, 2, 0.5] + rng.normal(size=7)[group] + rng.normal(size=30)
    e = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    for column in range(3):
        fit = dependence.regression(y, x, group.tolist(), column)
        error, freedom = naive_cr2(y, x, group, column, naive_correlation(e, group, 3))
        assert fit.error == pytest.approx(error) and fit.freedom == pytest.approx(max(freedom, 1))
        assert fit.clusters == len(set(group.tolist()))


@pytest.mark.parametrize("clusters", [3, 7, 100])
def test_a_clustered_mean_is_cr2_with_satterthwaite_degrees_of_freedom(clusters: int) -> None:
    rng = np.random.default_rng(clusters)
    group = rng.integers(0, clusters, 30)
    y = rng.normal(size=clusters)[group] + rng.normal(size=30)
    fit = dependence.mean(y, group.tolist())
    error, freedom = naive_cr2(y, np.ones((30, 1)), group, 0, naive_correlation(y - y.mean(), group, 1))
    assert fit.error == pytest.approx(error) and fit.freedom == pytest.approx(max(freedom, 1))
    assert fit.clusters == len(set(group.tolist()))


def naive_crossed(y: np.ndarray, kernels: list[np.ndarray]) -> tuple[float, float]:
    """Variance of a mean and its degrees of freedom from n x n matrices, nothing factored, before any bound."""
    n = len(y)
    m, a = np.eye(n) - 1 / n, np.full(n, 1 / n)
    e, all_ = m @ y, [np.eye(n), *kernels]
    c = np.array([[np.trace(m @ j @ m @ k) for k in all_] for j in all_])
    q, h = np.array([e @ k @ e for k in all_]), np.array([a @ k @ a for k in all_])
    s, w = np.linalg.solve(c, q), np.linalg.solve(c, h)
    phi = sum(max(v, 0) * k for v, k in zip(s, all_, strict=True))
    quadratic = m @ sum(v * k for v, k in zip(w, all_, strict=True)) @ m
    product = quadratic @ phi
    return float(w @ q), float((h @ np.maximum(s, 0)) ** 2 / np.trace(product @ product))


@pytest.mark.parametrize("seed", range(6))
def test_crossed_labels_give_the_moments_of_random_effects(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 9, 50), rng.integers(0, 12, 50)
    y = 1.5 * rng.normal(size=9)[a] + 1.5 * rng.normal(size=12)[b] + 0.5 * rng.normal(size=50)
    fit = dependence.mean(y, [Sides(f"a{i}", f"b{j}") for i, j in zip(a, b, strict=True)])
    variance, freedom = naive_crossed(y, [np.equal.outer(v, v).astype(float) for v in (a, b)])
    assert fit.error == pytest.approx(np.sqrt(max(variance, y.var(ddof=1) / 50)))
    assert fit.freedom == pytest.approx(max(freedom, 2)) and fit.clusters == 9 and fit.method == dependence.CROSSED


def test_a_case_of_several_facts_shares_each_by_its_weight() -> None:
    rng = np.random.default_rng(1)
    facts = [sorted(rng.choice(10, size=int(rng.integers(1, 4)), replace=False).tolist()) for _ in range(40)]
    z = np.array([[(f in mine) / np.sqrt(len(mine)) for f in range(10)] for mine in facts])
    y = 2 * z @ rng.normal(size=10) + rng.normal(size=40)
    fit = dependence.mean(y, [frozenset(mine) for mine in facts])
    variance, freedom = naive_crossed(y, [z @ z.T])
    assert fit.error == pytest.approx(np.sqrt(max(variance, y.var(ddof=1) / 40)))
    assert fit.freedom == pytest.approx(max(freedom, 9 / 4))


def test_without_anything_shared_these_are_the_tests_of_students_time() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=9), rng.normal(1, 3, size=14)
    one = dependence.mean(a)
    assert one.p == pytest.approx(stats.ttest_1samp(a, 0).pvalue) and one.freedom == pytest.approx(8)
    assert dependence.mean(a, [None] * 9) == one
    two = dependence.difference(a, b)
    theirs = stats.ttest_ind(a, b, equal_var=False)
    assert two.value / two.error == pytest.approx(theirs.statistic)


def test_labels_that_meet_are_joined_where_enough_groups_remain_and_crossed_elsewhere() -> None:
    chains = [Sides(f"f{i}", f"s{i // 2}") for i in range(40)]
    assert not dependence.crossing(chains) and dependence.count(chains) == 20
    assert dependence.joined(chains).tolist() == [i // 2 for i in range(40)]
    rng = np.random.default_rng(0)
    web = [Sides(f"f{i}", f"s{j}") for i, j in zip(rng.integers(10, size=40), rng.integers(12, size=40), strict=True)]
    assert dependence.crossing(web) and dependence.count(web) == 10
    assert dependence.alone([Sides("a", "b"), Sides("c", None), Sides(None, None)])
    assert not dependence.alone([frozenset("ab"), frozenset("bc")])
    assert not dependence.crossing([frozenset("a"), frozenset("a"), frozenset("b")]), "one label each: nothing crosses"
    assert not dependence.crossing([frozenset("ab"), frozenset("cd")]), "several labels each, and none of them shared"
    assert dependence.crossing([frozenset("ab"), frozenset("bc")])
    # One name is one thing, on whichever side of a pair it stands.
    assert not dependence.alone([Sides("a", "b"), Sides("b", "c")])


def test_what_cancels_in_the_only_pair_that_shares_it_leaves_independent_pairs() -> None:
    """ "mirror" stands on both sides of the last pair, so that nothing of it is left to share with the pair before."""
    sides = [("cart", "ant"), ("buoy", "drone"), ({"mirror", "harp"}, "plate"), ({"mirror", "tea"}, {"mirror", "fan"})]
    labels = [
        dependence.Sides(*(frozenset([names] if isinstance(names, str) else names) for names in pair)) for pair in sides
    ]
    values = [0.1, 0.5, -0.2, 0.9]
    assert dependence.mean(values, labels) == dependence.mean(values)._replace(method=dependence.CROSSED)
    assert not dependence.mean(values, labels).known, "four pairs that are joined claim nothing"


def test_pairs_in_which_all_that_is_shared_cancels_are_worth_as_many_as_there_are() -> None:
    within = [Sides(x, x) for x in "aabbcc"]
    assert dependence.effective(within) == 6
    assert dependence.effective([*within, Sides("a", "b")]) <= 7


@pytest.mark.parametrize("sums", [(0, 0, 0, 0, 0, 1, 2, 9), (0, 0, 0, 0, 0, -1, -2, -9), (0, 1, 2, 3, 6)])
def test_skewed_clusters_leave_fewer_degrees_of_freedom_in_proportion_to_the_squared_skewness(sums: tuple) -> None:
    n, centred = len(sums), np.array(sums) - np.mean(sums)
    fit = dependence.mean(np.repeat(sums, 3), [i // 3 for i in range(3 * n)])
    third = (centred**3).sum() / (centred**2).sum() ** 1.5 * n / (n - 2)
    assert fit.freedom == pytest.approx(n - 1) and fit.skewness == pytest.approx(third)
    assert fit.used == pytest.approx(1 / (1 / (n - 1) + 8 / 9 * third**2))
    assert fit.interval()[1] - fit.value == pytest.approx(stats.t.ppf(0.975, fit.used) * fit.error)
    assert fit.p == pytest.approx(2 * stats.t.sf(abs(fit.value) / fit.error, fit.used))


def test_clusters_skewed_alike_on_both_sides_cancel_and_cases_that_stand_alone_keep_welchs_test() -> None:
    y = np.repeat([0.0, 0, 0, 1, 2, 9], 2)
    names = [i // 2 for i in range(12)], [10 + i // 2 for i in range(12)]
    assert dependence.difference(y, y + 1, names).skewness == pytest.approx(0)
    assert dependence.difference(y, 9 - y, names).skewness == pytest.approx(
        2**-0.5 * dependence.mean(y, names[0]).skewness
    )
    alone = dependence.difference(y, 9 - y)
    assert alone.skewness != 0 and alone.used == alone.freedom
    assert alone.p == pytest.approx(stats.ttest_ind(y, 9 - y, equal_var=False).pvalue)


def test_what_is_kept_apart_shares_nothing_with_anything_kept_before() -> None:
    assert dependence.apart(["a", "b", "a", None, None]) == [0, 1, 3, 4]
    assert dependence.apart([frozenset("ab"), frozenset("cd"), frozenset("ae"), frozenset("ef")]) == [0, 1, 3]
    assert dependence.apart([Sides("a", "b"), Sides("c", "d"), Sides("b", "x"), Sides("x", "y")]) == [0, 1, 3]


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), pd.NA])
def test_a_label_that_is_missing_in_a_column_shares_nothing(missing: Any) -> None:
    assert dependence.joined(["a", "a", missing, missing]).tolist() == [0, 0, 1, 2]
    several = [frozenset(["a", "b"]), frozenset(["a", missing]), missing, frozenset([missing])]
    assert dependence.joined(several).tolist() == [0, 0, 1, 2]
    assert dependence.alone(pd.Series(["a", None, None]).tolist())


def test_fewer_than_five_clusters_claim_nothing() -> None:
    y = np.random.default_rng(0).normal(size=40)
    for k, known in ((4, False), (5, True)):
        fit = dependence.mean(y, [i % k for i in range(40)])
        assert np.isfinite([fit.p, *fit.interval()]).all() == known
    few = dependence.difference(y[:10], y[10:], ([0, 1, 2, 3] * 2 + [0, 1], list(range(100, 130))))
    assert few.clusters == 4 and np.isnan(few.p)
    few = dependence.difference(y[:10], y[10:], ([0, 1, 2, 3] * 2 + [0, 1], [0, *range(100, 129)]))
    assert few.clusters == 4 and np.isnan(few.p), "also where one of them reaches into the other side"


def test_the_side_with_fewer_clusters_counts_and_a_cluster_may_reach_into_both_groups() -> None:
    rng = np.random.default_rng(2)
    names = [i // 4 for i in range(48)]
    shift = np.repeat(rng.normal(size=12), 4) * 3
    y = shift + rng.normal(size=48)
    inside = np.arange(48) % 2 == 0
    first, second = ([n for n, i in zip(names, inside, strict=True) if i == side] for side in (True, False))
    fit = dependence.difference(y[inside], y[~inside], (first, second))
    apart = dependence.difference(y[inside], y[~inside])
    assert fit.clusters == 12 and fit.error < 0.5 * apart.error  # what the clusters have in common cancels


def test_a_side_of_a_difference_of_rates_varies_at_least_as_independent_cases_at_both_sides_spread() -> None:
    few = np.array([1.0, 0, 1, 0, 0, 1, 0, 1, 1, 0])  # every cluster has one of each, so they seem not to differ
    many = np.tile([1.0, 1, 1, 0, 0, 0], 10)
    labels = [i // 2 for i in range(10)], [100 + i // 3 for i in range(60)]
    found = dependence.difference(few, many, labels)
    squares = ((few - few.mean()) ** 2).sum() + ((many - many.mean()) ** 2).sum()
    least = squares / 68 / 10
    assert dependence.mean(few, labels[0]).error == pytest.approx(0, abs=1e-12)
    clustered = dependence.mean(many, labels[1]).error
    assert clustered**2 > squares / 68 / 60, "the other side keeps its own"
    assert found.error**2 == pytest.approx(least + clustered**2)
    three = few.copy()
    three[0] = 0.5  # no rate: as it was
    plain = dependence.difference(three, many, labels)
    assert plain.error**2 == pytest.approx(dependence.mean(three, labels[0]).error ** 2 + clustered**2)
    alone = dependence.difference(few, many)
    assert alone.error**2 == pytest.approx(few.var(ddof=1) / 10 + max(many.var(ddof=1), squares / 68) / 60)


@pytest.mark.parametrize(("n", "rate"), [(5, 0.1), (8, 0.1), (20, 0.05), (2, 0.5)])
def test_a_few_yes_or_no_values_that_are_all_alike_do_not_make_a_difference_certain(n: int, rate: float) -> None:
    r = np.random.default_rng(0)
    draws = [(r.random(n) < rate, r.random(40) < rate) for _ in range(300)]
    found = [dependence.difference(a, b).p for a, b in draws if len({*a, *b}) == 2]
    assert np.mean(np.array(found) <= 0.05) <= 0.05, "12 to 52 % by the cases' own spread"


def test_a_few_cases_against_many_have_the_degrees_of_freedom_of_the_few() -> None:
    r = np.random.default_rng(0)
    for n, m, most in ((2, 40, 1), (3, 6, 2), (4, 40, 3)):
        fits = [dependence.difference(r.normal(size=n), r.normal(size=m)) for _ in range(200)]
        assert max(fit.freedom for fit in fits) <= most and np.mean([fit.p <= 0.05 for fit in fits]) <= 0.06
    assert dependence.difference(r.normal(size=3), r.normal(size=3)).freedom > 2, "groups alike in size stay Welch's"


def test_one_observation_tells_nothing_of_its_error() -> None:
    for fit in (dependence.mean([5.0]), dependence.difference([5.0], [1.0, 2.0, 3.0, 4.0])):
        assert not fit.known and np.isnan(fit.p) and np.isnan(fit.interval()).all()
    assert dependence.difference([5.0], [1.0, 2.0, 3.0, 4.0]).value == 2.5
    assert dependence.difference([5.0, 6.0], [1.0, 2.0]).known


@pytest.mark.parametrize("n", [0, 4, 6])
def test_labels_of_another_number_than_the_values_are_refused(n: int) -> None:
    with pytest.raises(InputError, match=f"{n} labels for 5 values"):
        dependence.mean([1, 2, 3, 4, 5], list(range(n)))


def test_a_mean_over_many_clusters_needs_no_table_of_cases_by_clusters() -> None:
    labels = [i % 20_000 for i in range(40_000)]
    fit = dependence.mean(np.arange(40_000) % 7 < 2, labels)
    assert fit.clusters == 20_000 and fit.freedom == pytest.approx(19_999), "6 GB, and hours, with such a table"
