"""The transformers backend: hooks on the model's own modules, always removed afterwards.

values = visited(model, anatomy, (1, 5), {site: None}, {}, lambda: model(input_ids=ids))
values.acts[site]
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from operator import index
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from transformers import Cache, PreTrainedModel

from ...errors import ModelError
from ...interrupts import held
from .. import attention, experts
from ..anatomy import Anatomy, Layer, Projection
from ..parts import cut, decoder_of, first_tensor, logits_option, paste
from ..sites import Edit, Reducer, Run, Site, check_edit
from . import check_logits, names_of

Put = Callable[[Float[Tensor, "*shape"]], Float[Tensor, "*shape"]]


class Tap(NamedTuple):
    """Where a site is: the input or output of a module, and which part of it."""

    module: nn.Module
    side: str
    """``in``, ``out``, ``in-place`` (an input that the caller keeps for its residual connection) or ``expert``"""
    projection: Projection | None = None
    expert: int = 0


def tap(layer: Layer, site: Site) -> Tap:
    """The tap of a site; ``ModelError`` if this architecture has no such activation."""
    if site.expert is not None or (site.kind == "neuron" and layer.down is None):
        return _expert_tap(layer, site)
    if site.kind == "resid_mid" and layer.mid is None:
        raise ModelError(f"{site}: attention and MLP run in parallel here, nothing lies in between")
    if site.kind in ("q", "k", "v"):
        projection = {"q": layer.q, "k": layer.k, "v": layer.v}[site.kind]
        if projection is None:
            raise ModelError(
                f"{site}: no module of {type(layer.attn).__name__} gives this tensor before rotary embedding"
            )
        return Tap(projection.module, "out", projection)
    return {
        "resid_pre": Tap(layer.block, "in"),
        "resid_mid": Tap(layer.mid or layer.block, "in-place"),
        "resid_post": Tap(layer.block, "out"),
        "attn_out": Tap(layer.attn_tail, "out"),
        "mlp_out": Tap(layer.mlp_tail, "out"),
        "head": Tap(layer.out, "in"),
        "neuron": Tap(layer.down or layer.block, "in"),
    }[site.kind]


def _expert_tap(layer: Layer, site: Site) -> Tap:
    if layer.experts is None or layer.down is not None:
        raise ModelError(f"{site}: this layer's MLP has no experts; leave expert out")
    n = experts.count(experts.required(layer.experts))
    if site.expert is None:
        raise ModelError(f'{site}: neurons belong to experts here; name one: Site({site.layer}, "neuron", 0..{n - 1})')
    return Tap(layer.experts, "expert", expert=site.expert)


class Visit:
    """Edits, checks and keeps one site's value during a forward pass."""

    def __init__(self, site: Site, edit: Edit | None, reducer: Reducer | None, wanted: bool, batch: tuple[int, int]):
        self.site, self.edit, self.reducer, self.wanted, self.batch = site, edit, reducer, wanted, batch
        self.kept: Tensor | None = None
        self.count = 0

    def __call__(self, x: Shaped[Tensor, "*value"]) -> Shaped[Tensor, "*value"]:
        self.count += 1
        shape = x.shape
        if x.dim() in (2, 3) and x.shape[:-1].numel() == self.batch[0] * self.batch[1]:
            x = x.reshape(*self.batch, x.shape[-1])  # some architectures flatten batch and position
        if self.wanted and torch.is_grad_enabled() and not x.requires_grad:
            x = x.detach().requires_grad_()
        y = x if self.edit is None else self.edit(x.clone())  # edits may write into their argument
        if self.edit is not None:
            check_edit(self.site, y, x)
        if self.wanted:
            self.kept = y if self.reducer is None else self.reducer(y)
            if self.kept is None:
                raise ModelError(f"read of {self.site}: its function returned None; return what is to be kept")
        # The model may go on in place (Falcon adds attention to what its MLP gave). That must change neither what is
        # kept nor a tensor of the caller. With gradients, what is kept has to stay the one that the model goes on from.
        if self.edit is not None or torch.is_grad_enabled():
            return y.clone().reshape(shape)
        if isinstance(self.kept, Tensor):
            self.kept = self.kept.clone()
        return y.reshape(shape)


