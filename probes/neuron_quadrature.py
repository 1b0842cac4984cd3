"""Quadrature along the path of a layer: rules on one panel, and panels split where completeness fails.

Over a panel [a, b] of the path the neurons' scores must sum to ``P(b) - P(a)``. That is known exactly from two extra
rows, so every panel brings its own error. Panels that miss it are split, the one at 0 unevenly: where an MLP's output
is far larger than the stream that it is added to (early layers, above all), everything happens at small activations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError

Rule = Literal["gauss-legendre", "reference", "gradient"]
START = 8
"""Gauss-Legendre nodes per panel."""
MAX_PANELS = 64
SPLITS = 4
"""Panels of one (query, layer) split in one round."""
MAX_ROUNDS = 24
TOLERANCE = 1e-2


class Nodes(NamedTuple):
    """A rule on [0, 1]."""

    at: list[float]
    weight: list[float]

    def with_ends(self) -> tuple[Nodes, int, int]:
        """The rule with 0 and 1 among its nodes, at weight 0 where it has none there; and where the two are."""
        extra = [end for end in (0.0, 1.0) if end not in self.at]
        at = [*self.at, *extra]
        return Nodes(at, [*self.weight, *[0.0] * len(extra)]), at.index(0.0), at.index(1.0)


def quadrature(rule: Rule, steps: int) -> Nodes:
    """Nodes and weights on [0, 1].

    ``reference``: the average of ``steps`` equidistant points with both ends, as the published code has it.
    ``gradient``: the gradient at full activation alone (activation x gradient).
    """
    if rule == "gradient":
        return Nodes([1.0], [1.0])
    if rule not in ("reference", "gauss-legendre"):
        raise InputError(f'rule: "{rule}"; use "gauss-legendre", "reference" or "gradient"')
    if not isinstance(steps, int) or steps < 2:
        raise InputError(f"steps: {steps}; an integral needs a whole number of them, at least 2")
    if rule == "reference":
        return Nodes([k / (steps - 1) for k in range(steps)], [1 / steps] * steps)
    x, w = np.polynomial.legendre.leggauss(steps)
    return Nodes([float(v) for v in (x + 1) / 2], [float(v) for v in w / 2])


@dataclass
class Panel:
    """One piece of a layer's path, integrated."""

    start: float
    end: float
    scores: Tensor
    """neuron"""
    gap: float
    """Sum of scores minus ``P(end) - P(start)``"""


def limit(full: Tensor, silenced: Tensor) -> Tensor:
    """The completeness error accepted: 1 % of the layer's effect, plus a floor of 1 % of P and at most 1e-6."""
    floor = (TOLERANCE * torch.maximum(full.expand_as(silenced), silenced)).clamp_max(1e-6)
    return TOLERANCE * (full - silenced).abs() + floor


def worst(panels: Sequence[Panel], accepted: float) -> list[Panel]:
    """Panels to split next; none when all together are within the accepted error, or there are too many."""
    if sum(abs(p.gap) for p in panels) <= accepted or len(panels) >= MAX_PANELS:
        return []
    over = [p for p in panels if abs(p.gap) > accepted / (2 * len(panels)) and p.end - p.start > 1e-6]
    return sorted(over, key=lambda p: -abs(p.gap))[:SPLITS]


def split(panel: Panel) -> list[tuple[float, float]]:
    """Two pieces: the middle, but an eighth from the start of the path."""
    middle = panel.end / 8 if panel.start == 0 else (panel.start + panel.end) / 2
    return [(panel.start, middle), (middle, panel.end)]
