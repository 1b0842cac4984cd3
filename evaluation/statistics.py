"""Intervals and tests for counts, paired outcomes and clustered cases, on scipy.

No function returns NaN: where a quantity is undefined it is None, and if every outcome is the same (so that a bootstrap
would claim certainty), an exact binomial interval is used, and its method says so.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from . import dependence

CONFIDENCE = 0.95
RESAMPLES = 2000


@dataclass(frozen=True)
class Interval:
    """A confidence interval and its method; both ends are None where no interval can be given."""

    low: float | None
    high: float | None
    method: str

    def columns(self) -> dict[str, Any]:
        """The interval in the columns of a table's row."""
        return {"low": self.low, "high": self.high, "interval": self.method}

    def within(self, least: float, most: float) -> Interval:
        """The same interval without values that the quantity cannot have."""
        if self.low is None or self.high is None:
            return Interval(None, None, self.method)
        return Interval(max(self.low, float(least)), min(self.high, float(most)), self.method)

    def reaching(self, ends: tuple[float, float] | None) -> Interval:
        """The same interval, reaching at least from one end to the other; one without ends stays so."""
        if ends is None or self.low is None or self.high is None:
            return self
        return Interval(min(self.low, ends[0]), max(self.high, ends[1]), self.method)

    def __contains__(self, value: float) -> bool:
        return self.low is not None and self.high is not None and self.low <= value <= self.high


@lru_cache(maxsize=65536)
def clopper_pearson(count: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Exact interval of a binomial rate ``count / n`` (Clopper and Pearson 1934); no ends for n = 0.

    Raises ``ValueError`` unless 0 <= count <= n.
    """
    if not 0 <= count <= n:
        raise ValueError(f"count {count} is not between 0 and n = {n}")
    if n == 0:
        return Interval(None, None, "clopper-pearson")
    ci = stats.binomtest(int(count), int(n)).proportion_ci(confidence, method="exact")
    return Interval(float(ci.low), float(ci.high), "clopper-pearson")


def share(count: int, n: int) -> dict[str, Any]:
    """The columns of a table's row, or fields of a ``Metric``, of the rate ``count / n`` with its exact interval."""
    return {"n": n, "count": count, "value": count / n if n else None, **clopper_pearson(count, n).columns()}


def bootstrap(
    columns: np.ndarray,
    statistic: Callable[[np.ndarray], np.ndarray],
    *,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    n_resamples: int = RESAMPLES,
    least: float | None = None,
    skewed: bool = False,
) -> Interval:
    """Interval of a function of column sums: bootstrap over cases, or linearized where cases share anything.

    ``columns`` is ``[case column]``: outcomes, counts and denominators of each case. ``statistic`` maps column sums
    ``[... column]`` to values ``[...]`` and may give NaN where undefined (such resamples are left out, and the method
    says so when they are more than 1 %). ``clusters`` names what each case shares (``dependence``): then the statistic
    is taken as linear in the sums near their values, and each case's share in it has the error of a clustered mean.
    A ratio has no greatest value, and its errors are skewed where its denominator is small: give the ``least`` value
    that it can have, and the logarithm of its distance from there is taken as linear instead.
    ``skewed`` is for means of values that may be so, such as numbers of steps: percentiles then are further out, by the
    skewness of the cases (``dependence.SKEWED``). Fewer than two cases, too few clusters, or a statistic without any
    spread give an interval without ends.
    """
    columns = np.asarray(columns, dtype=float)
    if clusters is not None and not dependence.alone(clusters):
        return _linearized(columns, statistic, clusters, least)
    method = "bootstrap"
    if len(columns) < 2:
        return Interval(None, None, method)
    values = _resample(columns, statistic, seed, n_resamples)
    defined = values[np.isfinite(values)]
    if len(defined) < 2 or defined.min() == defined.max():
        return Interval(None, None, method)
    if len(defined) < 0.99 * len(values):
        method += f" ({1 - len(defined) / len(values):.0%} of resamples undefined)"
    # Percentiles alone are those of a normal distribution whose variance was divided by n: too narrow for few cases.
    # Hesterberg (2015, What teachers should know about the bootstrap, section 5.4) widens them as t and n - 1 would.
    n = len(columns)
    freedom = 1 / (1 / (n - 1) + dependence.SKEWED * _skewness(columns, statistic) ** 2) if skewed else n - 1
    tail = stats.norm.cdf(-stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * np.sqrt(n / (n - 1)))
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high), method)


