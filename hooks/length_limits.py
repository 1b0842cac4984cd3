"""Lengths from which a model computes otherwise, and what may be asked of it on both sides of them.

With longrope rotary angles, the longest sequence of a batch decides on the angles of *all* its positions, so that a
short text beside a long one does not get the numbers it gets alone. Attention chunks and queries scaled by position
depend on nothing but the position itself; only suffix recomputation cannot cross them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from ..errors import ModelError
from ..interrupts import whole


def rotary_turns(model: PreTrainedModel) -> list[int]:
    """Lengths: a batch with a longer text takes other rotary angles in every row, at every position."""
    config = model.config.get_text_config(decoder=True)
    ropes = getattr(config, "rope_parameters", None) or {}
    ropes = [r for r in (ropes, *ropes.values()) if isinstance(r, dict) and r.get("rope_type") == "longrope"]
    return sorted({int(r["original_max_position_embeddings"]) for r in ropes})


def keys_chosen(config: Any) -> int | None:
    """Among how many keys a text may have before the model itself chooses which of them a token attends to.

    ``None``: it never does. Where its scores tie (they are cut off at zero), the choice depends on padding as well.
    """
    blocks = getattr(config, "index_topk_blocks", None)
    found = blocks * config.index_block_size if blocks else getattr(config, "index_topk", None)
    return None if found is None else int(found)


def check_chosen(name: str, config: Any, n_keys: int, options: Mapping[str, Any]) -> None:
    """``ModelError`` for a call of an attention function that leaves the choice of keys to a kernel that knows it."""
    limit = keys_chosen(config)
    if limit is not None and n_keys > limit and any(k.endswith("indices") for k in options):
        raise ModelError(
            f"{name}: of {n_keys} keys it chooses {limit} itself (sparse attention), which holds in its own kernels "
            f"only; attention is read and recomputed in texts of up to {limit} tokens"
        )


def turns(model: PreTrainedModel) -> list[int]:
    """Lengths: what follows is computed otherwise than what is before, be it by text or by position."""
    config = model.config.get_text_config(decoder=True)
    found = rotary_turns(model)
    if "chunked_attention" in (getattr(config, "layer_types", None) or ()):
        found.append(config.attention_chunk_size)
    if getattr(config, "attn_temperature_tuning", False):
        found.append(config.floor_scale - 1)
    return found


def alike(model: PreTrainedModel, lengths: Sequence[int]) -> list[list[int]]:
    """Indices of texts that may stand in one batch, so that each gets what it gets alone; shorter ones first."""
    groups: dict[tuple[int, int], list[int]] = {}
    limits, most = rotary_turns(model), keys_chosen(model.config.get_text_config(decoder=True))
    for i, n in enumerate(lengths):
        width = n if most is not None and n > most else 0  # texts of exactly this length, without padding
        groups.setdefault((sum(n > turn for turn in limits), width), []).append(i)
    return [groups[k] for k in sorted(groups)]


def check_suffix(model: PreTrainedModel, first: int, last: int) -> None:
    """``ModelError`` unless texts ending at positions ``first`` and ``last`` are computed alike."""
    _check(model, turns(model), first + 1, last + 1, "generate fewer tokens")


def check_batch(model: PreTrainedModel, ids: Tensor, mask: Tensor | None, past: int) -> None:
    """``ModelError`` unless every row of ``batch pos`` ids after ``past`` earlier tokens gets the angles it gets alone.

    Rows of one batch without a mask may be of any length, so that one is asked for where lengths matter.
    """
    limits = rotary_turns(model)
    rows, width = ids.shape
    most = keys_chosen(model.config.get_text_config(decoder=True))
    if most is not None and past + width > most and (rows > 1 if mask is None else not bool(mask.all())):
        raise ModelError(
            f"{type(model).__name__}: {rows} rows of {past + width} tokens; of more than {most} keys it chooses some "
            "itself, and others where there is padding: give rows of one length, with a mask of ones"
        )
    if not limits:
        return
    if mask is None and rows > 1 and past + width > limits[0]:
        raise ModelError(
            f"{type(model).__name__}: {rows} rows of {past + width} tokens without a mask; it computes texts of more "
            f"than {limits[0]} tokens differently, so give the mask (pad makes it; all ones where nothing is padded)"
        )
    real = torch.ones(1, past + width) if mask is None else mask.cpu()
    if real.shape[1] == width:
        real = torch.cat([real.new_ones(len(real), past), real], 1)
    lengths = [real[:, :n].long().sum(1) for n in (past or past + width, past + width)]
    _check(model, limits, int(lengths[0].min()), int(lengths[1].max()), "run without past" if past else "row by row")


def _check(model: PreTrainedModel, limits: Sequence[int], first: int, last: int, otherwise: str) -> None:
    for turn in limits:
        if first <= turn < last:
            raise ModelError(
                f"{type(model).__name__}: texts of {first} to {last} tokens, and it computes those of more than {turn} "
                f"differently; measure shorter and longer prompts apart, or {otherwise}"
            )


@whole
def angles_kept(model: PreTrainedModel) -> Iterator[None]:
    """Rotary angles that a forward pass writes into buffers (longrope) are as before afterwards."""
    before: list[tuple[Tensor, Tensor]] = []
    if rotary_turns(model):
        before = [(b, b.clone()) for name, b in model.named_buffers() if name.endswith("inv_freq")]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in before:
                buffer.copy_(value)
