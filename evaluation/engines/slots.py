"""Keys and values of the answers under way: one slot each, written in place, with room that grows as it is needed.

A slot holds its tokens from the first column on, so that a column is a position and nothing is ever padded. Slots in
use stand first: what a finished one leaves is filled with the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import Cache, DynamicCache
from transformers.cache_utils import DynamicLayer

_BLOCK = 32


class Slots:
    """Room for the keys and values of ``n`` answers, as a ``transformers`` cache for steps of one token each."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.lengths: list[int] = []
        """Tokens in each slot that is in use."""
        self.cache: Any = None
        self._at: tuple[Tensor, Tensor] | None = None

    def store(self, read: DynamicCache, columns: Sequence[Sequence[int]]) -> None:
        """Take one more slot for each prompt: its keys and values stand in these columns of ``read``."""
        layers: Any = read.layers
        if self.cache is None:
            self.cache = Cache(layers=[_Layer(self, layer) for layer in layers])
        first, widest = len(self.lengths), max(map(len, columns))
        self.lengths += map(len, columns)
        self._make_room(widest)
        index = torch.tensor([[*c, *[0] * (widest - len(c))] for c in columns])
        for mine, theirs in zip(self.cache.layers, layers, strict=True):
            at = index.to(theirs.keys.device)
            rows = slice(first, len(self.lengths))
            mine.keys[rows, :, :widest] = theirs.keys[0][:, at].transpose(0, 1)
            mine.values[rows, :, :widest] = theirs.values[0][:, at].transpose(0, 1)

    def release(self, slot: int) -> None:
        """Give up a slot; the last one in use takes its place."""
        last = len(self.lengths) - 1
        if slot != last:
            length = self.lengths[last]
            for layer in self.cache.layers:
                layer.keys[slot, :, :length] = layer.keys[last, :, :length]
                layer.values[slot, :, :length] = layer.values[last, :, :length]
            self.lengths[slot] = length
        self.lengths.pop()

    def advance(self, device: torch.device) -> tuple[Int[Tensor, "slot 1"], Int[Tensor, "slot 1 1 column"]]:
        """Make room for one more token in every slot in use: its positions, and how far back each column is."""
        positions = torch.tensor(self.lengths, device=device)
        self.lengths = [n + 1 for n in self.lengths]
        self._make_room(self.width)
        self._at = torch.arange(len(self.lengths), device=device), positions
        return positions[:, None], (positions[:, None] - torch.arange(self.width, device=device))[:, None, None]

    @property
    def width(self) -> int:
        """Columns in use."""
        return max(self.lengths, default=0)

    def write(self, buffer: Tensor, states: Tensor) -> Tensor:
        """Put the states of one new token into every slot in use; what is in use then."""
        assert self._at is not None
        rows, columns = (x.to(buffer.device) for x in self._at)
        buffer[rows, :, columns] = states[:, :, 0]
        return buffer[: len(self.lengths), :, : self.width]

    def _make_room(self, width: int) -> None:
        held = self.cache.layers[0].keys.shape[2]
        if width > held:
            wanted = -(-(width + width // 4) // _BLOCK) * _BLOCK
            for layer in self.cache.layers:
                layer.grow(wanted)


class _Layer(DynamicLayer):
    """The slots of one layer of the model."""

    def __init__(self, slots: Slots, like: Any) -> None:
        super().__init__()
        self.slots = slots
        self.keys, self.values = (x.new_empty(slots.n, x.shape[1], 0, x.shape[3]) for x in (like.keys, like.values))
        self.is_initialized = True

    def grow(self, width: int) -> None:
        assert self.keys is not None and self.values is not None
        self.keys, self.values = _wider(self.keys, width), _wider(self.values, width)

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        assert self.keys is not None and self.values is not None
        return self.slots.write(self.keys, key_states), self.slots.write(self.values, value_states)

    def get_seq_length(self) -> int:
        return self.slots.width - 1


def _wider(buffer: Tensor, width: int) -> Tensor:
    # zeros: what was never written is masked, and a masked NaN would still spoil the sum
    wide = buffer.new_zeros(*buffer.shape[:2], width, buffer.shape[3])
    wide[:, :, : buffer.shape[2]] = buffer
    return wide
