"""Recomputation of a prompt from its first edited position on, under rows of edits that share a batch.

    got = suffix(lm, ids, prefill(lm, [ids]), rows, start=7, stop=len(ids))
    got.final[1:]  # row pos d_model: the residual stream after the last block

The first row of the batch is the unchanged sequence. It must reproduce the full forward pass, and that is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from ..errors import InputError, ModelError
from ..interrupts import held
from . import attention
from .backends.transformers import Tap, install, tap
from .edits import HEADS, Edits, Knockout, Patch, edits_of, first_cut
from .length_limits import check_suffix, keep_rotary_angles
from .model import Model
from .parts import decoder_of
from .rows import Prefix, check_unchanged, rows_refused
from .sites import Site


@dataclass(frozen=True)
class Suffix:
    """The recomputed positions of every row; in the result of ``suffix`` the unchanged sequence comes first."""

    final: Float[Tensor, "row pos d_model"]
    """Residual stream after the last block"""
    keys: Sequence[Float[Tensor, "_ _ _ _"]]
    """Per layer ``row kv_head pos d_head``, after rotary embedding; rows that are missing at the end have the first
    row's"""
    values: Sequence[Float[Tensor, "_ _ _ _"]]

    def rows(self) -> Suffix:
        """The suffix without the unchanged sequence; every row has its own keys and values."""
        n = len(self.final)

        def each(x: Tensor) -> Tensor:
            return torch.cat([x, x[:1].expand(n - len(x), *x.shape[1:])])[1:]

        return Suffix(self.final[1:], [each(k) for k in self.keys], [each(v) for v in self.values])


class _Rows:
    """The edits of rows that are computed together, by the place at which they are made."""

    def __init__(self, rows: Sequence[Edits], start: int, n_layers: int):
        cuts = [first_cut(row) for row in rows]
        if cuts != sorted(cuts):
            raise InputError("rows must be in the order of the block from which on they differ")
        self.present = [1 + sum(c <= cut for c in cuts) for cut in range(n_layers + 1)]
        """By number of blocks passed: how many sequences there are, the unchanged one included."""
        self.patches: dict[Site, list[tuple[int, Patch]]] = {}
        self.skips: dict[int, list[tuple[int, int]]] = {}
        self.heads: dict[int, list[tuple[int, int, int]]] = {}
        self.hidden: dict[int, list[tuple[int, int, int]]] = {}
        for i, edit in edits_of(rows):
            if isinstance(edit, Patch):
                site = edit.site if edit.site.kind != "resid_pre" else Site(edit.site.layer - 1, "resid_post")
                self.patches.setdefault(site, []).append((i + 1, edit))
            elif isinstance(edit, Knockout):
                self.hidden.setdefault(edit.layer, []).append((i + 1, edit.query - start, edit.key))
            elif edit.head is None:
                self.skips.setdefault(edit.layer, []).append((i + 1, edit.position - start))
            else:
                self.heads.setdefault(edit.layer, []).append((i + 1, edit.position - start, edit.head))
        self.start = start

    def inside(self) -> set[Site]:
        """Sites within blocks that are edited."""
        found = {s for s in self.patches if s.kind != "resid_post"}
        return found | {Site(layer, "head") for layer in self.heads}


@torch.no_grad()
def suffix(lm: Model, ids: Sequence[int], prefix: Prefix, rows: Sequence[Edits], *, start: int, stop: int) -> Suffix:
    """Positions ``start:stop`` of the prompt under every row of edits, after the unchanged ones.

    ``prefix``: of this one prompt. ``rows`` come in the order of the block from which on they differ.
    """
    plan = _Rows(rows, start, lm.anatomy.n_layers)
    tokens = torch.tensor([list(ids[start:stop])], device=lm.device)
    explicit = str(lm.model.config.get_text_config(decoder=True)._attn_implementation) not in ("sdpa", "eager")
    positions = torch.arange(start, stop, device=tokens.device)[None]
    check_suffix(lm.model, start, stop - 1)
    n_layers, layer_of = lm.anatomy.n_layers, lm.anatomy.layer_of_attention
    keys: list[Tensor] = [torch.empty(0)] * n_layers
    values: list[Tensor] = [torch.empty(0)] * n_layers
    final: list[Tensor] = []

    def attend(call: attention.Call) -> Tensor:
        layer = layer_of[call.module]
        keys[layer], values[layer] = call.key, call.value
        full = _with_prefix(call, prefix, layer, start, plan.hidden.get(layer, []))
        return attention.apply_pattern(full, attention.explicit_pattern(full)) if explicit else full.output()

    stream = _Stream(plan, final)
    blocks = [layer.block for layer in lm.anatomy.layers]
    interposed = attention.interpose(lm.model, attend, without_mask=True)
    with held(), ExitStack() as stack, lm._alone(), keep_rotary_angles(lm.model):
        first = Tap(blocks[0], "in")
        stack.callback(install(first, stream.at(0, n_layers), (0, 0)).remove)
        for i, block in enumerate(blocks):
            stack.callback(install(Tap(block, "out"), stream.at(i + 1, n_layers), (0, 0)).remove)
        for site in plan.inside():
            at = tap(lm.anatomy.layers[site.layer], site)
            visit = _inside(plan, site, tokens.shape[1], lm.anatomy.heads(site.layer))
            stack.callback(install(at, visit, lm.anatomy.heads(site.layer)).remove)
        stack.enter_context(interposed)
        with rows_refused(lm, "rows of edits are"):
            decoder_of(lm.model)(
                input_ids=tokens, attention_mask=torch.ones_like(tokens), position_ids=positions, use_cache=False
            )
    (x,) = final
    if again := [i for i, q in enumerate(prefix.queries) if start <= q.position < stop]:
        places = torch.tensor([prefix.queries[i].position - start for i in again])
        check_unchanged(lm, prefix.select(again), x[0, places])
    if not torch.isfinite(x).all():
        bad = int((~torch.isfinite(x)).flatten(1).any(1).nonzero()[0])
        raise ModelError(f"{type(lm.model).__name__}: row {bad - 1} of edits gives NaN or infinite activations")
    return Suffix(x, keys, values)


