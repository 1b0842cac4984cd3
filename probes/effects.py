"""The numbers that contrasts are made of: effect sizes, intervals of means, adjusted p-values, detectable effects.

Everything takes plain sequences of finite numbers. Where values come in clusters (cases that share facts, items or
templates) intervals resample whole clusters and tests use cluster-robust errors.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..errors import InputError

Array = NDArray[np.float64]
Clusters = Sequence[Hashable] | None


class Estimate(NamedTuple):
    """A number, its interval and how the interval was made."""

    value: float
    low: float
    high: float
    interval: str


def finite(values: ArrayLike, what: str) -> Array:
    """``values`` as a float64 vector; ``InputError`` when it is not one-dimensional or holds NaN or infinity."""
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1:
        raise InputError(f"{what}: values have shape {x.shape}; give one number per case")
    if not np.isfinite(x).all():
        bad = int((~np.isfinite(x)).sum())
        raise InputError(f"{what}: {bad} of {x.size} values are NaN or infinite; leave them out")
    return x


def codes(clusters: Clusters, n: int, what: str) -> NDArray[np.intp] | None:
    """Cluster numbers 0..k-1, or None where every value stands alone. A missing (None) cluster is its own cluster."""
    if clusters is None:
        return None
    if len(clusters) != n:
        raise InputError(f"{what}: {len(clusters)} cluster ids for {n} values; give one per value")
    seen: dict[Hashable, int] = {}
    keys = [("alone", i) if c is None else ("in", c) for i, c in enumerate(clusters)]
    out = np.array([seen.setdefault(key, len(seen)) for key in keys], dtype=np.intp)
    return None if len(seen) == n else out


def mean_interval(
    values: ArrayLike, clusters: Clusters = None, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """Mean with a Student t interval, or a percentile bootstrap over clusters where cases share a cluster.

    One value alone has no interval (NaN bounds), nor have values that are all equal or clusters that are all alike:
    ``[x, x]`` would claim a certainty that no number of cases gives. Their ``interval`` is "no spread".
    """
    x = finite(values, "mean")
    if x.size == 0:
        return Estimate(np.nan, np.nan, np.nan, "none")
    mean = float(x.mean())
    group = codes(clusters, x.size, "mean")
    if group is not None:
        draws = _cluster_means(x, group, _weights(int(group.max()) + 1, resamples, seed))
        return _with_spread(Estimate(mean, *_percentiles(draws, level), "cluster bootstrap"))
    if x.size < 2:
        return Estimate(mean, np.nan, np.nan, "none")
    half = float(stats.t.ppf((1 + level) / 2, x.size - 1) * _sd(x) / np.sqrt(x.size))
    return _with_spread(Estimate(mean, mean - half, mean + half, "t"))


def difference_interval(
    a: ArrayLike, b: ArrayLike, clusters: tuple[Clusters, Clusters] = (None, None), *,
    level: float = 0.95, resamples: int = 2000, seed: int = 0,
) -> Estimate:  # fmt: skip
    """mean(a) - mean(b) with Welch's interval, or a bootstrap over clusters (a cluster may reach into both groups)."""
    x, y = finite(a, "first group"), finite(b, "second group")
    value = float(x.mean() - y.mean())
    joint = None if clusters[0] is None or clusters[1] is None else [*clusters[0], *clusters[1]]
    group = codes(joint, x.size + y.size, "groups")
    if group is not None:
        weights = _weights(int(group.max()) + 1, resamples, seed)
        draws = _cluster_means(x, group[: x.size], weights) - _cluster_means(y, group[x.size :], weights)
        return _with_spread(Estimate(value, *_percentiles(draws, level), "cluster bootstrap"))
    if constant(x) and constant(y):
        return Estimate(value, np.nan, np.nan, NO_SPREAD)
    error, freedom = _welch(x, y)
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    return Estimate(value, value - half, value + half, "Welch t")


def welch_p(x: Array, y: Array) -> float:
    """Two-sided p of Welch's t test; NaN where neither group varies."""
    if constant(x) and constant(y):
        return float("nan")
    error, freedom = _welch(x, y)
    return float(2 * stats.t.sf(abs(float(x.mean() - y.mean())) / error, freedom))


def _welch(x: Array, y: Array) -> tuple[float, float]:
    """Standard error of the difference of means, and Welch's degrees of freedom."""
    a, b = _sd(x) / np.sqrt(x.size), _sd(y) / np.sqrt(y.size)
    error = float(np.hypot(a, b))
    return error, float(1 / ((a / error) ** 4 / (x.size - 1) + (b / error) ** 4 / (y.size - 1)))


def _sd(x: Array) -> float:
    """Standard deviation, also of numbers whose squares float64 cannot hold (products of probabilities)."""
    scale = np.abs(x - x[0]).max()
    return float(scale * (x / scale).std(ddof=1)) if scale > 0 else 0.0


NO_SPREAD = "no spread"
"""The interval's name where what was drawn or seen never differs."""


def spreads(low: float, high: float, scale: float = 0.0) -> bool:
    """Whether an interval has a width beyond the rounding of its bounds; ``scale`` is that of what they came from."""
    return bool(high - low > 1e-12 * max(abs(low), abs(high), abs(scale), 1e-300))


