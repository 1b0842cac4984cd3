"""Attention masses: how much each head attends to given ranges of keys, under the model's own attention.

    with attention_masses(model, [Window(first=4, last=9, regions=((0, 4), (4, 9)))]) as found:
        model(input_ids=ids)
    found[0]  # region layer head step

The model's own attention function makes the output, so outputs do not change. The softmax is computed again
for the wanted query rows only, chunk by chunk, and only sums over key ranges are kept, never ``head query key``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from einops import rearrange
from jaxtyping import Float, Shaped
from torch import Tensor
from transformers import PreTrainedModel

from ..errors import ModelError
from ..interrupts import uninterrupted
from .attention import Call, interpose

SUPPORTED = ("sdpa", "eager")
ROW_CHUNK = 32
"""Query rows whose scores are held at once on a CPU, where they should stay in the cache."""
GPU_SCORES = 2**25
"""Scores held at once on a GPU (128 MB), where every chunk costs a launch."""


@dataclass(frozen=True)
class Window:
    """Which query positions of one sequence are reduced, over which key ranges."""

    first: int
    last: int
    """Query positions ``first:last`` (half-open)."""
    regions: tuple[tuple[int, int], ...]
    """Half-open key ranges; keys after the query have no mass."""


class AllRead(Exception):
    """Ends a forward pass after the last layer's masses, where nothing else is needed."""


@dataclass
class _Recorder:
    """The callback that records masses layer by layer."""

    windows: Sequence[Window | None]
    layers: int
    only: bool
    records: dict[int, list[Tensor | None]] = field(default_factory=dict)

    def __call__(self, call: Call) -> Tensor:
        layer = getattr(call.module, "layer_idx", None)
        if not isinstance(layer, int) or layer in self.records:
            raise ModelError(
                f"{type(call.module).__name__}: its layer_idx is {layer!r}, missing or already used by another "
                "call, so its attention masses cannot be assigned to a layer"
            )
        if call.query.shape[0] != len(self.windows):
            raise ModelError(f"layer {layer}: batch of {call.query.shape[0]} for {len(self.windows)} windows")
        options = _options(call)
        self.records[layer] = [
            None if w is None else _masses(call.query[b], call.key[b], _of_sample(call.mask, b), w, options)
            for b, w in enumerate(self.windows)
        ]
        if self.only and len(self.records) == self.layers:
            raise AllRead
        return call.output()


def _of_sample(mask: Tensor | None, b: int) -> Tensor | None:
    if mask is None:
        return None
    if mask.ndim != 4:
        raise ModelError(f"attention mask of shape {tuple(mask.shape)}; masses need [batch head query key]")
    return mask[min(b, mask.shape[0] - 1)]


def _options(call: Call) -> dict[str, Any]:
    if call.kwargs.get("position_bias") is not None:
        raise ModelError(
            f"{type(call.module).__name__}: attention with a position bias is not supported by attention masses"
        )
    if not getattr(call.module, "is_causal", True):
        raise ModelError(
            f"{type(call.module).__name__}: attention that is not causal is not supported by attention masses"
        )
    scaling = call.kwargs.get("scaling")
    return {
        "scaling": call.query.shape[-1] ** -0.5 if scaling is None else scaling,
        "softcap": call.kwargs.get("softcap"),
        "sinks": call.kwargs.get("s_aux"),
        "window": call.kwargs.get("sliding_window"),
    }


