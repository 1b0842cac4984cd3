"""Anatomy: the modules that hold a model's activations, found by structure and verified by one tiny forward pass.

    anatomy = resolve(model)
    anatomy.layers[3].down  # the down projection of block 3; its input is ``neuron``

There is no table of model names. The blocks are the one ``ModuleList`` of the right length, and everything inside a
block is found by following tensors through a two-token forward pass: which projection makes the queries, which
module's output is added to the residual stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_args

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from ..errors import ModelError
from . import attention, experts
from .parts import ProjectionLayout, blocks_of, cut, stated
from .trace import Event, Trace


@dataclass(frozen=True)
class Projection:
    """The module whose output holds queries, keys or values, and their layout in it (see ``parts``)."""

    module: nn.Module
    layout: ProjectionLayout
    part: int
    """0 q, 1 k, 2 v"""


@dataclass(frozen=True)
class Layer:
    """The modules of one block where its activations are read and edited."""

    block: nn.Module
    attn: nn.Module
    out: nn.Module
    """Attention output projection; its input is ``head``."""
    down: nn.Module | None
    """MLP down projection; its input is ``neuron``. ``None`` for mixtures of experts."""
    attn_tail: nn.Module
    """Module whose output attention adds to the residual stream (after a post-norm, if there is one)."""
    mlp_tail: nn.Module
    mid: nn.Module | None
    """Module whose input is ``resid_mid``; ``None`` for blocks with attention and MLP in parallel."""
    q: Projection | None = None
    k: Projection | None = None
    v: Projection | None = None
    post_norm: nn.Module | None = None
    """Norm between the down projection and the residual stream (Gemma-2, OLMo-2)."""
    mlp_scale: float = 1.0
    """Factor on ``mlp_out`` before it is added to the residual stream (Granite)."""
    up: tuple[nn.Module, ...] = ()
    """Projections into the neurons: one, or two in gated MLPs."""
    mlp: nn.Module | None = None
    """The MLP, where it is a separate module."""
    experts: nn.Module | None = None
    """The module that holds the experts' weights in a mixture of experts."""
    n_neurons: int = 0
    """Neurons of this layer, over all experts; 0: the number in ``Anatomy``."""
    heads: tuple[int, int] = (0, 0)
    """Query heads and key-value heads of this layer; 0: the numbers in ``Anatomy``."""


@dataclass(frozen=True)
class Anatomy:
    """The modules and sizes of a model. Pass one as ``load_model(anatomy=...)`` if the search fails."""

    layers: tuple[Layer, ...] = field(repr=False)  # pages of modules
    n_heads: int
    n_kv_heads: int
    d_head: int
    """Of the widest layer, where layers differ; ``heads`` gives each layer's numbers of heads."""
    d_model: int
    d_mlp: int
    """Neurons per layer (of the widest layer); per expert in mixtures of experts."""
    vocab_size: int
    context: int | None
    """Longest sequence that the model has positions for; ``None`` if the config does not say."""
    n_experts: int | None = None

    @cached_property
    def layer_of_attention(self) -> dict[nn.Module, int]:
        """The layer of each module inside the attentions."""
        return {m: i for i, layer in enumerate(self.layers) for m in layer.attn.modules()}

    @property
    def n_layers(self) -> int:
        return len(self.layers)

    def heads(self, layer: int) -> tuple[int, int]:
        """Query heads and key-value heads of one layer; in some architectures layers differ."""
        mine = self.layers[layer].heads
        return mine[0] or self.n_heads, mine[1] or self.n_kv_heads

    @property
    def n_neurons(self) -> int:
        """Per layer (of the widest), over all experts; neuron i of expert e has index ``e * d_mlp + i``."""
        return max((layer.n_neurons for layer in self.layers), default=0) or self.d_mlp * (self.n_experts or 1)

    @property
    def all_neurons(self) -> int:
        """Of the whole model."""
        return sum(layer.n_neurons or self.n_neurons for layer in self.layers)


def width_of(module: nn.Module) -> int | None:
    """Output width of a linear layer of any make, ``None`` for other modules."""
    for name in ("out_features", "nf", "outfeatures"):
        if isinstance(getattr(module, name, None), int):
            return int(getattr(module, name))
    return None


