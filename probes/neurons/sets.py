"""Query-relevant neurons from attributions, and the overlap of sets of neurons.

    chosen = select(scores, v=10)
    share(chosen.neurons[0], chosen.neurons[1]).overlap

Chen et al. 2024 (QRNCA): the neurons of a query above ``t`` times the largest score form its coarse set, summed over
the query's prompt variants (cluster). With score s and |Q| queries

    NA(n) = s(n) / sum of s over the cluster,  ICA(n) = ln(|Q| / (df(n) + 1)),  df(n) = number of queries with n

and the key neurons are the ``v`` largest NA * ICA above zero. Neurons in more than ``u`` of all queries are common and
removed *before* that cut (the published code intends to do so after it, and because of a type error never does).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import InputError

Neuron = tuple[int, int]
"""(layer, index)"""


@dataclass(frozen=True)
class Selection:
    """Key neurons of every query, most relevant first."""

    neurons: list[list[Neuron]]
    naica: list[list[float]]
    clusters: list[dict[Neuron, float]]
    """The coarse set of every query, with summed scores."""
    common: frozenset[Neuron]
    df: Mapping[Neuron, int]
    settings: Mapping[str, Any] = field(default_factory=dict)


def coarse(scores: Float[Tensor, "layer neuron"], t: float = 0.2, decimals: int | None = None) -> dict[Neuron, float]:
    """Neurons with a score above ``t`` times the largest."""
    s = scores.double()
    if not torch.isfinite(s).all():
        raise InputError("scores hold NaN or infinity; they cannot be ranked")
    top = float(s.max())
    if top <= 0:
        return {}
    layers, index = (scores > t * scores.max()).nonzero(as_tuple=True)
    values = s[layers, index].tolist()
    found = {(int(a), int(b)): v for a, b, v in zip(layers.tolist(), index.tolist(), values, strict=True)}
    return found if decimals is None else {n: round(v, decimals) for n, v in found.items()}


def select(
    scores: Sequence[Float[Tensor, "..."]],
    *,
    t: float = 0.2,
    u: float = 0.3,
    v: int = 10,
    decimals: int | None = None,
    remove_common: bool = True,
) -> Selection:
    """Key neurons of every query.

    Args:
        scores: per query ``variant layer neuron`` (prompt variants) or ``layer neuron``. All tasks' queries belong in
            one call: inverse cluster attribution depends on the pool.
        t: coarse threshold.
        u: share of queries above which a neuron is common.
        v: how many to keep.
        decimals: round kept scores; 6 reproduces the published code.
        remove_common: ``False`` reproduces the published code, which keeps common neurons.

    Ties are broken by layer, then index. Raises ``InputError`` for fewer than 3 queries, where inverse cluster
    attribution is never positive for a neuron that any query has.
    """
    shapes = {tuple(s.shape[-2:]) for s in scores}
    if len(shapes) > 1 or any(s.dim() not in (2, 3) for s in scores):
        seen = ", ".join(str(tuple(s.shape)) for s in scores[:4])
        raise InputError(f"scores of shapes {seen}, ...; need (variant) layer neuron, of one model")
    clusters = [cluster(s, t, decimals) for s in scores]
    return select_clusters(clusters, t=t, u=u, v=v, decimals=decimals, remove_common=remove_common)


def select_clusters(
    clusters: Sequence[Mapping[Neuron, float]],
    *,
    t: float = 0.2,
    u: float = 0.3,
    v: int = 10,
    decimals: int | None = None,
    remove_common: bool = True,
) -> Selection:
    """``select`` from clusters, for pools too large to hold all their scores; ``t`` is what they were made with."""
    n = len(clusters)
    if n < 3:
        raise InputError(f"{n} queries; inverse cluster attribution needs at least 3 in the pool")
    if not isinstance(v, Integral) or v < 1 or not 0 <= t < 1 or not 0 <= u <= 1:
        raise InputError(f"t={t}, u={u}, v={v}; need 0 <= t < 1, 0 <= u <= 1 and a whole number v >= 1")
    df = Counter(n for c in clusters for n in c)
    common = frozenset(neuron for neuron, count in df.items() if count > int(u * n))
    ranked = [_rank(c, df, n, common if remove_common else frozenset(), v) for c in clusters]
    settings = {"t": t, "u": u, "v": v, "queries": n, "decimals": decimals, "remove_common": remove_common}
    return Selection(
        neurons=[[n for n, _ in r] for r in ranked],
        naica=[[x for _, x in r] for r in ranked],
        clusters=[dict(c) for c in clusters],
        common=common,
        df=dict(df),
        settings=settings,
    )


def cluster(
    scores: Float[Tensor, "*variant layer neuron"], t: float = 0.2, decimals: int | None = None
) -> dict[Neuron, float]:
    """Union of the coarse sets of a query's variants, with summed scores."""
    total: dict[Neuron, float] = {}
    for variant in scores if scores.dim() == 3 else scores[None]:
        for neuron, value in coarse(variant, t, decimals).items():
            total[neuron] = total.get(neuron, 0.0) + value
    return total


