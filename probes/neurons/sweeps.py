"""One forward and one backward pass of rows: P and its gradient at the nodes of many layers' paths together.

part = sweep(lm, prefix, targets, layers=[0, 1], panels=panels, how=how)  # part.scores: query layer panel neuron
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from ...errors import ModelError
from ...hooks.budget import row_budget
from ...hooks.model import Model
from ...hooks.module_hooks import check_gradients
from ...hooks.rows import Prefix, step
from .paths import Path, PathSite, gradients
from .quadrature import Nodes

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