def replace_first(value: Any, new: Shaped[Tensor, "..."]) -> Any:
    """A module's input or output with other hidden states."""
    if isinstance(value, Tensor):
        return new
    return type(value)((replace_first(value[0], new), *value[1:]))


def install(at: Tap, visit: Put, heads: tuple[int, int]) -> Any:
    """Register the hook that passes a tap's value to ``visit``."""

    def before(module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]] | None:
        named = not args
        x = first_tensor(kwargs.get("hidden_states") if named else args)
        if x is None:
            raise ModelError(f"{type(module).__name__}: called without hidden states")
        if at.side == "in-place":
            y = visit(x if not x.requires_grad else x.clone())
            if y is not x:
                x.copy_(y)
            return None
        y = visit(x)
        if named:
            return args, {**kwargs, "hidden_states": y}
        return (replace_first(args, y), kwargs)

    def after(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Any) -> Any:
        y = first_tensor(output)
        if y is None:
            raise ModelError(f"{type(module).__name__}: gave no tensor")
        p = at.projection
        if p is None:
            return replace_first(output, visit(y))
        x = cut(y, p.layout, p.part, *heads)
        if x is None:
            raise ModelError(f"{type(module).__name__}: an output of shape {tuple(y.shape)} cannot be cut into heads")
        z = visit(x)
        return output if z is x else paste(y, z, p.layout, p.part, *heads)

    if at.side == "out":
        return at.module.register_forward_hook(after, with_kwargs=True)
    return at.module.register_forward_pre_hook(before, with_kwargs=True)


def by_experts(taps: Mapping[Site, Tap], visits: Mapping[Site, Visit]) -> dict[nn.Module, dict[int, Visit]]:
    """Visits of neurons inside experts, by their module and expert."""
    out: dict[nn.Module, dict[int, Visit]] = {}
    for site, at in taps.items():
        if at.side == "expert":
            out.setdefault(at.module, {})[at.expert] = visits[site]
    return out


def install_experts(module: nn.Module, visits: Mapping[int, Visit]) -> Any:
    """Register the hook that passes some experts' neurons to their visits."""

    def after(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Tensor) -> Tensor:
        return experts.visited(module, args, kwargs, output, visits)

    return module.register_forward_hook(after, with_kwargs=True)


def private_cache(past: Cache) -> Cache:
    """A cache that grows without changing ``past``; it shares tensors where its type only ever replaces them."""
    grows = all(type(layer).__name__ in ("DynamicLayer", "DynamicSlidingWindowLayer") for layer in past.layers)
    if not grows:
        return copy.deepcopy(past)
    twin = copy.copy(past)
    twin.layers = [copy.copy(layer) for layer in past.layers]
    return twin


def position_ids(
    ids: Int[Tensor, "batch pos"], mask: Shaped[Tensor, "batch _"] | None, offset: int, context: int | None
) -> Int[Tensor, "batch pos"]:
    """Positions counted over real tokens, so that left padding is right on every architecture."""
    if mask is None:
        positions = torch.arange(offset, offset + ids.shape[1], device=ids.device).expand(ids.shape)
    else:
        positions = (mask.long().cumsum(-1) - 1).clamp_min(0)[:, -ids.shape[1] :]
    longest = int(positions.max()) + 1
    if context is not None and longest > context:
        raise ModelError(
            f"sequence of {longest} tokens: the model's context holds {context}; shorten the prompt or response"
        )
    return positions


def visits_of(
    shape: tuple[int, int], read: Mapping[Site, Reducer | None], edit: Mapping[Site, Edit]
) -> dict[Site, Visit]:
    """One visit per site for a forward pass of ``batch pos`` tokens."""
    return {s: Visit(s, edit.get(s), read.get(s), s in read, shape) for s in {**edit, **read}}


MASK = "composcope_mask"
"""Where a cache keeps the mask of the tokens that it was made from, with the first keys it then had; copies of the
cache keep both, too."""


