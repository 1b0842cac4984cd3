"""Quadrature along the path of a layer: rules on one panel, and panels split where completeness fails.

Over a panel [a, b] of the path the neurons' scores must sum to ``P(b) - P(a)``. That is known exactly from the panels'
ends, so every panel brings its own error. Most layers need one panel; where that misses completeness it is split, the
part at 0 unevenly: where an MLP's output is far larger than the stream that it is added to (early layers, above all),
much happens at small activations. To choose neurons, 5 nodes do in most layers; they meet completeness more strictly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...errors import InputError

Rule = Literal["gauss-legendre", "reference", "gradient"]
NODES, QUICK = 8, 5
"""Nodes of a panel, and of a quick first try."""
STALE = 3
"""Splits in vain after which a panel is left as it is."""
MAX_PANELS = 64
SPLITS = 4
"""Panels of one (query, layer) split in one round."""
MAX_ROUNDS = 24
PROMISING = 10
"""Times the accepted error up to which more nodes are tried before a path is split."""
BREAKS = (1 / 16, 1 / 4, 1 / 2)
"""Where a path is split that is far from smooth: a few panels at once cost less than finding them one by one."""
TOLERANCE, STRICT = 1e-2, 3e-3
"""Of a layer's effect; and what a quick first try has to meet."""


class Nodes(NamedTuple):
    """A rule on [0, 1]."""

    at: list[float]
    weight: list[float]
    end: float = 0.0
    """Weight of 1, where that is no node: the unchanged row lies there, in every layer."""

    def with_start(self) -> tuple[Nodes, int]:
        """The rule with 0 among its nodes, at weight 0 where it has none there; and where it is."""
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
    """Gauss-Legendre nodes with both ends among them (Lobatto), the far one apart: it costs nothing."""
    top = np.polynomial.legendre.Legendre.basis(steps - 1)
    x = np.concatenate([[-1.0], np.sort(top.deriv().roots().real), [1.0]])
    w = 1 / (steps * (steps - 1) * top(x) ** 2)
    return Nodes([float(v) for v in (x[:-1] + 1) / 2], [float(v) for v in w[:-1]], float(w[-1]))


@dataclass
class Panel:
    """One piece of a layer's path, integrated."""

    start: float
    end: float
    scores: Tensor
    """neuron"""
    gap: float
    """Sum of scores minus ``P(end) - P(start)``"""
    nodes: int
    stale: int = 0
    """How often in a row splitting did not make errors smaller: what is left is rounding."""


def limit(full: Tensor, silenced: Tensor, tolerance: float = TOLERANCE) -> Tensor:
    """The completeness error accepted: 1 % of the layer's effect, plus a floor of 1 % of P and at most 1e-6."""
    floor = (tolerance * torch.maximum(full.expand_as(silenced), silenced)).clamp_max(1e-6)
    return tolerance * (full - silenced).abs() + floor


def worst(panels: Sequence[Panel], accepted: float) -> list[Panel]:
    """Panels to split next: those with the largest errors, so that the others are within half of what is accepted.

    None when all together are within the accepted error, or there are too many.
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
    """What replaces a layer's first try: nothing where it will do, one panel with more nodes, or several."""
    few = panel.nodes < NODES
    if abs(panel.gap) <= accepted * (STRICT / TOLERANCE if few else 1):
        return []
    more = few and abs(panel.gap) <= PROMISING * accepted
    return [(0.0, 1.0)] if more else list(pairwise((0.0, *BREAKS, 1.0)))


def aged(parent: Panel, children: Sequence[Panel]) -> None:
    """Count whether splitting a panel made its error smaller."""
    better = sum(abs(p.gap) for p in children) <= abs(parent.gap) / 2
    for child in children:
        child.stale = 0 if better else parent.stale + 1


def split(panel: Panel) -> list[tuple[float, float]]:
    """Two pieces: the middle, but an eighth from the start of the path."""
    middle = panel.end / 8 if panel.start == 0 else (panel.start + panel.end) / 2
    return [(panel.start, middle), (middle, panel.end)]
