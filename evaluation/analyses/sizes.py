"""Small against large models (AgentCoMa, figures 5 and 10): pooled accuracies, gap and failure quadrants per group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...errors import InputError
from ..graded import Graded
from ..metrics import Metric
from ..protocols.compositionality_gap import CompositionalityGap
from .base import Analysis, Source

_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)(?:x(\d+(?:\.\d+)?))?\s?([bm])(?![a-z0-9])", re.IGNORECASE)
NAMES = ("composition", "both", "gap", "press_gap", "quadrant")


def size_of(name: str) -> float | None:
    """Billions of parameters that a model's name states (``8x7B`` counts as 56), None where it states none."""
    found = [(a, b, unit) for a, b, unit in _SIZE.findall(name.replace("_", "-"))]
    if not found:
        return None
    first, second, unit = found[0]
    value = float(first) * (float(second) if second else 1.0)
    return value / 1000 if unit.lower() == "m" else value


def size_groups(
    sources: Sequence[Source],
    sizes: Mapping[str, float] | None = None,
    *,
    small: float = 8.0,
    large: float = 14.0,
    seed: int = 0,
) -> Analysis:
    """Metrics over all answers of the models up to ``small`` and from ``large`` billion parameters.

    Every answer counts once; intervals resample cases, because all models are asked the same. Models in between are
    left out and named. ``sizes`` overrides what names state. Raises ``InputError`` for a model of unknown size.
    """
    groups: dict[str, list[Source]] = {"small": [], "large": []}
    left = []
    rows = []
    for source in sources:
        size = (sizes or {}).get(source.name, (sizes or {}).get(source.model))
        size = size if size is not None else size_of(source.model)
        if size is None:
            raise InputError(f"{source.name}: the size of {source.model!r} is not known; give --size {source.name}=7")
        which = "small" if size <= small else "large" if size >= large else None
        rows.append({"model": source.model, "billions": size, "group": which or "left out"})
        (groups[which] if which else left).append(source)
    metrics: list[Metric] = []
    for which, chosen in groups.items():
        metrics += _pooled(which, chosen, seed)
    warnings = tuple(f"{s.model} is between {small:g}B and {large:g}B and left out" for s in left)
    return Analysis("size-groups", tuple(metrics), {"models": rows}, warnings=warnings)


def _pooled(which: str, sources: Sequence[Source], seed: int) -> list[Metric]:
    if not sources:
        return []
    rows: list[Graded] = []
    for n, source in enumerate(sources):
        # One repeat per model: the counting then sees one set of cases, and resamples cases with all their models.
        rows += [
            replace(r, model=None, run=None, repeat=n, cluster=r.cluster or r.case) for r in source.rows if not r.repeat
        ]
    found = CompositionalityGap(seed=seed).reduce(rows).metrics
    kept = [m for m in found if m.metric in NAMES or m.metric.startswith("step:")]
    wanted = [m for m in kept if not m.group.keys() - {"quadrant", "whole"}]
    return [replace(m, group={"size": which, "models": len(sources), **m.group}) for m in wanted]
