"""Greedy continuation of prompts and of variants of them, computing once what they share.

A variant is a state put in at the end of a prompt after block l. It differs from the unchanged prompt in the blocks
above l and nowhere else; so all that have generated the same tokens so far are the same in every block up to the
earliest of their births, and take one *lane* there. A row leaves the shared lane after the block it was born in, or
when its tokens part from the others'; rows that have ended take none. Prompts with many, few and no variants run side
by side, each with as many lanes as it needs.

Two more kinds of rows cost nothing at the prompt's end. A row that is *spliced* goes on from one prompt's keys and
values up to block l and from another's above: the same as if the other's states had been put in at every position
after block l. And a variant that turns out to be the unchanged prompt, up to rounding, goes on as that does.
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
from .progress import tick
from .ragged import Indices, Lanes
from .rows import Grow, History, Prefix, Step, step

Mask = NDArray[np.bool_]
ROUNDING = {64: 1e-5, 32: 1e-4, 16: 5e-2}
"""By bits of a number: how far two computations of the same may be apart, relative to the largest."""
HEAD = 4
"""What a lane in the last layer costs, with the vocabulary head, where one in the first costs 1."""


@dataclass(frozen=True)
class Variants:
    """States to put in at the ends of prompts, one row each."""

    queries: Sequence[int]
    """Which of the prefix's queries each belongs to"""
    layers: Sequence[int]
    """The block after which it goes in; -1: before block 0"""
    states: Tensor
    """row d_model"""
    same: Sequence[bool] = ()
    """Which are expected to change nothing: where that is so they are not continued by themselves."""


@dataclass(frozen=True)
class Splices:
    """Rows that go on from two of the prefix's queries, at equal positions."""

    below: Sequence[int]
    """Whose keys and values they have up to the block"""
    above: Sequence[int]
    """And above it"""
    layers: Sequence[int]


NO_SPLICES = Splices((), (), ())


@dataclass(frozen=True)
class _Rows:
    """What is continued."""

    below: Indices
    """row: whose prefix it attends to up to the block of its birth"""
    above: Indices
    """row: and after it"""
    born: Indices
    """row: the block; beyond the last one for unchanged prompts"""
    start: list[Indices]
    """By layer, row: its lane at the prompt's end"""


