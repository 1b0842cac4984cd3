"""Puts states in at prompt ends, all layers and sources together, and decodes from each.

    got = continue_patched(lm, recipients, states, layers=[0, 1], max_new_tokens=16, stop_ids=lm.eos_ids)
    got.tokens  # recipient source layer step

A state put in after block l changes the prompt-end position in the blocks above l and nothing before it, so every
(layer, source) is one sequence of ``hooks.decode``, decoded greedily beside the unpatched prompts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from ...errors import InputError
from ...hooks.budget import in_prefills, row_budget, shrinking
from ...hooks.decode import Splices, Variants, decode
from ...hooks.model import Model
from ...hooks.rows import Prefix, prefill
from ...hooks.sites import Site
from ..spread import Notes, collect, spread

TOP = 5


@dataclass
class Continuations:
    """Generated tokens (-1 after the end of a continuation) and first-token logits."""

    base: Int[Tensor, "recipient step"]
    """Unpatched"""
    base_logits: Float[Tensor, "recipient vocab"]
    tokens: Int[Tensor, "recipient source layer step"]
    logits: Float[Tensor, "recipient source layer vocab"]
    plain: Int[Tensor, "prompt step"]
    """Of the prompts that are only continued"""
    plain_logits: Float[Tensor, "prompt vocab"]


def chosen_layers(lm: Model, layers: Sequence[int] | None) -> list[int]:
    """The given layers, by default all; ``InputError`` for none and for those that the model does not have."""
    n = lm.anatomy.n_layers
    found = list(range(n)) if layers is None else list(layers)
    if not found or not all(0 <= layer < n for layer in found):
        raise InputError(f"layers {found}: the model has {n} layers (0-{n - 1})")
    return found


def prompt_ends(
    lm: Model, prompts: Sequence[Sequence[int]], layers: Sequence[int]
) -> tuple[Float[Tensor, "prompt layer d_model"], Prefix | None]:
    """``prompt_end_states``, and the prefix to continue from where it was computed in this process."""
    if not isinstance(lm, Model):
        return prompt_end_states(lm, prompts, layers), None
    if sum(1 for _ in in_prefills(lm, [len(p) for p in prompts])) > 1:
        return prompt_end_states(lm, prompts, layers), None  # the prefix of all would not fit
    sites = [Site(layer, "resid_post") for layer in layers]
    prefix = prefill(lm, prompts, read=sites)
    return torch.stack([prefix.states[s] for s in sites], 1), prefix


def prompt_end_states(
    lm: Model, prompts: Sequence[Sequence[int]], layers: Sequence[int]
) -> Float[Tensor, "prompt layer d_model"]:
    """Residual stream after the given blocks at the last prompt position."""
    return torch.stack(collect(lm, partial(_prompt_ends, layers=list(layers)), prompts, light=True))


def _prompt_ends(
    lm: Model, prompts: Sequence[Sequence[int]], notes: Notes, *, layers: Sequence[int]
) -> Iterator[tuple[int, Tensor]]:
    sites = [Site(layer, "resid_post") for layer in layers]
    for some in in_prefills(lm, [len(p) for p in prompts]):
        prefix = prefill(lm, [prompts[i] for i in some], read=sites)
        yield from zip(some, torch.stack([prefix.states[s] for s in sites], 1), strict=True)


def continue_patched(
    lm: Model,
    recipients: Sequence[Sequence[int]],
    states: Float[Tensor, "recipient source layer d_model"],
    layers: Sequence[int],
    max_new_tokens: int,
    stop_ids: Sequence[int],
    max_rows: int | None = None,
    notes: list[str] | None = None,
    plain: Sequence[Sequence[int]] = (),
    ready: Prefix | None = None,
    own: int | None = None,
) -> Continuations:
    """Greedy continuations with the prompt-end state replaced after one block.

    Args:
        states: the states to put in.
        layers: block after which each goes in, ascending.
        stop_ids: tokens that end a continuation (the last one kept).
        max_rows: rows recomputed together; by default as many as fit. Halved when memory runs out, with a note in
            ``notes`` (or a warning).
        plain: more prompts, continued unpatched; cheaper here than in a call of their own.
        ready: their prefix, where it is known (``prompt_ends``).
        own: the index of the source that is each recipient's own state. It must change nothing: where keys, values and
            logits at the prompt's end confirm that, only a sample of layers (first, middle, last) is decoded.
    """
    if max_new_tokens < 1:
        raise InputError(f"max_new_tokens={max_new_tokens}; give at least 1")
    n, sources = len(recipients), states.shape[1]
    vocab = lm.anatomy.vocab_size
    base = torch.full((n + len(plain), max_new_tokens), -1, dtype=torch.long)
    base_logits = torch.zeros(n + len(plain), vocab, dtype=torch.float32)
    tokens = torch.full((n, sources * len(layers), max_new_tokens), -1, dtype=torch.long)
    logits = torch.zeros(n, sources * len(layers), vocab, dtype=torch.float32)
    measure = partial(
        _continue, layers=list(layers), max_new_tokens=max_new_tokens, stop_ids=tuple(stop_ids), max_rows=max_rows,
        ready=None if ready is None else (n, ready), own=own,
    )  # fmt: skip
    nothing = states.new_zeros(0, *states.shape[2:])
    items = [*zip(recipients, states, strict=True), *((prompt, nothing) for prompt in plain)]
    for i, got in spread(lm, measure, items, notes, light=not layers):
        base[i], base_logits[i] = got["base"], got["base_logits"]
        for start, changed, first in got["parts"]:
            part = slice(start, start + len(changed))
            tokens[i, part], logits[i, part] = changed, first
    tokens, logits = (
        rearrange(x, "recipient (source layer) ... -> recipient source layer ...", source=sources, layer=len(layers))
        for x in (tokens, logits)
    )
    return Continuations(base[:n], base_logits[:n], tokens, logits, base[n:], base_logits[n:])


@torch.no_grad()
def _continue(
    lm: Model, items: Sequence[tuple[Sequence[int], Tensor]], notes: Notes, *, layers: Sequence[int],
    max_new_tokens: int, stop_ids: Sequence[int], max_rows: int | None, ready: tuple[int, Prefix] | None,
    own: int | None,
) -> Iterator[tuple[int, dict[str, Any]]]:  # fmt: skip
    """Continuations of each item (prompt, states ``source layer d_model``): ``base`` tokens and logits, and ``parts``
    of the variants (layer by layer of source by source): which is the first, tokens ``variant step``, first logits
    ``variant vocab``. ``ready``: from which item on, and the prefix of these."""
    longest = max((len(prompt) for prompt, _ in items), default=0)

    def budget() -> int:
        return row_budget(lm, 1, longest + max_new_tokens, graph=False, decoded=max_new_tokens)

    def work(rows: int | None) -> list[tuple[int, dict[str, Any]]]:
        chunks = _Chunks(items, layers, max_new_tokens, stop_ids, rows or budget(), ready, own)
        return list(_in_chunks(lm, chunks))

    yield from shrinking(work, max_rows, budget, notes)


class _Chunks(NamedTuple):
    """The items to continue, and how."""

    items: Sequence[tuple[Sequence[int], Tensor]]
    layers: Sequence[int]
    max_new_tokens: int
    stop_ids: Sequence[int]
    rows: int
    ready: tuple[int, Prefix] | None
    own: int | None


def _in_chunks(lm: Model, what: _Chunks) -> Iterator[tuple[int, dict[str, Any]]]:
    items, layers, rows = what.items, what.layers, what.rows
    n = len(layers)
    decoded = {0, n // 2, n - 1}
    for chunk in _chunks(lm, items, rows):
        some, prefix = _prefix(lm, items, chunk, what.ready)
        found: list[dict[str, Any]] = [{"parts": []} for _ in some]
        put = [rearrange(items[i][1], "source layer d -> (source layer) d") for i in some]
        most = max(map(len, put))
        at_once = max(1, most if len(some) > 1 else rows - 1)
        for start in range(0, max(1, most), at_once):
            states = [x[start : start + at_once] for x in put]
            sizes = [len(x) for x in states]
            places = [start + i for size in sizes for i in range(size)]  # source by layer
            variants = Variants(
                [q for q, size in enumerate(sizes) for _ in range(size)],
                [layers[i % n] for i in places],
                torch.cat(states).to(lm.device),
                [i // n == what.own and i % n not in decoded for i in places],
            )
            tokens, logits = decode(lm, prefix, variants, what.max_new_tokens, what.stop_ids)
            (base, *changed), (base_logits, *first) = (
                x.split([len(some), *sizes]) for x in (tokens.cpu(), logits.float().cpu())
            )
            for q, (of_item, size) in enumerate(zip(found, sizes, strict=True)):
                of_item |= {"base": base[q], "base_logits": base_logits[q]}
                if size:
                    of_item["parts"].append((start, changed[q], first[q]))
        yield from zip(some, found, strict=True)


def _prefix(
    lm: Model, items: Sequence[tuple[Sequence[int], Tensor]], some: Sequence[int], ready: tuple[int, Prefix] | None
) -> tuple[Sequence[int], Prefix]:
    """A chunk's items in the order of their prefix's queries, and that prefix."""
    if ready is None:
        return some, prefill(lm, [items[i][0] for i in some])
    new, known = [i for i in some if i < ready[0]], [i for i in some if i >= ready[0]]
    if not new:
        return some, prefill(lm, [items[i][0] for i in some])
    return [*new, *known], prefill(lm, [items[i][0] for i in new]).join(ready[1], [i - ready[0] for i in known])


def _chunks(lm: Model, items: Sequence[tuple[Sequence[int], Tensor]], rows: int) -> Iterator[list[int]]:
    """Chunks of at least one item, with about as many rows as fit and prompts that fit into one prefill."""
    for together in in_prefills(lm, [len(prompt) for prompt, _ in items]):
        some: list[int] = []
        taken = 0
        for i in together:
            more = 1 + items[i][1].shape[0] * items[i][1].shape[1]
            if some and taken + more > rows:
                yield some
                some, taken = [], 0
            some.append(i)
            taken += more
        yield some


def generate(
    lm: Model, prompts: Sequence[Sequence[int]], max_new_tokens: int, stop_ids: Sequence[int]
) -> tuple[Int[Tensor, "prompt step"], Float[Tensor, "prompt vocab"]]:
    """Unpatched greedy continuations and first logits."""
    nothing = torch.zeros(0, 0, 0, lm.anatomy.d_model)
    got = continue_patched(lm, [], nothing, [], max_new_tokens, stop_ids, plain=prompts)
    return got.plain, got.plain_logits


def transplant_pairs(
    lm: Model, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], layers: Sequence[int], max_new_tokens: int,
    stop_ids: Sequence[int],
) -> list[tuple[Int[Tensor, "layer step"], Float[Tensor, "layer vocab"]]]:  # fmt: skip
    """Positive control for equally long (donor, recipient) pairs: tokens and first logits.

    The donor's residual stream is put in at *every* prompt position after one block. Above this block all keys and
    values are the donor's, below it the recipient's. So the first logits are the donor's. For the first pair they are
    computed again from states put in at every position, at the first, middle and last layer.
    """
    measure = partial(_transplant, layers=list(layers), max_new_tokens=max_new_tokens, stop_ids=tuple(stop_ids))
    found = [(tokens, logits) for tokens, logits in collect(lm, measure, pairs)]
    if found:
        some = sorted({0, len(layers) // 2, len(layers) - 1})
        (anew,) = collect(lm, partial(_put_in, layers=[layers[i] for i in some]), pairs[:1])
        found[0][1][some] = anew
    return found


@torch.no_grad()
def _transplant(
    lm: Model, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], notes: Notes, *, layers: Sequence[int],
    max_new_tokens: int, stop_ids: Sequence[int],
) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:  # fmt: skip
    nothing = Variants([], [], torch.zeros(0, lm.anatomy.d_model, device=lm.device))
    n = len(layers)
    for some in in_prefills(lm, [len(donor) for donor, _ in pairs]):
        prefix = prefill(lm, [prompt for i in some for prompt in pairs[i]])
        splices = Splices(
            [2 * k + 1 for k in range(len(some)) for _ in layers], [2 * k for k in range(len(some)) for _ in layers],
            [layer for _ in some for layer in layers],
        )  # fmt: skip
        tokens, logits = decode(lm, prefix, nothing, max_new_tokens, stop_ids, splices)
        for k, i in enumerate(some):
            part = slice(2 * len(some) + k * n, 2 * len(some) + (k + 1) * n)
            yield i, (tokens[part].cpu(), logits[part].float().cpu())


def _put_in(
    lm: Model, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], notes: Notes, *, layers: Sequence[int]
) -> Iterator[tuple[int, Tensor]]:
    for i, (donor, recipient) in enumerate(pairs):
        yield i, transplant_all(lm, donor, recipient, layers)


@torch.no_grad()
def transplant_all(
    lm: Model, donor: Sequence[int], recipient: Sequence[int], layers: Sequence[int]
) -> Float[Tensor, "layer vocab"]:
    """First logits with the donor's residual stream put in at every prompt position after one block.

    They must be the donor's own at every layer. Prompts must be equally long. The full sequence is recomputed.
    """
    if len(donor) != len(recipient):
        raise InputError(f"donor of {len(donor)} and recipient of {len(recipient)} tokens; need equal lengths")
    n = len(recipient)
    sites = [Site(layer, "resid_post") for layer in layers]
    clean = lm.read_trunk(torch.tensor([list(donor)]), sites)

    def put(row: int, value: Tensor) -> Callable[[Tensor], Tensor]:
        def edit(x: Tensor) -> Tensor:
            y = x.clone()
            y[row, :n] = value[0]
            return y

        return edit

    edits: Mapping[Site, Callable[[Tensor], Tensor]] = {s: put(i, clean[s]) for i, s in enumerate(sites)}
    ids = torch.tensor([list(recipient)] * len(layers), device=lm.device)
    return lm.run(ids, edit=edits).logits[:, -1].float().cpu()
