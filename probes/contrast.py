"""Group against group and role against role: effect, interval, test, Holm-adjusted p; and maps by permutation.

    between({"failure": [0.2, 0.4], "success": [0.5, 0.9]}).table

Every p-value comes with n and an effect. If a contrast cannot be made, its row says so (``note``). Every row states the
smallest standardized effect that its n would have shown, so that a null result can be interpreted.
"""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats as scipy_stats

from ..errors import InputError, NoCasesError, did_you_mean
from ..evaluation.dependence import CLUSTERED, CROSSED, FEWEST, INDEPENDENT, Fit
from ..evaluation.statistics import holm
from . import effects
from .effects import Array, ClusterPair, Clusters, Estimate
from .maps import MapTest, map_test
from .matching import Matched, match
from .result import ProbeResult, Row

if TYPE_CHECKING:
    import pandas

stats: Any = scipy_stats  # its result types do not declare pvalue and statistic

__all__ = ["MapTest", "Matched", "adjust", "between", "map_test", "match", "paired"]

BetweenTest = Literal["auto", "welch", "mann-whitney", "permutation"]
PairedTest = Literal["auto", "t", "wilcoxon", "permutation"]
NO_CONTRAST = "no contrast possible"


def between(
    groups: Mapping[str, ArrayLike], *, quantity: str = "value", clusters: Mapping[str, Clusters] | None = None,
    test: BetweenTest = "auto", family: str | None = None, level: float = 0.95, resamples: int = 2000, seed: int = 0,
) -> ProbeResult:  # fmt: skip
    """Contrast independent groups, every pair of them, first minus second.

    ``groups`` maps a label to one number per case, ``clusters`` the same labels to one cluster id per case. The table
    has one row per group (mean and interval) and one per pair: ``value`` the difference of means with its interval,
    ``effect`` Hedges' g, ``cliffs_delta``, ``test`` and ``p``, and ``p_adjusted`` after Holm over the pairs (the
    family). ``test="auto"`` is Welch's t, with errors that respect what cases share; ``permutation`` that of the signs
    of what is left of a common mean and that of labels, both with Welch's t (``map_test`` of one cell).
    Raises ``NoCasesError`` for fewer than two groups or an empty one, ``InputError`` for NaN.
    """
    _check_options(test, BetweenTest, level, resamples)
    values = {name: effects.finite(v, f"group {name!r}") for name, v in groups.items()}
    if len(values) < 2 or not all(v.size for v in values.values()):
        sizes = {k: int(v.size) for k, v in values.items()}
        raise NoCasesError(f"groups have sizes {sizes}; a contrast needs at least two groups with cases")
    if unknown := [name for name in clusters or () if name not in values]:
        raise InputError(f"clusters: no group {unknown[0]!r}{did_you_mean(unknown[0], values)}; groups: {list(values)}")
    near: dict[str, Clusters] = {
        # Groups without clusters among others that have them: every case is its own cluster.
        name: None if clusters is None else [None] * v.size if clusters.get(name) is None else clusters[name]
        for name, v in values.items()
    }
    settings = {"level": level, "resamples": resamples, "seed": seed, "test": test}
    means = [summary_row(quantity, name, v, near[name], level=level) for name, v in values.items()]
    rows = [
        _between_row(quantity, (a, b), values, near, test, level, resamples, seed) for a, b in combinations(values, 2)
    ]
    return ProbeResult("contrast", [*means, *adjust(rows, family or quantity)], settings=settings)


def summary_row(quantity: str, group: str, values: ArrayLike, clusters: Clusters = None, **options: Any) -> Row:
    """One group's mean as a table row."""
    x = effects.finite(values, f"group {group!r}")
    e = effects.mean_interval(x, clusters, **options)
    return {"quantity": quantity, "group": group, "n": int(x.size), **e._asdict()}


