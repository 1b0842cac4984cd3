"""The libraries that can run a model. All give the same activations under the same site names.

    backend_of(TransformerBridge.boot_transformers(name))  # "transformer_lens"

``transformers`` (hooks on the model's own modules), ``transformer_lens`` (its hook points), ``nnsight`` (its traces).
Suffix recomputation and the capture pass work on a plain transformers model. So every opened model has one: the user's
model itself, or a twin that shares all its weights. Libraries that rewrite a model get such a twin.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Protocol

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from transformers import Cache, PreTrainedModel

from ...errors import ModelError
from ..anatomy import Anatomy
from ..sites import Edit, Reducer, Run, Site

BACKENDS = ("transformers", "transformer_lens", "nnsight")
EXTRA = 'install it with pip install "composcope[lens]"'


class Library(Protocol):
    """A backend other than transformers, opened on one model."""

    name: str

    def run(
        self, ids: Int[Tensor, "batch pos"], mask: Shaped[Tensor, "batch _"] | None,
        read: Mapping[Site, Reducer | None], edit: Mapping[Site, Edit], past: Cache | None,
        at: Sequence[int] | None,
    ) -> Run: ...  # fmt: skip


def backend_of(thing: Any) -> str:
    """The backend of an object in memory, by the module of its type; imports nothing."""
    for cls in type(thing).__mro__:
        home = cls.__module__.split(".")[0]
        if home in ("transformer_lens", "nnsight"):
            return home
    return "transformers"


def twin(model: PreTrainedModel) -> PreTrainedModel:
    """A structural copy that shares every parameter and buffer with the model, which may be rewritten."""
    return copy.deepcopy(model, {id(t): t for t in chain(model.parameters(), model.buffers())})


def plain(backend: str, thing: Any) -> PreTrainedModel:
    """The transformers model under another library's object, sharing its weights."""
    return _module(backend).plain(thing)


def open_library(backend: str, thing: Any, model: PreTrainedModel, anatomy: Anatomy) -> Library | None:
    """The library's side of an opened model: around the object passed in, or around a twin of the model."""
    return None if backend == "transformers" else _module(backend).open_library(thing, model, anatomy)


def _module(backend: str) -> Any:
    try:
        importlib.import_module(backend)
    except ImportError as e:
        raise ModelError(f'backend "{backend}": {backend} cannot be imported ({e}); {EXTRA}') from e
    return importlib.import_module(f"{__package__}.{backend}")


def check_logits(logits: Float[Tensor, "..."], who: str) -> None:
    """``ModelError`` for NaN and plus infinity; minus infinity is a masked vocabulary entry."""
    values = logits.detach()
    if not bool((values < torch.inf).all()):
        raise ModelError(f"{who}: NaN or infinity in the logits; check weights, dtype and edits")


def names_of(model: nn.Module) -> dict[nn.Module, str]:
    return {m: name for name, m in model.named_modules()}