def note_mask(cache: Cache, mask: Shaped[Tensor, "batch past"]) -> None:
    """Keep the mask of a cache's tokens beside it, for ``with_past``."""
    setattr(cache, MASK, (mask, getattr(cache.layers[0], "keys", None)))


def with_past(
    ids: Int[Tensor, "batch pos"], mask: Shaped[Tensor, "batch _"] | None, past: Cache | None
) -> Shaped[Tensor, "batch _"] | None:
    """The mask, with that of the earlier tokens before it where it is known and not given."""
    kept: tuple[Any, Any] = getattr(past, MASK, (None, None))
    before, keys = kept
    if before is None or (mask is not None and mask.shape != ids.shape):
        return mask
    assert past is not None
    offset = int(past.get_seq_length())
    check_shapes(ids, None, past, offset)
    now: Any = getattr(past.layers[0], "keys", None)
    if tuple(before.shape) != (len(ids), offset) or not (now is keys or torch.equal(now, keys)):
        if bool(before.all()):
            return mask  # nothing was padded, so copies of the cache with other rows or lengths have no padding, either
        raise ModelError(
            f"past of {len(ids)} rows and {offset} tokens: was made from {len(before)} rows and {before.shape[1]} "
            "tokens with a mask, and changed since (its rows reordered, selected or repeated, or cut), so that the "
            "mask does not fit any more; give the mask of all its tokens and the new ones"
        )
    return torch.cat([before, torch.ones_like(ids) if mask is None else mask.to(before)], 1)


class Inputs(NamedTuple):
    """The inputs of a forward pass in any library."""

    ids: Int[Tensor, "batch pos"]
    mask: Shaped[Tensor, "batch past_and_pos"] | None
    positions: Int[Tensor, "batch pos"]
    past: Cache | None


def inputs(
    anatomy: Anatomy, ids: Int[Tensor, "batch pos"], mask: Shaped[Tensor, "batch _"] | None, past: Cache | None
) -> Inputs:
    """A mask that also covers earlier tokens, positions counted over real tokens, and a cache that may grow."""
    offset = 0 if past is None else int(past.get_seq_length())
    check_shapes(ids, mask, past, offset)
    if mask is not None and mask.shape[1] == ids.shape[1] and offset:
        mask = torch.cat([mask.new_ones(mask.shape[0], offset), mask], 1)
    positions = position_ids(ids, mask, offset, anatomy.context)
    return Inputs(ids, mask, positions, None if past is None else private_cache(past))


def check_shapes(
    ids: Int[Tensor, "batch pos"], mask: Shaped[Tensor, "..."] | None, past: Cache | None, offset: int
) -> None:
    """``ModelError`` unless mask and earlier tokens fit ``batch pos`` ids."""
    rows, width = ids.shape
    if mask is not None:
        if tuple(mask.shape) not in ((rows, width), (rows, offset + width)):
            over = f" or {(rows, offset + width)}" if offset else ""
            raise ModelError(f"mask of shape {tuple(mask.shape)}; need {(rows, width)}{over}, 1 for real tokens")
        if not ((mask == 0) | (mask == 1)).all():
            raise ModelError("mask: holds other values than 1 for real tokens and 0 for padding; give what pad returns")
        if not mask.bool().any(1).all():
            raise ModelError("mask: a row has no real token; every row needs at least one")
    keys = None if past is None or not offset else getattr(past.layers[0], "keys", None)
    if isinstance(keys, Tensor) and keys.shape[0] != rows:
        raise ModelError(f"past of {keys.shape[0]} sequences for {rows} rows of token ids; give one for each row")


class RunValues(NamedTuple):
    """Activations by site, and the output of the forward pass."""

    output: Any
    acts: dict[Site, Shaped[Tensor, "..."]]


