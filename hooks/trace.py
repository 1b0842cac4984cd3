"""A record of the inputs and outputs of every module inside the blocks during one forward pass on two tokens.

trace = Trace(model, blocks)
trace.events[3]  # what ran in block 3, in order
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from transformers import PreTrainedModel

from ..devices import is_out_of_memory
from ..errors import ModelError
from ..interrupts import held
from . import attention
from .parts import embedding_of, first_tensor, hidden_in, input_device


@dataclass
class Event:
    """One call of one module."""

    module: nn.Module
    name: str
    inputs: Shaped[Tensor, ...] | None
    output: Shaped[Tensor, ...]


class Trace:
    """The events of one forward pass, by block; the blocks' inputs and outputs; and the attention calls."""

    def __init__(self, model: PreTrainedModel, blocks: Sequence[nn.Module]):
        self.model = model
        self.events: list[list[Event]] = [[] for _ in blocks]
        self.ends: list[tuple[Tensor, Tensor]] = []
        self.calls: list[attention.Call] = []
        with held(), ExitStack() as stack:
            for i, block in enumerate(blocks):
                for name, module in block.named_modules():
                    hook = self._module_hook(i, name) if name else self._block_hook()
                    stack.callback(module.register_forward_hook(hook, with_kwargs=True).remove)
            self._forward()

    def _module_hook(self, i: int, name: str):
        def hook(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Any) -> None:
            y = first_tensor(output)
            if y is not None:
                self.events[i].append(Event(module, name, hidden_in(args, kwargs), y.clone()))  # Falcon changes it

        return hook

    def _block_hook(self):
        def hook(module: nn.Module, args: tuple, kwargs: dict[str, Any], output: Any) -> None:
            x, y = hidden_in(args, kwargs), first_tensor(output)
            if x is None or y is None or x.shape != y.shape:
                raise ModelError(f"{type(module).__name__}: a block must map hidden states to hidden states")
            if x.dim() != 3:
                raise ModelError(
                    f"{type(module).__name__}: hidden states of shape {tuple(x.shape)} for two tokens; blocks with "
                    "several residual streams are not supported"
                )
            self.ends.append((x.to(y.device), y))  # blocks may lie on different devices

        return hook

    def _forward(self) -> None:
        table = embedding_of(self.model)
        vocab = int(table.shape[0])
        ids = torch.tensor([[vocab // 2, vocab // 3]], device=input_device(self.model))

        def record(call: attention.Call) -> Tensor:
            self.calls.append(call)
            return call.output()

        try:
            with torch.no_grad():
                seen = attention.can_interpose(self.model)
                with attention.interpose(self.model, record) if seen else nullcontext():
                    logits = self.model(input_ids=ids, use_cache=False).logits
        except (RuntimeError, ValueError, TypeError, AttributeError, IndexError) as e:
            if is_out_of_memory(e):
                raise
            raise ModelError(
                f"{type(self.model).__name__}: its forward pass fails on two tokens without a cache: "
                f"{' '.join(str(e).split())[:200]}"
            ) from e
        name = f"{type(self.model).__name__}: "
        if torch.isnan(logits).any():
            raise ModelError(f"{name}NaN logits for a two-token prompt; check weights and dtype")
        for i, call in enumerate(self.calls):  # some kernels turn what is NaN here into zeros
            if not (torch.isfinite(call.query).all() and torch.isfinite(call.key).all()):
                raise ModelError(f"{name}NaN or infinite queries or keys in attention {i}; check weights and dtype")
