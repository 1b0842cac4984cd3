"""Padding on the left: most models count positions over real tokens when told to, some count all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..errors import ModelError
from .backends import transformers
from .backends.libraries import close_to
from .parts import embedding_of
from .regimes import angles_kept

if TYPE_CHECKING:
    from .model import Model

_HARMLESS: WeakKeyDictionary[Model, bool] = WeakKeyDictionary()


def check_left(lm: Model, mask: Tensor | None) -> None:
    """``ModelError`` for a ``batch pos`` mask that hides first tokens, where they change what the others give."""
    if mask is None or bool((mask[:, 0] != 0).all()):
        return
    if lm not in _HARMLESS:
        _HARMLESS[lm] = _harmless(lm)
    if not _HARMLESS[lm]:
        raise ModelError(
            f"{type(lm.model).__name__}: padding on the left changes what it computes (it counts positions itself); "
            "pad on the right"
        )


@torch.no_grad()
def _harmless(lm: Model) -> bool:
    """Tried on three tokens with two hidden ones before them."""
    ids = torch.arange(3)[None].to(lm.device) % embedding_of(lm.model).shape[0]
    padded, mask = (pad(x, (2, 0)) for x in (ids, torch.ones_like(ids)))
    with angles_kept(lm.model):
        plain = transformers.run(lm.model, lm.anatomy, ids, None, {}, {}, None).logits
        other = transformers.run(lm.model, lm.anatomy, padded, mask, {}, {}, None).logits[:, 2:]
    return close_to(other, plain)
