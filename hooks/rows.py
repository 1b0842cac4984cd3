"""Exact suffix recomputation: many variants of one position, all against the keys and values of one prefix.

    prefix = prefill(lm, [prompt])
    logits = step(lm, prefix, grow={3: lambda x: torch.cat([x, x + direction], 1)}).logits  # query row vocab

A change at a position changes nothing before it. So the prefix is run once, and every variant (layer x integration
node, donor x layer) is a *row*: a single token on the sequence axis, at the same position as the others, which attends
to the shared prefix, to its own earlier suffix and to itself. A row starts where it first differs from the unchanged
one (row 0): a row changed after block l costs nothing in blocks 0..l. Row 0 must reproduce the full forward pass, and
every call checks that it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from einops import einsum, rearrange
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from ..devices import is_out_of_memory
from ..errors import InputError, ModelError
from . import attention
from .length_limits import check_suffix, keep_rotary_angles
from .model import Model
from .module_hooks import ModuleHook, hooked
from .parts import stated
from .ragged import RaggedRows, inputs_reordered
from .sites import Site


class Query(NamedTuple):
    """One position of one prompt at which rows are wanted."""

    prompt: int
    position: int


@dataclass(frozen=True)
class Prefix:
    """Keys and values of some prompts, and the positions (queries) at which rows are computed."""

    keys: tuple[Float[Tensor, "prompt _ pos _"], ...]
    """Per layer ``prompt kv_head pos d_head``, after rotary embedding"""
    values: tuple[Float[Tensor, "prompt _ pos _"], ...]
    windows: tuple[int | None, ...]
    """Per layer: how many keys back (itself included) a query sees; ``None``: all."""
    queries: tuple[Query, ...]
    tokens: Int[Tensor, "query"]
    """The token id at each query"""
    final: Float[Tensor, "query d_model"]
    """Residual stream after the last block, from the full forward pass"""
    states: Mapping[Site, Shaped[Tensor, "..."]] = field(default_factory=dict)
    """Other activations read at the queries: ``query width``"""

    @property
    def positions(self) -> Int[Tensor, "query"]:
        return torch.tensor([q.position for q in self.queries], device=self.tokens.device)

    def select(self, chosen: Sequence[int]) -> Prefix:
        """The same prompts, some of the queries."""
        index = torch.tensor(list(chosen), device=self.tokens.device, dtype=torch.long)
        return Prefix(
            self.keys,
            self.values,
            self.windows,
            tuple(self.queries[i] for i in chosen),
            self.tokens[index],
            self.final[index.to(self.final.device)],
            {s: x[index.to(x.device)] for s, x in self.states.items()},
        )

    def join(self, other: Prefix, chosen: Sequence[int]) -> Prefix:
        """These prompts and queries, followed by the chosen ones of another prefix of the same model.

        The other prefix has one query per prompt. The result has no ``states``.
        """
        n, width = self.keys[0].shape[0], max(x.keys[0].shape[2] for x in (self, other))
        index = torch.tensor(list(chosen), dtype=torch.long)

        def both(a: Tensor, b: Tensor) -> Tensor:
            parts = (a, b[index.to(b.device)])
            return torch.cat([F.pad(x, (0, 0, 0, width - x.shape[2])) for x in parts])

        more = other.select(chosen)
        return Prefix(
            tuple(both(a, b) for a, b in zip(self.keys, other.keys, strict=True)),
            tuple(both(a, b) for a, b in zip(self.values, other.values, strict=True)),
            self.windows,
            (*self.queries, *(Query(n + i, q.position) for i, q in enumerate(more.queries))),
            torch.cat([self.tokens, more.tokens]),
            torch.cat([self.final, more.final]),
        )

    def shared(
        self, layer: int
    ) -> tuple[Float[Tensor, "query_or_1 kv_head pos d_head"], Float[Tensor, "query_or_1 kv_head pos d_value"]]:
        """Keys and values of each query's prompt, as far back as any query needs."""
        longest = max(q.position for q in self.queries)
        prompts = [q.prompt for q in self.queries]
        k, v = self.keys[layer][:, :, :longest], self.values[layer][:, :, :longest]
        if prompts == list(range(k.shape[0])):
            return k, v
        if len(set(prompts)) == 1:
            return k[prompts[0]][None], v[prompts[0]][None]
        index = torch.tensor(prompts, device=k.device)
        return k[index], v[index]


