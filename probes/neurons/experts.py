"""Neurons inside mixtures of experts, with the routing frozen at what the full activations chose.

The routed part of a block's output is ``sum over chosen experts e of w_e W_down,e z_e``. Scaling all its neurons by a,
routing and weights held, scales that sum; what does not come from neurons (biases, shared experts) stays. So

    score_{e,i} = w_e * z_{e,i} * (W_down,e^T g)_i,   g = integral over a of dP/dr(a)

and 0 for experts that were not chosen. Routers of later layers still choose for themselves: where they switch along
the path P jumps, which no gradient sees; the completeness gap reports it (``Attributions.unconverged``).

Neuron i of expert e has index ``e * d_mlp + i`` within its layer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ...errors import ModelError
from ...hooks import experts as inside
from ...hooks import placement
from ...hooks.anatomy import Layer
from ...hooks.model import Model
from ...interrupts import held


class Routed(NamedTuple):
    """One position of every query."""

    index: Tensor
    """query k: experts chosen"""
    weight: Tensor
    """query k: routing weights, times what the block multiplies the experts' output with"""
    z: Tensor
    """query k neuron"""
    output: Tensor
    """query d_model: the routed sum without biases"""


def by_expert(lm: Model, scores: Tensor) -> Tensor:
    """Scores ``... layer neuron`` as ``... layer expert neuron``; one expert where the MLPs are dense.

    Where some layers are dense and others are not, only the layers with experts have a meaning here.
    """
    n, width = lm.anatomy.n_experts or 1, lm.anatomy.d_mlp
    return scores[..., : n * width].unflatten(-1, (n, width))


@torch.no_grad()
def route(layer: Layer, x: Tensor) -> Routed:
    """Activations of the chosen experts for inputs ``query d_model`` of the block's MLP."""
    experts, mlp = _experts(layer), layer.mlp
    assert mlp is not None
    with_experts, calls = _through(mlp, experts, x, silent=False)
    without, _ = _through(mlp, experts, x, silent=True)
    if len(calls) != 1:
        raise ModelError(f"{type(experts).__name__} ran {len(calls)} times for one MLP; attribution needs one call")
    sent, output = calls[0]
    factor = _factor(experts, with_experts - without, output.reshape(with_experts.shape))
    n, k = sent.index.shape
    z = sent.hidden.new_zeros(n, k, inside.width(experts))
    parts = sent.hidden.new_zeros(n, k, x.shape[-1])
    with placement.loaded(experts):
        inside.check(experts, sent, output)
        for e in sent.index.unique().tolist():
            rows, slots = torch.where(sent.index == e)
            z[rows, slots] = inside.activations(experts, e, sent.hidden[rows]).to(z.dtype)
            parts[rows, slots] = z[rows, slots] @ inside.down(experts, e).T
    weight = factor * sent.weight
    return Routed(sent.index, weight, z, (parts * weight[..., None]).sum(1).to(x.dtype))


def _through(
    mlp: nn.Module, experts: nn.Module, x: Tensor, silent: bool
) -> tuple[Tensor, list[tuple[inside.Dispatch, Tensor]]]:
    """What the MLP gives, ``query d_model``, with its experts as they are or at zero; and their calls."""
    calls: list[tuple[inside.Dispatch, Tensor]] = []

    def record(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Tensor) -> Tensor | None:
        calls.append((inside.given(module, args, kwargs), output))
        return torch.zeros_like(output) if silent else None

    with held():
        handle = experts.register_forward_hook(record, with_kwargs=True)
        try:
            y = mlp(x[:, None])
        finally:
            handle.remove()
    return (y[0] if isinstance(y, tuple) else y).reshape(x.shape), calls


def _factor(experts: nn.Module, effect: Tensor, output: Tensor) -> float:
    """What the block multiplies its experts' output with before it joins the stream; ``ModelError`` for other maps."""
    a, b = output.flatten().double(), effect.flatten().double()
    factor = float((a @ b) / (a @ a).clamp_min(1e-300))
    limit = 1e-3 if effect.dtype in (torch.float32, torch.float64) else 5e-2
    if not float((b - factor * a).norm()) <= limit * float(b.norm().clamp_min(1e-30)):
        raise ModelError(
            f"{type(experts).__name__}: its output does not enter the residual stream as it is, up to a factor; "
            "attribution to experts is not available here"
        )
    return 1.0 if abs(factor - 1) < 1e-2 else factor


def scores(layer: Layer, routed: Routed, gradient: Tensor) -> Tensor:
    """``query panel expert*neuron`` from integrated gradients ``query panel d_model``."""
    experts = _experts(layer)
    n, panels, width = len(routed.index), gradient.shape[1], routed.z.shape[-1]
    out = gradient.new_zeros(n, panels, inside.count(experts), width)
    with placement.loaded(experts):
        _fill(out, experts, routed, gradient)
    return out.flatten(2)


def _fill(out: Tensor, experts: Any, routed: Routed, gradient: Tensor) -> None:
    for e in routed.index.unique().tolist():
        rows, slots = torch.where(routed.index == e)
        back = gradient[rows] @ inside.down(experts, e).detach().to(gradient.dtype)
        out[rows, :, e] = (routed.weight[rows, slots, None] * routed.z[rows, slots])[:, None].to(out.dtype) * back


def _experts(layer: Layer) -> Any:
    if layer.mlp is None or layer.mlp_tail is not layer.mlp:
        raise ModelError(
            f"{type(layer.block).__name__}: a norm stands between its experts and the residual stream; attribution to "
            "experts is not available here"
        )
    return inside.required(layer.experts)
