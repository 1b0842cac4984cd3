"""Temporary hooks on single modules, in rows of queries; frozen parameters; and whether gradients pass every module.

with hooked([ModuleHook(layer.mlp, "out", lambda y: 2 * y)], n_queries=1), frozen(lm.model):
    lm.model(input_ids=ids)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..errors import ModelError
from ..interrupts import held, uninterrupted
from . import experts
from .anatomy import width_of
from .backends.transformers import replace_first
from .length_limits import keep_rotary_angles
from .model import Model
from .parts import embedding_of, first_tensor, hidden_in

_STOPS: WeakKeyDictionary[Model, str] = WeakKeyDictionary()
"""By model: the first module through which no gradient passes; empty if gradients pass all."""


class ModuleHook(NamedTuple):
    """A function of a module's input (``in``) or output (``out``), ``query row width``; ``None`` leaves it unchanged.

    For side ``experts`` it is a function of the activations of the module's experts (``experts.Change``).
    """

    module: nn.Module
    side: str
    fn: Callable[..., Float[Tensor, "..."] | None]


@uninterrupted
def hooked(hooks: Sequence[ModuleHook], n_queries: int) -> Iterator[None]:
    """Inside, the functions are called, in their order."""

    def apply(fn: Callable[[Tensor], Tensor | None], value: Any) -> Any:
        x = first_tensor(value)
        if x is None:
            raise ModelError("a module of the model was called without hidden states")
        new = fn(x.reshape(n_queries, -1, x.shape[-1]))  # some architectures flatten batch and positions
        if new is None:
            return None
        return replace_first(value, new if x.dim() == 3 else new.reshape(-1, new.shape[-1]))

    def attach(w: ModuleHook) -> Any:
        if w.side == "experts":
            return w.module.register_forward_hook(
                lambda m, args, kwargs, y: experts.changed(m, experts.given(m, args, kwargs), y, w.fn), with_kwargs=True
            )
        if w.side == "out":
            return w.module.register_forward_hook(lambda _m, _a, output: apply(w.fn, output))

        def before(_module: nn.Module, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]] | None:
            value = args if args else kwargs["hidden_states"]
            new = apply(w.fn, value)
            if new is None:
                return None
            return (new, kwargs) if args else (args, {**kwargs, "hidden_states": new})

        return w.module.register_forward_pre_hook(before, with_kwargs=True)

    with ExitStack() as attached:
        for w in hooks:
            attached.enter_context(attach(w))
        yield


@uninterrupted
def frozen(model: nn.Module) -> Iterator[None]:
    """Inside, no parameter requires gradients, and ``torch.inference_mode``, in which nothing has any, is off."""
    wanted = [p for p in model.parameters() if p.requires_grad]
    try:
        for p in wanted:
            p.requires_grad_(False)
        with torch.inference_mode(False):
            yield
    finally:
        for p in wanted:
            p.requires_grad_(True)


def check_gradients(lm: Model) -> None:
    """``ModelError`` that names the first module through which no gradient passes.

    Where only some modules have no derivative (quantized attention, say), a gradient still arrives by way of the
    residual stream, and is wrong. So every module is tried once, on two tokens.
    """
    if lm not in _STOPS:
        _STOPS[lm] = _first_stop(lm)
    if _STOPS[lm]:
        raise ModelError(
            f"{type(lm.model).__name__}: no gradient passes through {_STOPS[lm]} (a quantized kernel, or no_grad "
            "inside its forward), only around it; measures that need gradients are not available for this model"
        )


def _first_stop(lm: Model) -> str:
    found: list[str] = []
    enabled: dict[nn.Module, bool] = {}

    def before(module: nn.Module, _args: Any) -> None:
        enabled[module] = torch.is_grad_enabled()

    def after(name: str) -> Any:
        def hook(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Any) -> None:
            x, y = hidden_in(args, kwargs), first_tensor(output)
            # Choices without gradients on purpose (keys, experts) run with gradients off, or return no states.
            if x is None or y is None or not enabled.get(module) or not (x.requires_grad and y.is_floating_point()):
                return
            if not y.requires_grad and (width_of(module) is not None or y.shape == x.shape):
                found.append(f"{name} ({type(module).__name__})")

        return hook

    embedding = lm.model.get_input_embeddings()
    vocab = int(embedding_of(lm.model).shape[0])
    ids = torch.tensor([[vocab // 2, vocab // 3]], device=lm.device)
    with held(), ExitStack() as stack, torch.enable_grad(), frozen(lm.model), keep_rotary_angles(lm.model), lm._alone():
        stack.callback(embedding.register_forward_hook(lambda _m, _a, y: y.detach().requires_grad_()).remove)
        for name, module in lm.model.named_modules():
            if module is not embedding:
                stack.callback(module.register_forward_pre_hook(before).remove)
                stack.callback(module.register_forward_hook(after(name), with_kwargs=True).remove)
        lm.model(input_ids=ids, use_cache=False)
    return found[0] if found else ""
