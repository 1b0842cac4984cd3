"""Paired differences adjusted for what matching left unbalanced.

    d_i = tau + sum over k of beta_k x_ik + e_i

with d_i the difference of pair i, x_ik by how much its members differ in covariate k, and tau the difference between
two cases that do not differ in any of them: the row's value (regression adjustment after matching, Rubin 1979).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from ..evaluation import dependence
from .effects import Array, hedges_g_paired
from .result import Row

PAIRS_EACH = 5
"""Pairs that are needed for every covariate adjusted for."""


def adjusted(
    d: Array, covariates: Mapping[str, Array], clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> tuple[Row, list[str]]:  # fmt: skip
    """Columns of a row to replace, and the covariates that were adjusted for; nothing where none can be.

    Covariates come worst first; those that do not vary, or for which there are too few pairs, are left. Errors respect
    what pairs share.
    """
    names = [n for n, x in covariates.items() if np.ptp(x) > 1e-12][: len(d) // PAIRS_EACH]
    design = np.column_stack([np.ones(len(d)), *(covariates[n] for n in names)])
    while names and np.linalg.matrix_rank(design) < design.shape[1]:
        names, design = names[:-1], design[:, :-1]
    if not names or np.ptp(d) <= 1e-12 * np.abs(d).max():
        return {}, []
    fit = dependence.regression(d, design, clusters)
    if not fit.known or fit.clusters < len(names) + 2:
        return {}, []
    low, high = fit.interval(level)
    left = d - design @ np.linalg.lstsq(design, d, rcond=None)[0]
    effect = hedges_g_paired(fit.value + left, level, clusters)
    row: Row = {
        "value": fit.value, "low": low, "high": high, "interval": f"{fit.method}, regression",
        "effect": effect.value, "effect_low": effect.low, "effect_high": effect.high,
        "test": f"regression, {fit.method}", "p": fit.p, "unadjusted": float(d.mean()),
    }  # fmt: skip
    return row, names
