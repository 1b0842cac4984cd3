"""Rows of several queries side by side, each query with as many as it needs: *lanes*, on one sequence axis.

A lane may begin or end between two layers. Modules that mix no positions do not notice; attention sorts the lanes by
query; and what a model computed per position before its first block (rotary angles, say) is handed to every block in
the order of that block's lanes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Lanes:
    """The lanes of one layer."""

    queries: Tensor
    """lane: whose prefix it attends to"""
    entries: Tensor
    """lane: the lane at the model's entry that has its token and position"""
    n_queries: int

    @cached_property
    def _slots(self) -> tuple[Tensor, Tensor]:
        """query slot: the lane in it, or lane 0 where there are no more; and lane: its slot, counted over queries."""
        order = torch.argsort(self.queries, stable=True)
        counts = torch.bincount(self.queries, minlength=self.n_queries)
        starts = counts.cumsum(0) - counts
        mine = self.queries[order]
        within = torch.arange(len(order), device=order.device) - starts[mine]
        width = int(counts.max())
        table = torch.zeros(self.n_queries * width, dtype=torch.long, device=order.device)
        slot = torch.empty_like(order)
        slot[order] = mine * width + within
        table[slot] = torch.arange(len(order), device=order.device)
        return table.view(self.n_queries, width), slot

    def by_query(self, x: Tensor) -> Tensor:
        """``1 kv_head group lane width`` as ``query kv_head group slot width``."""
        if self.n_queries == 1:
            return x
        table = self._slots[0].to(x.device)
        return x[0][:, :, table].permute(2, 0, 1, 3, 4)

    def side_by_side(self, x: Tensor) -> Tensor:
        """The way back."""
        if self.n_queries == 1:
            return x
        return x.permute(1, 2, 0, 3, 4).flatten(2, 3)[None, :, :, self._slots[1].to(x.device)]


@contextmanager
def handed_on(blocks: Sequence[nn.Module], lanes: Sequence[Lanes], n_entries: int) -> Iterator[None]:
    """Inside, every block is given what came in per position in the order of its own lanes."""

    def chosen(value: Any, index: Tensor) -> Any:
        if isinstance(value, Tensor) and value.dim() > 1 and value.shape[:2] == (1, n_entries):
            return value.index_select(1, index.to(value.device))
        if type(value) in (tuple, list):
            return type(value)(chosen(v, index) for v in value)
        return value

    def attach(block: nn.Module, index: Tensor) -> Any:
        def before(_module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
            more = {k: v if k == "hidden_states" else chosen(v, index) for k, v in kwargs.items()}
            return (*args[:1], *(chosen(a, index) for a in args[1:])), more

        return block.register_forward_pre_hook(before, with_kwargs=True)

    same = torch.arange(n_entries)
    handles = [
        attach(block, x.entries)
        for block, x in zip(blocks, lanes, strict=True)
        if not torch.equal(x.entries.cpu(), same)
    ]
    try:
        yield
    finally:
        for h in handles:
            h.remove()
