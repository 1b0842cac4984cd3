"""Means and regressions of observations that share something: cases about the same fact, pairs with the same success.

    mean([0.2, 0.4, 0.9], ["fact a", "fact a", "fact b"]).interval()

What observation i shares is named by one label, by a ``frozenset`` of labels (a case about several facts), or by a
``Sides`` of two such (a pair of cases). None means that it shares nothing. There are two kinds of standard errors:

* Clusters, where labels part the observations into groups that share nothing: the bias-reduced linearization CR2 (Bell
  and McCaffrey 2002) with the Satterthwaite degrees of freedom of Imbens and Kolesar (2016). Labels that meet in one
  observation are joined first. Where clusters are skewed tests and intervals use fewer degrees of freedom (``SKEWED``).
* Crossed labels, where joining would leave too few groups: each label has a random effect, the variances are estimated
  by moments (Henderson's method, MINQUE(0)) and the degrees of freedom by Satterthwaite. The error is never smaller
  than that of independent observations.

With fewer than ``FEWEST`` clusters no interval is claimed.
"""

from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse, stats
from scipy.sparse.csgraph import connected_components

from ..errors import InputError

Array = NDArray[np.float64]
Labels = Sequence[Hashable]
FEWEST = 5
"""Clusters (of a side, or of a dimension) below which no interval is claimed."""
JOINED_LEAST, JOINED_LARGEST = 8, 0.25
"""Labels that meet are joined if this many groups remain and none holds a larger share; otherwise they are crossed."""
FEW = f"no interval: fewer than {FEWEST} clusters"
SKEWED = 8 / 9
"""What the squared skewness of an estimate adds to the inverse of its degrees of freedom.

Skewness g of an estimate adds 2 g^2 (x^4 + 2 x^2 - 3) x phi(x) / 18 to the chance that its |t| is above x (Hall 1992,
The Bootstrap and Edgeworth Expansion, section 2.6). 1 / freedom adds 2 (x^2 + 1) x phi(x) / 4: the same at x = 1.96.
"""

INDEPENDENT = ("t", "Welch t")
"""The methods if nothing is shared; if something is, ``CLUSTERED`` and ``CROSSED`` are the methods."""
CLUSTERED, CROSSED = "CR2 t over clusters", "crossed random effects, t"


class Sides(NamedTuple):
    """What the two members of a pair share with other pairs."""

    first: Hashable
    second: Hashable


