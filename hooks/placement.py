"""Where a model's weights are: on one device, spread over several, or offloaded until a module runs.

    with loaded(module):  # its own weights are on the device on which it computes
        module.weight @ x

accelerate (``device_map=...``) moves a module's inputs to the device on which it computes, and fetches weights that
were offloaded to memory or disk while its forward runs. Hooks always see real values; code that reads a weight itself
needs ``loaded``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from ..interrupts import uninterrupted


def _hooks(module: nn.Module) -> list[Any]:
    """accelerate's hooks on a module, one by one."""
    hook = getattr(module, "_hf_hook", None)
    return [] if hook is None else list(getattr(hook, "hooks", [hook]))


def device_of(module: nn.Module, tensor: Shaped[Tensor, ...]) -> torch.device:
    """The device on which a module that holds ``tensor`` computes."""
    if tensor.device.type != "meta":
        return tensor.device
    for hook in _hooks(module):
        device = getattr(hook, "execution_device", None)
        if device is not None:
            return torch.device(device)
    return tensor.device


def is_dispatched(model: nn.Module) -> bool:
    """Whether accelerate moves inputs or weights while the model runs; a forward pass must then not end early."""
    return any(_hooks(module) for module in model.modules())


@uninterrupted
def loaded(module: nn.Module) -> Iterator[None]:
    """Inside, the module's own weights are on the device on which it computes, also offloaded ones."""
    away = [h for h in _hooks(module) if getattr(h, "offload", False)]
    if not any(t.device.type == "meta" for t in module.parameters(recurse=False)):
        away = []
    fetched = []
    try:
        for hook in away:
            fetched.append(hook)
            hook.pre_forward(module)
        yield
    finally:
        for hook in fetched:
            hook.post_forward(module, torch.empty(0))


def state_of(model: nn.Module) -> Iterator[tuple[str, Any]]:
    """Everything that a checkpoint would contain, sorted by name; offloaded tensors are fetched one by one."""
    for name, value in sorted(_saved(model).items()):
        if not isinstance(value, Tensor) or value.device.type != "meta":
            yield name, value
            continue
        path, _, leaf = name.rpartition(".")
        module = model.get_submodule(path)
        with loaded(module):
            yield name, getattr(module, leaf)


def _saved(model: nn.Module) -> dict[str, Any]:
    """``state_dict`` without its side effect on layers with weights packed for a CPU (bitsandbytes).

    Such a layer unpacks its weights when it is saved, but not to their former values, so they are read packed.
    """
    packed = {m for m in model.modules() if getattr(_quantization(m), "packing_format_for_cpu", False)}
    if not packed:
        return model.state_dict()
    out: dict[str, Any] = {}
    for path, module in model.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        save = nn.Module._save_to_state_dict if module in packed else type(module)._save_to_state_dict
        save(module, out, prefix, False)
        if module in packed:
            parts = vars(_quantization(module)).items()
            out.update({f"{prefix}weight.{k}": v for k, v in parts if isinstance(v, Tensor)})
    return out


def _quantization(module: nn.Module) -> Any:
    return getattr(getattr(module, "weight", None), "quant_state", None)


def tensors_in(value: Any) -> Iterator[Any]:
    """The pieces that a quantized layer keeps under one name: tensors, tensors inside tensors, settings."""
    if isinstance(value, tuple | list):
        for part in value:
            yield from tensors_in(part)
    elif hasattr(type(value), "__tensor_flatten__"):
        for name in value.__tensor_flatten__()[0]:
            yield from tensors_in(getattr(value, name))
    else:
        yield value
