"""Rows of several queries side by side, each query with as many as it needs: *lanes*, on one sequence axis.

A lane may begin or end between two layers. Modules that mix no positions do not notice; attention sorts the lanes by
query; and what a model computed per position before its first block (rotary angles, say) is handed to every block in
the order of that block's lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..interrupts import whole

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Lanes:
    """The lanes of one layer."""

    queries: Indices
    """lane: whose prefix it attends to"""
    entries: Indices
    """lane: the lane at the model's entry that has its token and position"""
    n_queries: int

    @cached_property
    def _tables(self) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """Queries of like numbers of lanes, each with a table ``query slot`` of its lanes (lane 0 where there are no
        more); and for each lane its place among the slots of all tables."""
        counts = np.bincount(self.queries, minlength=self.n_queries)
        order = np.argsort(self.queries, kind="stable")
        starts = np.cumsum(counts) - counts
        sizes = np.where(counts > 0, np.log2(np.maximum(counts, 1)).astype(np.int64), -1)  # tables at least half full
        tables, place, so_far = [], np.empty_like(order), 0
        for size in np.unique(sizes[sizes >= 0]):
            queries = np.flatnonzero(sizes == size)
            slots = np.arange(counts[queries].max())[None]
            there = slots < counts[queries, None]
            lanes = order[np.minimum(starts[queries, None] + slots, len(order) - 1)]
            place[lanes[there]] = so_far + np.flatnonzero(there)
            tables.append((torch.from_numpy(queries), torch.from_numpy(np.where(there, lanes, 0))))
            so_far += there.size
        return tables, torch.from_numpy(place)

    def by_query(self, x: Tensor, fn: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """``fn`` of ``1 kv_head group lane width``, given as ``query kv_head group slot width`` with the queries."""
        if self.n_queries == 1:
            return fn(x, torch.zeros(1, dtype=torch.long, device=x.device))
        tables, place = self._tables
        parts = []
        for queries, table in tables:
            y = fn(x[0][:, :, table.to(x.device)].permute(2, 0, 1, 3, 4), queries.to(x.device))
            parts.append(y.permute(1, 2, 0, 3, 4).flatten(2, 3))
        return torch.cat(parts, 2)[None, :, :, place.to(x.device)]


@whole
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

    handles = [
        attach(block, torch.from_numpy(x.entries))
        for block, x in zip(blocks, lanes, strict=True)
        if not np.array_equal(x.entries, np.arange(n_entries))
    ]
    try:
        yield
    finally:
        for h in handles:
            h.remove()