def _rank(
    cluster: Mapping[Neuron, float], df: Mapping[Neuron, int], n_queries: int, drop: frozenset[Neuron], v: int
) -> list[tuple[Neuron, float]]:
    total = sum(cluster.values())
    if total <= 0:
        return []
    naica = {n: s / total * math.log(n_queries / (df[n] + 1)) for n, s in cluster.items() if n not in drop}
    kept = [(n, x) for n, x in naica.items() if x > 0]
    return sorted(kept, key=lambda item: (-item[1], item[0]))[:v]


class Shared(NamedTuple):
    """How much two sets of neurons share."""

    overlap: float
    """Overlap coefficient |A & B| / min(|A|, |B|)"""
    jaccard: float
    dice: float


def share(a: Sequence[Neuron], b: Sequence[Neuron]) -> Shared:
    """Overlap coefficient, Jaccard index and Dice coefficient; NaN if a set is empty."""
    x, y = set(a), set(b)
    if not x or not y:
        return Shared(math.nan, math.nan, math.nan)
    both = len(x & y)
    return Shared(both / min(len(x), len(y)), both / len(x | y), 2 * both / (len(x) + len(y)))


@dataclass(frozen=True)
class Overlap:
    """Sets of one task against those of another, case by case."""

    matched: list[Shared]
    """Per case: the two tasks' sets of that case."""
    mismatched: list[Shared]
    """One task's set of a case against the other's of another case: the overlap that comes from the tasks alone."""
    pooled: Shared
    """Union over cases of either task."""
    chance: float
    """Expected overlap coefficient of two random sets of these sizes."""
    empty: int
    """Cases left out because a set was empty."""

    def mean(self, which: str = "matched", measure: str = "overlap") -> float:
        """Mean over defined pairs; NaN without any."""
        if which not in ("matched", "mismatched") or measure not in Shared._fields:
            raise InputError(
                f"{measure} of {which} pairs: give one of {', '.join(Shared._fields)} of (mis)matched ones"
            )
        values = [getattr(s, measure) for s in getattr(self, which)]
        values = [x for x in values if not math.isnan(x)]
        return float(np.mean(values)) if values else math.nan


def overlap(a: Sequence[Sequence[Neuron]], b: Sequence[Sequence[Neuron]], n_neurons: int) -> Overlap:
    """Overlap of two tasks over the same cases.

    Args:
        a: key neurons per case of one task.
        b: those of the other task, for the same cases in the same order.
        n_neurons: neurons in the model (layers x width), for the chance level: two random sets of sizes m and n share
            ``m n / N``, so their overlap coefficient is ``max(m, n) / N``.
    """
    if len(a) != len(b):
        raise InputError(f"{len(a)} and {len(b)} sets; overlap compares the same cases, one set of each per case")
    if n_neurons < max((len(set(s)) for s in (*a, *b)), default=0) or n_neurons < 1:
        raise InputError(f"n_neurons={n_neurons}: give the number of neurons of the model, at least that of a set")
    matched = [share(x, y) for x, y in zip(a, b, strict=True)]
    mismatched = [share(x, y) for i, x in enumerate(a) for j, y in enumerate(b) if i != j]
    sizes = [max(len(x), len(y)) for x, y in zip(a, b, strict=True) if x and y]
    return Overlap(
        matched=matched,
        mismatched=mismatched,
        pooled=share([n for s in a for n in s], [n for s in b for n in s]),
        chance=float(np.mean(sizes)) / n_neurons if sizes else math.nan,
        empty=sum(math.isnan(s.overlap) for s in matched),
    )


def location_map(
    sets: Sequence[Sequence[Neuron]], n_layers: int, d_mlp: int, bins: int = 16
) -> Float[Tensor, "layer bin"]:
    """Numbers of key neurons per query by layer and bin = index * bins // d_mlp.

    Neurons have no order within a layer, so bins along the index mean nothing; only sums over bins can be interpreted.
    """
    if bins < 1:
        raise InputError(f"bins={bins}; a map has at least one for each layer")
    counts = torch.zeros(n_layers, bins, dtype=torch.float64)
    for neurons in sets:
        for layer, index in neurons:
            if not (0 <= layer < n_layers and 0 <= index < d_mlp):
                raise InputError(f"neuron ({layer}, {index}): there are {n_layers} layers of {d_mlp} neurons")
            counts[layer, index * bins // d_mlp] += 1
    return counts / max(1, len(sets))
