"""Parts of a causal language model: decoder, blocks, embedding, hidden states, heads in a projection's output.

    embedding_of(model)  # vocab d_model
    cut(projected, "concat", part=1, n_q=8, n_kv=2)  # keys, batch head pos d_head

A *layout* says how queries, keys and values lie in the output of the module that makes them. ``alone``: nothing else;
``heads_first``: the same, head axis before positions; ``concat``: ``[q | k | v]`` along the width; ``grouped``: per
key-value head ``[q... | k | v]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from einops import rearrange
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from transformers import DynamicCache, PreTrainedModel

from ..errors import ModelError
from . import placement

ProjectionLayout = Literal["alone", "heads_first", "concat", "grouped"]


def blocks_of(model: PreTrainedModel) -> nn.ModuleList:
    """The decoder blocks: the only ``ModuleList`` as long as the config says the model is deep."""
    config: Any = model.config.get_text_config(decoder=True)
    n = int(config.num_hidden_layers)
    decoder = decoder_of(model)
    found = [m for m in decoder.modules() if isinstance(m, nn.ModuleList) and len(m) == n]
    if len(found) != 1:
        lists = [f"{k} ({len(m)})" for k, m in decoder.named_modules() if isinstance(m, nn.ModuleList)]
        seen = ", ".join(lists) or "none"
        raise ModelError(
            f"{type(model).__name__}: no single list of {n} blocks under its decoder (lists seen: {seen}); "
            "pass anatomy=Anatomy(...)"
        )
    return found[0]


def decoder_of(model: PreTrainedModel) -> nn.Module:
    """The blocks with embedding and final norm, without the vocabulary head."""
    decoder = model.get_decoder()
    if decoder is not model:
        return decoder
    # Some classes give themselves; the decoder is then the one part of them that holds more than a linear layer.
    parts = [m for m in model.children() if isinstance(m, PreTrainedModel)]
    if len(parts) != 1:
        raise ModelError(
            f"{type(model).__name__}: its decoder cannot be separated from its head; open the model with its "
            "...ForCausalLM class"
        )
    return parts[0]


def empty_cache(model: PreTrainedModel) -> DynamicCache:
    """A cache for keys and values of every layer that evicts none; ``ModelError`` for layers that keep other things."""
    kinds = getattr(model.config.get_text_config(decoder=True), "layer_types", None) or ()
    others = sorted({str(k) for k in kinds} - {"full_attention", "sliding_attention", "chunked_attention"})
    if others:
        raise ModelError(
            f"{type(model).__name__}: layers of type {', '.join(others)} keep no keys and values; "
            "give the whole text, without a cache"
        )
    return DynamicCache()


def logits_option(model: PreTrainedModel, at: Sequence[int] | int | None) -> dict[str, Any]:
    """What keeps a model from computing other logits than those at some positions, or of the last ``at`` positions.

    Empty for all positions (None), and for an architecture that always computes all.
    """
    of_any: Any = model  # a method that the type of models does not have
    if at is None or not of_any._supports_logits_to_keep():
        return {}
    if isinstance(at, int):
        return {"logits_to_keep": at}
    return {"logits_to_keep": torch.tensor(at, dtype=torch.long, device=input_device(model))}


def input_device(model: PreTrainedModel) -> torch.device:
    """The device of the token ids."""
    return placement.device_of(model.get_input_embeddings(), embedding_of(model))


def stated(config: Any, name: str) -> Any:
    """A config value of the whole model, ``None`` if there is none; the first layer's where layers differ."""
    try:
        return getattr(config, name, None)
    except RuntimeError:  # transformers' configs of layers that differ give such values layer by layer only
        return getattr(config.per_layer_config[0], name, None)


def check_eval(model: PreTrainedModel) -> None:
    """``ModelError`` if the model, or a module in it with dropout or noise, is in training mode."""
    where = "" if model.training else next((n for n, m in model.named_modules() if m.training and _drops(m)), None)
    if where is not None:
        part = f": {where}" if where else ""
        raise ModelError(f"{type(model).__name__}{part} is in training mode (dropout is on); call model.eval() first")


