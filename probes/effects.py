"""The numbers of contrasts: effect sizes, intervals of means, adjusted p-values, detectable effects.

    mean_interval([0.2, 0.4, 0.9], clusters=["a", "a", "b"])

Everything takes plain sequences of finite numbers. Where cases share facts, items or templates (``clusters``: labels
as ``evaluation.dependence`` takes them) errors and degrees of freedom account for it, and too few clusters give none.
"""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.optimize import brentq

from ..errors import InputError
from ..evaluation import dependence
from ..evaluation.dependence import Fit

Array = NDArray[np.float64]
Clusters = Sequence[Hashable] | None
ClusterPair = tuple[Clusters, Clusters]


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
    """Cluster numbers 0..k-1, with labels that meet joined; None if no values share anything."""
    if clusters is None:
        return None
    if len(clusters) != n:
        raise InputError(f"{what}: {len(clusters)} cluster ids for {n} values; give one per value")
    out = dependence.joined(clusters) if n else np.zeros(0, dtype=np.intp)
    return None if len(set(out.tolist())) == n else out


def pair_codes(clusters: ClusterPair, n: int, m: int, what: str) -> NDArray[np.intp] | None:
    """``codes`` of two groups of values together; None also if one of them has no clusters."""
    first, second = clusters
    return None if first is None or second is None else codes([*first, *second], n + m, what)


def mean_fit(values: Array, clusters: Clusters = None) -> Fit:
    """The mean with its error; numbers are scaled, because squares of very small ones would be 0."""
    codes(clusters, values.size, "mean")
    shift, scale = float(values[0]), float(np.abs(values - values[0]).max()) or 1.0
    fit = dependence.mean((values - shift) / scale, clusters)
    return fit._replace(value=float(values.mean()), error=fit.error * scale)


def mean_interval(values: ArrayLike, clusters: Clusters = None, *, level: float = 0.95) -> Estimate:
    """Mean with a Student t interval, clustered or crossed where cases share anything.

    A single value has no interval (NaN bounds). Values or clusters that are all equal have none either, because ``[x,
    x]`` would claim certainty. Their ``interval`` is "no spread".
    """
    x = finite(values, "mean")
    if x.size < 2:
        return Estimate(float(x.mean()) if x.size else np.nan, np.nan, np.nan, "none")
    if constant(x):
        return Estimate(float(x.mean()), np.nan, np.nan, NO_SPREAD)
    return _estimate(mean_fit(x, clusters), level)


def _estimate(fit: Fit, level: float) -> Estimate:
    if fit.clusters == 1 and fit.method not in dependence.INDEPENDENT:  # it says nothing of the spread of clusters
        return Estimate(fit.value, np.nan, np.nan, dependence.FEW)
    low, high = fit.interval(level)
    if fit.error <= 0 or (np.isfinite(low) and not spreads(low, high, fit.value)):
        return Estimate(fit.value, np.nan, np.nan, NO_SPREAD)
    few = "none" if fit.method in dependence.INDEPENDENT else dependence.FEW
    return Estimate(fit.value, low, high, fit.method if fit.known else few)


def difference_fit(a: Array, b: Array, clusters: ClusterPair = (None, None)) -> Fit:
    """mean(a) - mean(b) with its error; a cluster may reach into both groups."""
    for values, labels in zip((a, b), clusters, strict=True):
        codes(labels, values.size, "groups")
    first, second = clusters
    labels = None if first is None or second is None else (first, second)
    both = np.concatenate([a, b])
    shift, scale = float(both[0]), float(np.abs(both - both[0]).max()) or 1.0
    fit = dependence.difference((a - shift) / scale, (b - shift) / scale, labels)
    return fit._replace(value=float(a.mean() - b.mean()), error=fit.error * scale)


def difference_interval(
    a: ArrayLike, b: ArrayLike, clusters: ClusterPair = (None, None), *, level: float = 0.95
) -> Estimate:
    """mean(a) - mean(b) with Welch's interval, clustered or crossed where cases share anything."""
    x, y = finite(a, "first group"), finite(b, "second group")
    if constant(x) and constant(y):
        return Estimate(float(x.mean() - y.mean()), np.nan, np.nan, NO_SPREAD)
    return _estimate(difference_fit(x, y, clusters), level)


def welch_p(x: Array, y: Array) -> float:
    """Two-sided p of Welch's t test; NaN if neither group varies."""
    if constant(x) and constant(y):
        return float("nan")
    a, b = _sd(x) / np.sqrt(x.size), _sd(y) / np.sqrt(y.size)
    error = float(np.hypot(a, b))
    freedom = float(1 / ((a / error) ** 4 / (x.size - 1) + (b / error) ** 4 / (y.size - 1)))
    return float(2 * stats.t.sf(abs(float(x.mean() - y.mean())) / error, freedom))


def _sd(x: Array) -> float:
    """Standard deviation, also of numbers whose squares float64 cannot hold (products of probabilities)."""
    scale = np.abs(x - x[0]).max()
    return float(scale * (x / scale).std(ddof=1)) if scale > 0 else 0.0


NO_SPREAD = "no spread"
"""The name of an interval where all values are equal."""