def constant(x: Array) -> bool:
    """Whether values are all the same, up to the rounding of float64."""
    return not x.size or not spreads(float(x.min()), float(x.max()))


def _with_spread(e: Estimate) -> Estimate:
    if not (np.isfinite(e.low) and np.isfinite(e.high)) or spreads(e.low, e.high, e.value):
        return e
    return Estimate(e.value, np.nan, np.nan, NO_SPREAD)


def _weights(clusters: int, resamples: int, seed: int) -> Array:
    """How often each cluster is drawn, per resample: [resample cluster]."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(clusters, np.full(clusters, 1 / clusters), size=resamples).astype(np.float64)


def _cluster_means(x: Array, group: NDArray[np.intp], weights: Array) -> Array:
    k = weights.shape[1]
    sums, counts = np.bincount(group, x, k), np.bincount(group, minlength=k)
    n = weights @ counts
    return np.divide(weights @ sums, n, out=np.full(len(n), np.nan), where=n > 0)


def _percentiles(draws: Array, level: float) -> tuple[float, float]:
    low, high = np.nanpercentile(draws, [50 * (1 - level), 50 * (1 + level)])
    return float(low), float(high)


def hedges_g(a: ArrayLike, b: ArrayLike, level: float = 0.95) -> Estimate:
    """Hedges' g of two independent groups: (mean a - mean b) / pooled sd, times the small-sample factor J.

    Interval from the large-sample variance (n_a+n_b)/(n_a n_b) + g^2 / (2 (n_a+n_b)) (Hedges & Olkin 1985, ch. 5).
    NaN where neither group varies.
    """
    x, y = finite(a, "first group"), finite(b, "second group")
    n, m = x.size, y.size
    if n < 2 or m < 2:
        return Estimate(np.nan, np.nan, np.nan, "none")
    pooled = np.hypot(np.sqrt(n - 1) * _sd(x), np.sqrt(m - 1) * _sd(y)) / np.sqrt(n + m - 2)
    if constant(np.concatenate([x, y])):
        g = 0.0
    else:
        sd = 0.0 if constant(x) and constant(y) else float(pooled)
        g = _standardized(float(x.mean() - y.mean()), sd, n + m - 2)
    return _effect(g, (n + m) / (n * m) + g**2 / (2 * (n + m)), level)


def hedges_g_paired(differences: ArrayLike, level: float = 0.95) -> Estimate:
    """Standardized mean of paired differences (d_z) with Hedges' factor; variance 1/n + g^2/(2n); NaN for 2 cases."""
    d = finite(differences, "differences")
    if d.size < 2:
        return Estimate(np.nan, np.nan, np.nan, "none")
    g = _standardized(float(d.mean()), _sd(d), d.size - 1)
    return _effect(g, 1 / d.size + g**2 / (2 * d.size), level)


def _standardized(difference: float, sd: float, df: int) -> float:
    if sd == 0:
        return 0.0 if difference == 0 else np.nan
    if df < 2:
        return np.nan  # the factor is 0 at one degree of freedom, whatever the difference
    return (1 - 3 / (4 * df - 1)) * difference / sd


def _effect(g: float, variance: float, level: float) -> Estimate:
    half = float(stats.norm.ppf((1 + level) / 2) * np.sqrt(variance))
    return Estimate(g, g - half, g + half, "normal")


def cliffs_delta(a: ArrayLike, b: ArrayLike) -> float:
    """P(a > b) - P(a < b) over all pairs: 1 when every value of a is above every value of b."""
    x, y = finite(a, "first group"), finite(b, "second group")
    u = stats.rankdata(np.concatenate([x, y]))[: x.size].sum() - x.size * (x.size + 1) / 2
    return float(2 * u / (x.size * y.size) - 1)


def smallest_detectable(n: int, m: int | None = None, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Smallest standardized effect that a two-sided t test finds with the given power: what a null result excludes.

    ``m`` is the second group's size; None for a paired or one-sample test. Infinite where no test is possible.
    """
    from statsmodels.stats.power import TTestIndPower, TTestPower

    if n < 2 or (m is not None and m < 2):
        return float("inf")
    if m is None:
        return _solve(lambda d: TTestPower().power(d, n, alpha), power)
    return _solve(lambda d: TTestIndPower().power(d, n, alpha, ratio=m / n), power)  # type: ignore[arg-type]


def _solve(power_at: Callable[[float], float], power: float) -> float:
    from scipy.optimize import brentq

    def gap(d: float) -> float:
        reached = float(power_at(d))
        return (1.0 if np.isnan(reached) else reached) - power

    high = 1.0
    while gap(high) < 0 and high < 64:
        high *= 2
    root: Any = brentq(gap, 1e-6, high) if gap(high) >= 0 else float("inf")
    return float(root)


def cluster_robust_p(values: ArrayLike, design: ArrayLike, group: NDArray[np.intp]) -> float:
    """Two-sided p of the last column of ``design`` in a least-squares fit with cluster-robust errors (t, k-1 df)."""
    import statsmodels.api as sm

    if int(group.max()) < 1:
        return float("nan")
    fit = sm.OLS(np.asarray(values), np.asarray(design)).fit(
        cov_type="cluster", cov_kwds={"groups": group, "df_correction": True}, use_t=True
    )
    return float(fit.pvalues[-1])
