"""How many rows run at once: as many as fit into memory, and fewer when it runs out all the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import torch

from ..devices import free_bytes, halving
from ..errors import InputError
from .length_limits import alike
from .model import Model

T = TypeVar("T")
LARGEST, WORTHWHILE = 224 * 2**20, 512
"""Bytes that rows take at most on a CPU, or what so many rows take: more does not make them faster."""
MAX_TOKENS = 8192
"""Prompt tokens in one prefill at most."""


def row_budget(
    lm: Model, n_queries: int, prefix_len: int, graph: bool, *, decoded: int = 0, limit: int | None = None
) -> int:
    """How many rows of each query fit into memory at once.

    Counts what one row holds: its activations in every layer (kept only with a graph), its attention over the prefix,
    its own keys and values over ``decoded`` steps, and its logits. Uses a quarter of the free memory; on a CPU at most
    224 MB or, of models with large rows, what 512 of them take.
    """
    a = lm.anatomy
    size = torch.finfo(lm.dtype).bits // 8
    per_layer = 14 * a.d_model + 5 * a.d_mlp + 3 * a.n_heads * prefix_len
    layers = a.n_layers if graph else 2
    cache = 2 * 2 * decoded * a.n_layers * a.n_kv_heads * a.d_head  # twice, while a step is appended
    per_row = size * (per_layer * layers + cache) + 4 * 4 * a.vocab_size
    free = limit if limit is not None else _share(lm.device, WORTHWHILE * per_row)
    return max(1, int(free // (per_row * max(1, n_queries))))


def prompt_tokens(lm: Model, *, limit: int | None = None) -> int:
    """How many prompt tokens, padding included, may run in one prefill: a quarter of the free memory, at most 8192.

    Counts what is kept of a token (keys and values of every layer) and what its way through one block takes.
    """
    a = lm.anatomy
    kept = 2 * a.n_layers * a.n_kv_heads * a.d_head
    per_token = torch.finfo(lm.dtype).bits // 8 * (kept + 16 * a.d_model + 4 * a.d_mlp)
    free = free_bytes(lm.device) if limit is None else limit
    return MAX_TOKENS if free is None else max(1, min(MAX_TOKENS, free // 4 // per_token))


def in_prefills(lm: Model, lengths: Sequence[int]) -> Iterator[list[int]]:
    """Texts by index, the longest first, in batches that fit into one prefill (one at least) and are computed alike."""
    most = prompt_tokens(lm)
    for together in reversed(alike(lm.model, lengths)):
        some = list[int]()
        for i in sorted(together, key=lambda i: -lengths[i]):
            if some and (len(some) + 1) * lengths[some[0]] > most:
                yield some
                some = []
            some.append(i)
        yield some


def shrinking(
    work: Callable[[int | None], T], rows: int | None, budget: Callable[[], int], notes: list[str] | None = None
) -> T:
    """The result of ``work(rows)``, with the number of rows halved as long as memory runs out (``devices.halving``).

    ``rows`` is what to start with; ``None``: what ``work`` itself finds to fit (``budget()``). ``notes`` (or a warning)
    says what was halved. Raises ``InputError`` for fewer rows than one.
    """
    if rows is not None and rows < 1:
        raise InputError(f"max_rows is {rows}; give at least 1, or None for what fits into memory")
    return next(halving(lambda n: [work(n)], rows, lambda n: budget() if n is None else n, told(notes)))


def told(notes: list[str] | None) -> Callable[[str], None]:
    """Where remarks about smaller batches go: into ``notes``, or without them into a Python warning."""
    return partial(warnings.warn, category=RuntimeWarning, stacklevel=2) if notes is None else notes.append


def _share(device: torch.device, worthwhile: int) -> int:
    free = free_bytes(device)
    if device.type == "cuda" and free is not None:
        return free // 4
    most = max(LARGEST, worthwhile)
    return most if free is None else min(free // 4, most)
