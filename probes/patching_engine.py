"""Transplanting prompt-end states, all layers and sources at once, and decoding on from each.

A state put in after block l changes the prompt-end position in the blocks above l and nothing before it, so every
(layer, source) is one row of the suffix engine: born after block l, continued greedily beside the unpatched row 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..errors import InputError
from ..hooks.budget import row_budget, shrinking
from ..hooks.continuing import continue_rows
from ..hooks.model import Model
from ..hooks.rows import Prefix, prefill, step
from ..hooks.sites import Site
from .spread import Notes, collect, spread

TOP = 5


@dataclass
class Continuations:
    """What was generated, per recipient; token -1 after the end of a continuation."""

    base: Tensor
    """recipient step: unpatched"""
    base_logits: Tensor
    """recipient vocab: first token, unpatched"""
    tokens: Tensor
    """recipient source layer step"""
    logits: Tensor
    """recipient source layer vocab: first token"""
    states: Tensor | None = None
    """recipient layer d_model: the unpatched residual stream at the prompt end, where it was asked for"""


def prompt_end_states(lm: Model, prompts: Sequence[Sequence[int]], layers: Sequence[int]) -> Tensor:
    """Residual stream after the given blocks at the last prompt position: prompt layer d_model."""
    return torch.stack(collect(lm, partial(_prompt_ends, layers=list(layers)), prompts, light=True))


def _prompt_ends(
    lm: Model, prompts: Sequence[Sequence[int]], notes: Notes, *, layers: Sequence[int]
) -> Iterator[tuple[int, Tensor]]:
    sites = [Site(layer, "resid_post") for layer in layers]
    prefix = prefill(lm, prompts, read=sites)
    yield from enumerate(torch.stack([prefix.states[s] for s in sites], 1))


def continue_patched(
    lm: Model,
    recipients: Sequence[Sequence[int]],
    states: Tensor,
    layers: Sequence[int],
    max_new_tokens: int,
    stop_ids: Sequence[int],
    max_rows: int | None = None,
    notes: list[str] | None = None,
    read: Sequence[int] = (),
) -> Continuations:
    """Greedy continuations with the prompt-end state replaced after one block.

    Args:
        states: recipient source layer d_model, what to put in.
        layers: block after which each goes in, ascending.
        stop_ids: tokens that end a continuation (the last one kept).
        max_rows: rows recomputed at once; by default what fits. Halved when memory runs out, which ``notes`` (or a
            warning) says.
        read: blocks after which the recipients' own states are kept.
    """
    n, sources = len(recipients), states.shape[1]
    vocab = lm.anatomy.vocab_size
    out = Continuations(
        base=torch.full((n, max_new_tokens), -1, dtype=torch.long),
        base_logits=torch.zeros(n, vocab),
        tokens=torch.full((n, sources, len(layers), max_new_tokens), -1, dtype=torch.long),
        logits=torch.zeros(n, sources, len(layers), vocab),
    )
    measure = partial(
        _continue, layers=list(layers), max_new_tokens=max_new_tokens, stop_ids=tuple(stop_ids), max_rows=max_rows,
        read=list(read),
    )  # fmt: skip
    own: dict[int, Tensor] = {}
    # Without states to put in this is one plain continuation per prompt.
    for i, got in spread(lm, measure, list(zip(recipients, states, strict=True)), notes, light=not layers):
        out.base[i], out.base_logits[i], own[i] = got["base"], got["base_logits"], got["states"]
        for part, tokens, logits in got["parts"]:
            out.tokens[i, :, part], out.logits[i, :, part] = tokens, logits
    if read:
        out.states = torch.stack([own[i] for i in range(n)])
    return out


@torch.no_grad()
def _continue(
    lm: Model, recipients: Sequence[tuple[Sequence[int], Tensor]], notes: Notes, *, layers: Sequence[int],
    max_new_tokens: int, stop_ids: Sequence[int], max_rows: int | None, read: Sequence[int],
) -> Iterator[tuple[int, dict[str, Any]]]:  # fmt: skip
    """Continuations of each recipient (prompt, states): ``parts`` hold layers, ``source layer step`` tokens and
    ``source layer vocab`` first logits; ``states`` are its own."""
    longest = max(len(prompt) for prompt, _ in recipients)

    def budget() -> int:
        return row_budget(lm, 1, longest + max_new_tokens, graph=False, decoded=max_new_tokens)

    def work(rows: int | None) -> list[tuple[int, dict[str, Any]]]:
        return list(_in_chunks(lm, recipients, layers, max_new_tokens, stop_ids, rows or budget(), read))

    yield from shrinking(work, max_rows, budget, notes)


def _in_chunks(
    lm: Model, recipients: Sequence[tuple[Sequence[int], Tensor]], layers: Sequence[int], max_new_tokens: int,
    stop_ids: Sequence[int], rows: int, read: Sequence[int],
) -> Iterator[tuple[int, dict[str, Any]]]:  # fmt: skip
    n, sources = len(recipients), recipients[0][1].shape[0]
    order = sorted(range(n), key=lambda i: -len(recipients[i][0]))
    sites = [Site(layer, "resid_post") for layer in read]
    per_layer = max(1, sources)
    size = max(1, rows // (1 + per_layer * len(layers)))
    some_layers = len(layers) if size > 1 else max(1, (rows - 1) // per_layer)
    for start in range(0, n, size):
        some = order[start : start + size]
        prefix = prefill(lm, [recipients[i][0] for i in some], read=sites)
        states = torch.stack([recipients[i][1] for i in some]).to(lm.device)
        own = [torch.stack([prefix.states[s][q] for s in sites]) if sites else torch.empty(0) for q in range(len(some))]
        found: list[dict[str, Any]] = [{"parts": [], "states": own[q]} for q in range(len(some))]
        for first in range(0, max(1, len(layers)), max(1, some_layers)):
            part = list(range(first, min(first + some_layers, len(layers))))
            chosen = [layers[i] for i in part]
            tokens, logits = _decode(lm, prefix, states[:, :, part], chosen, max_new_tokens, stop_ids)
            shape = (len(some), len(part), sources)
            for q, of_recipient in enumerate(found):
                of_recipient |= {"base": tokens[q, 0].cpu(), "base_logits": logits[q, 0].float().cpu()}
                if part and sources:
                    changed = tokens[q, 1:].cpu().view(*shape[1:], -1).transpose(0, 1)
                    first_logits = logits[q, 1:].float().cpu().view(*shape[1:], -1).transpose(0, 1)
                    of_recipient["parts"].append((part, changed, first_logits))
        yield from zip(some, found, strict=True)


def _decode(
    lm: Model, prefix: Prefix, states: Tensor, layers: Sequence[int], max_new_tokens: int, stop_ids: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Tokens ``query row step`` and first logits ``query row vocab``: row 0 unpatched, then sources by layer."""

    def put(i: int) -> Callable[[Tensor], Tensor]:
        return lambda x: torch.cat([x, states[:, :, i].to(x)], 1)

    first = step(lm, prefix, grow={layer: put(i) for i, layer in enumerate(layers)})
    born = [lm.anatomy.n_layers, *(layer for layer in layers for _ in range(states.shape[1]))]
    return continue_rows(lm, prefix, first, born, max_new_tokens, stop_ids), first.logits


