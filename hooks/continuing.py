"""Greedy continuation of rows, computing once what they share.

A row born after block l differs from the unchanged row in the blocks above l and nowhere else. So two rows that have
generated the same tokens so far are the same in every block up to the earlier of their births: there they take one
*lane*. A row leaves the shared lane after the block it was born in, or when its tokens part from the others'; rows that
have ended take none. Where patches change few answers, or agree with each other, most lanes are shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .model import Model
from .rows import Grow, History, Prefix, Step, step

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]
HEAD = 4
"""What a lane in the last layer costs, with the vocabulary head, where one in the first costs 1."""


@torch.no_grad()
def continue_rows(
    lm: Model, prefix: Prefix, first: Step, born: Sequence[int], max_new_tokens: int, stop_ids: Sequence[int]
) -> Tensor:
    """Greedy tokens of every row of ``first``: ``query row step``, -1 after the end (the stopping token is kept).

    Args:
        first: the prompt-end position (``rows.step`` with ``grow``), rows in the order of their births.
        born: for every row the block after which it was put in; ``n_layers`` for the unchanged row 0.
    """
    n_layers, device = lm.anatomy.n_layers, first.logits.device
    stops = torch.tensor(list(stop_ids), device=device, dtype=torch.long)
    tokens = first.logits.argmax(-1)
    out, ended = [tokens], torch.isin(tokens, stops)
    births = np.asarray(born)
    same = np.zeros(tokens.shape, dtype=np.int64)
    """query row: rows of a query with the same number have generated the same tokens"""
    at = [_as_born(first.keys[layer].shape[2], *tokens.shape) for layer in range(n_layers)]
    history = History([k[:, :, :, None] for k in first.keys], [v[:, :, :, None] for v in first.values])
    for offset in range(1, max_new_tokens):
        if bool(ended.all()):
            break
        same = _split(same, tokens.cpu().numpy())
        running = ~ended.cpu().numpy()
        speakers = _speakers(same, births, running)
        lanes = _fitting([_lanes(speakers, births, running, layer) for layer in range(n_layers)])
        history = _follow(history, [np.take_along_axis(a, x.rows, 1) for a, x in zip(at, lanes, strict=True)])
        entering = torch.gather(tokens, 1, torch.from_numpy(lanes[0].rows).to(device))
        after = step(lm, prefix, entering, offset=offset, history=history, grow=_regroup(lanes, device))
        at = [lane.of_row for lane in lanes]
        tokens = torch.gather(after.logits.argmax(-1), 1, torch.from_numpy(at[-1]).to(device))
        out.append(tokens.masked_fill(ended, -1))
        ended = ended | torch.isin(tokens, stops)
        if offset + 1 < max_new_tokens:
            history = _append(history, after)
    missing = max_new_tokens - len(out)
    return torch.nn.functional.pad(torch.stack(out, -1), (0, missing), value=-1)


@dataclass(frozen=True)
class _Lanes:
    """What runs in one layer."""

    rows: Indices
    """query lane: a row that the lane stands for; queries with fewer lanes repeat their first"""
    of_row: Indices
    """query row: the row's lane; 0 for rows that have ended"""

    def repeated(self, n: int) -> _Lanes:
        """With the first lane again and again, to ``n`` lanes."""
        more = np.repeat(self.rows[:, :1], n - self.rows.shape[1], 1)
        return _Lanes(np.concatenate([self.rows, more], 1), self.of_row)


def _as_born(n_lanes: int, n_queries: int, n_rows: int) -> Indices:
    """Lanes of the prompt-end position: each row its own from its birth on, row 0's before."""
    rows = np.arange(n_rows)
    return np.broadcast_to(np.where(rows < n_lanes, rows, 0), (n_queries, n_rows))


def _split(same: Indices, tokens: Indices) -> Indices:
    """Groups of rows after one more token each."""
    pairs = np.stack([same, tokens], -1).reshape(-1, 2)
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(same.shape)


def _speakers(same: Indices, born: Indices, running: Mask) -> Indices:
    """query row: of the running rows that have generated the same, the one born last."""
    order = np.argsort(born, kind="stable")
    rank = np.argsort(order)
    best = np.zeros((len(same), int(same.max()) + 1), dtype=np.int64)
    queries = np.arange(len(same))[:, None]
    np.maximum.at(best, (queries, same), np.where(running, rank[None], 0))
    return order[best[queries, same]]


def _lanes(speakers: Indices, born: Indices, running: Mask, layer: int) -> _Lanes:
    rows = np.arange(len(born))[None]
    own = born[None] < layer
    taken = running & (own | (speakers == rows))
    order = np.argsort(~taken, axis=1, kind="stable")
    count = taken.sum(1, keepdims=True)
    n = max(1, int(count.max()))
    lane = np.argsort(order, axis=1)  # of the row itself, where it has one
    of_row = np.take_along_axis(lane, np.where(own, rows, speakers), 1)
    return _Lanes(
        np.where(np.arange(n)[None] < count, order[:, :n], order[:, :1]),
        np.where(running, of_row, 0),
    )


def _fitting(lanes: list[_Lanes]) -> list[_Lanes]:
    """Lanes repeated in the first or last layer until the number of the last is a multiple of that of the first.

    Some architectures (GPT-2) give the last hidden states the shape of the input.
    """
    if len(lanes) == 1:
        return lanes
    first, last = lanes[0].rows.shape[1], lanes[-1].rows.shape[1]
    start = min(range(first, last + 1), key=lambda n: n - first + HEAD * (-last % n))
    return [lanes[0].repeated(start), *lanes[1:-1], lanes[-1].repeated(last + -last % start)]


def _regroup(lanes: Sequence[_Lanes], device: torch.device) -> dict[int, Grow]:
    """After which blocks the lanes change, and from which lane each of the next block goes on."""
    found: dict[int, Grow] = {}
    for layer, (here, above) in enumerate(pairwise(lanes)):
        source = np.take_along_axis(here.of_row, above.rows, 1)
        if not _unchanged(source, here.rows.shape[1]):
            found[layer] = partial(_pick, index=torch.from_numpy(source).to(device))
    return found


def _pick(x: Tensor, index: Tensor) -> Tensor:
    index = index.to(x.device)
    return torch.take_along_dim(x, index[..., None], 1)


def _follow(history: History, sources: Sequence[Indices]) -> History:
    """Each lane's keys and values so far, from the lane of the step before that it goes on from."""

    def moved(x: Tensor, source: Indices) -> Tensor:
        if _unchanged(source, x.shape[2]):
            return x
        index = torch.from_numpy(source).to(x.device)
        return torch.stack([of_query.index_select(1, i) for of_query, i in zip(x, index, strict=True)])

    keys = [moved(k, s) for k, s in zip(history.keys, sources, strict=True)]
    values = [moved(v, s) for v, s in zip(history.values, sources, strict=True)]
    return History(keys, values)


def _unchanged(source: Indices, n: int) -> bool:
    return source.shape[1] == n and bool((source == np.arange(n)).all())


def _append(history: History, after: Step) -> History:
    def longer(old: Tensor, new: Tensor) -> Tensor:
        return torch.cat([old, new[:, :, :, None]], 3)

    return History(
        [longer(a, b) for a, b in zip(history.keys, after.keys, strict=True)],
        [longer(a, b) for a, b in zip(history.values, after.values, strict=True)],
    )
