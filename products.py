"""The faster library for float32 products on a CPU, for the engines that compute millions of them.

PyTorch multiplies float32 matrices with Intel's MKL, also on processors of others, where oneDNN (which PyTorch brings
along for half precision) takes 10 to 25 % less time, and another 5 to 40 % less where the weights were laid out for it
beforehand (``pack``): the fewer rows, the more. Sums come in another order: results differ in the last bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .devices import free_bytes
from .interrupts import whole

WORTH_PACKING = 1 << 18
"""Weights of a layer below which a call costs more than the layout saves."""
SHARE = 4
"""A copy of the weights may take this part (1 / SHARE) of the memory that is free."""


@cache
def prefers_onednn() -> bool:
    """Whether this is an AMD processor and a PyTorch with both libraries."""
    info = Path("/proc/cpuinfo")
    amd = info.is_file() and "AuthenticAMD" in info.read_text(errors="replace")
    has = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return amd and torch.backends.mkl.is_available() and has


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x @ weight.T + bias`` by the library that is faster here, with a gradient for ``x`` alone."""
    if not _suits(x, weight, bias):
        return F.linear(x, weight, bias)
    if x.requires_grad and torch.is_grad_enabled():
        y = _Product.apply(x, weight)
        return y if bias is None else y + bias  # type: ignore[operator]
    return _onednn(x, weight, bias)


@whole
def fast_products(model: nn.Module) -> Iterator[None]:
    """Inside, the model's linear layers go through ``linear``; afterwards it is as before.

    Layers of other classes (quantized, with adapters) and layers that somebody else runs (offloaded) are left alone.
    """
    layers = [m for m in model.modules() if type(m) is nn.Linear and "forward" not in m.__dict__]
    layers = layers if prefers_onednn() else []

    def forward(layer: nn.Linear, x: Tensor) -> Tensor:
        return linear(x, layer.weight, layer.bias)

    try:
        for layer in layers:
            layer.forward = partial(forward, layer)  # type: ignore[method-assign]
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


@cache
def prefers_packed() -> bool:
    """Whether products with weights laid out beforehand take at least a tenth less time here: tried once."""
    if not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")):
        return False
    with torch.inference_mode():
        x, weight = torch.randn(16, 576), torch.randn(1536, 576)
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        return _seconds(lambda: _onednn(x, packed, None, 1536)) < 0.9 * _seconds(lambda: F.linear(x, weight))


def _seconds(run: Callable[[], Any]) -> float:
    """The shortest of a few: what a busy machine adds is left out."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def pack(model: nn.Module) -> dict[nn.Linear, Tensor]:
    """The weights of a model's large linear layers laid out for many products; empty where that does not pay or fit.

    Costs a copy of them, and as long as a forward pass over some hundred tokens.
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


@whole
def packed_products(packed: Mapping[nn.Linear, Tensor]) -> Iterator[None]:
    """Inside, these layers use their packed weights where no gradient is wanted; afterwards they are as before."""

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


def _suits(x: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
    if not prefers_onednn() or not torch.backends.mkldnn.enabled:
        return False
    held = [weight] if bias is None else [weight, bias]
    plain = type(x) is Tensor and all(type(t) in (Tensor, nn.Parameter) for t in held) and x.numel() > 0
    if not plain or any(t.device.type != "cpu" or t.dtype != torch.float32 for t in (x, *held)):
        return False
    # oneDNN reads biases as they lie in memory, whatever their strides and length.
    fits = weight.dim() == 2 and (bias is None or (bias.is_contiguous() and bias.shape == weight.shape[:1]))
    return fits and not (torch.is_grad_enabled() and any(t.requires_grad for t in held))


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None, width: int | None = None) -> Tensor:
    flat = x.reshape(-1, x.shape[-1])
    y = torch.ops.mkldnn._linear_pointwise(flat, weight, bias, "none", [], "")
    return y.view(*x.shape[:-1], width or weight.shape[0])


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)  # not held as it is: where weights are widened, the graph keeps them narrow
        return _onednn(x, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (weight,) = ctx.saved_tensors
        return linear(grads[0], weight.t()), None
