"""Greedy decoding of prompts and of variants of them, with the shared part computed once.

    tokens, logits = decode(lm, prefill(lm, [prompt]), Variants([0], [3], state), 16, lm.eos_ids)

A variant is a state put in at the end of a prompt after block l. It differs from the unchanged prompt in the blocks
above l and nowhere else. So all sequences that have generated the same tokens so far are equal in every block up to the
earliest change, and share one row there. A sequence gets a separate row after the block in which it was changed, or as
soon as its tokens differ from the others'; sequences that have ended need no row. Prompts with many, few and no
variants run side by side, each with as many rows as it needs (``ragged``).

Two more kinds of sequences cost nothing at the prompt's end. A *spliced* one continues from one prompt's keys and
values up to block l and from another's above: the same as putting in the other's states at every position after
block l. And a variant that equals the unchanged prompt, up to rounding, continues as that does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ..terminal import tick
from .model import Model
from .ragged import Indices, RaggedRows
from .rows import Grow, History, Prefix, Step, step

Mask = NDArray[np.bool_]
ROUNDING = {64: 1e-5, 32: 1e-4, 16: 5e-2}
"""By bits of a number: how far two computations of the same value may differ, relative to the largest."""
HEAD = 4
"""Cost of a row in the last layer, with the vocabulary head, if a row in the first layer costs 1."""


@dataclass(frozen=True)
class Variants:
    """States to put in at the ends of prompts, one sequence each."""

    queries: Sequence[int]
    """The query of the prefix that each belongs to"""
    layers: Sequence[int]
    """The block after which it goes in; -1: before block 0"""
    states: Float[Tensor, "sequence d_model"]
    same: Sequence[bool] = ()
    """Indices of variants expected to change nothing; those that change nothing are not decoded separately."""


@dataclass(frozen=True)
class Splices:
    """Sequences that continue from two of the prefix's queries, at equal positions."""

    below: Sequence[int]
    """The query whose keys and values they have up to the block"""
    above: Sequence[int]
    """The query whose keys and values they have above it"""
    layers: Sequence[int]


NO_SPLICES = Splices((), (), ())


@dataclass(frozen=True)
class _Sequences:
    """The sequences to decode."""

    below: Indices
    """sequence: the query whose prefix it attends to up to the block in which it was changed"""
    above: Indices
    """sequence: the query whose prefix it attends to above that block"""
    changed: Indices
    """sequence: that block; beyond the last one for unchanged prompts"""
    start: list[Indices]
    """By layer, sequence: its row at the prompt's end"""


@torch.no_grad()
def decode(
    lm: Model, prefix: Prefix, variants: Variants, max_new_tokens: int, stop_ids: Sequence[int],
    splices: Splices = NO_SPLICES,
) -> tuple[Int[Tensor, "sequence step"], Float[Tensor, "sequence vocab"]]:  # fmt: skip
    """Greedy tokens (-1 after the end; the stopping token is kept) and the first token's logits.

    The unchanged queries come first, then the variants in their order, then the splices.
    """
    n_queries, n_layers = len(prefix.queries), lm.anatomy.n_layers
    by_layer = np.argsort(np.asarray(variants.layers, dtype=np.int64), kind="stable")
    queries = np.concatenate([np.arange(n_queries), np.asarray(variants.queries, dtype=np.int64)[by_layer]])
    changed = np.concatenate([[n_layers] * n_queries, np.asarray(variants.layers, dtype=np.int64)[by_layer]])
    first = _first(lm, prefix, queries, changed, variants.states[torch.from_numpy(by_layer)])
    expected = np.asarray(variants.same or np.zeros(len(by_layer)), dtype=np.bool_)[by_layer]
    kept = np.flatnonzero(~_unmoved(first, queries, changed, expected))
    below, above, layers = (np.asarray(x, dtype=np.int64) for x in (splices.below, splices.above, splices.layers))
    rows = [np.where(kept < k.shape[2], kept, queries[kept]) for k in first.keys]
    sequences = _Sequences(
        np.concatenate([queries[kept], below]), np.concatenate([queries[kept], above]),
        np.concatenate([changed[kept], layers]),
        [np.concatenate([at, np.where(layers < i, above, below)]) for i, at in enumerate(rows)],
    )  # fmt: skip
    device = first.logits.device
    logits = first.logits[0, torch.from_numpy(np.concatenate([kept, above])).to(device)]
    tokens = _decode(lm, prefix, first, sequences, logits, max_new_tokens, stop_ids)
    as_sequence = queries.copy()  # a variant that is not decoded separately continues as its query
    as_sequence[kept] = np.arange(len(kept))
    back = np.concatenate([np.arange(n_queries), n_queries + np.argsort(by_layer)])
    spliced = np.arange(len(kept), len(kept) + len(layers))
    where = [torch.from_numpy(np.concatenate(x)).to(device) for x in ((as_sequence[back], spliced), (back, above))]
    return tokens[where[0]], first.logits[0, where[1]]


