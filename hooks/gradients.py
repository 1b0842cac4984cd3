"""Whether a gradient passes through every module of a model, or stops at some: kernels without a derivative.

Where only some modules have none (attention quantized, MLPs not), a gradient still arrives, around them by way of the
residual stream, and is wrong. So every module is looked at once, on two tokens.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from ..errors import ModelError
from ..interrupts import held
from .anatomy import width_of
from .length_limits import angles_kept
from .model import Model
from .module_hooks import frozen
from .parts import embedding_of, first_tensor, hidden_in

_STOPS: WeakKeyDictionary[Model, str] = WeakKeyDictionary()


def check_gradients(lm: Model) -> None:
    """``ModelError`` with the first module that takes a gradient's way and does not hand it on."""
    if lm not in _STOPS:
        _STOPS[lm] = _first_stop(lm)
    if _STOPS[lm]:
        raise ModelError(
            f"{type(lm.model).__name__}: no gradient passes through {_STOPS[lm]} (a quantized kernel, or no_grad "
            "inside its forward), only around it; what needs gradients is refused"
        )


def _first_stop(lm: Model) -> str:
    found: list[str] = []
    enabled: dict[nn.Module, bool] = {}

    def before(module: nn.Module, _args: Any) -> None:
        enabled[module] = torch.is_grad_enabled()

    def after(name: str) -> Any:
        def hook(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Any) -> None:
            x, y = hidden_in(args, kwargs), first_tensor(output)
            # What is chosen without gradients on purpose (keys, experts) runs with gradients off, or gives no states.
            if x is None or y is None or not enabled.get(module) or not (x.requires_grad and y.is_floating_point()):
                return
            if not y.requires_grad and (width_of(module) is not None or y.shape == x.shape):
                found.append(f"{name} ({type(module).__name__})")

        return hook

    embedding = lm.model.get_input_embeddings()
    vocab = int(embedding_of(lm.model).shape[0])
    ids = torch.tensor([[vocab // 2, vocab // 3]], device=lm.device)
    with held(), ExitStack() as stack, torch.enable_grad(), frozen(lm.model), angles_kept(lm.model), lm._alone():
        stack.callback(embedding.register_forward_hook(lambda _m, _a, y: y.detach().requires_grad_()).remove)
        for name, module in lm.model.named_modules():
            if module is not embedding:
                stack.callback(module.register_forward_pre_hook(before).remove)
                stack.callback(module.register_forward_hook(after(name), with_kwargs=True).remove)
        lm.model(input_ids=ids, use_cache=False)
    return found[0] if found else ""
