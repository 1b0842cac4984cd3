"""Integration along the paths of layers: rules and panels, and the passes of rows that compute P and its gradient.

    nodes = quadrature("gauss-legendre", 8)
    part = sweep(lm, prefix, targets, layers=[0, 1], panels=panels, how=how)  # part.scores: query layer panel neuron

Over a panel [a, b] of the path the neurons' scores must sum to ``P(b) - P(a)``. This difference is known exactly from
the panels' ends, so every panel has a known error. Most layers need one panel. A panel that misses completeness is
split, the one at 0 unevenly: where an MLP's output is far larger than the stream (early layers above all), P changes
most at small activations. Choosing neurons takes only 5 nodes in most layers, and these have to meet completeness more
strictly.

A sweep is one forward and one backward pass of rows: the nodes of many layers' paths together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from ...errors import InputError, ModelError
from ...hooks.budget import row_budget
from ...hooks.model import Model
from ...hooks.module_hooks import check_gradients
from ...hooks.rows import Prefix, step
from .paths import Path, PathSite, gradients

Rule = Literal["gauss-legendre", "reference", "gradient"]
NODES, QUICK = 8, 5
"""Nodes of a panel, and of a quick first try."""
PUBLISHED_STEPS = 20
"""Nodes of ``rule="reference"`` by default."""
STALE = 3
"""Splits without improvement after which a panel is not split again."""
MAX_PANELS = 64
SPLITS = 4
"""Panels of one (query, layer) split in one round."""
MAX_ROUNDS = 24
PROMISING = 10
"""Up to this multiple of the accepted error, more nodes are tried before a path is split."""
BREAKS = (1 / 16, 1 / 4, 1 / 2)
"""Where to split a path that is far from smooth: several panels in one round cost less than one after another."""
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
    full: Float[Tensor, "token _"],
    silenced: Float[Tensor, "token layer"],
    tolerance: float = TOLERANCE,
    rounding: float = 0.0,
) -> Float[Tensor, "token layer"]:
    """The completeness error accepted: 1 % of the layer's effect, plus a floor of 1 % of P and at most 1e-6.

    ``rounding`` is the relative error of P itself, which more nodes do not reduce.
    """
    largest = torch.maximum(full.expand_as(silenced), silenced)
    floor = torch.maximum((tolerance * largest).clamp_max(1e-6), rounding * largest)
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


PADDING = 32
"""Most rows that may be computed without use in order to avoid another pass."""


class How(NamedTuple):
    """How paths are integrated."""

    nodes: Nodes
    site: PathSite
    max_rows: int | None
    adaptive: bool
    ticks: float = 0.0
    """Progress per (query, layer) of the current work."""


class PassScores(NamedTuple):
    """The result of one pass."""

    scores: Float[Tensor, "query layer panel neuron"]
    full: Float[Tensor, "query"]
    """P with all neurons unchanged"""
    start: Float[Tensor, "query layer panel"]
    """P where each panel starts"""


class _TargetProbability(torch.autograd.Function):
    """P(target) of every row, ``query row``, from logits ``query row vocab``; one table over the vocabulary at a time.

    dP/dlogits = P (onehot - p) overwrites p, so this can be differentiated only once.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        ctx.p, ctx.dtype = logits.softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32)), logits.dtype
        ctx.index = targets[:, None, None].expand(-1, logits.shape[1], 1)
        ctx.own = ctx.p.gather(-1, ctx.index)
        return ctx.own[..., 0].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        scale = ctx.own * grads[0][..., None]
        out = ctx.p.mul_(-scale)
        out.scatter_add_(-1, ctx.index, scale)
        ctx.p = None
        return out.to(ctx.dtype), None


def sweep(
    lm: Model, prefix: Prefix, targets: Int[Tensor, "query"], layers: Sequence[int],
    panels: Float[Tensor, "query layer panel 2"], how: How,
) -> PassScores:  # fmt: skip
    """Scores over some panels (their starts and ends on the path)."""
    wide = torch.promote_types(lm.dtype, torch.float32)
    nodes, first = how.nodes.with_start()
    x = torch.tensor(nodes.at, device=lm.device, dtype=wide)
    w = torch.tensor(nodes.weight, device=lm.device, dtype=wide)
    start, width = panels[..., :1].to(wide), (panels[..., 1:] - panels[..., :1]).to(wide)
    at, weight = start + width * x, width * w  # query layer panel node
    paths = [Path(lm.anatomy.layers[n], at[:, i].flatten(1).to(lm.dtype), how.site) for i, n in enumerate(layers)]
    with torch.enable_grad():
        out = step(
            lm,
            prefix,
            grow={layer: p.grow for layer, p in zip(layers, paths, strict=True)},
            hooks=[hook for p in paths for hook in p.hooks()],
        )
        prob: Tensor = _TargetProbability.apply(out.logits, targets)  # type: ignore[assignment]
        del out  # its logits are the largest tensor here
        by_node = prob[:, 1:].reshape(at.shape)
        if nodes.end:  # the unchanged row is the far end of every layer's path
            found = gradients((by_node * weight).sum() + nodes.end * prob[:, 0].sum(), [p.joined for p in paths])
            ends, found = [g[:, :1] for g in found], [g[:, -at[0, 0].numel() :] for g in found]
        else:
            found, ends = gradients((by_node * weight).sum(), [p.leaf for p in paths]), [None] * len(paths)
    check_gradients(lm)
    per_panel = [g.unflatten(1, at.shape[2:]).sum(2) for g in found]
    per_panel = [g if e is None else g + e for g, e in zip(per_panel, ends, strict=True)]
    of_layers = [p.scores(g) for p, g in zip(paths, per_panel, strict=True)]
    # Layers may differ in width; what narrower ones do not have scores 0.
    scores = torch.stack([pad(s.to(lm.device), (0, lm.anatomy.n_neurons - s.shape[-1])) for s in of_layers], 1)
    if not torch.isfinite(scores).all():
        raise ModelError("attribution gave NaN or infinite scores; check weights and dtype")
    return PassScores(scores.detach(), prob[:, 0].detach(), by_node[..., first].detach())


def in_passes(
    lm: Model, prefix: Prefix, layers: Sequence[int], widths: Sequence[int], how: How
) -> Iterator[tuple[list[int], list[int]]]:
    """(queries, positions in ``layers``) that fit into memory together; ``widths``: panels of each query's layers."""
    nodes, longest = len(how.nodes.with_start()[0].at), max(q.position for q in prefix.queries)
    rows = how.max_rows or row_budget(lm, 1, longest, graph=True)
    order = sorted(range(len(widths)), key=lambda q: -widths[q])  # queries with as many panels run side by side
    while order:
        most = widths[order[0]]
        per_layer = most * nodes
        if 1 + len(layers) * per_layer <= rows:
            some, padding = [], 0
            for q in order[: rows // (1 + len(layers) * per_layer)]:
                padding += (most - widths[q]) * nodes * len(layers)
                if padding > PADDING:
                    break
                some.append(q)
            yield some, list(range(len(layers)))
            order = order[len(some) :]
            continue
        size = max(1, (rows - 1) // per_layer)
        for start in range(0, len(layers), size):
            yield order[:1], list(range(start, min(start + size, len(layers))))
        order = order[1:]
