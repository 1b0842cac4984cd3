"""Attribution patching, literally: finite differences along (source - run) at one cell at a time. Slow on purpose."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def with_mixture(
    model: Any, run: Tensor, module: nn.Module, goal: Tensor, at: tuple[slice, slice], share: float
) -> Tensor:
    """Last logits with a module's output moved by ``share`` of the way to ``goal`` at (positions, width)."""

    def put(_m: nn.Module, _a: Any, out: Any) -> Any:
        x = (out[0] if isinstance(out, tuple) else out).clone()
        x[0, at[0], at[1]] += share * (goal[at[0], at[1]] - x[0, at[0], at[1]])
        return (x, *out[1:]) if isinstance(out, tuple) else x

    handle = module.register_forward_hook(put)
    with torch.no_grad():
        logits = model(run).logits[0, -1]
    handle.remove()
    return logits


def slope(
    model: Any, source: Tensor, run: Tensor, module: nn.Module, at: tuple[slice, slice], answer: tuple[int, int],
    size: float = 2e-3,
) -> float:  # fmt: skip
    """Derivative of the logit difference along the way from the run's activation to the source's."""
    seen: list[Tensor] = []
    handle = module.register_forward_hook(lambda _m, _a, y: seen.append((y[0] if isinstance(y, tuple) else y)[0]))
    with torch.no_grad():
        model(source)
    handle.remove()
    ends = [with_mixture(model, run, module, seen[0], at, s * size) for s in (1, -1)]
    difference = [float(e[answer[0]] - e[answer[1]]) for e in ends]
    return (difference[0] - difference[1]) / (2 * size)
