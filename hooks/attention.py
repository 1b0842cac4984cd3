"""Replaces a model's attention function inside a ``with`` block: the only access to values inside attention.

    with interpose(model, lambda call: call.output()):  # called for every layer, with its queries, keys and values
        model(input_ids=ids)

transformers dispatches attention through a registry. This module registers one function under its own name, switches
the model to it, and hands each call to a callback together with the model's native function. The mask function is
registered too: under an unregistered name the mask would be ``None``, which drops padding and sliding windows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from ..errors import ModelError
from ..interrupts import uninterrupted
from .length_limits import check_chosen
from .parts import attention_configs, close_to

NAME = "composcope"
Native = Callable[..., "tuple[Tensor, Tensor | None]"]


class Call(NamedTuple):
    """One call of a model's attention function: queries and keys after rotary embedding, keys not repeated."""

    module: nn.Module
    query: Float[Tensor, "batch head query d_head"]
    key: Float[Tensor, "batch kv_head key d_head"]
    value: Float[Tensor, "batch kv_head key d_value"]
    mask: Shaped[Tensor, ...] | None
    kwargs: dict[str, Any]
    native: Native

    def output(self) -> Float[Tensor, "batch query head d_value"]:
        """The output of the model's own kernel."""
        return self.native(self.module, self.query, self.key, self.value, self.mask, **self.kwargs)[0]


Callback = Callable[[Call], Tensor]


class _Active(NamedTuple):
    callback: Callback
    native_name: str
    without_mask: bool


_ACTIVE: ContextVar[_Active | None] = ContextVar("composcope_attention", default=None)


def _eager(module: nn.Module) -> Native:
    """The explicit softmax of the architecture's own modeling file, with its soft-capping and sinks."""
    for cls in type(module).__mro__:
        found = getattr(sys.modules.get(cls.__module__), "eager_attention_forward", None)
        if found is not None:
            return found
    raise ModelError(f"{type(module).__name__}: its modeling file has no eager_attention_forward to take patterns from")


def _native(module: nn.Module, name: str) -> Native:
    if name != "eager":
        return ALL_ATTENTION_FUNCTIONS.get_interface(name, _eager)
    if getattr(module, "reorder_and_upcast_attn", False):
        raise ModelError(f"{type(module).__name__}: its eager attention cannot be called on its own; load it with sdpa")
    return _eager(module)


def _dispatch(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **kwargs: Any
):
    active = _ACTIVE.get()
    if active is None:
        raise ModelError(f'attention implementation "{NAME}" is only for use inside composcope; set "sdpa" or "eager"')
    check_chosen(type(module).__name__, getattr(module, "config", None), key.shape[2], kwargs)
    call = Call(module, query, key, value, attention_mask, kwargs, _native(module, active.native_name))
    return active.callback(call), None


def _dispatch_mask(*args: Any, **kwargs: Any) -> Tensor | None:
    active = _ACTIVE.get()
    if active is None or active.without_mask:
        return None
    return ALL_MASK_ATTENTION_FUNCTIONS[active.native_name](*args, **kwargs)


AttentionInterface.register(NAME, _dispatch)
AttentionMaskInterface.register(NAME, _dispatch_mask)


def can_interpose(model: PreTrainedModel) -> bool:
    """Whether this architecture calls its attention through the registry."""
    return bool(model._can_set_attn_implementation())


@uninterrupted
def interpose(model: PreTrainedModel, callback: Callback, *, without_mask: bool = False) -> Iterator[None]:
    """Run ``callback`` in place of the attention function of every layer; afterwards the earlier one is restored.

    ``without_mask`` builds no mask, for callbacks that decide themselves which keys are visible.
    """
    if not can_interpose(model):
        raise ModelError(
            f"{type(model).__name__}: attention does not go through transformers' AttentionInterface, "
            "so patterns, attention masses, q, k, v and suffix recomputation are not available"
        )
    native = str(model.config.get_text_config(decoder=True)._attn_implementation)
    if native == NAME:
        raise ModelError("attention is already interposed on; leave the outer block first")
    before = [(c, c._attn_implementation) for c in attention_configs(model)]
    token = _ACTIVE.set(_Active(callback, native, without_mask))
    try:
        for config, _ in before:
            config._attn_implementation_internal = NAME
        yield
    finally:
        for config, name in before:
            config._attn_implementation_internal = name
        _ACTIVE.reset(token)


def visible(first: int, width: int, window: int | None, n_keys: int | None = None) -> Bool[Tensor, "query key"]:
    """Which keys the queries ``first:first + width`` see: those up to itself, the last ``window`` of them if given.

    Of the first ``n_keys``; by default those up to the last of these queries.
    """
    at, keys = torch.arange(first, first + width)[:, None], torch.arange(n_keys or first + width)[None]
    return (keys <= at) & (keys > at - window if window is not None else keys <= at)


def _row(x: Shaped[Tensor, "_ _ _ _"], i: int) -> Shaped[Tensor, "_ _ _ _"]:
    """What belongs to query ``i``, or to all queries."""
    return x if x.shape[-2] == 1 else x[..., i : i + 1, :]


def _mask(call: Call, i: int | None = None) -> Shaped[Tensor, "_ _ _ _"]:
    """The mask of a call, or of its query ``i`` alone.

    Causal, and within the kernel's window, if the kernel was given none (as flash attention).
    """
    if call.mask is not None:
        return call.mask if i is None else _row(call.mask, i)
    q, k = call.query.shape[2], call.key.shape[2]
    first, width = (k - q, q) if i is None else (k - q + i, 1)
    return visible(first, width, call.kwargs.get("sliding_window"), k)[None, None].to(call.query.device)