@dataclass
class Step:
    """One position of every row."""

    logits: Float[Tensor, "query row vocab"]
    keys: list[Float[Tensor, "query _ _ _"]]
    """Per layer ``query kv_head row d_head``; fewer rows in layers before some rows start"""
    values: list[Float[Tensor, "query _ _ _"]]


Grow = Callable[[Tensor], Tensor]


def _window(call: attention.Call, layer: int, config: Any) -> int | None:
    """The layer's sliding window as given to the kernel, checked against the mask that the kernel was given."""
    window = call.kwargs.get("sliding_window")
    if window is None and getattr(config, "layer_types", None) is None:
        window = stated(config, "sliding_window")  # some models put it into the mask only
    n = call.key.shape[2]
    if call.mask is None:
        # Kernels are left without a mask when plain causal attention does.
        return window
    attention.check_mask(call)
    row = call.mask[0, 0, -1, :n]
    seen = row if row.dtype is torch.bool else row > torch.finfo(row.dtype).min / 2
    expected = torch.arange(n, device=row.device) > n - 1 - (window or n + 1)
    if not torch.equal(seen, expected):
        raise ModelError(
            f"layer {layer}: the last token attends to {int(seen.sum())} of {n} keys, which a sliding window of "
            f"{window} does not explain; suffix recomputation is not available for this attention"
        )
    return None if window is None else int(window)


@torch.no_grad()
def prefill(
    lm: Model,
    prompts: Sequence[Sequence[int]],
    queries: Sequence[Query | tuple[int, int]] | None = None,
    read: Sequence[Site] = (),
) -> Prefix:
    """Run prompts once and keep the keys and values of every layer.

    Args:
        prompts: token ids; right-padded to one batch, which changes no real token.
        queries: (prompt, position) pairs; by default the last position of every prompt.
        read: sites whose activations at the queries are kept, except ``q``, ``k``, ``v`` and ``pattern``.
    """
    ids, mask = lm.pad(prompts)
    ids = torch.where(mask.bool(), ids, ids[:, :1])  # any id pads; the tokenizer's own makes some models warn
    if lm.anatomy.context is not None and ids.shape[1] > lm.anatomy.context:
        raise ModelError(f"prompt of {ids.shape[1]} tokens: the model's context holds {lm.anatomy.context}; shorten it")
    wanted = tuple(Query(*q) for q in (queries or [(i, len(p) - 1) for i, p in enumerate(prompts)]))
    for q in wanted:
        if not (0 <= q.prompt < len(prompts) and 0 <= q.position < len(prompts[q.prompt])):
            raise InputError(f"query at position {q.position} of prompt {q.prompt}: there is no such token")
    check_suffix(lm.model, min(map(len, prompts)) - 1, ids.shape[1] - 1)
    rows = torch.tensor([q.prompt for q in wanted], device=ids.device)
    cols = torch.tensor([q.position for q in wanted], device=ids.device)
    layer_of = lm.anatomy.layer_of_attention
    config = lm.model.config.get_text_config(decoder=True)
    keys: dict[int, Tensor] = {}
    values: dict[int, Tensor] = {}
    windows: dict[int, int | None] = {}

    def record(call: attention.Call) -> Tensor:
        layer = layer_of[call.module]
        keys[layer], values[layer] = call.key.detach(), call.value.detach()
        windows[layer] = _window(call, layer, config)
        return call.output()

    last = Site(lm.anatomy.n_layers - 1, "resid_post")

    def at_queries(x: Tensor) -> Tensor:
        return x[rows.to(x.device), cols.to(x.device)].clone()

    with attention.interpose(lm.model, record):
        acts = lm.read_trunk(ids, dict.fromkeys((*read, last), at_queries))
    if sorted(keys) != list(range(lm.anatomy.n_layers)):
        raise ModelError(
            f"{type(lm.model).__name__}: {len(keys)} of {lm.anatomy.n_layers} layers called the attention; suffix "
            "recomputation needs it in every layer"
        )
    if not torch.isfinite(acts[last]).all():
        bad = int((~torch.isfinite(acts[last])).any(-1).nonzero()[0])
        raise ModelError(
            f"{type(lm.model).__name__}: NaN or infinite activations at position {wanted[bad].position} of prompt "
            f"{wanted[bad].prompt}; check weights and dtype ({lm.dtype})"
        )
    order = range(lm.anatomy.n_layers)
    return Prefix(
        keys=tuple(keys[i] for i in order),
        values=tuple(values[i] for i in order),
        windows=tuple(windows[i] for i in order),
        queries=wanted,
        tokens=ids[rows, cols],
        final=acts[last],
        states={s: acts[s].to(lm.device) for s in read},
    )


