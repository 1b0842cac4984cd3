"""Site: the name of one activation, the same on every architecture; and Run, what one forward pass returned.

lm.run(ids, read=[Site(3, "resid_post")]).acts[Site(3, "resid_post")]  # batch pos d_model
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

from jaxtyping import Float, Shaped
from torch import Tensor

from ..errors import ModelError

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
    ``pattern`` ``batch query key``, ``q``, ``k`` and ``v`` ``batch pos d_head``.
    """

    layer: int
    kind: Kind
    expert: int | None = None
    """The expert whose neurons are meant, in mixtures of experts."""
    head: int | None = None
    """The head that is meant, of ``head``, ``pattern`` and ``q``; of ``k`` and ``v`` the key-value head."""

    def __str__(self) -> str:
        tail = "" if self.expert is None else f", expert={self.expert}"
        tail += "" if self.head is None else f", head={self.head}"
        return f'Site({self.layer}, "{self.kind}"{tail})'


Reducer = Callable[[Float[Tensor, "..."]], Tensor]
Edit = Callable[[Float[Tensor, "*shape"]], Float[Tensor, "*shape"]]


class Run(NamedTuple):
    """What one forward pass returned."""

    logits: Float[Tensor, "batch pos vocab"]
    acts: dict[Site, Shaped[Tensor, "..."]]
    """The sites in ``read``; attached to the graph unless gradients are off."""
    hooks: tuple[str, ...] = ()
    """Hooks of others that were on the model's modules and may have changed these numbers, by module and name."""


def check_site(site: Site, n_layers: int, n_experts: int | None = None) -> None:
    """Raise ``ModelError`` for a site that a model of this size does not have."""
    if not isinstance(site, Site) or not isinstance(site.layer, int):
        raise ModelError(f'{site!r}: not a site; give a set, list or mapping of Site(layer, "kind")')
    if site.head is not None:
        raise ModelError(f"{site}: single heads are for lm.run; give the whole site here, and take the head's part")
    if site.kind not in KINDS:
        raise ModelError(f"{site}: no such kind; use one of {', '.join(KINDS)}")
    if not 0 <= site.layer < n_layers:
        raise ModelError(f"{site}: the model has {n_layers} layers (0-{n_layers - 1})")
    if site.expert is not None and (n_experts is None or not 0 <= site.expert < n_experts):
        have = "no experts" if n_experts is None else f"{n_experts} experts (0-{n_experts - 1})"
        raise ModelError(f"{site}: the model has {have}")
