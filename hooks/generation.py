"""Greedy generation, one token of every sequence at a time, also under edits.

greedy(model, anatomy, prompts, {Site(3, "resid_post"): lambda x: x + direction}, 16, stop_ids)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import Cache, PreTrainedModel

from ..errors import InputError, ModelError
from .anatomy import Anatomy
from .backends.transformers import visited
from .length_limits import check_writing
from .parts import empty_cache, input_device, logits_option
from .sites import Edit, Site


@torch.no_grad()
def greedy(
    model: PreTrainedModel, anatomy: Anatomy, prompts: Sequence[Sequence[int]], edit: Mapping[Site, Edit],
    max_new_tokens: int, stop_ids: Sequence[int],
) -> list[list[int]]:  # fmt: skip
    """Continuations of prompts; those of one length run together."""
    by_length: dict[int, list[int]] = {}
    for i, prompt in enumerate(prompts):
        by_length.setdefault(len(prompt), []).append(i)
    found: list[list[int]] = [[] for _ in prompts]
    for some in by_length.values():
        ids = torch.tensor([list(prompts[i]) for i in some], device=input_device(model))
        cache = empty_cache(model)
        check_room(model, anatomy, ids.shape[1], max_new_tokens)
        logits = _forward(model, anatomy, ids, cache, edit)
        for i, tokens in zip(some, follow(model, anatomy, logits, cache, max_new_tokens, stop_ids, edit), strict=True):
            found[i] = tokens
    return found


def ends(eos_ids: Sequence[int], stop_ids: Sequence[int] | int | None) -> Sequence[int]:
    """The tokens that end a continuation: those given (one or several), or the model's own."""
    return eos_ids if stop_ids is None else [stop_ids] if isinstance(stop_ids, int | np.integer) else stop_ids


def room(context: int | None, prompts: Sequence[Sequence[int]], most: int) -> int:
    """New tokens that fit after each of these prompts, up to ``most``; at least 1."""
    # The last token is not fed.
    return most if context is None else max(1, min(most, context + 1 - max(map(len, prompts))))


def check_room(model: PreTrainedModel, anatomy: Anatomy, prompt: int, new: int) -> None:
    """``InputError`` if a prompt and its continuation do not fit into the context.

    Raises ``ModelError`` if the prompt is computed differently before the continuation has been written.
    """
    if not isinstance(new, Integral) or new < 1:
        raise InputError(f"max_new_tokens={new!r}; give a whole number of at least 1")
    if anatomy.context is not None and prompt + new - 1 > anatomy.context:
        raise InputError(
            f"{prompt} prompt and {new} new tokens: the context of {type(model).__name__} holds {anatomy.context}"
        )
    check_writing(model, prompt, new)


@torch.no_grad()
def follow(
    model: PreTrainedModel, anatomy: Anatomy, logits: Float[Tensor, "sequence vocab"], cache: Cache,
    max_new_tokens: int, stop_ids: Sequence[int], edit: Mapping[Site, Edit] | None = None,
) -> list[list[int]]:  # fmt: skip
    """Greedy tokens from the logits after a prompt on; ``cache`` holds its keys and values, and grows.

    Without edits, sequences that have ended leave the batch.
    """
    found: list[list[int]] = [[] for _ in logits]
    running = list(range(len(logits)))
    while True:
        tokens = logits.argmax(-1)
        for i, token in zip(running, tokens.tolist(), strict=True):
            if not found[i] or found[i][-1] not in stop_ids:
                found[i].append(token)
        on = [at for at, i in enumerate(running) if found[i][-1] not in stop_ids]
        if not on or len(found[running[on[0]]]) >= max_new_tokens:
            return found
        if len(on) < len(running) and not edit:  # edits may hold one value per sequence
            index = torch.tensor(on)  # on the CPU, because the cache's layers may lie on different devices
            cache.batch_select_indices(index)
            tokens, running = tokens[index], [running[at] for at in on]
        logits = _forward(model, anatomy, tokens[:, None], cache, edit or {})


def _forward(
    model: PreTrainedModel, anatomy: Anatomy, ids: Int[Tensor, "sequence pos"], cache: Cache, edit: Mapping[Site, Edit]
) -> Float[Tensor, "sequence vocab"]:
    """Logits of the last position."""
    start, (rows, width) = int(cache.get_seq_length()), ids.shape
    positions = torch.arange(start, start + width, device=ids.device).expand(rows, width)
    options = logits_option(model, 1)

    def run() -> Tensor:
        out = model(input_ids=ids, position_ids=positions, past_key_values=cache, use_cache=True, **options)
        return out.logits[:, -1]

    logits = visited(model, anatomy, (rows, width), {}, edit, run).output
    if not torch.isfinite(logits.max(-1).values).all():
        raise ModelError(f"{type(model).__name__}: NaN or infinite logits; check weights, dtype and edits")
    return logits