def _between_row(
    quantity: str, pair: tuple[str, str], values: Mapping[str, Array], clusters: Mapping[str, Clusters],
    test: BetweenTest, level: float, resamples: int, seed: int,
) -> Row:  # fmt: skip
    a, b = values[pair[0]], values[pair[1]]
    near = (clusters[pair[0]], clusters[pair[1]])
    row: Row = {"quantity": quantity, "group": f"{pair[0]} - {pair[1]}", "n": int(a.size + b.size)}
    row |= {"n_first": int(a.size), "n_second": int(b.size)}
    if a.size < 2 or b.size < 2:
        return row | impossible(f"{NO_CONTRAST}: {a.size} and {b.size} cases; each group needs at least 2")
    difference = effects.difference_interval(a, b, near, level=level)
    name, p = _between_p(a, b, near, test, resamples, seed)
    effect = effects.hedges_g(a, b, level, near)
    detectable = effects.smallest_detectable(a.size, b.size, **_in_sd(effects.difference_fit(a, b, near), a, b))
    return row | _contrast(difference, effect, name, p, detectable) | {"cliffs_delta": effects.cliffs_delta(a, b)}


def _in_sd(fit: Fit, *groups: Array) -> dict[str, float]:
    """The error in standard deviations for ``smallest_detectable``, where cases share anything."""
    if fit.method in INDEPENDENT:
        return {}
    left = np.concatenate([g - g.mean() for g in groups])
    sd = float(np.sqrt((left**2).sum() / max(left.size - len(groups), 1)))
    return {"error": fit.error / sd if fit.known and sd > 0 else float("nan"), "freedom": fit.used}


def _contrast(difference: Estimate, effect: Estimate, test: str, p: float, detectable: float) -> Row:
    return {
        **difference._asdict(),
        "effect": effect.value, "effect_low": effect.low, "effect_high": effect.high, "effect_size": "hedges_g",
        "test": test, "p": p, "smallest_detectable": detectable, "note": "",
    }  # fmt: skip


def impossible(note: str) -> Row:
    """The contrast columns of a row that says why there is no contrast."""
    nothing = Estimate(float("nan"), float("nan"), float("nan"), "none")
    return _contrast(nothing, nothing, "none", float("nan"), float("inf")) | {"note": note}


def _between_p(
    a: Array, b: Array, clusters: ClusterPair, test: BetweenTest, resamples: int, seed: int
) -> tuple[str, float]:
    pooled = np.concatenate([a, b])
    if effects.constant(pooled):
        return "none (no variation)", 1.0
    if test == "permutation":
        try:
            found = map_test(a[:, None], b[:, None], permutations=resamples, clusters=clusters, seed=seed)
        except NoCasesError:
            return f"none (fewer than {FEWEST} clusters)", float("nan")
        return found.method, float(found.p[0])
    flat = effects.constant(a) and effects.constant(b)
    group = effects.pair_codes(clusters, a.size, b.size, "groups")
    if test == "auto" and group is not None:
        own = [len(set(g)) for g in (group[: a.size], group[a.size :])]
        fit = effects.difference_fit(a, b, clusters)
        if fit.method == CROSSED and not flat:
            return _tested(fit)
        if min(own) < 2:
            return "none (one cluster in a group)", float("nan")
        if flat:
            return _all_apart(*own) if sum(own) == len(set(group)) else ("none (clusters in both groups)", float("nan"))
        return _tested(fit)
    if group is not None:
        raise InputError(f"test {test!r} takes cases as independent, but they share clusters; use test='auto'")
    if test in ("auto", "welch"):
        return _all_apart(a.size, b.size) if flat else ("Welch t", effects.difference_fit(a, b).p)
    # The first takes the groups as equally spread; the second does not, but has no p where groups lie apart.
    with warnings.catch_warnings(action="ignore"):
        ranked = [float(test.pvalue) for test in (stats.mannwhitneyu(a, b), stats.brunnermunzel(a, b))]
    return "Mann-Whitney and Brunner-Munzel, the larger p", max(p for p in ranked if np.isfinite(p))


