"""How queries, keys and values lie in the output of the module that makes them, and how to cut them out of it.

``whole``: nothing else; ``heads_first``: the same, head axis before positions; ``concat``: ``[q | k | v]`` along the
width; ``grouped``: per key-value head ``[q… | k | v]``.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Layout = Literal["whole", "heads_first", "concat", "grouped"]


def head_index(layout: str, part: int, n_q: int, n_kv: int, width: int) -> Tensor | None:
    """Which elements of a projection's output hold which head: ``head d_head``; ``None`` where they do not fit."""
    n = n_q if part == 0 else n_kv
    if layout == "heads_first":
        return None
    if layout == "whole":
        return torch.arange(width).view(n, -1) if width % n == 0 else None
    if width % (n_q + 2 * n_kv):
        return None
    slots = torch.arange(width).view(n_q + 2 * n_kv, -1)
    if layout == "concat":
        start = (0, n_q, n_q + n_kv)[part]
        return slots[start : start + n]
    groups = n_q // n_kv
    slots = slots.view(n_kv, groups + 2, -1)
    return slots[:, :groups].flatten(0, 1) if part == 0 else slots[:, groups + part - 1]


def cut(y: Tensor, layout: str, part: int, n_q: int, n_kv: int) -> Tensor | None:
    """Queries, keys or values in a projection's output: ``batch head pos d_head``; ``None`` if it cannot be."""
    n = n_q if part == 0 else n_kv
    if y.dim() == 4 and layout in ("whole", "heads_first"):
        x = y.transpose(1, 2) if layout == "whole" else y
        return x if x.shape[1] == n else None
    index = head_index(layout, part, n_q, n_kv, y.shape[-1]) if y.dim() == 3 else None
    return None if index is None else y[..., index.to(y.device)].transpose(1, 2)


def paste(y: Tensor, x: Tensor, layout: str, part: int, n_q: int, n_kv: int) -> Tensor:
    """``y`` with ``x`` (as ``cut`` gives it) in its place."""
    if y.dim() == 4:
        return x.transpose(1, 2) if layout == "whole" else x
    index = head_index(layout, part, n_q, n_kv, y.shape[-1])
    assert index is not None
    out = y.clone()
    out[..., index.to(y.device)] = x.transpose(1, 2)
    return out