class Fit(NamedTuple):
    """A coefficient with its standard error and degrees of freedom."""

    value: float
    error: float
    freedom: float
    clusters: int
    """The smallest number of clusters or labels on which the error rests; observations, if they share nothing."""
    method: str
    skewness: float = 0.0
    """Of the estimate, from its clusters; 0 where labels cross."""

    @property
    def used(self) -> float:
        """The degrees of freedom of tests and intervals: fewer where clusters are skewed."""
        if self.method in INDEPENDENT:
            return self.freedom
        return max(1 / (1 / self.freedom + SKEWED * self.skewness**2), 1.0)

    @property
    def known(self) -> bool:
        """Whether there is an error, of more than one observation, and enough clusters where anything is shared."""
        least = 2 if self.method in INDEPENDENT else FEWEST
        return bool(np.isfinite(self.error)) and self.clusters >= least

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Student t interval; NaN where no error is known or too few clusters carry it."""
        if not self.known:
            return float("nan"), float("nan")
        half = float(stats.t.ppf((1 + level) / 2, self.used)) * self.error
        return self.value - half, self.value + half

    @property
    def p(self) -> float:
        """Two-sided p of the value against 0; NaN where no error is known or too few clusters carry it."""
        if not self.known or self.error <= 0:
            return float("nan")
        return float(2 * stats.t.sf(abs(self.value) / self.error, self.used))


def names_of(label: Hashable) -> frozenset[Hashable]:
    """What a label names; nothing if it is None, or is missing in the column of a table (NaN)."""
    return frozenset(n for n in (label if isinstance(label, frozenset) else [label]) if not _missing(n))


def _missing(name: Hashable) -> bool:
    return name is None or type(name).__name__ == "NAType" or name != name  # pandas' NA compares with nothing


def _names(label: Hashable, alone: Hashable) -> tuple[Hashable, ...]:
    return tuple(sorted(names_of(label), key=repr)) or (("alone", alone),)


def dimensions(labels: Labels) -> list[list[tuple[Hashable, ...]]]:
    """The labels of every observation, of each side where observations are pairs."""
    if any(isinstance(label, Sides) for label in labels):
        pairs = [label if isinstance(label, Sides) else Sides(label, None) for label in labels]
        return [[_names(p[side], (side, i)) for i, p in enumerate(pairs)] for side in (0, 1)]
    return [[_names(label, i) for i, label in enumerate(labels)]]


def joined(labels: Labels) -> NDArray[np.intp]:
    """Group numbers 0..k-1 in order of appearance: a chain of shared labels puts observations into one group."""
    return np.array(_joined(tuple(labels)), dtype=np.intp)


@lru_cache(maxsize=256)
def _joined(labels: tuple[Hashable, ...]) -> tuple[int, ...]:
    seen: dict[Hashable, int] = {}
    if _plain(labels):
        keys = (("alone", i) if _missing(label) else label for i, label in enumerate(labels))
        return tuple(seen.setdefault(key, len(seen)) for key in keys)
    of: dict[Hashable, int] = {}
    at = [(i, of.setdefault(name, len(of))) for side in dimensions(labels) for i, names in enumerate(side)
          for name in names]  # fmt: skip
    rows, columns = np.array(at).T
    n = len(labels)
    graph = sparse.coo_matrix((np.ones(len(rows)), (rows, columns + n)), shape=(n + len(of), n + len(of)))
    _, group = connected_components(graph, directed=False)
    return tuple(seen.setdefault(int(g), len(seen)) for g in group[:n])


def _plain(labels: Labels) -> bool:
    """Whether every observation has one label at most."""
    return not any(isinstance(label, frozenset | Sides) for label in labels)


def alone(labels: Labels | None) -> bool:
    """Whether no observation shares anything with another."""
    return labels is None or len(set(joined(labels).tolist())) == len(labels)


def apart(labels: Labels) -> list[int]:
    """Observations of which no two share anything: in their order, each one that shares with an earlier one is left
    out."""
    taken: set[Hashable] = set()
    kept = []
    for i, of in enumerate(zip(*dimensions(labels), strict=True)):
        names = {name for side in of for name in side}
        if not names & taken:
            taken |= names
            kept.append(i)
    return kept


def crossing(labels: Labels) -> bool:
    """Whether labels cross: some observation has several, and joining them would leave too few groups."""
    if _plain(labels):
        return False
    sides = dimensions(labels)
    if len(sides) == 1 and all(len(names) == 1 for names in sides[0]):
        return False
    if not any(len(set(flat)) < len(flat) for flat in ([n for names in side for n in names] for side in sides)):
        return False
    sizes = np.bincount(joined(labels))
    return len(sizes) < JOINED_LEAST or bool(sizes.max() > JOINED_LARGEST * len(labels))


def count(labels: Labels) -> int:
    """How many clusters there are, or labels of the dimension with the fewest where they cross."""
    if not crossing(labels):
        return len(set(joined(labels).tolist()))
    return min(z.shape[1] for z in _blocks(labels))


def effective(labels: Labels) -> float:
    """How many independent observations these are worth if all that share a label are equal."""
    if not crossing(labels):
        return len(labels) ** 2 / float((np.bincount(joined(labels)) ** 2).sum())
    # What both members of a pair share cancels, and where all of it does, pairs are independent.
    shared = [float((np.abs(z).sum(0) ** 2).sum()) for z in _blocks(labels)]
    return min(len(labels) ** 2 / max(x, len(labels)) for x in shared)


def mean(values: ArrayLike, labels: Labels | None = None) -> Fit:
    """The mean of values that share what ``labels`` say."""
    y = np.asarray(values, dtype=np.float64)
    return regression(y, np.ones((y.size, 1)), labels)


def regression(values: ArrayLike, design: ArrayLike, labels: Labels | None = None, column: int = 0) -> Fit:
    """One coefficient of a least-squares fit. Raises ``InputError`` where labels and values differ in number."""
    y, x = np.asarray(values, dtype=np.float64), np.asarray(design, dtype=np.float64)
    names: Labels = list(range(y.size)) if labels is None else labels
    if len(names) != y.size:
        raise InputError(f"{len(names)} labels for {y.size} values; give one per value")
    inverse: Array = np.asarray(np.linalg.pinv(x.T @ x), dtype=np.float64)
    beta = inverse @ (x.T @ y)
    weights = x @ inverse[:, column]
    made = _Made(y - x @ beta, x, inverse, weights, float(beta[column]))
    return _crossed(made, names) if crossing(names) else _clustered(made, joined(names))


def difference(first: ArrayLike, second: ArrayLike, labels: tuple[Labels, Labels] | None = None) -> Fit:
    """mean(first) - mean(second), with Welch's degrees of freedom; a label may reach into both groups.

    If fewer than ``FEWEST`` independent cases stand against twice as many, the degrees of freedom are at most theirs.
    Clusters are counted on each side. Where labels cross, what both groups share is left out of account: it can only
    lessen the variance.
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    names = list(range(a.size + b.size)) if labels is None else [*labels[0], *labels[1]]
    sides = (names[: a.size], names[a.size :])
    if crossing(names):
        return _sum_of(mean(a, sides[0]), mean(b, sides[1]), CROSSED)
    group = joined(names)
    own = set(group[: a.size].tolist()), set(group[a.size :].tolist())
    if not own[0] & own[1]:
        found = mean(a, sides[0]), mean(b, sides[1])
        method = "Welch t" if alone(names) else CLUSTERED
        if any(fit.error > 0 for fit in found):  # else no case or cluster differs from another: nothing is known
            found = _of_a_rate(found[0], a, (a, b)), _of_a_rate(found[1], b, (a, b))
        fit = _sum_of(found[0], found[1], method)
        return fit if method == CLUSTERED else fit._replace(freedom=of_the_few(fit.freedom, a.size, b.size))
    inside = np.r_[np.ones(a.size), np.zeros(b.size)]
    fit = regression(np.r_[a, b], np.column_stack([inside, np.ones(inside.size)]), names)
    return fit._replace(clusters=min(map(len, own)))


