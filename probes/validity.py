"""Tests of whether a probe measures what it should: doses, members, shuffled labels, planted effects.

All functions take plain numbers, one score per case or text, so any user can run them on any probe. What they say of
one training describes it: its cases do not vary trainings. Verdicts are over trainings (``verdicts``).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats as scipy_stats

from ..errors import InputError, NoCasesError, did_you_mean
from ..evaluation.dependence import FEW, FEWEST
from .effects import (
    NO_SPREAD,
    Array,
    ClusterPair,
    Clusters,
    Estimate,
    codes,
    constant,
    difference_fit,
    finite,
    hedges_g,
    mean_interval,
    pair_codes,
    welch_p,
)
from .result import ProbeResult, Row

stats: Any = scipy_stats  # its result types do not declare pvalue and statistic


def auroc(
    positive: ArrayLike, negative: ArrayLike, clusters: ClusterPair = (None, None), *, level: float = 0.95
) -> Estimate:
    """Probability that a positive scores above a negative, ties counting half; 0.5 = cannot tell them apart.

    Interval: DeLong's variance on the logit scale, with Welch's t: each case's share of the other side that it beats
    has the error of a difference of means, a clustered one where cases share anything (Obuchowski 1997 with CR2).
    Clopper-Pearson on the smaller group (or its clusters) where the sample separates perfectly, none where all scores
    are tied.
    Raises ``NoCasesError`` for an empty side.
    """
    x, y = finite(positive, "positives"), finite(negative, "negatives")
    if not x.size or not y.size:
        raise NoCasesError(f"{x.size} positives and {y.size} negatives; an AUROC needs at least one of each")
    group = pair_codes(clusters, x.size, y.size, "scores")
    wins = (x[:, None] > y[None]) + 0.5 * (x[:, None] == y[None])
    value = float(wins.mean())
    if value in (0.0, 1.0):
        units = _units(group, x.size, y.size)
        if group is not None and units < FEWEST:
            return Estimate(value, float("nan"), float("nan"), FEW)
        bound = ((1 - level) / 2) ** (1 / units)
        name = f"Clopper-Pearson ({'' if group is None else 'clusters of the '}smaller group)"
        return Estimate(value, *((bound, 1.0) if value else (0.0, 1 - bound)), name)
    if min(x.size, y.size) < 2:
        return Estimate(value, float("nan"), float("nan"), "none")
    fit = difference_fit(wins.mean(1), -wins.mean(0), clusters if group is not None else (None, None))
    if not fit.known:
        return Estimate(value, float("nan"), float("nan"), FEW)
    error, quantile = fit.error, float(stats.t.ppf((1 + level) / 2, fit.used))
    name = f"{'DeLong, t' if group is None else fit.method} (logit)"
    if error == 0:  # every comparison is a tie, so that other samples would have been, too
        return Estimate(value, float("nan"), float("nan"), NO_SPREAD)
    half = quantile * error / (value * (1 - value))
    logit = np.log(value / (1 - value))
    low, high = 1 / (1 + np.exp(-(logit - half))), 1 / (1 + np.exp(-(logit + half)))
    return Estimate(value, float(low), float(high), name)


def _units(group: NDArray[np.intp] | None, n: int, m: int) -> int:
    """Cases of the smaller group, or its clusters."""
    return min(n, m) if group is None else min(len(set(g.tolist())) for g in (group[:n], group[n:]))


def failure_auroc(
    failures: ArrayLike, successes: ArrayLike, *, quantity: str = "score",
    clusters: ClusterPair = (None, None), permutations: int = 2000, seed: int = 0,
) -> ProbeResult:  # fmt: skip
    """Does the score tell failures from successes? AUROC (above 0.5: failures score higher) with a shuffled-label p."""
    return _two_sided_auroc("failure", "success", failures, successes, quantity, clusters, permutations, seed)


def membership_auroc(
    members: ArrayLike, non_members: ArrayLike, *, quantity: str = "score",
    clusters: ClusterPair = (None, None), permutations: int = 2000, seed: int = 0,
) -> ProbeResult:  # fmt: skip
    """Does the score tell members of the training data from non-members? AUROC with a shuffled-label p."""
    return _two_sided_auroc("member", "non-member", members, non_members, quantity, clusters, permutations, seed)


def model_auroc(
    higher: ArrayLike, lower: ArrayLike, *, names: tuple[str, str] = ("twin", "control"), expected: str = "increasing",
    quantity: str = "score", clusters: ClusterPair = (None, None),
) -> ProbeResult:  # fmt: skip
    """Does the score tell two models apart, one number per case from each? AUROC, without a p: two are two trainings.

    ``higher`` is the model with more of what the score should follow; ``expected="decreasing"``: it should score lower,
    and the AUROC is that of the other one.
    """
    if expected not in ("increasing", "decreasing"):
        raise InputError(f"expected is {expected!r}; use 'increasing' or 'decreasing'")
    sides = ((names[0], higher, clusters[0]), (names[1], lower, clusters[1]))
    (first, a, near), (second, b, far) = sides if expected == "increasing" else sides[::-1]
    return _two_sided_auroc(first, second, a, b, quantity, (near, far), 0, 0)


def _two_sided_auroc(
    first: str, second: str, a: ArrayLike, b: ArrayLike, quantity: str, clusters: ClusterPair,
    permutations: int, seed: int,
) -> ProbeResult:  # fmt: skip
    x, y = finite(a, first), finite(b, second)
    found = auroc(x, y, clusters)
    g = hedges_g(x, y, clusters=clusters)
    row: Row = {
        "quantity": f"{quantity}: auroc", "group": f"{first} - {second}", "n": int(x.size + y.size),
        "n_first": int(x.size), "n_second": int(y.size), **found._asdict(), "effect": g.value, "effect_low": g.low,
        "effect_high": g.high, "effect_size": "hedges_g",
    }  # fmt: skip
    if permutations:
        p = shuffled_p(x, y, permutations=permutations, seed=seed, clusters=clusters)
        row |= {"test": "studentized label permutation", "p": p}
    return ProbeResult("validity", [row], settings={"permutations": permutations, "seed": seed})


def shuffled_p(
    first: ArrayLike, second: ArrayLike, statistic: Callable[[Array, Array], float] | None = None, *,
    permutations: int = 2000, seed: int = 0, clusters: ClusterPair = (None, None),
) -> float:  # fmt: skip
    """Two-sided p of a statistic when labels are shuffled: twice the smaller tail.

    The default statistic is AUROC - 0.5 divided by its error, tested by its size, so that a difference in spread alone
    is not found (Neubert and Brunner 2007). With ``clusters`` whole clusters keep their label together; NaN if one has
    cases on both sides, or if a side has fewer than 5.
    """
    x, y = finite(first, "first"), finite(second, "second")
    if permutations < 1 or not x.size or not y.size:
        raise InputError(f"{x.size} and {y.size} values, permutations={permutations}; give at least one of each")
    group = pair_codes(clusters, x.size, y.size, "scores")
    unit = np.arange(x.size + y.size) if group is None else group
    few = group is not None and _units(group, x.size, y.size) < FEWEST
    if few or set(unit[: x.size]) & set(unit[x.size :]):
        return float("nan")
    pooled, is_first = np.concatenate([x, y]), np.r_[np.ones(x.size, bool), np.zeros(y.size, bool)]
    n_first, n_units = len(set(unit[: x.size])), len(set(unit))
    orders = np.random.default_rng(seed).permuted(np.tile(np.arange(n_units), (permutations, 1)), axis=1)
    drawn = np.zeros(orders.shape, bool)
    np.put_along_axis(drawn, orders[:, :n_first], True, 1)
    drawn = drawn[:, unit]
    if statistic is None:
        far = np.abs(_studentized(pooled, np.vstack([is_first, drawn]), unit))
        return float((1 + (far[1:] >= far[0] * (1 - 1e-12)).sum()) / (1 + permutations))
    own = statistic(x, y)
    null = np.array([statistic(pooled[d], pooled[~d]) for d in drawn])
    # Not the distance from the mean of what was drawn: that mean is off by chance, and of two labelings at the same
    # distance from the true one it would count one only.
    same = 1e-12 * float(np.abs(null).max())
    tail = min((null >= own - same).sum(), (null <= own + same).sum())
    return min(1.0, float(2 * (1 + tail) / (1 + permutations)))


def _studentized(values: Array, first: NDArray[np.bool_], unit: NDArray[np.intp]) -> Array:
    """AUROC - 0.5 over its error, of the cases that ``first`` [draw case] marks against the others.

    Parts of a unit in the AUROC are summed before they are squared.
    """
    wins = (values[:, None] > values) + 0.5 * (values[:, None] == values)
    member = (unit[:, None] == np.arange(int(unit.max()) + 1)).astype(float)
    one, other = first.astype(float), (~first).astype(float)
    n, m = one.sum(1, keepdims=True), other.sum(1, keepdims=True)
    over, under = other @ wins.T / m, one @ wins / n
    value = (one * over).sum(1, keepdims=True) / n
    squares = np.zeros(len(first))
    for side, of, size in ((one, over, n), (other, under, m)):
        k = np.maximum(((side @ member) > 0).sum(1), 2)
        squares += k / (k - 1) * (((side * (of - value) / size) @ member) ** 2).sum(1)
    off = value[:, 0] - 0.5
    sure = np.where(np.abs(off) > 1e-12, np.copysign(np.inf, off), 0.0)
    return np.divide(off, np.sqrt(squares), out=sure, where=squares > 1e-24)


def dose_series(
    doses: Mapping[str, ArrayLike], *, quantity: str = "score", expected: str = "increasing",
    clusters: Mapping[str, Clusters] | None = None,
) -> ProbeResult:  # fmt: skip
    """Does the score follow the dose? ``doses`` maps models, lowest dose first, to one score per case.

    Rows: each dose's mean; ``trend`` = Kendall's tau-b between dose order and score over all cases (its interval by
    leaving out clusters or cases one at a time); ``monotone`` = whether the means are strictly ordered as ``expected``
    ("increasing" or "decreasing", declared beforehand). Of one training per dose this is descriptive: ``verdicts``.
    """
    if expected not in ("increasing", "decreasing"):
        raise InputError(f"expected is {expected!r}; use 'increasing' or 'decreasing'")
    values = {name: finite(v, f"dose {name!r}") for name, v in doses.items()}
    if len(values) < 2 or not all(v.size for v in values.values()):
        raise NoCasesError(f"doses have {[int(v.size) for v in values.values()]} scores; give at least two doses")
    if unknown := [name for name in clusters or () if name not in values]:
        raise InputError(f"clusters: no dose {unknown[0]!r}{did_you_mean(unknown[0], values)}; doses: {list(values)}")
    near: dict[str, Clusters] = {k: None if clusters is None else clusters.get(k) for k in values}
    rows: list[Row] = []
    for name, v in values.items():
        mean = mean_interval(v, near[name])._asdict()
        rows.append({"quantity": quantity, "group": name, "n": int(v.size), **mean})
    order = np.concatenate([np.full(v.size, i, float) for i, v in enumerate(values.values())])
    pooled = np.concatenate(list(values.values()))
    every = [near[k] if near[k] is not None else [None] * v.size for k, v in values.items()]
    trend = _trend(order, pooled, None if clusters is None else [label for labels in every for label in labels or ()])
    means = [float(v.mean()) for v in values.values()]
    sign = 1 if expected == "increasing" else -1
    rows.append({
        "quantity": f"{quantity}: trend", "group": " < ".join(values), "n": int(pooled.size), **trend._asdict(),
        "effect": trend.value, "effect_size": "kendall_tau_b",
        "monotone": all(sign * (b - a) > 0 for a, b in pairwise(means)), "expected": expected,
    })  # fmt: skip
    return ProbeResult("validity", rows, settings={"expected": expected})


def _trend(order: Array, pooled: Array, clusters: Clusters) -> Estimate:
    """Tau-b with the interval of a jackknife over clusters, apart within doses if none reaches into several."""
    group = codes(clusters, pooled.size, "doses")
    unit = np.arange(pooled.size) if group is None else group
    doses = [set(unit[order == dose].tolist()) for dose in np.unique(order)]
    up, signs = np.sign(order[:, None] - order), np.sign(pooled[:, None] - pooled)
    same = unit[:, None] == unit
    (agree, apart, differ) = (_left_out(x, same, unit) for x in (up * signs, np.abs(up), np.abs(signs)))
    tau = np.divide(agree, np.sqrt(apart * differ), out=np.zeros_like(agree), where=apart * differ > 0)
    value, nothing = float(tau[0]), (float("nan"), float("nan"))
    if group is not None and min(map(len, doses)) < FEWEST:
        return Estimate(value, *nothing, FEW)
    parts = doses if sum(map(len, doses)) == len(tau) - 1 else [set(unit.tolist())]
    left = [tau[1:][sorted(part)] for part in parts]
    variances = [float((len(x) - 1) / len(x) * ((x - x.mean()) ** 2).sum()) for x in left]
    if sum(variances) <= 1e-24 or min(map(len, left)) < 2:
        return Estimate(value, *nothing, NO_SPREAD)
    freedom = sum(variances) ** 2 / sum(v**2 / (len(x) - 1) for v, x in zip(variances, left, strict=True))
    # Few cases may by chance hardly vary; independent ones without any trend vary as much as this.
    least = 2 * _null_error(order, pooled) / float(np.sqrt((apart * differ)[0]))
    half = float(stats.t.ppf(0.975, freedom)) * max(float(np.sqrt(sum(variances))), least)
    method = f"jackknife over {'cases' if group is None else 'clusters'}, t"
    return Estimate(value, max(-1.0, value - half), min(1.0, value + half), method)


def _null_error(x: Array, y: Array) -> float:
    """Standard deviation of concordant less discordant pairs if x has nothing to do with y (Kendall)."""
    n = x.size
    t, u = (np.unique(v, return_counts=True)[1].astype(float) for v in (x, y))
    twice, thrice = ([float(f(c).sum()) for c in (t, u)] for f in
                     (lambda c: c * (c - 1), lambda c: c * (c - 1) * (c - 2)))  # fmt: skip
    apart = n * (n - 1) * (2 * n + 5) - sum(float((c * (c - 1) * (2 * c + 5)).sum()) for c in (t, u))
    ties = twice[0] * twice[1] / (2 * n * (n - 1)) + thrice[0] * thrice[1] / (9 * n * (n - 1) * max(n - 2, 1))
    return float(np.sqrt(max(apart / 18 + ties, 0.0)))


def _left_out(pairs: Array, same: NDArray[np.bool_], unit: NDArray[np.intp]) -> Array:
    """The sum over all pairs, then without each unit in turn."""
    mine, within = np.bincount(unit, pairs.sum(1)), np.bincount(unit, (pairs * same).sum(1))
    return np.r_[pairs.sum(), pairs.sum() - 2 * mine + within]


def planted_recovery(
    baseline: ArrayLike, *, n: int, effects: Sequence[float] = (0.0, 0.2, 0.5, 0.8, 1.2), trials: int = 200,
    alpha: float = 0.05, power: float = 0.8, quantity: str = "score", seed: int = 0,
    plant: Callable[[Array, float], Array] | None = None, test: Callable[[Array, Array], float] | None = None,
) -> ProbeResult:  # fmt: skip
    """How small an effect would the probe's contrast have found with ``n`` cases a side?

    Two samples are drawn from ``baseline`` scores, an effect is planted in one (default: a shift in standard
    deviations; give ``plant(scores, effect)`` for other mechanisms) and tested (default: Welch's t; give
    ``test(a, b) -> p``). One row per effect: the share of trials found, with its Clopper-Pearson interval; the row
    of effect 0 is the false-positive rate. The last row is the smallest effect found with the asked power
    (interpolated; infinite when none was).
    """
    x = finite(baseline, "baseline")
    if x.size < 2 or n < 2:
        raise NoCasesError(f"{x.size} baseline scores and n={n}; give at least two of each")
    if n != int(n) or not np.isfinite(np.asarray(effects, dtype=float)).all():
        raise InputError(f"n={n}, effects {list(effects)}: give a whole number of cases, and finite effects")
    if trials < 1 or not len(effects) or not 0 < alpha < 1 or not 0 < power <= 1:
        raise InputError(
            f"trials={trials}, {len(effects)} effects, alpha={alpha}, power={power}; need trials and effects, "
            "0 < alpha < 1 and 0 < power <= 1"
        )
    if plant is None and constant(x):
        raise InputError(
            f"baseline: all {x.size} scores are equal, so an effect cannot be given in standard deviations; "
            "give other scores, or plant=..."
        )
    rng = np.random.default_rng(seed)
    sd = float(x.std(ddof=1))
    put = plant or (lambda scores, effect: scores + effect * sd)
    p_of = test or welch_p
    rows: list[Row] = []
    for effect in sorted(effects, key=abs):
        found = 0
        for _ in range(trials):
            a, b = rng.choice(x, int(n)), rng.choice(x, int(n))
            found += p_of(np.asarray(put(a, effect)), b) < alpha
        ci = stats.binomtest(found, trials).proportion_ci(method="exact")
        rows.append({
            "quantity": f"{quantity}: recovery", "group": f"effect {effect:g}", "n": n, "value": found / trials,
            "low": float(ci.low), "high": float(ci.high), "interval": "clopper-pearson", "effect": effect,
            "trials": trials,
        })  # fmt: skip
    smallest = _crossing([r["effect"] for r in rows], [r["value"] for r in rows], power)
    rows.append({
        "quantity": f"{quantity}: smallest effect", "group": f"power {power:g}", "n": n, "value": smallest,
        "low": float("nan"), "high": float("nan"), "interval": "none", "effect": smallest, "trials": trials,
    })  # fmt: skip
    settings: dict[str, Any] = {"alpha": alpha, "power": power, "trials": trials, "seed": seed}
    return ProbeResult("validity", rows, settings=settings)


def _crossing(effects: Sequence[float], rates: Sequence[float], power: float) -> float:
    for i, rate in enumerate(rates):
        if rate >= power:
            if i == 0:
                return float(effects[0])
            share = (power - rates[i - 1]) / (rate - rates[i - 1])
            return float(effects[i - 1] + share * (effects[i] - effects[i - 1]))
    return float("inf")
