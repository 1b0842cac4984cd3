"""Whole maps (layer x head, layer, ...) tested at once by the largest statistic, under random signs and labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError, NoCasesError
from ..evaluation.dependence import FEWEST
from .effects import Array, ClusterPair, codes, pair_codes


@dataclass(frozen=True)
class MapTest:
    """A whole map (layer x head, layer, ...) tested at once."""

    difference: NDArray[np.float64]
    statistic: NDArray[np.float64]
    """Welch t (independent groups) or one-sample t (paired), per cell."""
    p: NDArray[np.float64]
    """Adjusted over the map: the share of draws whose largest |t| anywhere reaches the cell's."""
    threshold: float
    """|t| that a cell must reach at the given level."""
    n: tuple[int, int]
    permutations: int
    method: str


def map_test(
    first: ArrayLike, second: ArrayLike, *, paired: bool = False, permutations: int = 1000, level: float = 0.95,
    clusters: ClusterPair = (None, None), seed: int = 0,
) -> MapTest:  # fmt: skip
    """Maximum-statistic test of ``first`` [case ...] against ``second`` [case ...] by random signs and labels.

    Controls the chance of any false cell in the map (Nichols & Holmes 2002). The difference of each case from the mean
    of all (``paired``: each difference) gets a random sign, the same one within a cluster, and Welch's t is formed
    again (the wild bootstrap of Cameron, Gelbach and Miller 2008 with the null imposed). This keeps the spread of each
    group but assumes roughly symmetric values. Permuted labels (those of a cluster together, or within clusters that
    reach into both groups) keep the skewness but assume that both groups are equally spread. p is the larger of both,
    so that either is enough; signs alone decide if ``paired``. Raises ``InputError`` for NaN and unequal maps,
    ``NoCasesError`` below 2 cases a side, or 5 clusters where they share some.
    """
    if permutations < 1 or not 0 < level < 1:
        raise InputError(f"permutations={permutations}, level={level}; need permutations >= 1 and 0 < level < 1")
    x, y = (np.asarray(v, dtype=np.float64) for v in (first, second))
    if x.shape[1:] != y.shape[1:] or (paired and x.shape != y.shape):
        raise InputError(f"maps have shapes {x.shape} and {y.shape}; cells (and cases when paired) must agree")
    if len(x) < 2 or len(y) < 2:
        raise NoCasesError(f"maps of {len(x)} and {len(y)} cases; a map test needs at least 2 of each")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("maps hold NaN or infinite cells; average over the steps where they are defined first")
    cells = x.shape[1:]
    flat_x, flat_y = x.reshape(len(x), -1), y.reshape(len(y), -1)
    # t has no scale; what counts as rounding has: that of the cell's own values.
    scale = np.maximum(np.abs(flat_x).max(0), np.abs(flat_y).max(0))
    a, b = (v / np.where(scale > 0, scale, 1.0) for v in (flat_x, flat_y))
    rng = np.random.default_rng(seed)
    unit = _units(clusters, len(x), len(y), paired)
    if paired:
        signs = rng.choice([-1.0, 1.0], size=(permutations, int(unit.max()) + 1))[:, unit]
        statistic, null = _one_sample_t(a - b, np.ones((1, len(x))))[0], _one_sample_t(a - b, signs)
        method = "sign-flip maximum statistic"
    else:
        left = np.concatenate([a, b])
        left -= left.mean(0)
        sums = _Sums.of(left, len(x), unit)
        statistic = sums.t(np.ones((1, sums.k)))[0]
        null = sums.t(rng.choice([-1.0, 1.0], size=(permutations, sums.k)))
        relabelled = _relabelled(left, len(x), unit, permutations, rng)
        method = "studentized sign flips and labels, the larger p"
        method += ", maximum statistic" if left.shape[1] > 1 else ""
    draws = [null] if paired else [null, relabelled]
    tested = [_tested(np.abs(drawn).max(1), statistic, level) for drawn in draws]
    p, threshold = np.max([p for p, _ in tested], axis=0), max(t for _, t in tested)
    difference = (flat_x.mean(0) - flat_y.mean(0)).reshape(cells)
    n = (len(x), len(y))
    return MapTest(difference, statistic.reshape(cells), p.reshape(cells), threshold, n, permutations, method)


def _tested(largest: Array, statistic: Array, level: float) -> tuple[Array, float]:
    """p of every cell, and the threshold of |t|."""
    p = (1 + (largest[:, None] >= np.abs(statistic) * (1 - 1e-12)).sum(0)) / (1 + len(largest))
    return p, float(np.quantile(largest, level, method="higher" if np.isinf(largest).any() else "linear"))