def of_the_few(freedom: float, n: int, m: int) -> float:
    """Welch's degrees of freedom; a few cases may by chance hardly differ, and these are then those of the many."""
    fewest, most = sorted((n, m))
    return freedom if fewest >= FEWEST or most < 2 * fewest else min(freedom, max(fewest - 1.0, 1.0))


def _of_a_rate(fit: Fit, values: Array, sides: tuple[Array, Array]) -> Fit:
    """A side of a difference of rates: its error is at least that of independent values at both sides' spread.

    Among a few cases or clusters of yes-or-no values, some may by chance hardly differ, and then the difference seems
    certain.
    """
    if np.unique(np.concatenate(sides)).size != 2:
        return fit
    squares, n = sum(float(((y - y.mean()) ** 2).sum()) for y in sides), sum(y.size for y in sides)
    least = float(np.sqrt(squares / (n - 2) / values.size)) if n > 2 else 0.0
    if not fit.error < least:
        return fit
    return fit._replace(error=least, skewness=fit.skewness * (fit.error / least) ** 3)


def _sum_of(a: Fit, b: Fit, method: str) -> Fit:
    """The difference of two means that vary by themselves (Welch and Satterthwaite)."""
    variances = a.error**2, b.error**2
    total = sum(variances)
    below = variances[0] ** 2 / a.freedom + variances[1] ** 2 / b.freedom
    freedom = total**2 / below if below > 0 else min(a.freedom, b.freedom)
    third = a.skewness * a.error**3 - b.skewness * b.error**3
    skewness = third / total**1.5 if total > 0 else 0.0
    return Fit(a.value - b.value, float(np.sqrt(total)), freedom, min(a.clusters, b.clusters), method, skewness)