def _tested(fit: Fit) -> tuple[str, float]:
    """The test of a clustered or crossed fit, or the reason why there is none."""
    names = {CLUSTERED: "cluster-robust t", CROSSED: "t of crossed random effects"}
    return (names[fit.method], fit.p) if fit.known else (f"none (fewer than {FEWEST} clusters)", float("nan"))


def _all_apart(n: int, m: int) -> tuple[str, float]:
    """The permutation p where groups differ and nothing varies within them: t is infinite there."""
    return "label permutation (no variation within groups)", (2 if n == m else 1) / comb(n + m, n)


def paired(
    roles: "Mapping[str, Mapping[str, float] | Sequence[float] | pandas.Series]", *, quantity: str = "value",
    clusters: "Mapping[str, Hashable] | pandas.Series | Clusters" = None, test: PairedTest = "auto",
    family: str | None = None, level: float = 0.95, resamples: int = 2000, seed: int = 0,
) -> ProbeResult:  # fmt: skip
    """Contrast roles within cases, every pair of roles, first minus second.

    ``roles`` maps a role to numbers by case id, also as a column with ids as its index (cases missing from either
    role are left out of that pair and counted in ``n_dropped``) or to aligned sequences. ``effect`` is the
    standardized mean difference d_z with Hedges' factor. ``test="auto"`` is the paired t test, cluster-robust where
    cases share clusters; ``permutation`` flips the signs of differences, those of a cluster together. ``clusters`` are
    given as the roles are; by case id, a case without one shares nothing. Errors as in ``between``, and ``InputError``
    for clusters of other cases.
    """
    _check_options(test, PairedTest, level, resamples)
    # A pandas column has case ids as its index.
    roles = {name: _by_id(v, f"role {name!r}", True) if hasattr(v, "items") else v for name, v in roles.items()}
    lengths = {len(v) for v in roles.values() if not isinstance(v, Mapping)}
    if len(lengths) > 1:
        raise InputError(f"roles {list(roles)} have {sorted(lengths)} values; align them, or give them by case id")
    table: dict[str, dict[Any, float]]
    table = {name: dict(v if isinstance(v, Mapping) else enumerate(v)) for name, v in roles.items()}
    if len(table) < 2 or not all(table.values()):
        raise NoCasesError(f"roles {list(table)} have sizes {[len(v) for v in table.values()]}; give at least two")
    near = None if clusters is None else _by_case(clusters, table)
    rows = []
    for first, second in combinations(table, 2):
        shared = [c for c in table[first] if c in table[second]]
        sides = [effects.finite([table[role][c] for c in shared], f"role {role!r}") for role in (first, second)]
        d = _differences(*sides)
        group = None if near is None else [near.get(c) for c in shared]
        dropped = len(set(table[first]) | set(table[second])) - len(shared)
        row: Row = {"quantity": quantity, "group": f"{first} - {second}", "n": len(shared), "n_dropped": dropped}
        rows.append(row | _paired_row(d, group, test, level, resamples, seed))
    settings = {"level": level, "resamples": resamples, "seed": seed, "test": test}
    return ProbeResult("contrast", adjust(rows, family or quantity), settings=settings)


def _by_id(column: Any, what: str, once: bool) -> dict[Any, Any]:
    """Values by case id. A column may hold an id several times: never if ``once``, else with the same value only."""
    found: dict[Any, Any] = {}
    for id, value in column.items():
        if id in found and (once or found[id] != value):
            raise InputError(
                f"{what}: case {id!r} has several values, {found[id]!r} and {value!r}; give one per case (a mean)"
            )
        found[id] = value
    return found


def _by_case(clusters: Any, table: Mapping[str, Mapping[Any, float]]) -> dict[Any, Hashable]:
    """Clusters by the cases of the roles."""
    cases = dict.fromkeys(c for of in table.values() for c in of)
    by_id = hasattr(clusters, "items")  # a mapping or a pandas column
    near = _by_id(clusters, "clusters", False) if by_id else dict(enumerate(clusters))
    known = sum(c in near for c in cases)
    # A sorted table's ids may be the numbers 0 to n - 1 in another order, which a list does not follow.
    in_order = by_id or (len(near) == len(cases) == known and all([*of] == sorted(of) for of in table.values()))
    if not in_order or (near and not known):
        first = [next(iter(of), None) for of in (near, cases)]
        raise InputError(
            f"clusters: {len(near)} for {len(cases)} cases, the first for {first[0]!r}, and the first case is "
            f"{first[1]!r}; give one per case, in order or by case id as the roles are"
        )
    return near


