"""Padding on the left: most models count positions over real tokens when told to, some count all the same."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import PreTrainedModel

from ..errors import ModelError
from .anatomy import Anatomy
from .backends import transformers
from .backends.libraries import close_to
from .length_limits import angles_kept
from .parts import embedding_of, input_device

_HARMLESS: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def check_left(model: PreTrainedModel, anatomy: Anatomy, mask: Tensor | None) -> None:
    """``ModelError`` for a ``batch pos`` mask that hides first tokens, where they change what the others give."""
    if mask is None or bool((mask[:, 0] != 0).all()):
        return
    if model not in _HARMLESS:
        _HARMLESS[model] = _harmless(model, anatomy)
    if not _HARMLESS[model]:
        raise ModelError(
            f"{type(model).__name__}: padding on the left changes what it computes (it counts positions itself); "
            "pad on the right"
        )


@torch.no_grad()
def _harmless(model: PreTrainedModel, anatomy: Anatomy) -> bool:
    """Tried on three tokens with two hidden ones before them."""
    ids = torch.arange(3)[None].to(input_device(model)) % embedding_of(model).shape[0]
    padded, mask = (pad(x, (2, 0)) for x in (ids, torch.ones_like(ids)))
    with angles_kept(model):
        plain = transformers.run(model, anatomy, ids, None, {}, {}, None).logits
        other = transformers.run(model, anatomy, padded, mask, {}, {}, None).logits[:, 2:]
    return close_to(other, plain)