def additive_mask(call: Call) -> Float[Tensor, "_ _ query key"]:
    """The mask as numbers to add to the scores."""
    k, mask = call.key.shape[2], _mask(call)
    if mask.dtype is torch.bool:
        low = torch.finfo(call.query.dtype).min / 2  # scores are added to it: rows that see nothing stay finite
        mask = torch.zeros(mask.shape, dtype=call.query.dtype, device=mask.device).masked_fill(~mask, low)
    return mask[..., :k]


def explicit_pattern(call: Call) -> Float[Tensor, "batch head query key"]:
    """Softmax of the scores as the architecture's eager code computes it, less the share of sinks.

    Raises ``ModelError`` where this pattern times the values is not the layer's output.
    """
    check_mask(call)
    args = (call.module, call.query, call.key, call.value, additive_mask(call))
    output, pattern = _eager(call.module)(*args, **call.kwargs)
    assert pattern is not None
    made = apply_pattern(call, pattern)
    if close_to(made.nan_to_num(), output.nan_to_num()):  # NaN is refused where it reaches the logits
        return pattern
    # Some (Granite with sinks) take the sinks' share from the output, after the softmax.
    share = (output * made).sum(-1, keepdim=True) / made.square().sum(-1, keepdim=True).clamp_min(1e-30)
    if not close_to(made * share, output):
        raise ModelError(
            f"{type(call.module).__name__}: its output is not its pattern times the values, so its pattern can be "
            "neither read nor edited (head, attn_out and k, v can)"
        )
    return pattern * rearrange(share, "b q head 1 -> b head q 1").to(pattern.dtype)


def apply_pattern(
    call: Call, pattern: Float[Tensor, "batch head query key"]
) -> Float[Tensor, "batch query head d_value"]:
    """``pattern @ values`` with grouped heads."""
    value = repeat(call.value, "b kv k d -> b (kv group) k d", group=call.query.shape[1] // call.value.shape[1])
    return rearrange(pattern.to(value.dtype) @ value, "b head q d -> b q head d").contiguous()


def check_mask(call: Call) -> None:
    if call.mask is not None and not (isinstance(call.mask, Tensor) and call.mask.dim() == 4):
        given = tuple(call.mask.shape) if isinstance(call.mask, Tensor) else type(call.mask).__name__
        raise ModelError(
            f"{type(call.module).__name__}: attention mask of shape {given}, need 4 axes; load the model with "
            'attn_implementation="sdpa"'
        )


def _position(i: int, n: int) -> int:
    if not -n <= i < n:
        raise ModelError(f"pattern of query {i}: there are {n} (0-{n - 1})")
    return i % n


def of_query(call: Call, i: int) -> Call:
    """The call of one query alone, with the keys that it sees."""
    check_mask(call)
    i = _position(i, call.query.shape[2])
    bias = call.kwargs.get("position_bias")
    kwargs = call.kwargs if bias is None else {**call.kwargs, "position_bias": _row(bias, i)}
    return call._replace(query=call.query[:, :, i : i + 1], mask=_mask(call, i), kwargs=kwargs)


Visits = Mapping[int | None, Callable[[Float[Tensor, "batch head *query key"]], Float[Tensor, "batch head *query key"]]]
"""Of one layer: what sees the whole pattern (None), and what sees the row of one query."""


def pattern_callback(layer_of: Mapping[nn.Module, int], visits: Mapping[int, Visits]) -> Callback:
    """A callback that passes the patterns of some layers to ``visits``; the other layers keep their native kernel.

    Without gradients and edits the native kernel makes the output, so reading does not change it at all. If only some
    rows are read, no other row is computed.
    """

    def callback(call: Call) -> Tensor:
        layer = layer_of.get(call.module)
        if layer is None or layer not in visits:
            return call.output()
        whole, rows = visits[layer].get(None), {i: v for i, v in visits[layer].items() if i is not None}
        if whole is not None:
            output = _with_pattern(call, lambda pattern: edit_rows(whole(pattern), rows))
            return call.output() if output is None else output
        output = None
        for i, visit in rows.items():
            new = _with_pattern(of_query(call, i), lambda row, visit=visit: visit(row[:, :, 0])[:, :, None])
            if new is not None:
                at = _position(i, call.query.shape[2])
                output = call.output() if output is None else output
                output = torch.cat([output[:, :at], new, output[:, at + 1 :]], 1)
        return call.output() if output is None else output

    return callback


def _with_pattern(call: Call, edit: Callable[[Tensor], Tensor]) -> Tensor | None:
    """The output with an edited pattern; None where nothing has to be computed again."""
    pattern = explicit_pattern(call)
    differentiate = torch.is_grad_enabled()
    edited = edit(pattern)
    changed = edited is not pattern and not torch.equal(edited, pattern)
    return apply_pattern(call, edited) if changed or differentiate else None


def edit_rows(
    pattern: Float[Tensor, "batch head query key"],
    rows: Mapping[int, Callable[[Float[Tensor, "batch head key"]], Float[Tensor, "batch head key"]]],
) -> Float[Tensor, "batch head query key"]:
    """The pattern after each row was seen; with gradients each row stays on the way to the output."""
    for i, visit in rows.items():
        row = pattern[:, :, _position(i, pattern.shape[2])]
        new = visit(row)
        if torch.is_grad_enabled() or not torch.equal(new, row):
            pattern = pattern.clone()
            pattern[:, :, i] = new
    return pattern