def _differences(a: Array, b: Array) -> Array:
    """a - b; differences that are only rounding are set to 0, or to one common value."""
    d = a - b
    if not d.size:
        return d
    scale = float(max(np.abs(a).max(), np.abs(b).max()))
    if not effects.spreads(float(d.min()), float(d.max()), scale):
        d = np.full_like(d, d.mean())
    return np.where(np.abs(d) <= 1e-12 * scale, 0.0, d)


def _check_options(test: str, known: Any, level: float, resamples: int) -> None:
    if test not in get_args(known):
        raise InputError(f"test: {test!r}; use one of {', '.join(get_args(known))}")
    if not 0 < level < 1 or resamples < 1:
        raise InputError(f"level={level}, resamples={resamples}; need 0 < level < 1 and resamples >= 1")


def _paired_row(d: Array, clusters: Clusters, test: PairedTest, level: float, resamples: int, seed: int) -> Row:
    if d.size < 2:
        return impossible(f"{NO_CONTRAST}: {d.size} cases have both roles; at least 2 are needed")
    difference = effects.mean_interval(d, clusters, level=level)
    name, p = _paired_p(d, clusters, test, resamples, seed)
    detectable = effects.smallest_detectable(d.size, None, **_in_sd(effects.mean_fit(d, clusters), d))
    return _contrast(difference, effects.hedges_g_paired(d, level, clusters), name, p, detectable)


def _paired_p(d: Array, clusters: Clusters, test: PairedTest, resamples: int, seed: int) -> tuple[str, float]:
    if np.all(d == 0):
        return "none (no difference)", 1.0
    d = d / np.abs(d).max()  # squares of very small differences would be 0
    group = effects.codes(clusters, d.size, "cases")
    if test == "auto" and group is not None:
        if effects.constant(d):
            return "sign test of clusters (no variation)", 2.0 ** (1 - len(set(group)))
        return _tested(effects.mean_fit(d, clusters))
    if group is not None and test == "permutation":
        return _flipped(d, group, resamples, seed)
    if group is not None:
        raise InputError(f"test {test!r} takes cases as independent, but they share clusters; use test='auto'")
    if test in ("auto", "t"):
        if np.ptp(d) == 0:  # t is infinite; that all signs agree is what the cases show
            return "sign test (no variation)", 2.0 ** (1 - d.size)
        return "paired t", float(stats.ttest_1samp(d, 0).pvalue)
    if test == "wilcoxon":
        return "Wilcoxon", float(stats.wilcoxon(d).pvalue)
    return _flipped(d, np.arange(d.size), resamples, seed)


def _flipped(d: Array, group: NDArray[np.intp], resamples: int, seed: int) -> tuple[str, float]:
    """The signs of cases, or of whole clusters, are drawn anew."""
    sums = np.bincount(group, d)
    if sums.size < d.size and sums.size < FEWEST:
        return f"none (fewer than {FEWEST} clusters)", float("nan")
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(resamples, sums.size))
    reached = np.abs(signs @ sums) >= abs(d.sum()) * (1 - 1e-12)
    return f"sign-flip permutation{' of clusters' if sums.size < d.size else ''}", float(
        (1 + reached.sum()) / (1 + resamples)
    )


def adjust(rows: Sequence[Row], family: str) -> list[Row]:
    """Rows with ``p_adjusted`` (Holm over all rows given: one declared family) and the family's name."""
    adjusted = holm([None if np.isnan(r["p"]) else float(r["p"]) for r in rows])
    missing = float("nan")
    return [
        {**r, "p_adjusted": missing if p is None else p, "family": family} for r, p in zip(rows, adjusted, strict=True)
    ]
