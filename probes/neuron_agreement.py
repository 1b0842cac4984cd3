"""How far cheaper scores are from those they stand for: half precision from float32, activation x gradient from the
integral."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from scipy import stats
from torch import Tensor

from ..hooks.model import Model
from .contrast import summary_row
from .neuron_attribution import attribute_many
from .neuron_quadrature import Rule
from .result import Row
from .spread import Fleet, Notes, collect

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


def measure_estimate(
    lm: Model, queries: Sequence[tuple[Sequence[int], Sequence[int]]], notes: Notes, *, rule: Rule, steps: int | None,
    v: int,
) -> Iterator[tuple[int, list[float]]]:  # fmt: skip
    """``Agreement`` of activation x gradient with the integral, of each query (prompt, answer)."""
    prompts, answers = [list(p) for p, _ in queries], [list(a) for _, a in queries]
    cheap = attribute_many(lm, prompts, answers, rule="gradient").mean
    full = attribute_many(lm, prompts, answers, steps, rule).mean
    yield from enumerate(list(agreement(a, b, v)) for a, b in zip(cheap, full, strict=True))


class Measured(NamedTuple):
    rows: list[Row]
    note: str


def agreement_rows(
    lm: Model | Fleet, queries: Sequence[tuple[Sequence[int], Sequence[int], str | None]], *, rule: Rule,
    steps: int | None, v: int, dtype: str, seed: int,
) -> Measured:  # fmt: skip
    """Rows ``rows_error``, ``rows_spearman`` and ``rows_overlap`` on evenly spaced (prompt, answer, cluster)."""
    what: Any = partial(measure, rule=rule, steps=steps, v=v, dtype=dtype)
    rows, worst, n = _measured(lm, queries, what, "rows", seed)
    return Measured(rows, f"in the weights' own they differ by up to {worst:.1%} of the largest ({n} queries)")


def estimate_rows(
    lm: Model | Fleet, queries: Sequence[tuple[Sequence[int], Sequence[int], str | None]], *, rule: Rule,
    steps: int | None, v: int, seed: int,
) -> list[Row]:  # fmt: skip
    """How well activation x gradient would have done: ``gradient_error``, ``gradient_spearman``, ``gradient_overlap``.

    On up to 8 evenly spaced (prompt, answer, cluster), as in ``Agreement``.
    """
    return _measured(lm, queries, partial(measure_estimate, rule=rule, steps=steps, v=v), "gradient", seed)[0]


def _measured(
    lm: Model | Fleet, queries: Sequence[tuple[Sequence[int], Sequence[int], str | None]], what: Any, name: str,
    seed: int,
) -> tuple[list[Row], float, int]:  # fmt: skip
    """Rows of each field of ``Agreement``, the largest error and the number of queries."""
    n = min(SAMPLE, len(queries))
    sample = [queries[i * len(queries) // n] for i in range(n)]
    found = torch.tensor(collect(lm, what, [(p, a) for p, a, _ in sample]), dtype=torch.float64)
    rows: list[Row] = []
    for field, values in zip(Agreement._fields, found.T, strict=True):
        known = [i for i in range(n) if bool(values[i].isfinite())]
        if known:
            near = [sample[i][2] for i in known]
            row = summary_row(f"{name}_{field}", "all", values[known].numpy(), near, seed=seed)
            rows.append({**row, "kind": "all"})
    return rows, float(found[:, 0].nan_to_num(nan=0.0).max()), n
