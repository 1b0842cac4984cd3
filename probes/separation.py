"""Whether the states of failures and successes are apart: mean cosines within groups and across."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import comb, prod

import numpy as np
from scipy import stats

from ..evaluation import dependence
from .effects import NO_SPREAD
from .result import Row


def separation_rows(
    quantity: str, matrix: np.ndarray, n: int, labels: Sequence[Hashable], *, permutations: int = 1000, seed: int = 0
) -> list[Row]:  # fmt: skip
    """Mean cosines [layer n n], donors (the first ``n``) before recipients, and whether they are apart: rows per layer.

    Pairs that share anything (``labels``, one a case) are left out of the means. Intervals leave one cluster out at a
    time (jackknife, Student t), tests permute the labels donor and recipient: of whole clusters where none has both,
    else within clusters. Where facts cross, only cases that share nothing are taken, which the rows say.
    """
    crossed = dependence.crossing(labels)
    kept = dependence.apart(labels) if crossed else list(range(len(labels)))
    m = matrix[:, kept][:, :, kept]
    group = dependence.joined([labels[i] for i in kept])
    donor = np.array(kept) < n
    other = ~donor
    allowed = (group[:, None] != group).astype(float)
    value = _means(m, allowed, donor[None], other[None])
    k = int(group.max()) + 1
    rest = np.arange(k)[:, None] != group
    without = _means(m, allowed, rest * donor, rest * other)
    sides = np.array([[(side & (group == g)).any() for g in range(k)] for side in (donor, other)])
    note = f"facts cross: {len(kept)} of {len(labels)} cases that share nothing" if crossed else ""
    counts = {name: _pairs(allowed, *pair) for name, pair in
              (("dd", (donor, donor)), ("rr", (other, other)), ("dr", (donor, other)))}  # fmt: skip
    rows: list[Row] = []
    for name, shown in (("dd", "within successes"), ("rr", "within failures"), ("dr", "across")):
        own = {"dd": sides[:1], "rr": sides[1:], "dr": sides}[name]
        for layer in range(len(m)):
            rows.append({
                "quantity": quantity, "group": shown, "layer": layer, "n": int(counts[name]), "n_cases": len(kept),
                "value": float(value[name][layer, 0]),
                **_jackknife(float(value[name][layer, 0]), without[name][layer], own, note),
            })  # fmt: skip
    if min(donor.sum(), (other).sum()) < 2:
        return rows
    null = _null(m, allowed, donor, group, permutations, np.random.default_rng(seed))
    own = _separation(value)[:, 0]
    for layer, (v, tested) in enumerate(zip(own, _tests(own, null), strict=True)):
        rows.append({
            "quantity": f"{quantity}_separation", "group": "within - across", "layer": layer, "n": len(kept),
            "value": float(v), **_jackknife(float(v), _separation(without)[layer], sides, note), **tested,
        })  # fmt: skip
    return rows


def _pairs(allowed: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    """How many pairs, each once, a mean is over."""
    return float(u @ allowed @ v) / (2 if u is v else 1)


def _means(m: np.ndarray, allowed: np.ndarray, a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """Weighted mean cosines [layer draw] over the pairs allowed, for weights a of donors and b [draw case]."""
    a, b, kept = a.astype(float), b.astype(float), m * allowed

    def mean(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        total = np.einsum("lrj,rj->lr", u @ kept, v)
        weight = np.einsum("rj,rj->r", u @ allowed, v)
        return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)

    return {"dd": mean(a, a), "rr": mean(b, b), "dr": mean(a, b)}


def _separation(means: dict[str, np.ndarray]) -> np.ndarray:
    return (means["dd"] + means["rr"]) / 2 - means["dr"]


def _jackknife(value: float, without: np.ndarray, sides: np.ndarray, note: str) -> Row:
    """Student t interval from the values with each cluster left out; ``sides`` [side cluster] says who is where."""
    fewest = int(sides.sum(1).min())
    none: Row = {"low": np.nan, "high": np.nan}
    if fewest < dependence.FEWEST or not np.isfinite(value):
        return {**none, "interval": dependence.FEW, "note": note}
    apart = [sides[0] & ~sides[-1], sides[-1] & ~sides[0]] if len(sides) > 1 else []
    parts = apart if len(sides) > 1 and (apart[0] | apart[1]).all() else [sides.any(0)]
    spread = [((x := without[part]) - x.mean()) ** 2 for part in parts]
    variances = [float((len(s) - 1) / len(s) * s.sum()) for s in spread]
    variance = sum(variances)
    if not np.isfinite(variance) or variance <= 1e-24 * value**2:
        return {**none, "interval": NO_SPREAD, "note": note}
    freedom = variance**2 / sum(v**2 / (len(s) - 1) for v, s in zip(variances, spread, strict=True))
    half = float(stats.t.ppf(0.975, freedom)) * variance**0.5
    return {"low": value - half, "high": value + half, "interval": "jackknife over clusters, t", "note": note}


FEWEST_LABELINGS = 20
"""Fewest ways to permute the labels that allow a p of 0.05."""


def _null(
    m: np.ndarray, allowed: np.ndarray, donor: np.ndarray, group: np.ndarray, permutations: int,
    rng: np.random.Generator,
) -> np.ndarray | None:  # fmt: skip
    """Separations under permuted labels [layer draw]; None if there are too few ways to permute them."""
    sizes, donors = np.bincount(group), np.bincount(group, donor)
    if ((donors == 0) | (donors == sizes)).all():
        of_cluster = donors > 0
        ways = comb(len(sizes), int(of_cluster.sum()))
        labels = rng.permuted(np.tile(of_cluster, (permutations, 1)), axis=1)[:, group]
    else:
        ways = prod(comb(int(s), int(d)) for s, d in zip(sizes, donors, strict=True))
        places = np.argsort(group, kind="stable")
        order = np.argsort(group + rng.random((permutations, len(group))), axis=1)
        labels = np.empty((permutations, len(group)), dtype=bool)
        labels[:, places] = donor[order]
    return None if ways < FEWEST_LABELINGS else _separation(_means(m, allowed, labels, ~labels))


def _tests(own: np.ndarray, null: np.ndarray | None) -> list[Row]:
    """Test columns per layer."""
    if null is None:
        nothing: Row = {"effect": np.nan, "effect_size": "permutation z", "p": np.nan,
                        "test": "none (too few ways to permute labels)", "p_map": np.nan}  # fmt: skip
        return [nothing] * len(own)
    sd = np.nanstd(null, axis=1)
    centred = np.abs(null - np.nanmean(null, axis=1, keepdims=True))
    scaled = np.nan_to_num(centred / np.maximum(sd[:, None], 1e-300))
    z = np.divide(own - np.nanmean(null, axis=1), sd, out=np.zeros_like(own), where=sd > 0)
    return [
        {"effect": float(x), "effect_size": "permutation z", "test": "label permutation",
         "p": float((1 + (scaled[layer] >= abs(x)).sum()) / (1 + null.shape[1])),
         "p_map": float((1 + (scaled.max(0) >= abs(x)).sum()) / (1 + null.shape[1]))}
        for layer, x in enumerate(z)
    ]  # fmt: skip