def visited(
    model: PreTrainedModel,
    anatomy: Anatomy,
    shape: tuple[int, int],
    read: Mapping[Site, Reducer | None],
    edit: Mapping[Site, Edit],
    forward: Callable[[], Any],
) -> RunValues:
    """Call ``forward`` and read and edit every site during it; the hooks are always removed."""
    visits = visits_of(shape, read, edit)
    maps = {s: v for s, v in visits.items() if s.kind == "pattern"}
    taps = {s: tap(anatomy.layers[s.layer], s) for s in visits if s not in maps}
    with held(), ExitStack() as stack:
        for site, at in taps.items():
            if at.side != "expert":
                stack.callback(install(at, visits[site], anatomy.heads(site.layer)).remove)
        for module, of_experts in by_experts(taps, visits).items():
            stack.callback(install_experts(module, of_experts).remove)
        if maps:
            callback = pattern_callback(model, anatomy, names_of(model), maps)
            stack.enter_context(attention.interpose(model, callback))
        output = forward()
    return RunValues(output, kept(visits))


def kept(visits: Mapping[Site, Visit]) -> dict[Site, Shaped[Tensor, "..."]]:
    """The activations kept by visits; ``ModelError`` for a site whose module did not run exactly once."""
    for site, visit in visits.items():
        if visit.count != 1:
            raise ModelError(f"{site}: its module ran {visit.count} times in one forward pass, need once")
    return {s: v.kept for s, v in visits.items() if v.kept is not None}


def run(
    model: PreTrainedModel,
    anatomy: Anatomy,
    ids: Int[Tensor, "batch pos"],
    mask: Shaped[Tensor, "batch _"] | None,
    read: Mapping[Site, Reducer | None],
    edit: Mapping[Site, Edit],
    past: Cache | None,
    at: Sequence[int] | None = None,
) -> Run:
    """One forward pass; see ``Model.run``."""
    given = inputs(anatomy, ids, mask, past)
    few = logits_option(model, at)

    def forward() -> Any:
        return model(
            input_ids=given.ids,
            attention_mask=given.mask,
            position_ids=given.positions,
            past_key_values=given.past,
            use_cache=False,
            **few,
        )

    values = visited(model, anatomy, (int(ids.shape[0]), int(ids.shape[1])), read, edit, forward)
    logits = values.output.logits if few else logits_at(values.output.logits, at)
    check_logits(logits, type(model).__name__)
    return Run(logits, values.acts)


def check_positions(at: Sequence[int] | None, width: int) -> list[int] | None:
    """The positions whose logits are wanted, as a list; ``ModelError`` for others than those of ``width`` tokens."""
    try:
        found = None if at is None else [index(i) for i in at]
    except TypeError as e:
        raise ModelError(f"logits_at {at!r}: give a list of positions, such as [-1]") from e
    for i in found or ():
        if not -width <= i < width:
            raise ModelError(f"logits_at {i}: there are {width} positions (0-{width - 1})")
    return found


def logits_at(logits: Float[Tensor, "batch pos vocab"], at: Sequence[int] | None) -> Float[Tensor, "batch at vocab"]:
    """The logits of some positions."""
    return logits if at is None else logits[:, list(at)]


def trunk(
    model: PreTrainedModel, anatomy: Anatomy, ids: Int[Tensor, "batch pos"], read: Mapping[Site, Reducer | None]
) -> dict[Site, Shaped[Tensor, "..."]]:
    """Activations only: the decoder runs without its vocabulary head, so no logits are held."""
    positions = position_ids(ids, None, 0, anatomy.context)

    def forward() -> Any:
        return decoder_of(model)(input_ids=ids, position_ids=positions, use_cache=False)

    return visited(model, anatomy, (int(ids.shape[0]), int(ids.shape[1])), read, {}, forward).acts


def pattern_callback(
    model: PreTrainedModel, anatomy: Anatomy, path_of: Mapping[nn.Module, str], maps: Mapping[Site, Visit]
) -> attention.Callback:
    """A callback that passes the patterns of some layers to their visits; ``path_of`` names the anatomy's modules."""
    layer_of = {
        m: i for i, layer in enumerate(anatomy.layers) for m in model.get_submodule(path_of[layer.attn]).modules()
    }
    of_layers: dict[int, dict[int | None, Visit]] = {}
    for site, visit in maps.items():
        of_layers.setdefault(site.layer, {})[site.query] = visit
    return attention.pattern_callback(layer_of, of_layers)