@torch.no_grad()
def continue_rows(
    lm: Model, prefix: Prefix, variants: Variants, max_new_tokens: int, stop_ids: Sequence[int],
    splices: Splices = NO_SPLICES,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Greedy tokens ``row step`` (-1 after the end; the stopping token is kept) and first logits ``row vocab``.

    The unchanged queries come first, then the variants in their order, then the splices.
    """
    n_queries, n_layers = len(prefix.queries), lm.anatomy.n_layers
    by_birth = np.argsort(np.asarray(variants.layers, dtype=np.int64), kind="stable")
    queries = np.concatenate([np.arange(n_queries), np.asarray(variants.queries, dtype=np.int64)[by_birth]])
    born = np.concatenate([[n_layers] * n_queries, np.asarray(variants.layers, dtype=np.int64)[by_birth]])
    first = _first(lm, prefix, queries, born, variants.states[torch.from_numpy(by_birth)])
    expected = np.asarray(variants.same or np.zeros(len(by_birth)), dtype=np.bool_)[by_birth]
    kept = np.flatnonzero(~_unmoved(first, queries, born, expected))
    below, above, layers = (np.asarray(x, dtype=np.int64) for x in (splices.below, splices.above, splices.layers))
    lanes = [np.where(kept < k.shape[2], kept, queries[kept]) for k in first.keys]
    rows = _Rows(
        np.concatenate([queries[kept], below]), np.concatenate([queries[kept], above]),
        np.concatenate([born[kept], layers]),
        [np.concatenate([at, np.where(layers < i, above, below)]) for i, at in enumerate(lanes)],
    )  # fmt: skip
    device = first.logits.device
    logits = first.logits[0, torch.from_numpy(np.concatenate([kept, above])).to(device)]
    tokens = _decode(lm, prefix, first, rows, logits, max_new_tokens, stop_ids)
    of_row = queries.copy()  # what is not continued by itself goes on as its query
    of_row[kept] = np.arange(len(kept))
    back = np.concatenate([np.arange(n_queries), n_queries + np.argsort(by_birth)])
    spliced = np.arange(len(kept), len(kept) + len(layers))
    where = [torch.from_numpy(np.concatenate(x)).to(device) for x in ((of_row[back], spliced), (back, above))]
    return tokens[where[0]], first.logits[0, where[1]]


def _unmoved(first: Step, queries: Indices, born: Indices, expected: Mask) -> Mask:
    """Which of the rows expected to change nothing have the keys, values and logits of their queries, up to rounding.

    Keys and values are all that later positions see of the prompt's end.
    """
    candidates = len(queries) - len(expected) + np.flatnonzero(expected)
    same = np.ones(len(candidates), dtype=np.bool_)

    def compare(x: Tensor, of: Mask) -> None:
        """``row ...`` with their queries', for some of the candidates."""
        some = candidates[of]
        row, query = (x[torch.from_numpy(i).to(x.device)].flatten(1).double() for i in (some, queries[some]))
        limit = ROUNDING[torch.finfo(x.dtype).bits] * query.abs().amax(1)
        same[of] &= ((row - query).abs().amax(1) <= limit).cpu().numpy()

    if len(candidates):
        for layer in range(len(first.keys)):
            if (later := born[candidates] < layer).any():
                compare(first.keys[layer][0].transpose(0, 1), later)
                compare(first.values[layer][0].transpose(0, 1), later)
        compare(first.logits[0], same | True)
    out = np.zeros(len(queries), dtype=np.bool_)
    out[candidates[same]] = True
    return out


def _first(lm: Model, prefix: Prefix, queries: Indices, born: Indices, states: Tensor) -> Step:
    """The prompt end: the queries as they are, each variant from its birth on.

    The last variant is repeated as often as ``_fitting`` would, and left out of the result.
    """
    n_queries, n_rows = len(prefix.queries), len(queries)
    more = -(n_rows - n_queries) % n_queries
    queries, born = (np.concatenate([x, np.repeat(x[-1:], more)]) for x in (queries, born))
    states = torch.cat([states, *[states[-1:]] * more])
    lanes = []
    for layer in range(lm.anatomy.n_layers):
        mine = queries[: n_queries + int((born[n_queries:] < layer).sum())]
        lanes.append(Lanes(mine, mine, n_queries))
    grow: dict[int, Grow] = {}
    for layer in sorted({int(x) for x in born[n_queries:]}):
        put = states[torch.from_numpy(born[n_queries:] == layer)][None]
        grow[layer] = partial(_append, put=put)
    got = step(lm, prefix, grow=grow, lanes=lanes)
    keys, values = ([x[:, :, :n_rows] for x in xs] for xs in (got.keys, got.values))
    return Step(got.logits[:, :n_rows], keys, values)


def _append(x: Tensor, put: Tensor) -> Tensor:
    return torch.cat([x, put.to(x)], 1)


def _decode(
    lm: Model, prefix: Prefix, first: Step, rows: _Rows, logits: Tensor, max_new_tokens: int, stop_ids: Sequence[int]
) -> Tensor:  # fmt: skip
    n_layers, device, born = lm.anatomy.n_layers, first.logits.device, rows.born
    stops = torch.tensor(list(stop_ids), device=device, dtype=torch.long)
    tokens = logits.argmax(-1)
    out, ended = [tokens], torch.isin(tokens, stops)
    same = rows.below  # rows with the same number have the same prompt and have generated the same tokens
    at = rows.start  # each row's lane, by layer
    history = History([k[:, :, :, None] for k in first.keys], [v[:, :, :, None] for v in first.values])
    for offset in range(1, max_new_tokens):
        if bool(ended.all()):
            break
        same = np.unique(np.stack([same, tokens.cpu().numpy()]), axis=1, return_inverse=True)[1].reshape(-1)
        running = ~ended.cpu().numpy()
        speakers = _speakers(same, born, running)
        taken = _fitting([_taken(speakers, born, running, layer) for layer in range(n_layers)])
        history = _follow(history, [a[x.rows] for a, x in zip(at, taken, strict=True)])
        entering = tokens[torch.from_numpy(taken[0].rows).to(device)][None]
        lanes = [
            Lanes(np.where(born < layer, rows.above, rows.below)[x.rows], taken[0].of_row[x.rows], len(prefix.queries))
            for layer, x in enumerate(taken)
        ]
        grow = _regroup(taken, device)
        after = step(lm, prefix, entering, offset=offset, history=history, grow=grow, lanes=lanes)
        at = [x.of_row for x in taken]
        tokens = after.logits[0].argmax(-1)[torch.from_numpy(at[-1]).to(device)]
        out.append(tokens.masked_fill(ended, -1))
        ended = ended | torch.isin(tokens, stops)
        tick(len(prefix.queries) / max_new_tokens)
        if offset + 1 < max_new_tokens:
            history = _longer(history, after)
    missing = max_new_tokens - len(out)
    return torch.nn.functional.pad(torch.stack(out, -1), (0, missing), value=-1)


@dataclass(frozen=True)
class _Taken:
    """What runs in one layer."""

    rows: Indices
    """lane: a row that it stands for"""
    of_row: Indices
    """row: its lane; 0 for rows that have ended"""

    def repeated(self, n: int) -> _Taken:
        """With the first lane again and again, to ``n`` lanes."""
        return _Taken(np.concatenate([self.rows, np.repeat(self.rows[:1], n - len(self.rows))]), self.of_row)


def _speakers(same: Indices, born: Indices, running: Mask) -> Indices:
    """row: of the running rows that have generated the same, the one born last, which needs a lane for longest."""
    order = np.argsort(born, kind="stable")
    rank = np.argsort(order)
    last = np.zeros(int(same.max()) + 1, dtype=np.int64)
    np.maximum.at(last, same, np.where(running, rank, 0))
    return order[last[same]]


def _taken(speakers: Indices, born: Indices, running: Mask, layer: int) -> _Taken:
    rows = np.arange(len(born))
    own = born < layer
    taken = running & (own | (speakers == rows))
    lane = np.cumsum(taken) - 1
    return _Taken(np.flatnonzero(taken), np.where(running, lane[np.where(own, rows, speakers)], 0))


def _fitting(taken: list[_Taken]) -> list[_Taken]:
    """Lanes repeated in the first or last layer until the number of the last is a multiple of that of the first.

    Some architectures (GPT-2) give the last hidden states the shape of the input.
    """
    if len(taken) == 1:
        return taken
    first, last = len(taken[0].rows), len(taken[-1].rows)
    start = min(range(first, last + 1), key=lambda n: n - first + HEAD * (-last % n))
    return [taken[0].repeated(start), *taken[1:-1], taken[-1].repeated(last + -last % start)]


def _regroup(taken: Sequence[_Taken], device: torch.device) -> dict[int, Grow]:
    """After which blocks the lanes change, and from which lane each of the next block goes on."""
    found: dict[int, Grow] = {}
    for layer, (here, above) in enumerate(pairwise(taken)):
        source = here.of_row[above.rows]
        if not _unchanged(source, len(here.rows)):
            found[layer] = partial(_pick, index=torch.from_numpy(source).to(device))
    return found


def _pick(x: Tensor, index: Tensor) -> Tensor:
    return x.index_select(1, index.to(x.device))


def _follow(history: History, sources: Sequence[Indices]) -> History:
    """Each lane's keys and values so far, from the lane of the step before that it goes on from."""

    def moved(x: Tensor, source: Indices) -> Tensor:
        return x if _unchanged(source, x.shape[2]) else x.index_select(2, torch.from_numpy(source).to(x.device))

    keys = [moved(k, s) for k, s in zip(history.keys, sources, strict=True)]
    values = [moved(v, s) for v, s in zip(history.values, sources, strict=True)]
    return History(keys, values)


def _unchanged(source: Indices, n: int) -> bool:
    return len(source) == n and bool((source == np.arange(n)).all())


def _longer(history: History, after: Step) -> History:
    def longer(old: Tensor, new: Tensor) -> Tensor:
        return torch.cat([old, new[:, :, :, None]], 3)

    return History(
        [longer(a, b) for a, b in zip(history.keys, after.keys, strict=True)],
        [longer(a, b) for a, b in zip(history.values, after.values, strict=True)],
    )