def _unmoved(first: Step, queries: Indices, changed: Indices, expected: Mask) -> Mask:
    """Which of the rows expected to change nothing have the keys, values and logits of their queries, up to rounding.

    Later positions see nothing of the prompt's end but its keys and values.
    """
    candidates = len(queries) - len(expected) + np.flatnonzero(expected)
    same = np.ones(len(candidates), dtype=np.bool_)

    def compare(x: Tensor, of: Mask) -> None:
        """Compare ``row ...`` with their queries' values, for some of the candidates."""
        some = candidates[of]
        row, query = (x[torch.from_numpy(i).to(x.device)].flatten(1).double() for i in (some, queries[some]))
        limit = ROUNDING[torch.finfo(x.dtype).bits] * query.abs().amax(1)
        same[of] &= ((row - query).abs().amax(1) <= limit).cpu().numpy()

    if len(candidates):
        for layer in range(len(first.keys)):
            if (later := changed[candidates] < layer).any():
                compare(first.keys[layer][0].transpose(0, 1), later)
                compare(first.values[layer][0].transpose(0, 1), later)
        compare(first.logits[0], same | True)
    out = np.zeros(len(queries), dtype=np.bool_)
    out[candidates[same]] = True
    return out


def _first(lm: Model, prefix: Prefix, queries: Indices, changed: Indices, states: Tensor) -> Step:
    """The prompt's end: the queries unchanged, and each variant above the block in which it was changed.

    The last variant is repeated as often as ``_padded`` would, and left out of the result.
    """
    n_queries, n_rows = len(prefix.queries), len(queries)
    more = -(n_rows - n_queries) % n_queries
    queries, changed = (np.concatenate([x, np.repeat(x[-1:], more)]) for x in (queries, changed))
    states = torch.cat([states, *[states[-1:]] * more])
    rows = []
    for layer in range(lm.anatomy.n_layers):
        mine = queries[: n_queries + int((changed[n_queries:] < layer).sum())]
        rows.append(RaggedRows(mine, mine, n_queries))
    grow: dict[int, Grow] = {}
    for layer in sorted({int(x) for x in changed[n_queries:]}):
        put = states[torch.from_numpy(changed[n_queries:] == layer)][None]
        grow[layer] = lambda x, put=put: torch.cat([x, put.to(x)], 1)
    got = step(lm, prefix, grow=grow, rows=rows)
    keys, values = ([x[:, :, :n_rows] for x in xs] for xs in (got.keys, got.values))
    return Step(got.logits[:, :n_rows], keys, values)


