"""Quadrature along the path of a layer: rules on one panel, and splitting of panels where completeness fails.

    nodes = quadrature("gauss-legendre", 8)

Over a panel [a, b] of the path the neurons' scores must sum to ``P(b) - P(a)``. That is known exactly from the panels'
ends, so every panel has a known error. Most layers need one panel. A panel that misses completeness is split, the one
at 0 unevenly: where an MLP's output is far larger than the stream (early layers above all), P changes most at small
activations. Choosing neurons takes only 5 nodes in most layers, and these have to meet completeness more strictly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import InputError

Rule = Literal["gauss-legendre", "reference", "gradient"]
NODES, QUICK = 8, 5
"""Nodes of a panel, and of a quick first try."""
STALE = 3
"""Splits without improvement after which a panel is not split again."""
MAX_PANELS = 64
SPLITS = 4
"""Panels of one (query, layer) split in one round."""
MAX_ROUNDS = 24
PROMISING = 10
"""Up to this multiple of the accepted error, more nodes are tried before a path is split."""
BREAKS = (1 / 16, 1 / 4, 1 / 2)
"""Where a path that is far from smooth is split: several panels in one round cost less than one after another."""
TOLERANCE, STRICT = 1e-2, 3e-3
"""Accepted error as a share of a layer's effect, and the one for a quick first try."""


class Nodes(NamedTuple):
    """A rule on [0, 1]."""

    at: list[float]
    weight: list[float]
    end: float = 0.0
    """Weight of the point 1, where it is not a node: it is the unchanged row of every layer."""

    def with_start(self) -> tuple[Nodes, int]:
        """The rule with 0 among its nodes (with weight 0 if it is added), and the index of 0."""
        if 0.0 in self.at:
            return self, self.at.index(0.0)
        return Nodes([*self.at, 0.0], [*self.weight, 0.0], self.end), len(self.at)


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


def lobatto(steps: int) -> Nodes:
    """Lobatto's rule: both ends are nodes, and the far one costs nothing."""
    top = np.polynomial.legendre.Legendre.basis(steps - 1)
    x = np.concatenate([[-1.0], np.sort(top.deriv().roots().real), [1.0]])
    w = 1 / (steps * (steps - 1) * top(x) ** 2)
    return Nodes([float(v) for v in (x[:-1] + 1) / 2], [float(v) for v in w[:-1]], float(w[-1]))


@dataclass
class Panel:
    """One piece of a layer's path, integrated."""

    start: float
    end: float
    scores: Float[Tensor, "neuron"]
    gap: float
    """Sum of scores minus ``P(end) - P(start)``"""
    nodes: int
    stale: int = 0
    """Consecutive splits that did not reduce the error, which is then due to rounding."""


def limit(
    full: Float[Tensor, "token _"], silenced: Float[Tensor, "token layer"], tolerance: float = TOLERANCE
) -> Float[Tensor, "token layer"]:
    """The completeness error accepted: 1 % of the layer's effect, plus a floor of 1 % of P and at most 1e-6."""
    floor = (tolerance * torch.maximum(full.expand_as(silenced), silenced)).clamp_max(1e-6)
    return tolerance * (full - silenced).abs() + floor


def worst(panels: Sequence[Panel], accepted: float) -> list[Panel]:
    """Panels to split next: those with the largest errors, until the others are within half of what is accepted.

    None if all together are within the accepted error, or where there are too many panels.
    """
    left = sum(abs(p.gap) for p in panels)
    if left <= accepted or len(panels) >= MAX_PANELS:
        return []
    chosen = []
    for panel in sorted(panels, key=lambda p: -abs(p.gap)):
        if left <= accepted / 2 or len(chosen) == SPLITS:
            break
        left -= abs(panel.gap)
        if panel.end - panel.start > 1e-6 and panel.stale < STALE:
            chosen.append(panel)
    return chosen


def again(panel: Panel, accepted: float) -> list[tuple[float, float]]:
    """Panels that replace a layer's first try: none where it is accepted, one with more nodes, or several."""
    few = panel.nodes < NODES
    if abs(panel.gap) <= accepted * (STRICT / TOLERANCE if few else 1):
        return []
    more = few and abs(panel.gap) <= PROMISING * accepted
    return [(0.0, 1.0)] if more else list(pairwise((0.0, *BREAKS, 1.0)))


def aged(parent: Panel, children: Sequence[Panel]) -> None:
    """Record on the children whether splitting the panel reduced its error."""
    better = sum(abs(p.gap) for p in children) <= abs(parent.gap) / 2
    for child in children:
        child.stale = 0 if better else parent.stale + 1


def split(panel: Panel) -> list[tuple[float, float]]:
    """Two pieces: the middle, but an eighth from the start of the path."""
    middle = panel.end / 8 if panel.start == 0 else (panel.start + panel.end) / 2
    return [(panel.start, middle), (middle, panel.end)]
