"""Transplanting prompt-end states, all layers and sources at once, and decoding on from each.

A state put in after block l changes the prompt-end position in the blocks above l and nothing before it, so every
(layer, source) is one row of the suffix engine: born after block l, decoded greedily beside the unpatched row 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import InputError
from ..hooks.model import Model
from ..hooks.rows import Prefix, extend, prefill, row_budget, step
from ..hooks.sites import Site

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


def prompt_end_states(lm: Model, prompts: Sequence[Sequence[int]], layers: Sequence[int]) -> Tensor:
    """Residual stream after the given blocks at the last prompt position: prompt layer d_model."""
    sites = [Site(layer, "resid_post") for layer in layers]
    prefix = prefill(lm, prompts, read=sites)
    return torch.stack([prefix.states[s] for s in sites], 1)


@torch.no_grad()
def continue_patched(
    lm: Model,
    recipients: Sequence[Sequence[int]],
    states: Tensor,
    layers: Sequence[int],
    max_new_tokens: int,
    stop_ids: Sequence[int],
    max_rows: int | None = None,
) -> Continuations:
    """Greedy continuations with the prompt-end state replaced after one block.

    Args:
        states: recipient source layer d_model, what to put in.
        layers: block after which each goes in, ascending.
        stop_ids: tokens that end a continuation (the last one kept).
    """
    n, sources = len(recipients), states.shape[1]
    vocab = lm.anatomy.vocab_size
    out = Continuations(
        base=torch.full((n, max_new_tokens), -1, dtype=torch.long),
        base_logits=torch.zeros(n, vocab),
        tokens=torch.full((n, sources, len(layers), max_new_tokens), -1, dtype=torch.long),
        logits=torch.zeros(n, sources, len(layers), vocab),
    )
    longest = max(len(r) for r in recipients)
    rows = max_rows or row_budget(lm, 1, longest + max_new_tokens, graph=False, decoded=max_new_tokens)
    order = sorted(range(n), key=lambda i: -len(recipients[i]))
    per_layer = max(1, sources)
    size = max(1, rows // (1 + per_layer * len(layers)))
    some_layers = len(layers) if size > 1 else max(1, (rows - 1) // per_layer)
    for start in range(0, n, size):
        some = order[start : start + size]
        prefix = prefill(lm, [recipients[i] for i in some])
        for first in range(0, max(1, len(layers)), max(1, some_layers)):
            part = slice(first, min(first + some_layers, len(layers)))
            tokens, logits = _decode(lm, prefix, states[some][:, :, part], layers[part], max_new_tokens, stop_ids)
            shape = (len(some), part.stop - part.start, sources)
            out.base[some], out.base_logits[some] = tokens[:, 0].cpu(), logits[:, 0].float().cpu()
            if not out.tokens.numel():
                continue
            out.tokens[some, :, part] = tokens[:, 1:].cpu().view(*shape, -1).transpose(1, 2)
            out.logits[some, :, part] = logits[:, 1:].float().cpu().view(*shape, -1).transpose(1, 2)
    return out


def _decode(
    lm: Model, prefix: Prefix, states: Tensor, layers: Sequence[int], max_new_tokens: int, stop_ids: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Tokens ``query row step`` and first logits ``query row vocab``: row 0 unpatched, then sources by layer."""

    def put(i: int) -> Callable[[Tensor], Tensor]:
        return lambda x: torch.cat([x, states[:, :, i].to(x)], 1)

    first = step(lm, prefix, grow={layer: put(i) for i, layer in enumerate(layers)})
    token = first.logits.argmax(-1)
    stops = torch.tensor(list(stop_ids), device=token.device, dtype=token.dtype)
    ended = torch.isin(token, stops)
    out = [token]
    history = extend(None, first) if max_new_tokens > 1 else None
    parents = [0] * token.shape[1]
    for offset in range(1, max_new_tokens):
        if bool(ended.all()):
            break
        after = step(lm, prefix, token, offset=offset, history=history)
        token = after.logits.argmax(-1)
        out.append(token.masked_fill(ended, -1))
        ended = ended | torch.isin(token, stops)
        if offset + 1 < max_new_tokens:
            history = extend(history, after, parents)
    tokens = torch.stack(out, -1)
    missing = max_new_tokens - tokens.shape[-1]
    return torch.nn.functional.pad(tokens, (0, missing), value=-1), first.logits


@torch.no_grad()
def generate(
    lm: Model, prompts: Sequence[Sequence[int]], max_new_tokens: int, stop_ids: Sequence[int]
) -> tuple[Tensor, Tensor]:
    """Unpatched greedy continuations ``prompt step`` and first logits ``prompt vocab``."""
    empty = torch.zeros(len(prompts), 0, 0, lm.anatomy.d_model, device=lm.device)
    got = continue_patched(lm, prompts, empty, [], max_new_tokens, stop_ids)
    return got.base, got.base_logits


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
