"""Prompts laid out as one sequence in which every shared beginning stands once, and so is computed once.

Neighbors in dictionary order share the longest beginnings: each prompt is compared with the one before it only.
``held`` is what was computed before, the last prompt of the layout before this one. Knows token ids only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """Where the tokens of some prompts stand: first those that are held already, then the new ones."""

    tokens: list[int]
    """The new ones."""
    depths: list[int]
    """How many tokens stand before each of them in its prompt: its position."""
    columns: list[list[int]]
    """Of each prompt, the place of each of its tokens."""
    seen: Bool[Tensor, "new column"]
    """Whether a new token may look at a place: at the earlier tokens of its own prompt and at itself."""

    @property
    def ends(self) -> list[int]:
        """Of each prompt, which of the new tokens is its last one."""
        held = self.seen.shape[1] - len(self.tokens)
        return [mine[-1] - held for mine in self.columns]


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two sequences share from the start."""
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return i
    return min(len(a), len(b))


def together(held: Sequence[int], prompts: Sequence[Sequence[int]], limit: int) -> int:
    """How many of ``prompts`` have at most ``limit`` new tokens between them; at least 1."""
    new, before = 0, held
    for n, ids in enumerate(prompts):
        new += max(1, len(ids) - common(before, ids))
        if new > limit and n:
            return n
        before = ids
    return len(prompts)


def lay_out(held: Sequence[int], prompts: Sequence[Sequence[int]]) -> Layout:
    """Lay out ``prompts`` behind ``held``. Every prompt's last token is among the new ones: its logits are wanted."""
    tokens: list[int] = []
    depths: list[int] = []
    columns: list[list[int]] = []
    seen = torch.zeros(sum(map(len, prompts)), len(held) + sum(map(len, prompts)), dtype=torch.bool)
    before, where = held, list(range(len(held)))
    for ids in prompts:
        shared = common(before, ids)
        if shared == len(ids) and where[shared - 1] < len(held):
            shared -= 1
        first, new = len(tokens), len(ids) - shared
        rows, own = slice(first, first + new), slice(len(held) + first, len(held) + first + new)
        seen[rows, where[:shared]] = True
        seen[rows, own] = torch.ones(new, new, dtype=torch.bool).tril()
        tokens += ids[shared:]
        depths += range(shared, len(ids))
        where = [*where[:shared], *range(own.start, own.stop)]
        columns.append(where)
        before = ids
    return Layout(tokens, depths, columns, seen[: len(tokens), : len(held) + len(tokens)])
