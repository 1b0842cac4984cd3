"""Matrix products with packed weights: faster float32 decoding on a CPU, if a trial shows that they are faster.

    with torch.no_grad(), packed_products(pack(model)):
        model(input_ids=ids)

oneDNN, which comes with PyTorch, multiplies with packed weights in 5 to 40 % less time than PyTorch's default library
with plain weights; fewer rows gain more. The order of sums differs, so results differ in the last bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...devices import free_bytes
from ...interrupts import uninterrupted

WORTH_PACKING = 1 << 18
"""For layers with fewer weights than this, a call costs more than the layout saves."""
SHARE = 4
"""A copy of the weights may take this share (1 / SHARE) of the free memory."""


@cache
def prefers_packed() -> bool:
    """Whether products with packed weights take at least a tenth less time on this machine; tried once per process."""
    if not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")):
        return False
    with torch.inference_mode():
        x, weight = torch.randn(16, 576), torch.randn(1536, 576)
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        return _seconds(lambda: _onednn(x, packed, None, 1536)) < 0.9 * _seconds(lambda: F.linear(x, weight))


def _seconds(run: Callable[[], Any]) -> float:
    """The shortest of several runs, so that other load on the machine has no effect."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def pack(model: nn.Module) -> dict[nn.Linear, Tensor]:
    """The weights of a model's large linear layers in packed layout; empty if packing does not pay or does not fit.

    It needs memory for a copy of them, and as much time as a forward pass over some hundred tokens.
    """
    layers = [m for m in model.modules() if type(m) is nn.Linear and "forward" not in m.__dict__]
    layers = [m for m in layers if m.weight.numel() >= WORTH_PACKING and _plain(m)]
    free = free_bytes(torch.device("cpu"))
    fits = free is None or sum(m.weight.nbytes for m in layers) * SHARE <= free
    if not (layers and fits and torch.backends.mkldnn.enabled and prefers_packed()):
        return {}
    with torch.inference_mode():
        return {m: torch.ops.mkldnn._reorder_linear_weight(m.weight, None) for m in layers}


def _plain(layer: nn.Linear) -> bool:
    held = [layer.weight, *([] if layer.bias is None else [layer.bias])]
    return all(type(t) is nn.Parameter and t.device.type == "cpu" and t.dtype == torch.float32 for t in held)


@uninterrupted
def packed_products(packed: Mapping[nn.Linear, Tensor]) -> Iterator[None]:
    """Inside this context, these layers use their packed weights if no gradient is needed; afterwards, as before."""

    def forward(layer: nn.Linear, weight: Tensor, x: Tensor) -> Tensor:
        if torch.is_grad_enabled() or x.dtype != torch.float32 or x.numel() == 0:
            return F.linear(x, layer.weight, layer.bias)
        return _onednn(x, weight, layer.bias, layer.out_features)

    try:
        for layer, weight in packed.items():
            layer.forward = partial(forward, layer, weight)  # type: ignore[method-assign]
        yield
    finally:
        for layer in packed:
            layer.__dict__.pop("forward", None)


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None, width: int | None = None) -> Tensor:
    flat = x.reshape(-1, x.shape[-1])
    y = torch.ops.mkldnn._linear_pointwise(flat, weight, bias, "none", [], "")
    return y.view(*x.shape[:-1], width or weight.shape[0])
