"""From graded rows to all that is reported of them: the protocol's metrics, per way of asking, and mean lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..cases import Case
from ..metrics import Metric
from . import counting
from .base import Graded, Protocol, Reduction

BARE = "no-preamble/"
"""Before the roles of asks that were put a second time, without the instruction."""


def reduce(protocol: Protocol, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
    """The protocol's reduction; rows of roles ``no-preamble/...`` are counted by themselves.

    Their metrics carry the group ``prompt: no-preamble``; case sets come from the other rows. Which of the two ways
    is better is not chosen: both are reported.
    """
    usual = [row for row in rows if not row.role.startswith(BARE)]
    bare = [replace(row, role=row.role.removeprefix(BARE)) for row in rows if row.role.startswith(BARE)]
    found = protocol.reduce(usual, cases)
    metrics, warnings = list(found.metrics), list(found.warnings)
    if bare:
        other = protocol.reduce(bare, cases)
        metrics += [_without_preamble(m) for m in other.metrics]
        warnings += [f"without preamble: {w}" for w in other.warnings]
    metrics += lengths(usual, int(getattr(protocol, "seed", 0)))
    metrics += [_without_preamble(m) for m in lengths(bare, int(getattr(protocol, "seed", 0)))]
    return Reduction(tuple(metrics), found.case_sets, tuple(warnings))


def _without_preamble(metric: Metric) -> Metric:
    prompt = " ".join(str(p) for p in ("no-preamble", metric.group.get("prompt")) if p)
    return replace(metric, group={**metric.group, "prompt": prompt})


def lengths(rows: Sequence[Graded], seed: int = 0) -> list[Metric]:
    """``mean_length``: mean number of tokens of the responses in a role, where the rows say it.

    Answers that were cut off count with the length at which they were cut; the wordings of atoms count together.
    """
    metrics = []
    for group, chosen in counting.by_model(rows):
        roles: dict[str, list[Graded]] = {}
        for row in chosen:
            if row.tokens is not None:
                roles.setdefault("paraphrase" if ":paraphrase:" in row.role else row.role, []).append(row)
        for role, found in roles.items():
            total = sum(int(row.tokens or 0) for row in found)
            metrics.append(
                counting.statistic(
                    "mean_length",
                    [(float(row.tokens or 0), 1.0) for row in found],
                    _mean,
                    {**group, "role": role},
                    seed=seed,
                    count=total,
                    clusters=[row.cluster or row.case for row in found],
                    note="tokens",
                )
            )
    return metrics


def _mean(s: np.ndarray) -> np.ndarray:
    return s[..., 0] / s[..., 1]