def generate(
    lm: Model, prompts: Sequence[Sequence[int]], max_new_tokens: int, stop_ids: Sequence[int], read: Sequence[int] = ()
) -> Continuations:
    """Unpatched greedy continuations, with the prompt-end states after the blocks in ``read``."""
    empty = torch.zeros(len(prompts), 0, 0, lm.anatomy.d_model)
    return continue_patched(lm, prompts, empty, [], max_new_tokens, stop_ids, read=read)


def transplant_pairs(
    lm: Model, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], layers: Sequence[int], max_new_tokens: int,
    stop_ids: Sequence[int],
) -> list[tuple[Tensor, Tensor]]:  # fmt: skip
    """``transplant_all`` for several (donor, recipient) pairs."""
    measure = partial(_transplant, layers=list(layers), max_new_tokens=max_new_tokens, stop_ids=tuple(stop_ids))
    return [(tokens, logits) for tokens, logits in collect(lm, measure, pairs)]


def _transplant(
    lm: Model, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], notes: Notes, **how: Any
) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
    for i, (donor, recipient) in enumerate(pairs):
        yield i, transplant_all(lm, donor, recipient, **how)


@torch.no_grad()
def transplant_all(
    lm: Model, donor: Sequence[int], recipient: Sequence[int], layers: Sequence[int], max_new_tokens: int,
    stop_ids: Sequence[int],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Positive control: the donor's residual stream put in at *every* prompt position after one block.

    The first logits must be the donor's own at every layer. Prompts must be equally long. Recomputes the whole
    sequence per token, one row per layer: tokens ``layer step``, first logits ``layer vocab``.
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
    first, out = torch.empty(0), []
    for i in range(max_new_tokens):
        logits = lm.run(ids, edit=edits).logits[:, -1]
        first = logits if i == 0 else first
        out.append(logits.argmax(-1))
        ids = torch.cat([ids, out[-1][:, None]], 1)
    return _cut(torch.stack(out, -1), stop_ids).cpu(), first.float().cpu()


def _cut(tokens: Tensor, stop_ids: Sequence[int]) -> Tensor:
    """Tokens after the first stop become -1."""
    stop = torch.isin(tokens, torch.tensor(list(stop_ids), device=tokens.device, dtype=tokens.dtype))
    before = stop.long().cumsum(-1) - stop.long()
    return tokens.masked_fill(before > 0, -1)
