"""Site: the name of one activation, the same on every architecture; and Run, what one forward pass returned.

lm.run(ids, read=[Site(3, "resid_post")]).acts[Site(3, "resid_post")]  # batch pos d_model

``Site(3, "pattern", head=2)``, one head, is read and edited as a part of the layer's whole site (``split``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Literal, NamedTuple, get_args

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from ..errors import ModelError
from .anatomy import Anatomy

Kind = Literal[
    "resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out", "q", "k", "v", "head", "pattern", "neuron"
]
KINDS: tuple[str, ...] = get_args(Kind)


class Site(NamedTuple):
    """One activation of one layer.

    Shapes: residual stream and block outputs ``batch pos d_model``; ``q`` ``batch head pos d_head``, ``k`` and ``v``
    ``batch kv_head pos d_head`` (before rotary embedding); ``head`` = input of the attention output projection,
    ``batch pos head*d_head``; ``pattern`` ``batch head query key``; ``neuron`` = input of the MLP down projection,
    ``batch pos d_mlp``. With ``head=h`` the part of one head, without the axis of heads: ``head`` ``batch pos d_head``,
    ``pattern`` ``batch query key``, ``q``, ``k`` and ``v`` ``batch pos d_head``. With ``query=i`` the row of one
    position, without the axis of queries: ``pattern`` ``batch head key``; no other row is computed.

    ``attn_out`` and ``mlp_out`` are what the modules give. A model with a residual multiplier (Granite) adds it times
    this factor, ``anatomy.layers[layer].mlp_scale``.
    """

    layer: int
    kind: Kind
    expert: int | None = None
    """The expert whose neurons are meant, in mixtures of experts."""
    head: int | None = None
    """The head that is meant, for ``head``, ``pattern`` and ``q``; for ``k`` and ``v``, the key-value head."""
    query: int | None = None
    """For ``pattern``: the position that attends; -1 is the last one."""

    def __str__(self) -> str:
        tail = "" if self.expert is None else f", expert={self.expert}"
        tail += "" if self.head is None else f", head={self.head}"
        tail += "" if self.query is None else f", query={self.query}"
        return f'Site({self.layer}, "{self.kind}"{tail})'


Reducer = Callable[[Float[Tensor, "..."]], Tensor]
Edit = Callable[[Float[Tensor, "*shape"]], Float[Tensor, "*shape"]]


class Run(NamedTuple):
    """What one forward pass returned."""

    logits: Float[Tensor, "batch pos vocab"]
    """Of all positions, or of those in ``logits_at``."""
    acts: dict[Site, Shaped[Tensor, "..."]]
    """The sites in ``read``; attached to the graph unless gradients are off."""
    hooks: tuple[str, ...] = ()
    """Hooks of other programs that were on the model's modules and may have changed these numbers, by module and
    name."""

    def __repr__(self) -> str:
        kept = ", ".join(f"{site} {_shape(x)}" for site, x in list(self.acts.items())[:4])
        more = f", {len(self.acts) - 4} more" if len(self.acts) > 4 else ""
        return f"<run: logits {_shape(self.logits)}; {kept or 'no acts'}{more}>"


def _shape(x: Shaped[Tensor, "..."]) -> str:
    return "x".join(map(str, x.shape))


def check_site(site: Site, n_layers: int, n_experts: int | None = None) -> None:
    """Raise ``ModelError`` for a site that a model of this size does not have."""
    if not isinstance(site, Site) or not isinstance(site.layer, Integral):
        raise ModelError(f'{site!r}: not a site; give a set, list or mapping of Site(layer, "kind")')
    if site.head is not None:
        raise ModelError(f"{site}: only lm.run takes single heads; give the whole site here and slice out the head")
    if site.query is not None and (site.kind != "pattern" or not isinstance(site.query, Integral)):
        raise ModelError(f"{site}: only the kind pattern takes a query, which is the number of a position")
    if site.kind not in KINDS:
        raise ModelError(f"{site}: no such kind; use one of {', '.join(KINDS)}")
    if not 0 <= site.layer < n_layers:
        raise ModelError(f"{site}: the model has {n_layers} layers (0-{n_layers - 1})")
    if site.expert is not None and site.kind != "neuron":
        raise ModelError(f'{site}: only the kind "neuron" exists per expert; a head is named head={site.expert}')
    whole = isinstance(site.expert, Integral)
    if site.expert is not None and (n_experts is None or not whole or not 0 <= site.expert < n_experts):
        have = "no experts" if n_experts is None else f"{n_experts} experts (0-{n_experts - 1})"
        raise ModelError(f"{site}: the model has {have}")


def check_functions(what: str, functions: Mapping[Site, object], or_else: str = "") -> None:
    """Raise ``ModelError`` for edits or reducers (``what``) that are no functions, or ``put(at=...)`` into a row."""
    for site, function in functions.items():
        if getattr(site, "query", None) is not None and getattr(function, "at", None) is not None:
            raise ModelError(f"{what} of {site}: the row of one position has no positions; put it in without at")
        if not callable(function):
            raise ModelError(f"{what} of {site}: {type(function).__name__}; give a function of the activation{or_else}")


def check_edit(site: Site, new: object, x: Shaped[Tensor, "..."]) -> None:
    """Raise ``ModelError`` for a result of an edit that cannot stand in for the activation ``x``."""
    if not isinstance(new, Tensor) or new.shape != x.shape:
        seen = tuple(new.shape) if isinstance(new, Tensor) else type(new).__name__
        raise ModelError(f"edit of {site}: gave {seen}, need a tensor of shape {tuple(x.shape)}")
    if new.dtype != x.dtype:
        raise ModelError(f"edit of {site}: gave {new.dtype}, need {x.dtype}; convert it with .to(x)")
    new = new.detach()
    # The sum of finite numbers can be too large, and is many times faster to look at than each of them.
    if not torch.isfinite(new.sum()) and not torch.isfinite(new).all():
        raise ModelError(f"edit of {site}: gave NaN or infinity (attention may make zeros of it); give finite numbers")


def put(value: Float[Tensor, "..."], at: int | slice | list[int] | None = None) -> Edit:
    """The edit that puts another value of a site in: everywhere, or only at these positions.

    lm.run(corrupted, edit={site: put(lm.run(clean, read=[site]).acts[site], at=-1)})

    With ``at``, the value has the activation's axes, and these positions are taken from it. Without ``at``, a value
    that lacks axes, or has one of length 1, is repeated along them (a mean, for example).
    """

    def edit(x: Tensor) -> Tensor:
        try:
            if at is None:
                return value.to(x).expand(x.shape)
            if value.dim() != x.dim():  # of states without their positions, ``at`` would choose prompts
                raise IndexError
            x = x.clone()
            x[..., at, :] = value.to(x)[..., at, :]
        except (RuntimeError, IndexError, TypeError) as e:
            given = f"a value of shape {tuple(value.shape)} on {value.device}"
            said = f"cannot put {given} into an activation of shape {tuple(x.shape)} on {x.device}"
            if at is not None:
                n = x.shape[-2]
                said += (
                    f" at {at!r}; give the whole activation of the other prompt (acts[site], not acts[site][:, -1]), "
                    f"and positions from {-n} to {n - 1}"
                )
            raise ModelError(said) from e
        return x

    edit.at = at  # type: ignore[attr-defined]
    return edit


Read = dict[Site, Reducer | None]
Acts = dict[Site, Shaped[Tensor, "..."]]
_OF_QUERIES, _OF_KEYS = ("head", "q", "pattern"), ("k", "v")


def split(
    read: Mapping[Site, Reducer | None], edit: Mapping[Site, Edit], anatomy: Anatomy
) -> tuple[Read, dict[Site, Edit], Callable[[Acts], Acts]]:
    """Read and edit without sites of single heads, and the function that adds what was read from those."""
    reads, edits = _by_whole(read, anatomy), _by_whole(edit, anatomy)
    kept: dict[Site, Tensor] = {}
    plain_read: Read = {s: r for s, r in read.items() if not _is_of_a_head(s)}
    plain_edit: dict[Site, Edit] = {s: e for s, e in edit.items() if not _is_of_a_head(s)}
    for whole, sites in reads.items():
        plain_read[whole] = _reading({s: read[s] for s in sites}, kept, anatomy, whole in read, read.get(whole))
    for whole, sites in edits.items():
        plain_edit[whole] = _editing({s: edit[s] for s in sites}, anatomy, edit.get(whole))

    def found(acts: dict[Site, Tensor]) -> dict[Site, Tensor]:
        return {s: kept[s] if _is_of_a_head(s) else acts[s] for s in read}

    return plain_read, plain_edit, found


def _is_of_a_head(site: object) -> bool:
    return isinstance(site, Site) and site.head is not None


def _by_whole(sites: Mapping[Site, object], anatomy: Anatomy) -> dict[Site, list[Site]]:
    """Sites of single heads by the whole site that they are a part of."""
    found: dict[Site, list[Site]] = {}
    for site in sites:
        if _is_of_a_head(site):
            assert isinstance(site, Site)
            _check(site, anatomy)
            found.setdefault(site._replace(head=None), []).append(site)
    return found


def _check(site: Site, anatomy: Anatomy) -> None:
    check_site(site._replace(head=None), anatomy.n_layers, anatomy.n_experts)
    if site.kind not in _OF_QUERIES + _OF_KEYS:
        raise ModelError(f"{site}: {site.kind} has no heads; these kinds have: {', '.join(_OF_QUERIES + _OF_KEYS)}")
    n = anatomy.heads(site.layer)[site.kind in _OF_KEYS]
    if not isinstance(site.head, Integral) or not 0 <= site.head < n:
        raise ModelError(f"{site}: layer {site.layer} has {n} heads of this kind (0-{n - 1}); give one of them")


def _part(site: Site, anatomy: Anatomy, x: Tensor) -> Tensor:
    """A head's part of a whole activation, a view of it."""
    assert site.head is not None
    if site.kind != "head":
        return x[:, site.head]
    width = x.shape[-1] // anatomy.heads(site.layer)[0]
    return x[..., site.head * width : (site.head + 1) * width]


def _reading(
    sites: Mapping[Site, Reducer | None], kept: dict[Site, Tensor], anatomy: Anatomy, whole: bool, own: Reducer | None
) -> Reducer:
    def reduce(x: Tensor) -> Tensor:
        for site, reducer in sites.items():
            part = _part(site, anatomy, x).clone()
            kept[site] = part if reducer is None else reducer(part)
        if not whole:
            return x.new_empty(0)
        return x if own is None else own(x)

    return reduce


def _editing(edits: Mapping[Site, Edit], anatomy: Anatomy, own: Edit | None) -> Edit:
    def change(x: Tensor) -> Tensor:
        if own is not None:
            new = own(x.clone())
            check_edit(next(iter(edits))._replace(head=None), new, x)
            x = new.clone()
        for site, edit in edits.items():
            part = _part(site, anatomy, x)
            new = edit(part.clone())
            check_edit(site, new, part)
            part.copy_(new)
        return x

    return change