class _Made(NamedTuple):
    """A least-squares fit: the coefficient is ``weights @ y``."""

    residuals: Array
    design: Array
    inverse: Array
    weights: Array
    value: float

    def project(self, z: Array) -> Array:
        """What is left of columns after the design is taken out."""
        return z - self.design @ (self.inverse @ (self.design.T @ z))


def _clustered(made: _Made, group: NDArray[np.intp]) -> Fit:
    """CR2: residuals of cluster g are multiplied by (I - H_gg)^(-1/2) before they are summed."""
    n, k = len(group), int(group.max()) + 1
    rho = _correlation(made, group)
    if made.design.shape[1] == 1 and np.ptp(made.design) == 0:
        scores, trace, squares = _of_a_mean(made, group, rho)
    else:
        adjusted = _adjusted(made, group)
        spread, sums = made.project(adjusted), np.zeros((k, k))
        np.add.at(sums, group, spread)
        b = (1 - rho) * (spread.T @ spread) + rho * (sums.T @ sums)
        scores, trace, squares = made.residuals @ adjusted, float(np.trace(b)), float((b**2).sum())
    error = float(np.sqrt((scores**2).sum()))
    freedom = trace**2 / max(squares, 1e-300)
    fit = Fit(made.value, error, max(freedom, 1.0), k, CLUSTERED if k < n else "t")
    if k < 3 or error <= 0:
        return fit
    return fit._replace(skewness=float(((scores / error) ** 3).sum()) * k / (k - 2))


def _adjusted(made: _Made, group: NDArray[np.intp]) -> Array:
    """The weights of each cluster's observations after the adjustment ``[observation cluster]``."""
    adjusted = np.zeros((len(group), int(group.max()) + 1))
    order = np.argsort(group, kind="stable")
    root = np.linalg.cholesky(made.inverse)
    for g, rows in enumerate(np.split(order, np.cumsum(np.bincount(group))[:-1])):
        u, s, _ = np.linalg.svd(made.design[rows] @ root, full_matrices=False)
        left = np.maximum(1 - s**2, 0)
        # A generalized inverse: what a cluster alone decides about tells nothing of its spread.
        scale = np.divide(1, np.sqrt(left), out=np.zeros_like(left), where=left > 1e-9) - 1
        w = made.weights[rows]
        adjusted[rows, g] = w + u @ (scale * (u.T @ w))
    return adjusted


def _of_a_mean(made: _Made, group: NDArray[np.intp], rho: float) -> tuple[Array, float, float]:
    """Scores of clusters, and trace and sum of squares of the matrix B of their covariances, for a mean.

    Of a cluster with m of n observations, I - H has the eigenvalue 1 - m/n on their sum. B is a diagonal matrix and
    products of two vectors, so that the time grows with the number of observations only.
    """
    n, m = len(group), np.bincount(group).astype(float)
    left = 1 - m / n
    c = made.weights[0] * np.divide(1, np.sqrt(np.maximum(left, 0)), out=np.zeros_like(left), where=left > 1e-9)
    e, u, v = c**2 * ((1 - rho) * m + rho * m**2), c * m, c * m**2
    alpha, beta = rho * (m @ m) / n**2 - (1 - rho) / n, -rho / n
    uu, uv, vv = u @ u, u @ v, v @ v
    squares = e @ e + 2 * (alpha * (e @ u**2) + 2 * beta * (e @ (u * v)))
    squares += alpha**2 * uu**2 + 4 * alpha * beta * uu * uv + 2 * beta**2 * (uu * vv + uv**2)
    return c * np.bincount(group, made.residuals), float(e.sum() + alpha * uu + 2 * beta * uv), float(squares)