def _drops(module: nn.Module) -> bool:
    """Whether the module computes differently in training mode; many modules never do."""
    return any(
        isinstance(v, float) and v > 0 and (k == "p" or "drop" in k or "jitter" in k) for k, v in vars(module).items()
    )


def embedding_of(model: PreTrainedModel) -> Shaped[Tensor, "vocab _"]:
    """The token embedding; without data where it is offloaded."""
    table = model.get_input_embeddings().weight
    assert isinstance(table, Tensor)
    return table


def attention_configs(model: PreTrainedModel) -> list[Any]:
    """Every configuration object of the model that names an attention implementation, once each."""
    found = [model.config, model.config.get_text_config(decoder=True)]
    found += [c for m in model.modules() if hasattr(c := getattr(m, "config", None), "_attn_implementation")]
    for config in found:  # grows on the way
        found += [c for key in getattr(config, "sub_configs", ()) if (c := getattr(config, key, None)) is not None]
    return list({id(c): c for c in found}.values())


def first_tensor(x: Any) -> Shaped[Tensor, ...] | None:
    """The hidden states in a module's input or output: a tensor, or the first of a tuple."""
    if isinstance(x, Tensor):
        return x
    return first_tensor(x[0]) if isinstance(x, tuple | list) and x else None


def hidden_in(args: tuple, kwargs: dict[str, Any]) -> Shaped[Tensor, ...] | None:
    """The hidden states among a module's arguments, however they were passed."""
    return first_tensor(args) if args else first_tensor(kwargs.get("hidden_states"))


def head_index(layout: str, part: int, n_q: int, n_kv: int, width: int) -> Int[Tensor, "head d_head"] | None:
    """The elements of a projection's output that hold each head; ``None`` if they do not fit."""
    n = n_q if part == 0 else n_kv
    if layout == "heads_first":
        return None
    if layout == "alone":
        return rearrange(torch.arange(width), "(head d) -> head d", head=n) if width % n == 0 else None
    if width % (n_q + 2 * n_kv):
        return None
    slots = rearrange(torch.arange(width), "(head d) -> head d", head=n_q + 2 * n_kv)
    if layout == "concat":
        start = (0, n_q, n_q + n_kv)[part]
        return slots[start : start + n]
    groups = n_q // n_kv
    slots = rearrange(slots, "(kv slot) d -> kv slot d", kv=n_kv)
    if part:
        return slots[:, groups + part - 1]
    return rearrange(slots[:, :groups], "kv group d -> (kv group) d")


def cut(
    y: Float[Tensor, ...], layout: str, part: int, n_q: int, n_kv: int
) -> Float[Tensor, "batch head pos d_head"] | None:
    """Queries, keys or values in a projection's output; ``None`` if it cannot be divided into heads."""
    n = n_q if part == 0 else n_kv
    if y.dim() == 4 and layout in ("alone", "heads_first"):
        x = y.transpose(1, 2) if layout == "alone" else y
        return x if x.shape[1] == n else None
    index = head_index(layout, part, n_q, n_kv, y.shape[-1]) if y.dim() == 3 else None
    return None if index is None else y[..., index.to(y.device)].transpose(1, 2)


def paste(
    y: Float[Tensor, "*shape"], x: Float[Tensor, "batch head pos d_head"], layout: str, part: int, n_q: int, n_kv: int
) -> Float[Tensor, "*shape"]:
    """``y`` with ``x`` (as ``cut`` returns it) in its place."""
    if y.dim() == 4:
        return x.transpose(1, 2) if layout == "alone" else x
    index = head_index(layout, part, n_q, n_kv, y.shape[-1])
    assert index is not None
    out = y.clone()
    out[..., index.to(y.device)] = x.transpose(1, 2)
    return out


def close_to(a: Float[Tensor, "..."], b: Float[Tensor, "..."]) -> bool:
    """Equal up to rounding, relative to the largest value."""
    if a.shape != b.shape:
        return False
    limit = 1e-4 if a.dtype in (torch.float32, torch.float64) else 5e-2
    a, b = a.detach(), b.detach()
    return float((a - b).abs().max()) <= limit * float(b.abs().max().clamp_min(1e-30))