def _same(a: Tensor | None, b: Tensor) -> bool:
    return a is not None and a.numel() == b.numel() and torch.equal(a.reshape(-1), b.reshape(-1))


def _attention(block: nn.Module) -> tuple[str, nn.Module]:
    for name, child in block.named_children():
        if ("attn" in name or "attention" in name) and any(width_of(m) for m in child.modules()):
            return name, child
    raise ModelError(
        f"{type(block).__name__}: no attention with linear layers among its children "
        f"{[f'{n} ({type(c).__name__})' for n, c in block.named_children()]}; pass anatomy=Anatomy(...)"
    )


def _once(events: Sequence[Event]) -> list[Event]:
    """Events of modules that ran only once (attention and MLP may share one dropout)."""
    return [e for e in events if sum(e.module is other.module for other in events) == 1]


def _tail(events: Sequence[Event], start: Event) -> Event:
    """The last of the modules that take this output unchanged as their input (dropout, post-norm)."""
    later = {id(e) for e in events[events.index(start) + 1 :]}
    for event in (e for e in _once(events) if id(e) in later):
        if "." not in event.name and _same(event.inputs, start.output):
            return _tail(events, event)
    return start


def _projection(events: Sequence[Event], want: Tensor, n_q: int, n_kv: int, part: int) -> Projection | None:
    """The last module whose output, divided into heads, is the tensor that the attention function received.

    They are compared at position 0, where rotary embedding is the identity, up to a factor (YaRN scales queries and
    keys).
    """
    target = want[:, :, 0]
    for event in reversed(events):
        for layout in get_args(ProjectionLayout):
            got = cut(event.output, layout, part, n_q, n_kv)
            if got is None or got[:, :, 0].shape != target.shape:
                continue
            got = got[:, :, 0]
            scale = float(target.norm() / got.norm().clamp_min(1e-20)) if part < 2 else 1.0
            if torch.allclose(got * scale, target, rtol=1e-4, atol=1e-6 * float(target.abs().max())):
                return Projection(event.module, layout, part)
    return None


def _experts(module: nn.Module) -> nn.Module | None:
    """Experts kept as 3-D parameters, or as a list of MLPs."""
    for m in module.modules():
        if any(p.dim() == 3 for p in m.parameters(recurse=False)):
            return m
        if isinstance(m, nn.ModuleList) and len(m) > 1 and any(width_of(x) for x in m.modules()):
            return m
    return None


def _resolve_layer(trace: Trace, i: int, block: nn.Module, sizes: tuple[int, int, int]) -> Layer:
    d_model, *heads_of_all = sizes
    pre, post = trace.ends[i]
    events = trace.events[i]
    name, attn = _attention(block)
    inside = [e for e in events if e.name.startswith(name + ".")]
    outs = [e for e in inside if width_of(e.module) == d_model]
    own = next((e for e in events if e.name == name), None)
    if not outs or own is None:
        raise ModelError(
            f"{type(block).__name__}.{name}: no output projection of width {d_model}; pass anatomy=Anatomy(...)"
        )
    rest = [e for e in events if not e.name.startswith(name + ".") and e is not own]
    moe = next(((c, found) for n, c in block.named_children() if n != name and (found := _experts(c))), None)
    downs = [e for e in rest if width_of(e.module) == d_model]
    if not moe and not downs:
        raise ModelError(
            f"{type(block).__name__}: no MLP down projection of width {d_model}; pass anatomy=Anatomy(...)"
        )
    attn_tail = _tail(events, own)
    top = [e for e in _once(rest) if "." not in e.name and e.output.numel() == post.numel()]
    if not top:
        raise ModelError(
            f"{type(block).__name__}: no MLP among its children {[n for n, _ in block.named_children()]}; "
            "pass anatomy=Anatomy(...)"
        )
    mlp_tail = top[-1]
    mid, mlp_scale = _middle(pre, post, attn_tail, mlp_tail, events, type(block).__name__)
    if not _same(outs[-1].output, own.output):
        raise ModelError(
            f"{type(block).__name__}.{name}: its output is not that of {outs[-1].name}, its last projection of width "
            f"{d_model}, so its heads cannot be read; pass anatomy=Anatomy(...)"
        )
    down = None if moe else downs[-1]
    calls = [c for c in trace.calls if c.module is attn or any(c.module is m for m in attn.modules())]
    heads: list[Projection | None] = [None, None, None]
    n_q, n_kv = heads_of_all
    if len(calls) == 1:
        wanted = (calls[0].query, calls[0].key, calls[0].value)
        n_q, n_kv = (int(w.shape[1]) for w in wanted[:2])
        heads = [_projection(_once(inside), w, n_q, n_kv, p) for p, w in enumerate(wanted)]
    return Layer(
        block=block,
        attn=attn,
        out=outs[-1].module,
        down=None if down is None else down.module,
        attn_tail=attn_tail.module,
        mlp_tail=mlp_tail.module,
        mid=mid,
        q=heads[0],
        k=heads[1],
        v=heads[2],
        post_norm=_post_norm(block, rest, down, mlp_tail),
        mlp_scale=mlp_scale,
        up=_ups(rest, down),
        mlp=moe[0] if moe else None if not down or "." not in down.name else getattr(block, down.name.split(".")[0]),
        experts=moe[1] if moe else None,
        heads=(n_q, n_kv),
    )


