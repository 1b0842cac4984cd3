"""Limits of functions of rates that a few cases decide about, where a bootstrap has not seen what else there could be.

    limits(table, lambda rates: rates[0] - rates[1])  # table: [case rate] of 0 and 1, NaN where a case does not count

``protocols.counting`` widens the interval of a bootstrap to these limits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]
Function = Callable[[Any], Any]
"""Of the rates of all columns, to a number."""


def limits(table: ArrayLike, function: Function) -> tuple[float, float] | None:
    """Lower and upper limit (95 %) of a function of rates over independent cases; None where it is undefined.

    The squares of what each rate's score limits (Wilson 1927) change are added up, with the correlations of the rates:
    method 10 of Newcombe (1998) for two rates over the same cases, and MOVER (Zou and Donner 2008) for any number. As
    in Newcombe's, a correlation that narrows the interval is brought nearer to 0, by half a case.
    """
    x = np.asarray(table, dtype=np.float64)
    inside = np.isfinite(x)
    n = inside.sum(0).astype(float)
    if not len(x) or not n.all():
        return None
    rates = np.where(inside, x, 0).sum(0) / n
    steps = 1e-6 * np.eye(len(rates))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(function(rates))
        slopes = np.array([(function(rates + s) - function(rates - s)) / 2e-6 for s in steps], dtype=np.float64)
    if not (np.isfinite(value) and np.isfinite(slopes).all()):
        return None
    low, high = _score_limits(rates, n)
    plain, nearer = _correlations(np.where(inside, x - rates, 0), np.sqrt(n * rates * (1 - rates)))
    ends = []
    for sign in (-1, 1):
        moved = slopes * np.where(slopes * sign > 0, high - rates, rates - low)
        both = np.outer(moved, moved)
        squares = float((both * np.where(both * plain < 0, nearer, plain)).sum())
        ends.append(value + sign * float(np.sqrt(max(squares, 0.0))))
    return ends[0], ends[1]


def _score_limits(rates: Array, n: Array) -> tuple[Array, Array]:
    z = float(stats.norm.ppf(0.975))
    middle = (rates + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(rates * (1 - rates) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return np.minimum(np.maximum(middle - half, 0), rates), np.maximum(np.minimum(middle + half, 1), rates)


def _correlations(residuals: Array, spreads: Array) -> tuple[Array, Array]:
    """Correlations of the rates over the cases that count in both, and the same nearer to 0."""
    scale = np.outer(spreads, spreads)
    known = scale > 0
    plain = np.divide(residuals.T @ residuals, scale, out=np.zeros_like(scale), where=known)
    off = np.divide(0.5, scale, out=np.ones_like(scale), where=known)
    nearer = np.sign(plain) * np.maximum(np.abs(plain) - off, 0)
    for each in (plain, nearer):
        np.fill_diagonal(each, 1.0)
    return plain, nearer


def of_two_gates(columns: ArrayLike) -> tuple[Array, Function]:
    """Rates that are hardly correlated, and the difference of failure rates as their function, where one gate is in the
    other: of each case whether it passes the wider gate, and then fails, passes both, and then fails.

    The rates: of those that pass the wider gate, the shares that only this one passes and that fail, or do not; of
    those that pass both, the share that fails.
    """
    c = np.asarray(columns, dtype=np.float64).reshape(-1, 4)
    one = c[:, 0] - c[:, 2]
    table = np.column_stack([one * c[:, 1], one * (1 - c[:, 1]), c[:, 3]])
    return np.where(c[:, [0, 0, 2]] > 0, table, np.nan), lambda r: r[0] * (1 - r[2]) - r[1] * r[2]
