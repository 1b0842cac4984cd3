"""How far cheaper scores are from those they stand for: half precision from float32, activation x gradient from the
integral."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from scipy import stats
from torch import Tensor

from ...hooks.model import Model
from ..contrast import summary_row
from ..result import Row
from ..spread import Fleet, Notes, collect
from .attribution import attribute_many
from .quadrature import Rule

SAMPLE = 8
"""Queries on which both are computed."""


class Agreement(NamedTuple):
    """Of one query."""

    error: float
    """Largest absolute difference of two neurons' scores, relative to the largest score in float32."""
    spearman: float
    """Rank correlation over all neurons."""
    overlap: float
    """Share of the ``v`` largest scores that both have."""


def agreement(cheap: Tensor, full: Tensor, v: int) -> Agreement:
    """``cheap`` and ``full``: scores ``layer neuron``. NaN where all scores are 0 or equal."""
    a, b = cheap.double().flatten(), full.double().flatten()
    top = [set(x.topk(min(v, x.numel())).indices.tolist()) for x in (a, b)]
    error = float((a - b).abs().max() / b.abs().max())
    if a.min() == a.max() or b.min() == b.max():
        return Agreement(error, math.nan, math.nan)
    ranks: Any = stats.spearmanr(a, b)
    return Agreement(error, float(ranks.statistic), len(top[0] & top[1]) / len(top[0]))


def measure(
    lm: Model, queries: Sequence[tuple[Sequence[int], Sequence[int]]], notes: Notes, *, rule: Rule, steps: int | None,
    v: int, dtype: str,
) -> Iterator[tuple[int, list[float]]]:  # fmt: skip
    """``Agreement`` of each query (prompt, answer)."""
    for i, (prompt, answer) in enumerate(queries):
        half = attribute_many(lm, [prompt], [answer], steps, rule).mean[0]
        full = attribute_many(lm, [prompt], [answer], steps, rule, rows_dtype=dtype).mean[0]
        yield i, list(agreement(half, full, v))


class Measured(NamedTuple):
    rows: list[Row]
    note: str


def agreement_rows(
    lm: Model | Fleet, queries: Sequence[tuple[Sequence[int], Sequence[int], Hashable]], *, rule: Rule,
    steps: int | None, v: int, dtype: str,
) -> Measured:  # fmt: skip
    """Rows ``rows_error``, ``rows_spearman`` and ``rows_overlap`` on evenly spaced (prompt, answer, cluster)."""
    sample = [queries[i] for i in sampled(len(queries))]
    what: Any = partial(measure, rule=rule, steps=steps, v=v, dtype=dtype)
    found = collect(lm, what, [(p, a) for p, a, _ in sample])
    worst = max((x[0] for x in found if math.isfinite(x[0])), default=0.0)
    note = f"in the weights' own they differ by up to {worst:.1%} of the largest ({len(sample)} queries)"
    return Measured(rows_of(found, [c for _, _, c in sample], "rows"), note)


def sampled(n: int) -> list[int]:
    """Up to 8 of n queries, evenly spaced."""
    size = min(SAMPLE, n)
    return [i * n // size for i in range(size)]


def estimates(lm: Model, prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], full: Sequence[Tensor],
              v: int) -> list[list[float]]:  # fmt: skip
    """``Agreement`` of activation x gradient with the scores of each query."""
    cheap = attribute_many(lm, prompts, answers, rule="gradient").mean if prompts else []
    return [list(agreement(a, b, v)) for a, b in zip(cheap, full, strict=True)]


def rows_of(found: Sequence[Sequence[float]], clusters: Sequence[Hashable], name: str) -> list[Row]:
    """Rows ``NAME_error``, ``NAME_spearman`` and ``NAME_overlap`` from the ``Agreement`` of some queries."""
    table = torch.tensor(found, dtype=torch.float64).view(-1, len(Agreement._fields))
    rows: list[Row] = []
    for field, values in zip(Agreement._fields, table.T, strict=True):
        known = [i for i in range(len(found)) if bool(values[i].isfinite())]
        if known:
            near = [clusters[i] for i in known]
            row = summary_row(f"{name}_{field}", "all", values[known].numpy(), near)
            rows.append({**row, "kind": "all"})
    return rows