def _post_norm(block: nn.Module, rest: Sequence[Event], down: Event | None, tail: Event) -> nn.Module | None:
    if down is None or _same(tail.output, down.output):
        return None
    norm = next((e for e in rest if _same(e.inputs, down.output) and _same(e.output, tail.output)), None)
    if norm is None:
        inner = next((e for e in rest if "." not in e.name and _same(e.output, down.output)), down)
        norm = next((e for e in rest if _same(e.inputs, inner.output) and _same(e.output, tail.output)), None)
    if norm is None:
        raise ModelError(
            f"{type(block).__name__}: {tail.name} is not the output of {down.name}, nor a norm of it; "
            "pass anatomy=Anatomy(...)"
        )
    return norm.module


def _ups(rest: Sequence[Event], down: Event | None) -> tuple[nn.Module, ...]:
    if down is None or down.inputs is None:
        return ()
    width = down.inputs.shape[-1]
    before = rest[: next(i for i, e in enumerate(rest) if e is down)]
    return tuple(e.module for e in before if width_of(e.module) in (width, 2 * width))


def _middle(
    pre: Tensor, post: Tensor, attn: Event, mlp: Event, events: Sequence[Event], block: str
) -> tuple[nn.Module | None, float]:
    """The module between attention and MLP (``None`` for parallel blocks), and the factor on the MLP's output.

    Raises ``ModelError`` unless the two contributions add up to the block's change: ``post = pre + attn + mlp`` (each
    up to a fixed residual multiplier).
    """
    a, m = attn.output.reshape(pre.shape), mlp.output.reshape(pre.shape)
    # Weighted by precision: a few values of the residual stream may be huge, with rounding errors as large.
    size = pre.double().abs() + post.double().abs()
    weight = (1 / (size + size.median()).clamp_min(1e-30)).flatten().cpu()
    basis = torch.stack([a.flatten(), m.flatten()], 1).double().cpu() * weight[:, None]
    change = (post - pre).flatten().double().cpu() * weight
    # gelsd: the default driver finds nothing if one of the two writes exactly zero (an appended, untrained half).
    fit = torch.linalg.lstsq(basis, change[:, None], driver="gelsd").solution
    # A block that hardly changes anything (a shut gate) changes no more than the stream is rounded by.
    rounding = 2 * torch.finfo(pre.dtype).eps * float((size.flatten().cpu() * weight).norm())
    left = float((basis @ fit - change[:, None]).norm() - rounding) / float(change.norm().clamp_min(1e-30))
    if left > (1e-3 if pre.dtype in (torch.float32, torch.float64) else 2e-2):
        raise ModelError(
            f"{block}: the outputs of {attn.name} and {mlp.name} do not add up to its change of the residual stream "
            f"(relative remainder {left:.1e}): they may be added inside one of them, gated, or joined by a third "
            "module; pass anatomy=Anatomy(...)"
        )
    mlp_scale = 1.0 if abs(float(fit[1, 0]) - 1) < 1e-2 else float(fit[1, 0])
    between = pre + float(fit[0, 0]) * a
    scale = float(between.abs().max()) * (1e-5 if pre.dtype is torch.float32 else 2e-2)
    for event in events[events.index(attn) + 1 :]:
        x = event.inputs
        if x is not None and x.numel() == pre.numel() and torch.allclose(x.reshape(pre.shape), between, atol=scale):
            return event.module, mlp_scale
    return None, mlp_scale


