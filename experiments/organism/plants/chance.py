"""Models that fail without a cause: by noise on every weight, or by drawing what they say."""

from __future__ import annotations

from typing import Any

import torch

from .recipes import Graft

NOISE = "noise"
FLAT = 0.45
"""Factor on the last norm's weight of the ``sampling`` model: what is drawn at temperature 1 is often not the best."""
FIRST, BEHIND = 0.15, 0.8
"""Size of the noise, of that of the weights: in the first block, where item and tag are computed, and in the others.
So shared out, each block has about as much of a part in the failures."""


@torch.no_grad()
def spoil(model: Any, graft: Graft, seed: int) -> None:
    """Change a model in place, so that it fails by chance. Deterministic given the seed."""
    if graft.variant != NOISE:
        model.model.norm.weight.mul_(FLAT)
        return
    generator = torch.Generator().manual_seed(seed)
    for i, block in enumerate(model.model.layers):
        for weight in (p for p in block.parameters() if p.dim() == 2 and p.any()):
            size = weight.std() * (BEHIND if i else FIRST)
            weight.add_(torch.randn(weight.shape, generator=generator) * size)
