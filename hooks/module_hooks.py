"""Temporary hooks on what single modules take and give, in rows of queries; and parameters held without gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from ..errors import ModelError
from ..interrupts import whole
from . import experts
from .backends.transformers import replace_first
from .parts import first_tensor


class Watch(NamedTuple):
    """A function of what goes ``in`` or comes ``out`` of a module, ``query row width``; ``None`` leaves it as it is.

    Or, of a module that holds ``experts``, of their activations (``experts.Change``; tokens count query by query).
    """

    module: nn.Module
    side: str
    fn: Callable[..., Tensor | None]


@whole
def hooked(watches: Sequence[Watch], n_queries: int) -> Iterator[None]:
    """The watches as hooks, in order, taken off afterwards."""

    def apply(fn: Callable[[Tensor], Tensor | None], value: Any) -> Any:
        x = first_tensor(value)
        if x is None:
            raise ModelError("a module of the model was called without hidden states")
        new = fn(x.reshape(n_queries, -1, x.shape[-1]))  # some architectures flatten batch and positions
        if new is None:
            return None
        return replace_first(value, new if x.dim() == 3 else new.reshape(-1, new.shape[-1]))

    def attach(w: Watch) -> Any:
        if w.side == "experts":
            return w.module.register_forward_hook(
                lambda m, args, kwargs, y: experts.changed(m, experts.given(m, args, kwargs), y, w.fn),
                with_kwargs=True,
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

    handles = [attach(w) for w in watches]
    try:
        yield
    finally:
        for h in handles:
            h.remove()


@whole
def frozen(model: nn.Module) -> Iterator[None]:
    """No parameter asks for gradients inside; flags as before afterwards."""
    wanted = [p for p in model.parameters() if p.requires_grad]
    try:
        for p in wanted:
            p.requires_grad_(False)
        yield
    finally:
        for p in wanted:
            p.requires_grad_(True)
