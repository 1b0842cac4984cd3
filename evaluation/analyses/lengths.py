"""Length of responses by role; length confounds every comparison of roles and models."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ...errors import InputError
from ..metrics import Metric
from ..protocols import counting
from .base import Analysis, Source


def lengths(sources: Sequence[Source], seed: int = 0) -> Analysis:
    """Mean response length in tokens for each role and outcome, with bootstrap intervals over cases.

    Roles of steps are counted together (``part:0``; ``part:*:paraphrase``). Raises ``InputError`` where a source has
    no lengths (a file of graded rows alone).
    """
    metrics: list[Metric] = []
    for source in sources:
        if not source.tokens:
            raise InputError(f"{source.name}: no response lengths; give a run folder, not a file of rows")
        group = {"model": source.name} if len(sources) > 1 else {}
        cells: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for row in source.rows:
            if row.ask is not None and row.ask in source.tokens:
                value = (row.case, source.tokens[row.ask])
                cells.setdefault((role_class(row.role), "all"), []).append(value)
                cells.setdefault((role_class(row.role), row.outcome), []).append(value)
        for (role, outcome), values in sorted(cells.items()):
            cell = {**group, "role": role} | ({} if outcome == "all" else {"outcome": outcome})
            metrics.append(_mean(cell, values, seed))
    return Analysis("lengths", tuple(metrics))


def role_class(role: str) -> str:
    """Roles counted together: all wordings of all steps, all levels of one kind."""
    return re.sub(r"^part:\d+:paraphrase:\d+$", "part:*:paraphrase", role)


def _mean(group: dict[str, str], values: Sequence[tuple[str, int]], seed: int) -> Metric:
    def mean(s: np.ndarray) -> np.ndarray:
        return s[..., 0] / s[..., 1]

    columns = [(n, 1) for _, n in values]
    cases = [c for c, _ in values]
    return counting.statistic(
        "mean_length", columns, mean, group, seed=seed, count=sum(n for n, _ in columns), clusters=cases, note="tokens"
    )