def _with_prefix(
    call: attention.Call, prefix: Prefix, layer: int, start: int, hidden: Sequence[tuple[int, int, int]]
) -> attention.Call:
    """The call with the keys and values of the shared prefix before the rows' own; ``hidden``: (row, query, key)."""
    n, width = len(call.query), call.query.shape[2]
    before = [x[layer][:, :, :start].expand(n, -1, -1, -1) for x in (prefix.keys, prefix.values)]
    key, value = (torch.cat([a, b], 2) for a, b in zip(before, (call.key, call.value), strict=True))
    seen = attention.visible(start, width, prefix.windows[layer]).to(key.device)[None, None]
    if hidden:
        seen = seen.expand(n, -1, -1, -1).clone()
        row, query, at = torch.tensor(hidden, device=key.device).T
        seen[row, 0, query, at] = False
    low = torch.finfo(call.query.dtype).min
    mask = torch.zeros(seen.shape, dtype=call.query.dtype, device=key.device).masked_fill(~seen, low)
    return call._replace(key=key, value=value, mask=mask)


class _Stream:
    """Changes of the residual stream between blocks: rows join, skipped blocks are undone, values are put in."""

    def __init__(self, plan: _Rows, final: list[Tensor]):
        self.plan, self.final = plan, final
        self.before: dict[int, Tensor] = {}
        """By block, its input at the positions at which it is skipped."""

    def at(self, cut: int, n_layers: int) -> Callable[[Tensor], Tensor]:
        """The function of the residual stream after ``cut`` blocks."""
        plan = self.plan
        more = plan.present[cut] - (plan.present[cut - 1] if cut else 1)
        undone, patches = plan.skips.get(cut - 1, []), plan.patches.get(Site(cut - 1, "resid_post"), [])
        skipped = plan.skips.get(cut, []) if cut < n_layers else []

        def visit(x: Tensor) -> Tensor:
            if more or undone or patches:
                x = torch.cat([x, *[x[:1]] * more])
            if undone:
                row, pos = torch.tensor(undone, device=x.device).T
                x[row, pos] = self.before.pop(cut - 1).to(x.device)
            _put(x, patches, plan.start)
            if skipped:
                row, pos = torch.tensor(skipped, device=x.device).T
                self.before[cut] = x[row, pos].clone()
            if cut == n_layers:
                self.final.append(x)
            return x

        return visit


def _put(x: Float[Tensor, "row pos width"], patches: Sequence[tuple[int, Patch]], start: int) -> None:
    for add in (False, True):
        some = [(row, p) for row, p in patches if p.add is add]
        if not some:
            continue
        values = torch.stack([p.value for _, p in some]).to(x)
        if values.shape[-1] != x.shape[-1]:
            raise InputError(f"value of width {values.shape[-1]} for {some[0][1].site}, which has {x.shape[-1]}")
        index = tuple(torch.tensor([[row, p.position - start] for row, p in some], device=x.device).T)
        x.index_put_(index, values, accumulate=add)


def _inside(plan: _Rows, site: Site, width: int, heads: tuple[int, int]) -> Callable[[Tensor], Tensor]:
    """The function of an activation within a block."""

    def visit(x: Tensor) -> Tensor:
        y = x.clone()
        if site.kind in HEADS:
            flat = rearrange(y, "row head pos d -> row pos (head d)")
            _put(flat, plan.patches[site], plan.start)
            return rearrange(flat, "row pos (head d) -> row head pos d", head=x.shape[1])
        y = y.reshape(-1, width, y.shape[-1])  # some architectures flatten rows and positions
        _put(y, plan.patches.get(site, []), plan.start)
        if site.kind == "head" and (out := plan.heads.get(site.layer)):
            row, pos, head = torch.tensor(out, device=x.device).T
            y.unflatten(-1, (heads[0], -1))[row, pos, head] = 0
        return y.reshape(x.shape)

    return visit