def _relabelled(left: Array, n: int, unit: NDArray[np.intp], permutations: int, rng: np.random.Generator) -> Array:
    """Welch's t [draw cell] of permuted labels: of clusters in one group, and of cases within each other cluster."""
    member = (unit == np.arange(int(unit.max()) + 1)[:, None]).astype(float)
    first = member[:, :n].any(1)
    mixed = first & member[:, n:].any(1)
    if mixed.any():
        return _relabelled_within(left, n, unit, mixed, first, permutations, rng)
    size, sums = member.sum(1), member @ left
    labels = rng.permuted(np.tile(first, (permutations, 1)), axis=1).astype(float)
    means, squares = [], np.zeros((permutations, left.shape[1]))
    for side in (labels, 1 - labels):
        cases, clusters = (side @ size)[:, None], side.sum(1)[:, None]
        mean = side @ sums / cases
        apart = side @ sums**2 - 2 * mean * (side @ (sums * size[:, None])) + mean**2 * (side @ size**2)[:, None]
        squares += clusters / np.maximum(clusters - 1, 1) * apart / cases**2
        means.append(mean)
    return _over(means[0] - means[1], np.sqrt(np.maximum(squares, 0)))


def _relabelled_within(
    left: Array, n: int, unit: NDArray[np.intp], mixed: NDArray[np.bool_], first: NDArray[np.bool_],
    permutations: int, rng: np.random.Generator,
) -> Array:  # fmt: skip
    """The same where some clusters are ``mixed``; ``first`` says of the others in which group they are."""
    drawn = np.tile(np.arange(len(left)) < n, (permutations, 1))
    whole = np.flatnonzero(~mixed)
    of = rng.permuted(np.tile(first[whole], (permutations, 1)), axis=1)
    at = ~mixed[unit]
    drawn[:, at] = of[:, np.searchsorted(whole, unit[at])]
    for cluster in np.flatnonzero(mixed):
        drawn[:, unit == cluster] = rng.permuted(drawn[:, unit == cluster], axis=1)
    order = np.argsort(unit, kind="stable")
    starts = np.searchsorted(unit[order], np.arange(len(mixed)))
    out = np.empty((permutations, left.shape[1]))
    for i, labels in enumerate(drawn[:, order, None]):
        sides = []
        for side in (labels, ~labels):
            share = side / max(side.sum(), 1)
            weight, part = (np.add.reduceat(x, starts) for x in (share, share * left[order]))
            clusters, mean = int((weight > 0).sum()), part.sum(0)
            sides.append((mean, np.sqrt(clusters / max(clusters - 1, 1)) * (part - weight * mean)))
        out[i] = _over(sides[0][0] - sides[1][0], np.sqrt(((sides[0][1] - sides[1][1]) ** 2).sum(0)))
    return out


def _units(clusters: ClusterPair, n: int, m: int, paired: bool) -> NDArray[np.intp]:
    """The cluster of each case, or of each pair; every one is its own cluster where they share nothing."""
    group = codes(clusters[0], n, "cases") if paired else pair_codes(clusters, n, m, "cases")
    if group is None:
        return np.arange(n if paired else n + m)
    if not paired and (fewest := min(len(set(g.tolist())) for g in (group[:n], group[n:]))) < FEWEST:
        raise NoCasesError(
            f"maps of {fewest} clusters a side; a map test needs at least {FEWEST} where cases share any"
        )
    return group


@dataclass(frozen=True)
class _Sums:
    """The parts of each cluster in both means, from which Welch's t is formed under flipped signs of clusters."""

    first: Array
    """cluster cell"""
    second: Array
    weights: tuple[Array, Array]
    """Each cluster's share in the cases of a group, scaled by sqrt(k / (k - 1)) as are its residuals."""
    scale: tuple[float, float]
    k: int

    @staticmethod
    def of(left: Array, n: int, group: NDArray[np.intp]) -> _Sums:
        k = int(group.max()) + 1
        member = np.zeros((k, len(left)))
        member[group, np.arange(len(left))] = 1
        sides = member[:, :n] / n, member[:, n:] / (len(left) - n)
        counts = [int((side.sum(1) > 0).sum()) for side in sides]
        scale = [float(np.sqrt(c / (c - 1))) if c > 1 else np.inf for c in counts]
        weights = tuple(s * side.sum(1) for s, side in zip(scale, sides, strict=True))
        return _Sums(sides[0] @ left[:n], sides[1] @ left[n:], (weights[0], weights[1]), (scale[0], scale[1]), k)

    def t(self, signs: Array) -> Array:
        """Welch's t, cluster-robust, per row of signs and cell: residuals of a cluster are summed before squaring."""
        a, b = signs @ self.first, signs @ self.second
        own = self.scale[0] * self.first - self.scale[1] * self.second
        u, v = self.weights
        crossed = b * (signs @ (own * v[:, None])) - a * (signs @ (own * u[:, None]))
        squares = (own**2).sum(0) + a**2 * (u @ u) + b**2 * (v @ v) - 2 * a * b * (u @ v) + 2 * crossed
        return _over(a - b, np.sqrt(np.maximum(squares, 0)))


def _one_sample_t(data: Array, signs: Array) -> Array:
    n = data.shape[0]
    mean = signs @ data / n
    return _over(mean, np.sqrt(np.maximum((data**2).mean(0) - mean**2, 0) / (n - 1)))


def _over(difference: Array, error: Array) -> Array:
    """t: 0 if neither differs, infinite where groups differ and nothing varies within them."""
    sure = np.where(np.abs(difference) > 1e-9, np.copysign(np.inf, difference), 0.0)
    return np.divide(difference, error, out=sure, where=error > 1e-12)