class History(NamedTuple):
    """The suffix so far of the rows of each layer."""

    keys: list[Float[Tensor, "query kv_head row step d_head"]]
    values: list[Float[Tensor, "query kv_head row step d_value"]]


def _attend(
    call: attention.Call, shared: tuple[Tensor, Tensor], visible: Bool[Tensor, "_ pos"],
    own: list[tuple[Tensor, Tensor]], ragged: RaggedRows | None,
) -> Float[Tensor, "query row head d_value"]:  # fmt: skip
    """The attention output of the rows.

    ``visible``: the prefix keys that each query sees. ``own``: the rows' keys and values at each of their own
    positions, ``query kv_head row step d_head``. Ragged rows stand side by side (``query`` is 1).
    """
    q = call.query
    n_kv, groups = call.key.shape[1], q.shape[1] // call.key.shape[1]
    scale = call.kwargs.get("scaling")
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    if call.kwargs.get("position_bias") is not None:
        raise ModelError(f"{type(call.module).__name__}: attention with position bias is not supported by rows")
    grouped = rearrange(q, "query (kv group) row d -> query kv group row d", kv=n_kv)
    k, v = shared

    def times(shared: Tensor) -> Callable[[Tensor], Tensor]:
        """A product of each query's rows ``query kv group row width`` with its prefix ``query kv width out``."""

        def product(x: Tensor, queries: Tensor | None = None) -> Tensor:
            y = shared if queries is None or len(shared) == 1 else shared[queries]
            together = rearrange(x, "query kv group row w -> query kv (group row) w")
            return rearrange(together @ y, "query kv (group row) w -> query kv group row w", group=groups)

        return product if ragged is None else partial(ragged.by_query, fn=product)

    prefix = times(k.transpose(-1, -2))(grouped)  # query kv group row pos
    mine = [einsum(grouped, key, "q kv g row d, q kv row step d -> q kv g row step") for key, _ in own]
    scores = torch.cat([prefix, *mine], -1) * scale
    softcap = call.kwargs.get("softcap")
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    n = prefix.shape[-1]
    hidden = F.pad(~visible, (0, scores.shape[-1] - n))  # query pos
    if ragged is None:
        hidden = rearrange(hidden, "query key -> query 1 1 1 key")
    else:
        hidden = rearrange(hidden[torch.from_numpy(ragged.queries)], "row key -> 1 1 1 row key")
    scores = scores.masked_fill(hidden, -torch.inf)
    wide = torch.promote_types(scores.dtype, torch.float32)
    sinks = call.kwargs.get("s_aux")
    if sinks is not None:
        column = rearrange(sinks.to(scores.dtype), "(kv group) -> 1 kv group 1 1", kv=n_kv).expand(*scores.shape[:4], 1)
        pattern = torch.cat([scores, column], -1).softmax(-1, dtype=wide)[..., :-1].to(v.dtype)
    else:
        pattern = scores.softmax(-1, dtype=wide).to(v.dtype)
    out = times(v)(pattern[..., :n])
    start = n
    for _, value in own:
        stop = start + value.shape[3]
        out = out + einsum(pattern[..., start:stop], value, "q kv g row step, q kv row step d -> q kv g row d")
        start = stop
    return rearrange(out, "query kv group row d -> query row (kv group) d").contiguous()


