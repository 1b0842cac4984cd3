"""Float32 arithmetic on half-precision weights: each block is widened only while it runs.

    with widened(lm, "float32"):
        lm.run(ids)  # the numbers of lm.model.float(), at the memory of one more block

Before a block (or the embedding, the final norm, the head) runs, its weights are replaced by float32 copies, until the
next one runs. Copying bfloat16 or float16 to float32 is exact, so every number is that of ``model.float()``. A graph
keeps the half-precision weights, and widens each again in its backward step.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..interrupts import held, uninterrupted
from .anatomy import resolve
from .model import Model, dtype_of

HALF = (torch.bfloat16, torch.float16)


class _Widener:
    """The current float32 copies, and the weights that they are copies of."""

    def __init__(self, model: nn.Module, blocks: list[nn.Module]):
        inside = set(blocks)
        self.shared = [m for m in model.modules() if m not in inside and inside.intersection(m.modules())]
        self.part: dict[nn.Module, nn.Module] = {}
        """module: the block, or other part outside all blocks, that it belongs to"""
        for container in self.shared:
            for child in container.children():
                if child not in self.shared:
                    self.part.update(dict.fromkeys(child.modules(), child))
        self.current: nn.Module | None = None
        self.changed: list[tuple[dict[str, Any], str, Tensor]] = []
        self.originals: dict[int, tuple[Tensor, Tensor]] = {}
        """address of a copy: the weight, and the copy itself, which keeps the address taken"""

    def enter(self, module: nn.Module, *_: Any) -> None:
        part = self.part[module]
        if part is not self.current:
            with held():
                self.restore()
                self.current = part
                for m in part.modules():
                    self.widen(m)

    def widen(self, module: nn.Module) -> None:
        held: list[dict[str, Any]] = [module._parameters, module._buffers]
        for fields in held:
            for name, weight in list(fields.items()):
                if weight is not None and weight.dtype in HALF:
                    copy = weight.detach().float()
                    self.changed.append((fields, name, weight))
                    fields[name] = copy
                    if copy.numel():
                        self.originals[copy.untyped_storage().data_ptr()] = weight.detach(), copy

    def restore(self) -> None:
        while self.changed:
            fields, name, weight = self.changed[-1]
            fields[name] = weight
            self.changed.pop()
        self.originals.clear()
        self.current = None

    def pack(self, x: Tensor) -> Any:
        found = self.originals.get(x.untyped_storage().data_ptr())
        return x if found is None else (found[0], x.shape, x.stride(), x.storage_offset())

    @staticmethod
    def unpack(kept: Any) -> Tensor:
        if isinstance(kept, Tensor):
            return kept
        weight, *geometry = kept
        return weight.float().as_strided(*geometry)


def widens(lm: Any, dtype: str | torch.dtype | None) -> bool:
    """Whether computing in ``dtype`` differs from what the model does; ``ModelError`` for dtypes but float32."""
    if dtype is not None and dtype_of(dtype) is not torch.float32:
        raise ModelError(f'rows_dtype "{dtype}": use float32, or leave it out for the dtype of the weights')
    return dtype is not None and torch.finfo(lm.dtype).bits < 32


@uninterrupted
def widened(lm: Model, dtype: str | torch.dtype | None) -> Iterator[None]:
    """Run everything inside in ``dtype`` (``float32``) on weights that stay in half precision; ``None`` keeps their
    dtype.

    Afterwards the model is bit for bit as before, also after an exception or Ctrl-C. Nothing changes where the weights
    are float32 or float64. Raises ``ModelError`` for other dtypes, and for weights that are quantized or offloaded.
    """
    if not widens(lm, dtype):
        yield
        return
    name = type(lm.model).__name__
    for where, p in lm.model.named_parameters():
        if p.device.type == "meta" or p.dtype not in (*HALF, torch.float32) or hasattr(type(p), "__tensor_flatten__"):
            kind = p.dtype if type(p) in (Tensor, nn.Parameter) else type(p).__name__
            raise ModelError(f"{name}: {where} is offloaded or quantized ({kind}); leave out rows_dtype")
    if "flash" in str(lm.model.config._attn_implementation):
        raise ModelError(f"{name}: flash attention computes in half precision only; load it with sdpa for rows_dtype")
    with suppress(ModelError):  # it is kept, and must not keep wide weights
        _ = lm.unembedding
    widener = _Widener(lm.model, [layer.block for layer in lm.anatomy.layers])
    handles: list[Any] = [lm.model.register_state_dict_pre_hook(lambda *_: widener.restore())]
    anatomy = lm.anatomy
    try:
        for module in widener.part:
            if type(module) is nn.Embedding:  # its rows are widened, not the whole table
                handles.append(module.register_forward_hook(lambda _m, _a, out: out.float()))
            else:
                handles.append(module.register_forward_pre_hook(widener.enter, prepend=True))
        lm.computes_in = torch.float32
        with torch.autograd.graph.saved_tensors_hooks(widener.pack, widener.unpack):
            if any(layer.mlp_scale != 1 for layer in anatomy.layers):
                lm.anatomy = resolve(lm.model)  # such factors are measured, in half precision to three digits
            yield
    finally:
        lm.anatomy, lm.computes_in = anatomy, None
        widener.restore()
        for handle in handles:
            handle.remove()