def resolve(model: PreTrainedModel) -> Anatomy:
    """Find and verify the anatomy of a causal language model; ``ModelError`` says what was found instead."""
    config: Any = model.config.get_text_config(decoder=True)
    for name in ("num_hidden_layers", "num_attention_heads", "hidden_size", "vocab_size"):
        if not isinstance(stated(config, name), int):
            raise ModelError(
                f"{type(model).__name__}: its config has no {name}, as in models without attention; not supported"
            )
    blocks = list(blocks_of(model))
    n_q = int(stated(config, "num_attention_heads"))
    n_kv = int(stated(config, "num_key_value_heads") or n_q)
    d_model = int(config.hidden_size)
    trace = Trace(model, blocks)
    if any(map(_sees_later, trace.calls)):
        raise ModelError(
            f"{type(model).__name__}: tokens attend to later ones; probes need attention that is causal, in which no "
            "token changes earlier ones"
        )
    grouped = {int(c.key.shape[1]) for c in trace.calls}
    n_kv = max(grouped) if grouped else n_kv  # configurations may state values that the model does not use
    if len(trace.ends) != len(blocks):
        raise ModelError(f"{type(model).__name__}: {len(trace.ends)} of {len(blocks)} blocks ran in a forward pass")
    layers = tuple(_resolve_layer(trace, i, b, (d_model, n_q, n_kv)) for i, b in enumerate(blocks))
    inputs = {id(e.module): e.inputs for events in trace.events for e in events}
    outs = [(inputs[id(x.out)], x.heads[0]) for x in layers]
    widths_of_heads = [0 if read is None else int(read.shape[-1]) // n for read, n in outs]
    context = stated(config, "max_position_embeddings")
    layers = tuple(replace(layer, n_neurons=_n_neurons(layer, inputs)) for layer in layers)
    mixtures = [layer.experts for layer in layers if layer.down is None]
    known = [m for m in mixtures if m is not None and experts.readable(m)]
    counts, widths = {experts.count(m) for m in known}, {experts.width(m) for m in known}
    if len(counts) > 1 or len(widths) > 1:
        raise ModelError(
            f"{type(model).__name__}: numbers or widths of experts differ between layers ({sorted(counts)}, "
            f"{sorted(widths)}); not supported"
        )
    dense = max(layer.n_neurons for layer in layers)
    said = stated(config, "moe_intermediate_size") or stated(config, "intermediate_size")
    d_mlp = widths.pop() if widths else dense or int(said or 0)
    n_experts = counts.pop() if counts else _stated_experts(config) if mixtures else None
    return Anatomy(
        layers=layers,
        n_heads=n_q,
        n_kv_heads=n_kv,
        d_head=max(widths_of_heads),
        d_model=d_model,
        d_mlp=d_mlp,
        vocab_size=int(config.vocab_size),
        context=None if context is None else int(context),
        n_experts=n_experts,
    )


def _n_neurons(layer: Layer, inputs: dict[int, Tensor | None]) -> int:
    """Over all experts of a layer; 0 if the experts cannot be read."""
    if layer.down is not None:
        x = inputs[id(layer.down)]
        return 0 if x is None else int(x.shape[-1])
    if not experts.readable(layer.experts):
        return 0
    assert layer.experts is not None
    return experts.count(layer.experts) * experts.width(layer.experts)


def _stated_experts(config: Any) -> int | None:
    for name in ("num_local_experts", "num_experts", "n_routed_experts"):
        if isinstance(stated(config, name), int):
            return int(stated(config, name))
    return None


def _sees_later(call: attention.Call) -> bool:
    """Whether the first of two tokens attends to the second one."""
    if not isinstance(call.mask, Tensor) or call.mask.dim() != 4:
        return not getattr(call.module, "is_causal", True)
    entry = call.mask[0, 0, 0, 1]
    return bool(entry) if entry.dtype is torch.bool else float(entry) > torch.finfo(entry.dtype).min / 2