def step(
    lm: Model,
    prefix: Prefix,
    tokens: Int[Tensor, "query row"] | None = None,
    *,
    offset: int = 0,
    history: History | None = None,
    grow: Mapping[int, Grow] | None = None,
    hooks: Sequence[ModuleHook] = (),
    check: bool = True,
    rows: Sequence[RaggedRows] | None = None,
) -> Step:
    """Compute one position of all rows.

    Args:
        tokens: token ids; by default the queries' own tokens, one row each.
        offset: how many positions after the queries.
        history: the suffix so far of the rows of each layer, ``offset`` steps.
        grow: per layer l, a function of the rows' residual stream after block l (``query row d_model``) that appends
            rows or changes some. ``-1``: before block 0.
        hooks: more functions of modules' inputs or outputs.
        check: check that row 0 at the queries themselves (``offset`` 0, unchanged) equals the full forward pass.
        rows: per layer, ragged rows of all queries side by side; ``query`` is then 1 in every shape, and the first
            rows at the queries themselves are the unchanged queries.
    """
    first = tokens is None
    ids = prefix.tokens[:, None] if tokens is None else tokens
    positions = (prefix.positions + offset)[:, None]  # one for all rows of a query, however many there come to be
    if rows is not None:
        ids, positions = (ids.T, positions.T) if first else (ids, positions.T[:, torch.from_numpy(rows[0].queries)])
    context = lm.anatomy.context
    if context is not None and int(positions.max()) >= context:
        raise ModelError(f"position {int(positions.max())}: the model's context holds {context} tokens; generate fewer")
    check_suffix(lm.model, min(q.position for q in prefix.queries), int(positions.max()))
    layer_of = lm.anatomy.layer_of_attention
    n_layers = lm.anatomy.n_layers
    keys: list[Tensor] = [torch.empty(0)] * n_layers
    values: list[Tensor] = [torch.empty(0)] * n_layers

    def attend(call: attention.Call) -> Tensor:
        layer = layer_of[call.module]
        device = call.query.device  # layers may lie on different ones
        keys[layer], values[layer] = call.key, call.value
        window = prefix.windows[layer]
        shared = prefix.shared(layer)
        j, at = torch.arange(shared[0].shape[2], device=device), prefix.positions[:, None].to(device)
        visible = j < at
        own = []
        past = 0 if history is None else history.keys[layer].shape[3]
        back = past if window is None else min(past, window - 1)
        if window is not None:
            visible = visible & (j > at + offset - window)
        if history is not None and back:
            own.append((history.keys[layer][:, :, :, past - back :], history.values[layer][:, :, :, past - back :]))
        own.append((call.key[:, :, :, None], call.value[:, :, :, None]))
        return _attend(call, shared, visible, own, None if rows is None else rows[layer])

    blocks = [layer.block for layer in lm.anatomy.layers]
    added = [*hooks]
    if check and first:
        unchanged = len(prefix.queries)
        row = (lambda x: x[:, 0]) if rows is None else (lambda x: x[0, :unchanged])
        added.append(ModuleHook(blocks[-1], "out", lambda x: check_unchanged(lm, prefix, row(x).detach())))
    for layer, fn in (grow or {}).items():
        added.append(ModuleHook(blocks[layer], "out", fn) if layer >= 0 else ModuleHook(blocks[0], "in", fn))
    in_order = nullcontext() if rows is None else inputs_reordered(blocks, rows, ids.shape[1])
    interposed = attention.interpose(lm.model, attend, without_mask=True)
    with interposed, hooked(added, ids.shape[0]), in_order, keep_rotary_angles(lm.model):
        mask = torch.ones_like(ids)  # unused: the callback decides what is visible; keeps models from warning
        with rows_refused(lm, "suffix recomputation is"):
            logits = lm.model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False).logits
    logits = logits.reshape(ids.shape[0], -1, logits.shape[-1])
    if torch.isnan(logits.detach()).any():
        raise ModelError(f"{type(lm.model).__name__}: NaN logits in recomputed rows; check weights, dtype and edits")
    return Step(logits, keys, values)


@contextmanager
def rows_refused(lm: Model, lost: str) -> Iterator[None]:
    """Around a forward pass with rows added on the way: errors about shapes become a ``ModelError`` that names what is
    lost (``lost``: subject and verb).
    """
    try:
        yield
    except (RuntimeError, TypeError) as e:
        if is_out_of_memory(e) or not re.search(r"shape|view|size|NoneType", str(e)):
            raise
        raise ModelError(
            f"{type(lm.model).__name__}: its forward pass does not take rows added on the way; {lost} not available "
            "for it"
        ) from e


def check_unchanged(lm: Model, prefix: Prefix, row: Float[Tensor, "query d_model"]) -> None:
    """Raises ``ModelError`` if the recomputed unchanged rows differ from the full forward pass."""
    error = float((row - prefix.final).abs().max() / prefix.final.abs().max().clamp_min(1e-30))
    limit = 1e-3 if prefix.final.dtype in (torch.float32, torch.float64) else 0.1
    if not error <= limit:
        half = lm.anatomy.n_experts and limit > 1e-3
        raise ModelError(
            f"{type(lm.model).__name__}: a recomputed row differs from the full forward pass by {error:.1e} of its "
            "size; suffix recomputation is not available for this attention, or for kernels whose result depends on "
            "other tokens (quantized activations)"
            + (
                f"; or routers choose other experts by the rounding of {lm.dtype}: use float32 (rows_dtype)"
                if half
                else ""
            )
        )
