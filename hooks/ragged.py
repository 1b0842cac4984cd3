"""Ragged rows: rows of several queries side by side on one sequence axis, each query with as many as it needs.

    rows = RaggedRows(queries=np.array([0, 0, 1]), entries=np.array([0, 1, 2]), n_queries=2)
    rows.by_query(x, lambda x, queries: x @ prefix[queries])

A row may start or end between two layers. Modules that mix no positions need no change; attention sorts the rows by
query; inputs that the model computed per position before its first block (such as rotary angles) are reordered for
every block to match its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from ..interrupts import uninterrupted

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class RaggedRows:
    """The rows of one layer."""

    queries: Indices
    """row: the query whose prefix it attends to"""
    entries: Indices
    """row: the row at the model's input that has its token and position"""
    n_queries: int

    @cached_property
    def _tables(self) -> tuple[list[tuple[Tensor, Tensor]], Tensor]:
        """Tables ``query slot`` of rows (row 0 in empty slots) for queries of similar numbers of rows, with the
        queries; and for each row its place among the slots of all tables."""
        counts = np.bincount(self.queries, minlength=self.n_queries)
        order = np.argsort(self.queries, kind="stable")
        starts = np.cumsum(counts) - counts
        sizes = np.where(counts > 0, np.log2(np.maximum(counts, 1)).astype(np.int64), -1)  # tables at least half full
        tables, place, so_far = [], np.empty_like(order), 0
        for size in np.unique(sizes[sizes >= 0]):
            queries = np.flatnonzero(sizes == size)
            slots = np.arange(counts[queries].max())[None]
            there = slots < counts[queries, None]
            rows = order[np.minimum(starts[queries, None] + slots, len(order) - 1)]
            place[rows[there]] = so_far + np.flatnonzero(there)
            tables.append((torch.from_numpy(queries), torch.from_numpy(np.where(there, rows, 0))))
            so_far += there.size
        return tables, torch.from_numpy(place)

    def by_query(
        self,
        x: Float[Tensor, "1 kv_head group row width"],
        fn: Callable[[Float[Tensor, "query kv_head group slot width"], Int[Tensor, " query"]], Float[Tensor, "..."]],
    ) -> Float[Tensor, "1 kv_head group row out"]:
        """``fn`` of ``x``, called with ``query kv_head group slot width`` and the queries."""
        if self.n_queries == 1:
            return fn(x, torch.zeros(1, dtype=torch.long, device=x.device))
        tables, place = self._tables
        parts = []
        for queries, table in tables:
            sorted_rows = rearrange(x[0][:, :, table.to(x.device)], "kv group query slot w -> query kv group slot w")
            y = fn(sorted_rows, queries.to(x.device))
            parts.append(rearrange(y, "query kv group slot w -> kv group (query slot) w"))
        return torch.cat(parts, 2)[None, :, :, place.to(x.device)]


@uninterrupted
def inputs_reordered(blocks: Sequence[nn.Module], rows: Sequence[RaggedRows], n_entries: int) -> Iterator[None]:
    """Inside, the per-position inputs of every block are reordered to match the block's rows."""

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

    with ExitStack() as attached:
        for block, x in zip(blocks, rows, strict=True):
            if not np.array_equal(x.entries, np.arange(n_entries)):
                attached.enter_context(attach(block, torch.from_numpy(x.entries)))
        yield
