"""Lengths from which a model computes differently, and checks that no batch or suffix crosses them.

    for batch in computed_alike(model, [len(t) for t in texts]):  # indices of texts that may share a batch
        ...

With longrope rotary angles the longest sequence of a batch decides the angles of *all* positions, so a short text in a
batch with a long one does not get the numbers that it gets alone. Attention chunks and queries scaled by position
depend on the position only; suffix recomputation alone cannot cross them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Int, Shaped
from torch import Tensor
from torch.nn import Module
from transformers import PreTrainedModel

from ..errors import ModelError
from ..interrupts import uninterrupted
from ..model_loading import rotary_limits
from .parts import stated


def keys_chosen(config: Any) -> int | None:
    """How many keys a text may have before the model itself chooses the ones that a token attends to.

    ``None``: it never chooses. Where its scores tie (they are cut off at zero), the choice depends on padding, too.
    """
    blocks = getattr(config, "index_topk_blocks", None)
    found = blocks * config.index_block_size if blocks else getattr(config, "index_topk", None)
    return None if found is None else int(found)


def check_chosen(name: str, config: Any, n_keys: int, options: Mapping[str, Any]) -> None:
    """``ModelError`` for a call of an attention function whose kernel has to choose keys."""
    limit = keys_chosen(config)
    if limit is not None and n_keys > limit and any(k.endswith("indices") for k in options):
        raise ModelError(
            f"{name}: of {n_keys} keys it attends to {limit} that it selects (sparse attention), and only its own "
            f"kernels can select them; attention can be read and recomputed in texts of up to {limit} tokens"
        )


def limits(model: PreTrainedModel) -> list[int]:
    """Lengths after which texts or positions are computed differently."""
    config = model.config.get_text_config(decoder=True)
    found = rotary_limits(model)
    if "chunked_attention" in (getattr(config, "layer_types", None) or ()):
        found.append(config.attention_chunk_size)
    if getattr(config, "attn_temperature_tuning", False):
        found.append(config.floor_scale - 1)
    return found


def window_of(model: PreTrainedModel) -> int | None:
    """How many keys back the layers with the shortest window or chunk see; None: all layers see all."""
    config = model.config.get_text_config(decoder=True)
    kinds = getattr(config, "layer_types", None)
    found = [stated(config, "sliding_window")] if kinds is None or "sliding_attention" in kinds else []
    found += [config.attention_chunk_size] if "chunked_attention" in (kinds or ()) else []
    found += [config.window_size] if "local" in (stated(config, "attention_layers") or ()) else []  # GPT-Neo
    return min((int(n) for n in found if n is not None), default=None)


def check_gaps(model: PreTrainedModel, mask: Shaped[Tensor, "batch past_and_pos"]) -> None:
    """``ModelError`` for padding between a row's tokens that a sliding window would count as tokens."""
    window, real = window_of(model), mask.bool()
    if window is None or mask.shape[1] <= window:
        return
    reach = (real.cumsum(1).bool() & real.flip(1).cumsum(1).flip(1).bool()).sum(1)  # from the first token to the last
    gaps = (reach > window) & (reach > real.sum(1))
    if bool(gaps.any()):
        raise ModelError(
            f"{type(model).__name__}: row {int(gaps.long().argmax())} has padding between its tokens, which its "
            f"attention window of {window} counts as tokens; give whole texts, or pad the earlier tokens on the left"
        )


def computed_alike(model: PreTrainedModel, lengths: Sequence[int]) -> list[list[int]]:
    """Groups of text indices: texts of a group get in one batch what they get alone. Groups of short texts first."""
    groups: dict[tuple[int, int], list[int]] = {}
    rotary, most = rotary_limits(model), keys_chosen(model.config.get_text_config(decoder=True))
    for i, n in enumerate(lengths):
        width = n if most is not None and n > most else 0  # texts of exactly this length, without padding
        groups.setdefault((sum(n > limit for limit in rotary), width), []).append(i)
    return [groups[k] for k in sorted(groups)]


def check_suffix(model: PreTrainedModel, first: int, last: int) -> None:
    """``ModelError`` unless texts ending at positions ``first`` and ``last`` are computed alike."""
    _check(model, limits(model), first + 1, last + 1, "generate fewer tokens")


def check_writing(model: PreTrainedModel, prompt: int, new: int) -> None:
    """``ModelError`` if a prompt's own tokens get other angles while ``new`` tokens are written after it."""
    _check(model, rotary_limits(model), prompt, prompt + new - 1, "generate fewer tokens")


def check_batch(
    model: PreTrainedModel, ids: Int[Tensor, "batch pos"], mask: Shaped[Tensor, "batch _"] | None, past: int
) -> None:
    """``ModelError`` unless every row of ids after ``past`` earlier tokens gets the angles and keys that it gets alone.

    Rows of one batch without a mask may have any length, so a mask is required where lengths matter.
    """
    rotary = rotary_limits(model)
    rows, width = ids.shape
    real = torch.ones(1, past + width) if mask is None else mask.cpu()
    if real.shape[1] == width:
        real = torch.cat([real.new_ones(len(real), past), real], 1)
    check_gaps(model, real)
    most = keys_chosen(model.config.get_text_config(decoder=True))
    if most is not None and past + width > most and (rows > 1 if mask is None else not bool(mask.all())):
        raise ModelError(
            f"{type(model).__name__}: {rows} rows of {past + width} tokens; of more than {most} keys this model "
            "attends to a selection, which padding would change: give rows of equal length and a mask of ones"
        )
    if not rotary:
        return
    if mask is None and rows > 1 and past + width > rotary[0]:
        raise ModelError(
            f"{type(model).__name__}: {rows} rows of {past + width} tokens without a mask; it computes texts of more "
            f"than {rotary[0]} tokens differently, so give the mask (pad makes it; all ones where nothing is padded)"
        )
    lengths = [real[:, :n].long().sum(1) for n in (past or past + width, past + width)]
    _check(model, rotary, int(lengths[0].min()), int(lengths[1].max()), "run without past" if past else "row by row")


def _check(model: PreTrainedModel, limits: Sequence[int], first: int, last: int, otherwise: str) -> None:
    for limit in limits:
        if first <= limit < last:
            raise ModelError(
                f"{type(model).__name__}: texts of {first} to {last} tokens; it computes those of more than {limit} "
                f"differently; measure shorter and longer prompts apart, or {otherwise}"
            )


@uninterrupted
def keep_rotary_angles(model: PreTrainedModel) -> Iterator[None]:
    """Inside, a forward pass may write or replace the buffers of rotary angles (longrope); afterwards they are back."""
    before: list[tuple[Module, str, Tensor, Tensor]] = []
    if rotary_limits(model):
        before = [
            (module, name, buffer, buffer.clone())
            for module in model.modules()
            for name, buffer in module.named_buffers(recurse=False)
            if name.endswith("inv_freq")
        ]
    try:
        yield
    finally:
        with torch.no_grad():
            for module, name, buffer, value in before:
                buffer.copy_(value)
                setattr(module, name, buffer)  # some versions of transformers put another tensor there
