"""Muon in float32.

PyTorch's own Muon orthogonalises in bfloat16. Many processors emulate bfloat16, and there this took more than half of
the time of a training step. Steps and state are otherwise the same, so checkpoints of either continue with the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

STEPS, COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)
"""Newton-Schulz iteration as published (Jordan et al. 2024, "Muon")."""
MOMENTUM = 0.95


def orthogonalised(matrices: Tensor) -> Tensor:
    """Nearly orthogonal matrices with the singular vectors of the given ones ``[matrix row column]``."""
    wide = matrices.shape[1] <= matrices.shape[2]
    x = matrices if wide else matrices.mT
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide else x.mT


class Muon(torch.optim.Optimizer):
    """Momentum whose update of every matrix is orthogonalised, as large as AdamW's would be; no weight decay."""

    def __init__(self, matrices: Iterable[Tensor], lr: float) -> None:
        super().__init__(matrices, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = {}
            for matrix in (p for p in group["params"] if p.grad is not None):
                shapes.setdefault(matrix.shape, []).append(matrix)
            for shape, matrices in shapes.items():
                updates = orthogonalised(torch.stack([self._momentum(m) for m in matrices]))
                rate = group["lr"] * 0.2 * max(shape) ** 0.5
                for matrix, update in zip(matrices, updates, strict=True):
                    matrix.sub_(update, alpha=rate)

    def _momentum(self, matrix: Tensor) -> Tensor:
        state, gradient = self.state[matrix], matrix.grad
        assert gradient is not None
        buffer = state.setdefault("momentum_buffer", torch.zeros_like(matrix))
        buffer.lerp_(gradient, 1 - MOMENTUM)
        return gradient.lerp(buffer, MOMENTUM)