def _correlation(made: _Made, group: NDArray[np.intp]) -> float:
    """Correlation of residuals within clusters, by moments, between 0 and 1."""
    e, sizes = made.residuals, np.bincount(group).astype(float)
    pairs, freedom = float((sizes * (sizes - 1)).sum()), len(e) - made.design.shape[1]
    total = float(e @ e)
    if not pairs or total <= 0 or freedom < 1:
        return 0.0
    within = float((np.bincount(group, e) ** 2).sum()) - total
    return float(np.clip(within / pairs / (total / freedom), 0, 1))


def _crossed(made: _Made, labels: Labels) -> Fit:
    """Var y = s_0 I + sum over dimensions of s_k Z_k Z_k', with rows of Z_k of unit length."""
    blocks = [z for z in _blocks(labels) if (z != 0).sum(0).max() > 1]  # else nothing is shared in this dimension
    if not blocks:  # what is shared stands on both sides of the same pairs, and cancels
        return _clustered(made, np.arange(len(made.residuals)))._replace(method=CROSSED)
    fewest = min(z.shape[1] for z in blocks)
    z = np.concatenate(blocks, axis=1)
    kind = np.repeat(np.arange(1, len(blocks) + 1), [b.shape[1] for b in blocks])
    left = made.project(z)
    n, p = made.design.shape
    every, gram = range(1, len(blocks) + 1), left.T @ left
    c = np.zeros((len(blocks) + 1,) * 2)
    c[0, 0] = n - p
    q, h = np.zeros(len(c)), np.zeros(len(c))
    e, a = made.residuals, made.weights
    q[0], h[0] = e @ e, a @ a
    for j in every:
        mine = kind == j
        q[j], h[j] = ((left[:, mine].T @ e) ** 2).sum(), ((z[:, mine].T @ a) ** 2).sum()
        c[0, j] = c[j, 0] = np.trace(gram[np.ix_(mine, mine)])
        for i in every:
            c[i, j] = (gram[np.ix_(kind == i, mine)] ** 2).sum()
    back = np.linalg.pinv(c, rcond=1e-10)
    w, s = back @ h, np.maximum(back @ q, 0)
    variance = max(float(w @ q), float(q[0] / (n - p) * h[0]))
    d, own = w[kind], s[kind]
    alpha = w[0] * s[0]
    b = np.diag(w[0] * own + s[0] * d) + d[:, None] * gram * own
    product = b @ gram
    squares = alpha**2 * (n - p) + 2 * alpha * np.trace(product) + float((product * product.T).sum())
    freedom = float((h @ s) ** 2 / squares) if squares > 0 else float(n - p)
    # Where labels seem to have no effect the degrees of freedom of their variance go to 1, while the error goes to that
    # of independent observations; a quarter of the labels is enough there (docs/statistics.md).
    freedom = max(freedom, (fewest - 1) / 4)
    return Fit(made.value, float(np.sqrt(variance)), float(np.clip(freedom, 1, n - p)), fewest, CROSSED)


def _blocks(labels: Labels) -> list[Array]:
    """Observations by labels, per dimension, rows of unit length.

    Labels on both sides of pairs are one dimension with signs: what two members share cancels.
    """
    sides = dimensions(labels)
    found = [list(dict.fromkeys(name for names in side for name in names)) for side in sides]
    if len(sides) == 2 and set(found[0]) & set(found[1]):
        both = list(dict.fromkeys([*found[0], *found[1]]))
        return [_indicators(sides[0], both) - _indicators(sides[1], both)]
    return [_indicators(side, names) for side, names in zip(sides, found, strict=True)]


def _indicators(side: Sequence[tuple[Hashable, ...]], known: Sequence[Hashable]) -> Array:
    of = {name: j for j, name in enumerate(known)}
    z = np.zeros((len(side), len(of)))
    for i, names in enumerate(side):
        z[i, [of[name] for name in names]] = 1 / np.sqrt(len(names))
    return z
