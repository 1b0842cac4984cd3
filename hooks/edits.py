"""Edits of a forward pass at chosen positions, and rows of them: what ``interchange`` computes side by side.

    rows = [[Patch(Site(4, "resid_post"), 7, donor)], [Skip(5, 9), Skip(6, 9)], [Knockout(3, query=9, key=2)]]

A row is everything that is changed in one forward pass. An empty row changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import InputError
from .anatomy import Anatomy
from .sites import Site, check_site

HEADS = ("q", "k", "v")


@dataclass(frozen=True)
class Patch:
    """Replaces the value of a site at one position, or adds to it."""

    site: Site
    """Any but ``pattern`` and neurons of experts."""
    position: int
    value: Float[Tensor, "width"]
    """As wide as the site; ``q``, ``k``, ``v`` (before rotary embedding): all heads, one after the other."""
    add: bool = False


@dataclass(frozen=True)
class Skip:
    """Skips a block at one position: its output there is its input. With ``head``, only that head is left out.

    A head that is left out writes nothing into the attention output; other positions see its keys and values.
    """

    layer: int
    position: int
    head: int | None = None


@dataclass(frozen=True)
class Knockout:
    """Hides position ``key`` from all heads of one block at position ``query``; their attention goes elsewhere."""

    layer: int
    query: int
    key: int


Edit: TypeAlias = Patch | Skip | Knockout
Edits: TypeAlias = Sequence[Edit]
"""One row."""


def first_position(edits: Edits) -> int:
    """The first position at which a row differs from the unchanged prompt."""
    return min(e.query if isinstance(e, Knockout) else e.position for e in edits)


def first_cut(edits: Edits) -> int:
    """The number of blocks up to which a row does not differ from the unchanged prompt."""
    return min(entry(e) for e in edits)


def entry(edit: Edit) -> int:
    """The number of blocks before which one edit changes nothing."""
    if isinstance(edit, Patch):
        return edit.site.layer + (edit.site.kind == "resid_post")
    return edit.layer


def check_rows(rows: Sequence[Edits], anatomy: Anatomy, n: int) -> None:
    """Raises ``InputError`` for edits that cannot be made in a prompt of ``n`` tokens."""
    for i, row in enumerate(rows):
        if not isinstance(row, Sequence):
            raise InputError(f"row {i}: {type(row).__name__}; a row is a list of Patch, Skip and Knockout")
        places = set()
        for edit in row:
            _check(edit, f"row {i}", anatomy, n)
            if isinstance(edit, Patch) and not edit.add:
                place = (_cut(edit.site), edit.position)
                if place in places:
                    raise InputError(
                        f"row {i}: {edit.site} at position {edit.position} is replaced twice; give it once"
                    )
                places.add(place)


def _cut(site: Site) -> tuple[int, str]:
    """A site's name; it is the same for the residual stream after a block and before the next one."""
    return (site.layer + 1, "resid_pre") if site.kind == "resid_post" else (site.layer, site.kind)


def _check(edit: Edit, where: str, anatomy: Anatomy, n: int) -> None:
    if not isinstance(edit, Patch | Skip | Knockout):
        raise InputError(f"{where}: {type(edit).__name__}; a row is a list of Patch, Skip and Knockout")
    for name, number in vars(edit).items():
        if name in ("layer", "position", "head", "query", "key") and not isinstance(number, Integral | None):
            raise InputError(f"{where}: {type(edit).__name__} with {name} {number!r}; give a whole number")
    if isinstance(edit, Patch):
        check_site(edit.site, anatomy.n_layers, anatomy.n_experts)
        if edit.site.kind == "pattern" or edit.site.expert is not None:
            raise InputError(f"{where}: {edit.site} cannot be patched in rows; use lm.run(edit=...)")
        wide = anatomy.d_model if edit.site.kind.startswith("resid") or edit.site.kind.endswith("out") else None
        if not isinstance(edit.value, Tensor):
            raise InputError(f"{where}: value of type {type(edit.value).__name__} for {edit.site}; give a tensor")
        if edit.value.dim() != 1 or (wide is not None and len(edit.value) != wide):
            raise InputError(
                f"{where}: value of shape {tuple(edit.value.shape)} for {edit.site}; need {wide or 'width'}"
            )
        if not torch.isfinite(edit.value).all():
            raise InputError(f"{where}: the value for {edit.site} is NaN or infinite")
    elif not 0 <= edit.layer < anatomy.n_layers:
        raise InputError(f"{where}: layer {edit.layer}; the model has layers 0-{anatomy.n_layers - 1}")
    if isinstance(edit, Skip) and edit.head is not None and not 0 <= edit.head < anatomy.heads(edit.layer)[0]:
        raise InputError(f"{where}: head {edit.head}; layer {edit.layer} has {anatomy.heads(edit.layer)[0]} heads")
    if isinstance(edit, Knockout) and not 0 <= edit.key < edit.query:
        raise InputError(f"{where}: query {edit.query} and key {edit.key}; the key must lie before the query")
    last = edit.query if isinstance(edit, Knockout) else edit.position
    if not 0 <= last < n:
        raise InputError(f"{where}: position {last}; the prompt has {n} tokens (0-{n - 1})")


def residual(layer: int) -> Site:
    """The residual stream after a block; -1: before block 0."""
    return Site(0, "resid_pre") if layer == -1 else Site(layer, "resid_post")


def back_patches(
    own: Float[Tensor, "layer pos d_model"], positions: Sequence[int], pairs: Sequence[tuple[int, int]]
) -> list[Edits]:
    """One row per (late, early) pair of layers: the state after block ``late`` is put in after block ``early``.

    ``own``: the prompt's states after every layer from -1 on, at these positions (``states``).
    """
    last = len(own) - 2
    if not all(-1 <= early < late <= last for late, early in pairs):
        need = f"each is (late, early), with the late layer above the early one, of layers -1 to {last}"
        raise InputError(f"pairs {list(pairs)}: {need}")
    if len(positions) != own.shape[1]:
        raise InputError(f"{len(positions)} positions for states of {own.shape[1]}; give those of the states")
    return [[Patch(residual(early), p, own[late + 1, i]) for i, p in enumerate(positions)] for late, early in pairs]


def skips(positions: Sequence[int], layers: Sequence[int]) -> list[Edits]:
    """One row per layer: its block is skipped at all the positions."""
    return [[Skip(layer, p) for p in positions] for layer in layers]


def knockouts(queries: Sequence[int], keys: Sequence[int], layers: Sequence[Sequence[int]]) -> list[Edits]:
    """One row per group of layers: in these layers, no query sees a key before it."""
    pairs = [(q, k) for q in queries for k in keys if k < q]
    return [[Knockout(layer, q, k) for layer in group for q, k in pairs] for group in layers]


def noise_like(own: Float[Tensor, "*any d"], donor: Float[Tensor, "*any d"], seed: int) -> Float[Tensor, "*any d"]:
    """Vectors that are as far from ``own`` as ``donor`` is, in random directions."""
    drawn = torch.randn(own.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32).to(own)
    size = (donor.to(own) - own).norm(dim=-1, keepdim=True)
    return own + drawn * (size / drawn.norm(dim=-1, keepdim=True))


def edits_of(rows: Sequence[Edits]) -> list[tuple[int, Edit]]:
    """Every edit with the number of its row."""
    return list(chain.from_iterable(((i, e) for e in row) for i, row in enumerate(rows)))
