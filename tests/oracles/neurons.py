"""Neuron attribution, literally: one full forward and backward per layer and node. Slow on purpose.

Formulas: Dai et al. 2022 (knowledge neurons), eq. 4; Chen et al. 2024 (QRNCA). Nothing here comes from composcope.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


def value_in(model: Any, ids: Tensor, module: nn.Module) -> Tensor:
    """Input of a module at the last position."""
    seen: list[Tensor] = []
    handle = module.register_forward_pre_hook(lambda _m, args: seen.append(args[0].detach()))
    with torch.no_grad():
        model(ids)
    handle.remove()
    return seen[0].reshape(-1, seen[0].shape[-1])[-1].clone()


def value_out(model: Any, ids: Tensor, module: nn.Module) -> Tensor:
    seen: list[Tensor] = []
    handle = module.register_forward_hook(lambda _m, _a, out: seen.append(out.detach()))
    with torch.no_grad():
        model(ids)
    handle.remove()
    return seen[0].reshape(-1, seen[0].shape[-1])[-1].clone()


def probability_with(model: Any, ids: Tensor, target: int, module: nn.Module, value: Tensor, side: str) -> Tensor:
    """P(target) with the last position's input or output of a module replaced."""

    def put(x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        return torch.cat([flat[:-1], value[None]]).reshape(x.shape)

    if side == "in":
        handle = module.register_forward_pre_hook(lambda _m, args: (put(args[0]), *args[1:]))
    else:

        def replace(_module: nn.Module, _args: Any, out: Any) -> Tensor:
            return put(out)

        handle = module.register_forward_hook(replace)
    try:
        return model(ids).logits[0, -1].softmax(-1)[target]
    finally:
        handle.remove()


def integrated_gradient(
    model: nn.Module, ids: Tensor, target: int, module: nn.Module, side: str, nodes: Sequence[tuple[float, float]]
) -> tuple[Tensor, Tensor]:
    """Sum over (alpha, weight) of weight * dP / d value at alpha * value; and the value itself."""
    full = value_in(model, ids, module) if side == "in" else value_out(model, ids, module)
    total = torch.zeros_like(full)
    for alpha, weight in nodes:
        leaf = (alpha * full).requires_grad_()
        p = probability_with(model, ids, target, module, leaf, side)
        total += weight * torch.autograd.grad(p, leaf)[0]
    return total, full


def attribute(
    model: nn.Module, ids: Tensor, target: int, down: Sequence[nn.Module], nodes: Sequence[tuple[float, float]]
) -> Tensor:
    """``layer neuron``: z * integral of dP/dz, z the input of each layer's down projection."""
    rows = []
    for module in down:
        gradient, z = integrated_gradient(model, ids, target, module, "in", nodes)
        rows.append(z * gradient)
    return torch.stack(rows)


def attribute_before_activation(
    model: nn.Module, ids: Tensor, target: int, up: Sequence[nn.Module], nodes: Sequence[tuple[float, float]]
) -> Tensor:
    """The published site: output of the up projection."""
    rows = []
    for module in up:
        gradient, u = integrated_gradient(model, ids, target, module, "out", nodes)
        rows.append(u * gradient)
    return torch.stack(rows)


def attribute_behind_norm(
    model: nn.Module, ids: Tensor, target: int, down: Sequence[nn.Module], norm: Sequence[nn.Module],
    nodes: Sequence[tuple[float, float]],
) -> Tensor:  # fmt: skip
    """Post-norm blocks: the path runs over the norm's output, whose factor is frozen at full activation."""
    rows = []
    for d, n in zip(down, norm, strict=True):
        gradient, after = integrated_gradient(model, ids, target, n, "out", nodes)
        z, before = value_in(model, ids, d), value_out(model, ids, d)
        weight: Any = d.weight
        rows.append(z * (weight.detach().T @ (after / before * gradient)))
    return torch.stack(rows)


def call_of_experts(model: Any, ids: Tensor, experts: nn.Module) -> tuple[Tensor, Tensor, Tensor]:
    """What the last position gives a layer's experts: hidden state, indices of the chosen ones, weights."""
    seen: list[tuple[Tensor, ...]] = []
    handle = experts.register_forward_pre_hook(lambda _m, args: seen.append(args))
    with torch.no_grad():
        model(ids)
    handle.remove()
    hidden, chosen, weights = seen[0]
    return hidden[-1].detach(), chosen[-1], weights[-1].detach()


def attribute_experts(
    model: Any, ids: Tensor, target: int, blocks: Sequence[Any], nodes: Sequence[tuple[float, float]]
) -> Tensor:
    """``layer expert neuron`` for Mixtral-like blocks, expert by expert; experts and weights as the router chose.

    What else the block gives (shared experts) stays as it is.
    """
    rows = []
    for block in blocks:
        experts = block.experts
        x, chosen, weights = call_of_experts(model, ids, experts)
        rest = value_out(model, ids, block) - value_out(model, ids, experts)
        full = torch.zeros(experts.down_proj.shape[0], experts.down_proj.shape[2])
        for e in chosen.tolist():
            full[e] = experts._apply_gate(x @ experts.gate_up_proj[e].detach().T)
        total = torch.zeros_like(full)
        for alpha, weight in nodes:
            leaf = (alpha * full).requires_grad_()
            out = rest
            for e, w in zip(chosen.tolist(), weights, strict=True):
                out = out + w * (experts.down_proj[e] @ leaf[e])
            p = probability_with(model, ids, target, block, out, "out")
            total += weight * torch.autograd.grad(p, leaf)[0]
        rows.append(full * total)
    return torch.stack(rows)


def reference_nodes(m: int) -> list[tuple[float, float]]:
    return [(k / (m - 1), 1 / m) for k in range(m)]


def key_neurons(
    scores: Sequence[Sequence[Sequence[Sequence[float]]]], t: float, u: float, v: int
) -> list[list[tuple[int, int]]]:
    """Loops over query, variant, layer, neuron; common neurons removed before the cut."""
    clusters: list[dict[tuple[int, int], float]] = []
    for query in scores:
        cluster: dict[tuple[int, int], float] = {}
        for variant in query:
            top = max(max(layer) for layer in variant)
            for i, layer in enumerate(variant):
                for j, s in enumerate(layer):
                    if s > t * top:
                        cluster[i, j] = cluster.get((i, j), 0.0) + s
        clusters.append(cluster)
    count = len(clusters)
    chosen = []
    for cluster in clusters:
        total = sum(cluster.values())
        ranked = []
        for neuron, s in cluster.items():
            df = sum(neuron in other for other in clusters)
            naica = s / total * math.log(count / (df + 1))
            if naica > 0 and not df > int(u * count):
                ranked.append((-naica, neuron))
        chosen.append([neuron for _, neuron in sorted(ranked)[:v]])
    return chosen
