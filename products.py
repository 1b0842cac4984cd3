"""The faster library for float32 products on a CPU, for the engines that compute millions of them.

PyTorch multiplies float32 matrices with Intel's MKL, also on processors of others, where oneDNN (which PyTorch brings
along for half precision) takes 10 to 25 % less time. Sums come in another order: results differ in the last bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .interrupts import whole


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


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    flat = x.reshape(-1, x.shape[-1])
    y = torch.ops.mkldnn._linear_pointwise(flat, weight, bias, "none", [], "")
    return y.view(*x.shape[:-1], weight.shape[0])


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(weight)  # not held as it is: where weights are widened, the graph keeps them narrow
        return _onednn(x, weight)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (weight,) = ctx.saved_tensors
        return linear(grads[0], weight.t()), None
