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
from torch import Tensor

from ..errors import ModelError
from ..hooks.anatomy import Layer
from ..hooks.model import Model


class Routed(NamedTuple):
    """One position of every query."""

    index: Tensor
    """query k: experts chosen"""
    weight: Tensor
    """query k"""
    z: Tensor
    """query k neuron"""
    output: Tensor
    """query d_model: the routed sum without biases"""


def by_expert(lm: Model, scores: Tensor) -> Tensor:
    """Scores ``... layer neuron`` as ``... layer expert neuron``; one expert where the MLPs are dense."""
    return scores.unflatten(-1, (lm.anatomy.n_experts or 1, lm.anatomy.d_mlp))


@torch.no_grad()
def route(layer: Layer, x: Tensor) -> Routed:
    """Activations of the chosen experts for inputs ``query d_model`` of the block's MLP."""
    experts, mlp = _experts(layer), layer.mlp
    assert mlp is not None
    calls: list[tuple[tuple, dict[str, Any], Tensor]] = []
    handle = experts.register_forward_hook(lambda _m, a, k, out: calls.append((a, k, out)), with_kwargs=True)
    try:
        mlp(x[:, None])
    finally:
        handle.remove()
    if len(calls) != 1:
        raise ModelError(f"{type(experts).__name__} ran {len(calls)} times for one MLP; attribution needs one call")
    args, kwargs, output = calls[0]
    hidden, index, weight = (*args, *kwargs.values())[:3]
    z, parts, bias = _recompute(experts, hidden, index, x.shape)
    mine = ((parts + bias) * weight[..., None]).sum(1)
    if not torch.allclose(mine, output.reshape(mine.shape), rtol=1e-3, atol=1e-3 * float(output.abs().max())):
        raise ModelError(f"{type(experts).__name__}: its output is not the weighted sum of its experts; not supported")
    return Routed(index, weight, z, (parts * weight[..., None]).sum(1))


def _recompute(experts: Any, hidden: Tensor, index: Tensor, shape: torch.Size) -> tuple[Tensor, Tensor, Tensor]:
    """Activations ``query k neuron``, what they write ``query k d_model``, and the down projection's bias."""
    flip = bool(experts.is_transposed)
    zs, parts = [], []
    for row, chosen in zip(hidden.reshape(shape), index.tolist(), strict=True):
        z = []
        for e in chosen:
            up = (experts.gate_up_proj if experts.has_gate else experts.up_proj)[e]
            bias = (
                (experts.gate_up_proj_bias if experts.has_gate else experts.up_proj_bias)[e] if experts.has_bias else 0
            )
            projected = row @ (up if flip else up.T) + bias
            z.append(experts._apply_gate(projected) if experts.has_gate else experts.act_fn(projected))
        zs.append(torch.stack(z))
        parts.append(torch.stack([a @ _down(experts, e).T for a, e in zip(z, chosen, strict=True)]))
    out = torch.stack(parts)
    return torch.stack(zs), out, experts.down_proj_bias[index] if experts.has_bias else torch.zeros_like(out)


def scores(layer: Layer, routed: Routed, gradient: Tensor) -> Tensor:
    """``query panel expert*neuron`` from integrated gradients ``query panel d_model``."""
    experts: Any = _experts(layer)
    n, panels, width = len(routed.index), gradient.shape[1], routed.z.shape[-1]
    out = gradient.new_zeros(n, panels, int(experts.down_proj.shape[0]), width)
    for q, chosen in enumerate(routed.index.tolist()):
        for k, e in enumerate(chosen):
            out[q, :, e] = routed.weight[q, k] * routed.z[q, k] * (gradient[q] @ _down(experts, e))
    return out.flatten(2)


def _down(experts: Any, e: int) -> Tensor:
    """d_model neuron"""
    weight = experts.down_proj[e].detach()
    return weight.T if experts.is_transposed else weight


def _experts(layer: Layer) -> Any:
    experts: Any = layer.experts
    if experts is None or layer.mlp is None or layer.mlp_tail is not layer.mlp:
        raise ModelError("no experts that write to the residual stream directly; attribution is not available here")
    if not hasattr(experts, "is_transposed") or getattr(experts, "has_post_expert_norm", False):
        raise ModelError(
            f"{type(experts).__name__}: experts outside transformers' experts interface, or with a norm behind them, "
            "cannot be attributed to; use a model with dense MLPs, Mixtral or Qwen3-MoE"
        )
    return experts