def _skewness(columns: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray]) -> float:
    """Of the statistic, from the shares of independent cases in it."""
    parts = columns @ _slopes(columns.sum(0), statistic)
    off, n = parts - parts.mean(), len(parts)
    return float((off**3).sum() / (off**2).sum() ** 1.5 * n / (n - 2)) if n > 2 and np.ptp(parts) > 0 else 0.0


def _slopes(sums: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    steps = np.diag(1e-4 * np.maximum(np.abs(sums), 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return (np.asarray(statistic(sums + steps)) - np.asarray(statistic(sums - steps))) / (2 * np.diag(steps))


def _linearized(
    columns: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], clusters: Sequence[Hashable],
    least: float | None,
) -> Interval:  # fmt: skip
    n, sums = len(columns), columns.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value, slopes = float(statistic(sums)), _slopes(sums, statistic)
    if not (np.isfinite(value) and np.isfinite(slopes).all()):
        return Interval(None, None, dependence.CLUSTERED)
    fit = dependence.mean(n * (columns @ slopes), clusters)
    if fit.clusters < dependence.FEWEST:
        return Interval(None, None, dependence.FEW)
    if fit.error <= 1e-12:
        return Interval(None, None, fit.method)
    if least is None:
        low, high = fit._replace(value=value).interval(CONFIDENCE)
        return Interval(low, high, fit.method)
    above = value - least
    if above <= 1e-12:
        return Interval(None, None, fit.method)
    ends = fit._replace(value=0.0, error=fit.error / above).interval(CONFIDENCE)
    low, high = (least + above * float(np.exp(end)) for end in ends)
    return Interval(low, high, f"{fit.method} (log)")


def _resample(
    sums: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], seed: int, n_resamples: int
) -> np.ndarray:
    # Drawing n of n cases with replacement and adding them up is a multinomial draw over the distinct rows: the
    # same distribution as resampling indices (scipy.stats.bootstrap), but a handful of cells instead of n.
    patterns, counts = np.unique(sums, axis=0, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(len(sums), counts / len(sums), size=n_resamples)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(statistic(draws @ patterns), dtype=float).ravel()


OTHER_PAIRS, OTHER_CASES = "clopper-pearson of other pairs", "clopper-pearson of other cases"
SHARED_PAIRS = "McNemar and t over clusters, the larger p"


def method_shown(name: str | None) -> str:
    """A method's name as a line of text gives it in brackets: the name, or words where it says too little."""
    return (
        "every pair has this difference; exact limits for pairs that could have another"
        if name == OTHER_PAIRS
        else str(name)
    )


def rate_interval(values: Sequence[bool], clusters: Sequence[Hashable]) -> Interval:
    """Interval of a rate over cases that share facts, items or templates, by Korn and Graubard (1998).

    Clopper-Pearson with as many cases as would give the clustered variance (``dependence``) were they independent,
    reduced by the squared ratio of t quantiles; at least as many as clusters whose cases all agree are worth, since
    nothing varies more (where labels cross, cases that one kind of label decides may, so the variance that was found
    counts as well). Equal outcomes show no variance; there it is that number.
    """
    n = len(values)
    if dependence.alone(clusters):
        return clopper_pearson(sum(map(bool, values)), n)
    x = np.asarray(values, dtype=float)
    rate, fit = float(x.mean()), dependence.mean(x, clusters)
    if fit.clusters < dependence.FEWEST:
        return Interval(None, None, dependence.FEW)
    least = dependence.effective(clusters)
    if rate in (0.0, 1.0):
        effective, method = least, "clopper-pearson over clusters"
    else:
        quantiles = (stats.t.ppf((1 + CONFIDENCE) / 2, df) for df in (n - 1, fit.used))
        ratio = next(quantiles) / next(quantiles)
        known = np.divide(rate * (1 - rate), fit.error**2, out=np.array(np.inf), where=fit.error > 0)
        method = "korn-graubard"
        if fit.method == dependence.CROSSED:
            least, method = min(least, float(known)), "korn-graubard, crossed"
        effective = min(max(float(known) * ratio**2, least), float(n))
    tail, hits = (1 - CONFIDENCE) / 2, effective * rate
    low = 0.0 if rate == 0 else float(stats.beta.ppf(tail, hits, effective - hits + 1))
    high = 1.0 if rate == 1 else float(stats.beta.ppf(1 - tail, hits + 1, effective - hits))
    return Interval(low, high, method)


def share_of_others(n: int, clusters: Sequence[Hashable] | None = None) -> float | None:
    """The exact upper limit of the share of cases unlike ``n`` cases that are all alike; None with too few clusters."""
    if clusters is None or dependence.alone(clusters):
        return clopper_pearson(0, n).high
    if dependence.count(clusters) < dependence.FEWEST:
        return None
    return clopper_pearson(0, int(dependence.effective(clusters))).high


def of_others(
    columns: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], others: Sequence[Sequence[float]],
    clusters: Sequence[Hashable] | None,
) -> Interval:  # fmt: skip
    """Interval of a function of column means that every draw of the cases leaves as it is.

    A bootstrap would claim certainty. Here the exact upper limit of the share of cases unlike these bounds it; they
    may be any of ``others``, rows as in ``columns`` (or means of such rows). Cases whose row is 0 do not count.
    """
    inside = np.flatnonzero(columns.any(1)).tolist()
    share = share_of_others(len(inside), None if clusters is None else [clusters[i] for i in inside])
    if share is None or not len(inside):
        return Interval(None, None, dependence.FEW if len(inside) else OTHER_CASES)
    means = columns[inside].mean(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.asarray(statistic(np.vstack([means, (1 - share) * means + share * np.asarray(others, dtype=float)])))
    return Interval(float(np.nanmin(ends)), float(np.nanmax(ends)), OTHER_CASES)


def paired_difference(
    a: Sequence[bool],
    b: Sequence[bool],
    *,
    seed: int,
    clusters: Sequence[Hashable] | None = None,
    n_resamples: int = RESAMPLES,
) -> Interval:
    """Interval of mean(a) - mean(b) over the same cases: paired bootstrap, or clustered t where cases share anything.

    A bootstrap knows only the differences that it has seen: if three pairs differ in one direction, none of its draws
    goes the other way. So the interval reaches at least as far as the score interval (``_of_scores``).
    When all pairs have the same difference d (usually 0), a bootstrap would claim certainty. Then the exact upper limit
    u of the share of other pairs bounds the difference: [d - u (1 + d), d + u (1 - d)].
    """
    if len(a) != len(b):
        raise ValueError(f"paired outcomes have different lengths: {len(a)} and {len(b)}")
    if not len(a):
        return Interval(None, None, "paired-bootstrap")
    difference = np.asarray(a, dtype=float) - np.asarray(b, dtype=float)
    if difference.min() == difference.max():
        d, upper = float(difference[0]), share_of_others(len(difference), clusters)
        if upper is None:
            return Interval(None, None, dependence.FEW)
        return Interval(d - upper * (1 + d), d + upper * (1 - d), OTHER_PAIRS)
    columns = np.column_stack([difference, np.ones(len(difference))])
    interval = bootstrap(
        columns, lambda s: s[..., 0] / s[..., 1], seed=seed, clusters=clusters, n_resamples=n_resamples
    )
    if not interval.method.startswith("bootstrap") or interval.low is None or interval.high is None:
        return interval.within(-1, 1)
    ends = _of_scores(int((difference > 0).sum()), int((difference < 0).sum()), len(difference))
    return replace(interval.reaching(ends), method=f"paired-{interval.method}").within(-1, 1)


@lru_cache(maxsize=65536)
def _of_scores(a_only: int, b_only: int, n: int) -> tuple[float, float]:
    """The score interval of a difference of paired rates (Tango 1998), for pairs that are not all alike.

    It has the differences that a test rejects no more than 5 % of the time with the variance that each would give.
    """
    seen, z = (a_only - b_only) / n, float(stats.norm.ppf((1 + CONFIDENCE) / 2))

    def score(d: float) -> float:
        half = a_only + b_only - (2 * n - a_only + b_only) * d
        share = (half + np.sqrt(max(half**2 + 8 * n * b_only * d * (1 - d), 0.0))) / (4 * n)  # of b_only, given d
        return float(n * (seen - d) / np.sqrt(max(n * (2 * share + d * (1 - d)), 1e-300)))

    ends: Any = (brentq(lambda d: score(d) - z, -1.0, seen), brentq(lambda d: score(d) + z, seen, 1.0))
    return ends


@dataclass(frozen=True)
class McNemar:
    """Test of paired outcomes: ``a_only`` against ``b_only`` discordant pairs."""

    n: int
    a_only: int
    b_only: int
    p: float | None
    """None where cases share something and there are too few clusters for a test."""
    test: str = "exact McNemar"


def mcnemar(a: Sequence[bool], b: Sequence[bool], clusters: Sequence[Hashable] | None = None) -> McNemar:
    """Two-sided exact McNemar test (binomial test on the discordant pairs); p = 1 when there are none.

    Cases of one cluster change together, which McNemar's test ignores. So if cases share anything (``clusters``), p is
    not below that of the clustered mean of the differences, whose interval ``paired_difference`` gives.
    """
    if len(a) != len(b):
        raise ValueError(f"paired outcomes have different lengths: {len(a)} and {len(b)}")
    a_only = sum(bool(x) and not y for x, y in zip(a, b, strict=True))
    b_only = sum(bool(y) and not x for x, y in zip(a, b, strict=True))
    n = a_only + b_only
    p = float(stats.binomtest(a_only, n, 0.5).pvalue) if n else 1.0
    if clusters is None or dependence.alone(clusters):
        return McNemar(len(a), a_only, b_only, min(1.0, p))
    fit = dependence.mean(np.asarray(a, dtype=float) - np.asarray(b, dtype=float), clusters)
    if fit.clusters < dependence.FEWEST:
        return McNemar(len(a), a_only, b_only, None, f"none (fewer than {dependence.FEWEST} clusters)")
    if n and fit.error <= 0:  # every case differs in the same way: t is infinite, so the signs of clusters are tested
        shared = 2.0 ** (1 - int(dependence.effective(clusters)))
    else:
        shared = fit.p if n else 1.0
    return McNemar(len(a), a_only, b_only, min(1.0, max(p, shared)), SHARED_PAIRS)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm-adjusted p-values of one family; None (a test that could not be made) stays None and is not counted."""
    # By hand: statsmodels' multipletests runs a full garbage collection per call (0.2 s with a model in memory).
    known = [i for i, p in enumerate(p_values) if p is not None and np.isfinite(p)]
    order = sorted(known, key=lambda i: float(p_values[i] or 0))
    steps = [float(p_values[i] or 0) * (len(known) - rank) for rank, i in enumerate(order)]
    out: list[float | None] = [None] * len(p_values)
    for i, p in zip(order, np.minimum(np.maximum.accumulate(steps), 1), strict=True):
        out[i] = float(p)
    return out


@dataclass(frozen=True)
class D50:
    """Depth at which the failure rate first exceeds one half.

    ``value`` is None where it is censored (``censored`` says ``<2`` or ``>8``) or undefined (``note`` says why);
    ``low``/``high`` are the crossings of the upper and lower Clopper-Pearson curves, None where those are censored.
    """

    value: float | None
    censored: str | None = None
    low: float | None = None
    high: float | None = None
    low_censored: str | None = None
    high_censored: str | None = None
    note: str | None = None


def d50(
    depths: Sequence[float], failures: Sequence[int], totals: Sequence[int], limits: Sequence[Interval] | None = None
) -> D50:
    """Linear interpolation of the first crossing of 50 % between depth bins (Composition collapse, table 4).

    A bin without cases is undefined: so is the crossing when that bin lies before it, since the rate may have crossed
    there. The first rate above one half: ``<first``; none above: ``>last`` of the defined bins. The band is the
    crossing of the 95 % ``limits`` of the rates, those of Clopper and Pearson by default; without any limits there is
    none.
    """
    order = np.argsort(depths)
    d = [float(depths[i]) for i in order]
    k, n = [int(failures[i]) for i in order], [int(totals[i]) for i in order]
    rates = [k_ / n_ if n_ else None for k_, n_ in zip(k, n, strict=True)]
    value, censored, note = crossing(d, rates)
    if note:
        return D50(None, note=note)
    band = (
        [clopper_pearson(k_, n_) for k_, n_ in zip(k, n, strict=True)] if limits is None else [limits[i] for i in order]
    )
    if all(limit.low is None for limit in band):
        return D50(value, censored)
    # Where too few clusters give a rate no limits, any rate may be.
    bare = [n_ > 0 and limit.low is None for n_, limit in zip(n, band, strict=True)]
    low, low_censored, _ = crossing(d, [1.0 if b else limit.high for b, limit in zip(bare, band, strict=True)])
    high, high_censored, _ = crossing(d, [0.0 if b else limit.low for b, limit in zip(bare, band, strict=True)])
    return D50(value, censored, low, high, low_censored, high_censored)


def crossing(depths: list[float], rates: Sequence[float | None]) -> tuple[float | None, str | None, str | None]:
    """(value, censored, note) of the first crossing of one half, with linear interpolation between rates."""
    if all(r is None for r in rates):
        return None, None, "undefined: no rate at any depth"
    last = max(i for i, r in enumerate(rates) if r is not None)
    previous: float | None = None
    for i, (depth, rate) in enumerate(zip(depths[: last + 1], rates[: last + 1], strict=True)):
        if rate is None:
            return None, None, f"undefined: no rate at depth {depth:g}"
        if rate > 0.5:
            if previous is None:
                return None, f"<{depth:g}", None
            start = depths[i - 1]
            return start + (0.5 - previous) / (rate - previous) * (depth - start), None, None
        previous = rate
    return None, f">{depths[last]:g}", None