def _decode(
    lm: Model, prefix: Prefix, first: Step, sequences: _Sequences, logits: Float[Tensor, "sequence vocab"],
    max_new_tokens: int, stop_ids: Sequence[int],
) -> Int[Tensor, "sequence step"]:  # fmt: skip
    n_layers, device, changed = lm.anatomy.n_layers, first.logits.device, sequences.changed
    stops = torch.tensor(list(stop_ids), device=device, dtype=torch.long)
    tokens = logits.argmax(-1)
    out, ended = [tokens], torch.isin(tokens, stops)
    same = sequences.below  # sequences with the same number have the same prompt and have generated the same tokens
    at = sequences.start
    history = History([k[:, :, :, None] for k in first.keys], [v[:, :, :, None] for v in first.values])
    for offset in range(1, max_new_tokens):
        if bool(ended.all()):
            break
        same = np.unique(np.stack([same, tokens.cpu().numpy()]), axis=1, return_inverse=True)[1].reshape(-1)
        running = ~ended.cpu().numpy()
        leaders = _leaders(same, changed, running)
        taken = _padded([_taken(leaders, changed, running, layer) for layer in range(n_layers)])
        history = _follow(history, [a[x.sequences] for a, x in zip(at, taken, strict=True)])
        entering = tokens[torch.from_numpy(taken[0].sequences).to(device)][None]
        rows = []
        for layer, x in enumerate(taken):
            queries = np.where(changed < layer, sequences.above, sequences.below)[x.sequences]
            rows.append(RaggedRows(queries, taken[0].row_of[x.sequences], len(prefix.queries)))
        grow = _regroup(taken, device)
        after = step(lm, prefix, entering, offset=offset, history=history, grow=grow, rows=rows)
        at = [x.row_of for x in taken]
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
    """The rows that are computed in one layer."""

    sequences: Indices
    """row: a sequence that it represents"""
    row_of: Indices
    """sequence: its row; 0 for sequences that have ended"""

    def padded(self, n: int) -> _Taken:
        """With the first row repeated, to ``n`` rows."""
        more = np.repeat(self.sequences[:1], n - len(self.sequences))
        return _Taken(np.concatenate([self.sequences, more]), self.row_of)


def _leaders(same: Indices, changed: Indices, running: Mask) -> Indices:
    """sequence: among running ones with the same tokens, the one changed in the highest block, which shares longest."""
    order = np.argsort(changed, kind="stable")
    rank = np.argsort(order)
    last = np.zeros(int(same.max()) + 1, dtype=np.int64)
    np.maximum.at(last, same, np.where(running, rank, 0))
    return order[last[same]]


def _taken(leaders: Indices, changed: Indices, running: Mask, layer: int) -> _Taken:
    every = np.arange(len(changed))
    own = changed < layer
    taken = running & (own | (leaders == every))
    row = np.cumsum(taken) - 1
    return _Taken(np.flatnonzero(taken), np.where(running, row[np.where(own, every, leaders)], 0))


def _padded(taken: list[_Taken]) -> list[_Taken]:
    """Rows repeated in the first or last layer until the last layer has a multiple of the first layer's number.

    Some architectures (GPT-2) give the last hidden states the shape of the input.
    """
    if len(taken) == 1:
        return taken
    first, last = len(taken[0].sequences), len(taken[-1].sequences)
    start = min(range(first, last + 1), key=lambda n: n - first + HEAD * (-last % n))
    return [taken[0].padded(start), *taken[1:-1], taken[-1].padded(last + -last % start)]


def _regroup(taken: Sequence[_Taken], device: torch.device) -> dict[int, Grow]:
    """After which blocks the rows change, and from which row each row of the next block continues."""
    found: dict[int, Grow] = {}
    for layer, (here, above) in enumerate(pairwise(taken)):
        source = here.row_of[above.sequences]
        if not _unchanged(source, len(here.sequences)):
            index = torch.from_numpy(source).to(device)
            found[layer] = lambda x, index=index: x.index_select(1, index.to(x.device))
    return found


def _follow(history: History, sources: Sequence[Indices]) -> History:
    """Each row's keys and values so far, taken from the row of the step before that it continues."""

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