def spreads(low: float, high: float, scale: float = 0.0) -> bool:
    """Whether an interval has a width beyond the rounding of its bounds; ``scale`` is that of what they came from."""
    return bool(high - low > 1e-12 * max(abs(low), abs(high), abs(scale), 1e-300))


def constant(x: Array) -> bool:
    """Whether values are all the same, up to the rounding of float64."""
    return not x.size or not spreads(float(x.min()), float(x.max()))


def hedges_g(a: ArrayLike, b: ArrayLike, level: float = 0.95, clusters: ClusterPair = (None, None)) -> Estimate:
    """Hedges' g of two independent groups: (mean a - mean b) / pooled sd, times the small-sample factor J.

    Interval from the large-sample variance (n_a+n_b)/(n_a n_b) + g^2 / (2 (n_a+n_b)) (Hedges & Olkin 1985, ch. 5),
    for normal and equally spread groups; or g linearized in the means and the variance, with Welch's error, where that
    is wider. Where cases share anything it is linearized with their clustered error. NaN if neither group varies.
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
    alone = clusters[0] is None or clusters[1] is None or dependence.alone([*clusters[0], *clusters[1]])
    normal = _effect(g, (n + m) / (n * m) + g**2 / (2 * (n + m)), level)
    if not np.isfinite(g) or pooled == 0:
        return normal if alone else Estimate(g, np.nan, np.nan, NO_SPREAD)
    u, v = (x - x.mean()) / pooled, (y - y.mean()) / pooled
    per = float(x.mean() - y.mean()) / pooled / (2 * (n + m - 2))
    fit = difference_fit(u - n * per * u**2, v + m * per * v**2, (None, None) if alone else clusters)
    linear = _linearized(g, fit, n + m - 2, level)
    return _wider(normal, linear) if alone else linear


def hedges_g_paired(differences: ArrayLike, level: float = 0.95, clusters: Clusters = None) -> Estimate:
    """Standardized mean of paired differences (d_z) with Hedges' factor; variance 1/n + g^2/(2n); NaN for 2 cases.

    Linearized where that is wider, and where pairs share anything, as in ``hedges_g``.
    """
    d = finite(differences, "differences")
    if d.size < 2:
        return Estimate(np.nan, np.nan, np.nan, "none")
    sd = _sd(d)
    g = _standardized(float(d.mean()), sd, d.size - 1)
    alone = dependence.alone(clusters)
    normal = _effect(g, 1 / d.size + g**2 / (2 * d.size), level)
    if not np.isfinite(g) or sd == 0:
        return normal if alone else Estimate(g, np.nan, np.nan, NO_SPREAD)
    u = (d - d.mean()) / sd
    fit = mean_fit(u - d.size / (d.size - 1) * float(d.mean()) / sd / 2 * u**2, None if alone else clusters)
    linear = _linearized(g, fit, d.size - 1, level)
    return _wider(normal, linear) if alone else linear


def _wider(a: Estimate, b: Estimate) -> Estimate:
    return b if b.high - b.low > a.high - a.low else a


def _linearized(g: float, fit: Fit, df: int, level: float) -> Estimate:
    low, high = fit.interval(level)
    half = (1 - 3 / (4 * df - 1)) * (high - low) / 2
    return Estimate(g, g - half, g + half, f"linearized, {fit.method}" if fit.known else dependence.FEW)


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


@lru_cache(maxsize=4096)  # tables ask for the same numbers of cases row after row
def smallest_detectable(
    n: int, m: int | None = None, *, alpha: float = 0.05, power: float = 0.8, error: float | None = None,
    freedom: float | None = None,
) -> float:  # fmt: skip
    """Smallest standardized effect that a two-sided t test (Welch's, of two groups) finds with the given power: what a
    null result excludes.

    ``m`` is the second group's size; None for a paired or one-sample test. Where cases share anything give the
    ``error`` of the difference in standard deviations and its degrees of ``freedom``. Infinite where no test is
    possible.
    """
    if n < 2 or (m is not None and m < 2) or (error is not None and not 0 < error < float("inf")):
        return float("inf")
    plain = (1 / np.sqrt(n), n - 1.0) if m is None else _of_two(n, m)
    scale, df = plain if error is None or freedom is None else (error, freedom)
    beyond = float(stats.t.ppf(1 - alpha / 2, df))

    def gap(d: float) -> float:
        found = float(stats.nct.sf(beyond, df, d / scale) + stats.nct.cdf(-beyond, df, d / scale))
        return (1.0 if np.isnan(found) else found) - power

    high = 1.0
    while gap(high) < 0 and high < 64:
        high *= 2
    root: Any = brentq(gap, 1e-6, high) if gap(high) >= 0 else float("inf")
    return float(root)


def _of_two(n: int, m: int) -> tuple[float, float]:
    """The error of a difference in standard deviations and Welch's degrees of freedom, of groups with one spread."""
    a, b = 1 / n, 1 / m
    freedom = (a + b) ** 2 / (a**2 / (n - 1) + b**2 / (m - 1))
    return float(np.sqrt(a + b)), dependence.of_the_few(freedom, n, m)