@torch.no_grad()
def _masses(
    q: Float[Tensor, "head query d"], k: Float[Tensor, "kv_head key d"], mask: Shaped[Tensor, "_ _ _"] | None,
    window: Window, options: dict[str, Any],
) -> Float[Tensor, "region head row"]:  # fmt: skip
    """Masses of one sequence."""
    n_keys, offset = k.shape[1], k.shape[1] - q.shape[1]
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    stop = min(window.last, n_keys)
    k = k[:, :stop].to(wide).transpose(1, 2)
    # One extra column of ones: the total, so that masses are normalized whatever the ranges leave out.
    member = torch.zeros(stop, len(window.regions) + 1, dtype=wide, device=q.device)
    for i, (start, end) in enumerate(window.regions):
        member[start:end, i] = 1
    member[:, -1] = 1
    out = []
    chunk = max(ROW_CHUNK, GPU_SCORES // (q.shape[0] * stop)) if q.is_cuda else ROW_CHUNK
    for first in range(window.first, window.last, chunk):
        rows = torch.arange(first, min(first + chunk, window.last), device=q.device)
        scores = _scores(q[:, rows - offset].to(wide), k, options)
        _hide(scores, rows, None if mask is None else mask[:, rows - offset, :stop], options["window"])
        out.append(_reduce(scores, member, options["sinks"]))
    return rearrange(torch.cat(out, dim=1), "head row region -> region head row")


def _scores(
    q: Float[Tensor, "head row d"], k: Float[Tensor, "kv_head d key"], options: dict[str, Any]
) -> Float[Tensor, "head row key"]:
    """Attention scores; query heads that share a key head go through one product."""
    grouped = rearrange(q, "(kv group) row d -> kv (group row) d", kv=k.shape[0])
    scores = rearrange(grouped @ k, "kv (group row) key -> (kv group) row key", row=q.shape[1])
    scores *= options["scaling"]
    if options["softcap"] is not None:
        scores.div_(options["softcap"]).tanh_().mul_(options["softcap"])
    return scores


def _hide(scores: Tensor, rows: Tensor, mask: Tensor | None, window: int | None) -> None:
    if mask is not None:
        if mask.dtype == torch.bool:
            scores.masked_fill_(~mask, -torch.inf)
        else:
            scores += mask.to(scores.dtype)
        return
    keys = torch.arange(scores.shape[-1], device=scores.device)
    hidden = keys > rows[:, None]
    if window is not None:
        hidden |= keys <= rows[:, None] - window
    scores.masked_fill_(hidden, -torch.inf)


def _reduce(scores: Tensor, member: Tensor, sinks: Tensor | None) -> Tensor:
    top = scores.amax(-1, keepdim=True)
    if sinks is not None:
        top = torch.maximum(top, sinks.to(scores.dtype).view(-1, 1, 1))
    sums = scores.sub_(top).exp_() @ member
    total = sums[..., -1:]
    if sinks is not None:
        total = total + (sinks.to(scores.dtype).view(-1, 1, 1) - top).exp()
    return sums[..., :-1] / total


@uninterrupted
def attention_masses(
    model: PreTrainedModel, windows: Sequence[Window | None], *, only: bool = False
) -> Iterator[list[Float[Tensor, "region layer head step"] | None]]:
    """Record masses in one forward pass of ``model`` inside the block; the yielded list is filled after it.

    Args:
        windows: one window (or None) per sequence of the batch.
        only: end the pass with ``AllRead`` (to be caught inside the block) after the last layer's masses.

    The list holds per sequence ``region layer head step`` (float32; float64 for float64 models): the share of each
    head's attention on each key range. With attention sinks the masses of all keys sum to less than 1. Raises
    ``ModelError`` for implementations other than sdpa and eager, for models that do not route their attention through
    ``AttentionInterface``, and unless every layer reported exactly once.
    """
    base = model.config.get_text_config(decoder=True)._attn_implementation
    if base not in SUPPORTED:
        raise ModelError(f"{type(model).__name__}: attention implementation {base!r}; masses need one of {SUPPORTED}")
    recorder = _Recorder(windows, model.config.get_text_config(decoder=True).num_hidden_layers, only)
    out: list[Tensor | None] = []
    with interpose(model, recorder):
        yield out
    out += _collect(recorder, model)


def _together(recorder: _Recorder, layer: int, b: int) -> Tensor:
    """One record, moved to the device of the first layer."""
    first, mine = recorder.records[0][b], recorder.records[layer][b]
    assert first is not None and mine is not None
    return mine.to(first.device)


def _collect(recorder: _Recorder, model: PreTrainedModel) -> list[Tensor | None]:
    if sorted(recorder.records) != list(range(recorder.layers)):
        raise ModelError(
            f"{type(model).__name__}: {len(recorder.records)} of {recorder.layers} layers reported attention masses; "
            "its attention does not go through transformers' AttentionInterface in every layer"
        )
    counts = sorted({r.shape[1] for records in recorder.records.values() for r in records if r is not None})
    if len(counts) > 1:
        raise ModelError(
            f"{type(model).__name__}: layers have different numbers of heads ({', '.join(map(str, counts))}); masses "
            "by layer and head need one number for all"
        )
    return [
        None if w is None else torch.stack([_together(recorder, i, b) for i in range(recorder.layers)], dim=1)
        for b, w in enumerate(recorder.windows)
    ]
