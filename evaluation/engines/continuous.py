"""A batch that stays full: a row that has finished is replaced at once, and shared beginnings are read once.

Rows are read several at a time, in the order given: in dictionary order of their prompts neighbors share most. Needs a
model whose memory of a text is keys and values alone, which ``trust`` finds out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import DynamicCache

from .decoding import Row, Runner, choose
from .prefixes import Layout, common, lay_out, together
from .slots import Slots

READ = {"cpu": 256}
"""Tokens of prompts that are read in one forward pass: more only adds pairs of tokens that do not see each other."""
READ_ELSEWHERE = 2048
REFILL = 8
"""Rows are replaced when this part of the slots (1 / REFILL) is free."""


def decode(runner: Runner, rows: Sequence[Row], n: int) -> Iterator[int]:
    """Decode the rows with at most ``n`` under way; yields the index of each when it has finished.

    Raises ``ModelError`` when the logits of an unfinished row are not finite.
    """
    waiting = deque(range(len(rows)))
    reader, slots = Reader(runner), Slots(n)
    under_way: list[int] = []
    while waiting or under_way:
        free = n - len(under_way)
        if waiting and (not under_way or free * REFILL >= n):
            prompts = [rows[i].ids for i in islice(waiting, free)]
            taken = [waiting.popleft() for _ in range(together(reader.held, prompts, reader.limit))]
            logits, columns = reader.read(prompts[: len(taken)])
            finished = _accept(logits, [rows[i] for i in taken])
            yield from (i for i, done in zip(taken, finished, strict=True) if done)
            left = [k for k, done in enumerate(finished) if not done]
            if left:
                with torch.inference_mode():
                    slots.store(reader.cache, [columns[k] for k in left])
                under_way += [taken[k] for k in left]
            continue
        logits = step(runner, slots, [rows[i].generated[-1] for i in under_way])
        finished = _accept(logits, [rows[i] for i in under_way])
        for slot in reversed(range(len(under_way))):
            if finished[slot]:
                done, last = under_way[slot], under_way.pop()
                if slot < len(under_way):
                    under_way[slot] = last
                with torch.inference_mode():
                    slots.release(slot)
                yield done


def _accept(logits: Tensor, rows: Sequence[Row]) -> list[bool]:
    return [row.accept(token) for row, token in zip(rows, choose(logits, rows), strict=True)]


@torch.inference_mode()
def step(runner: Runner, slots: Slots, tokens: Sequence[int]) -> Float[Tensor, "slot vocab"]:
    """The logits after one more token in every slot in use."""
    positions, back = slots.advance(runner.device)
    ids = torch.tensor(tokens, device=runner.device)[:, None]
    return runner.forward(ids, runner.mask(back >= 0, back), positions, slots.cache)[0][:, -1]


class Reader:
    """Reads prompts, and holds the keys and values of the last one: what it shares with the next is not read again."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.limit = READ.get(runner.device.type, READ_ELSEWHERE)
        self.held: tuple[int, ...] = ()
        self.cache: Any = DynamicCache()
        self._columns: list[int] = []

    @torch.inference_mode()
    def read(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Float[Tensor, "prompt vocab"], list[list[int]]]:
        """The logits at the end of each prompt, and where its keys and values stand in ``cache`` until the next."""
        first = prompts[0]
        for end in range(common(self.held, first) + self.limit, len(first), self.limit):
            self._forward([first[:end]])
        logits, layout = self._forward(prompts)
        return logits, layout.columns

    def _forward(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Tensor, Layout]:
        self._keep(common(self.held, prompts[0]))
        layout = lay_out(self.held, prompts)
        depths = torch.tensor([*range(len(self.held)), *layout.depths])
        own = depths[len(self.held) :]
        mask = self.runner.mask(layout.seen[None, None], (own[:, None] - depths)[None, None])
        ids, positions = torch.stack([torch.tensor(layout.tokens), own])[:, None].to(self.runner.device)
        logits, self.cache = self.runner.forward(ids, mask, positions, self.cache, keep=layout.ends)
        self.held, self._columns = prompts[-1], layout.columns[-1]
        return logits[0], layout

    def _keep(self, n: int) -> None:
        """Hold the first ``n`` tokens of the last prompt, and nothing else."""
        self.held, columns = self.held[:n], self._columns[:n]
        for layer in self.cache.layers:
            at = torch.tensor(columns, dtype=torch.long, device=layer.keys.device)
            layer.keys, layer.values = layer.keys[:, :, at], layer.values[:, :, at]
