"""Models in a wrapper: what ``torch.compile`` and PEFT return is opened as the model inside, with the same weights."""

from __future__ import annotations

from typing import Any

from ..errors import ModelError


def unwrapped(thing: Any) -> tuple[Any, tuple[str, ...]]:
    """The model inside wrappers, and a sentence about each wrapper; other objects are returned unchanged.

    Adapters stay active: PEFT puts them into the model's own modules. Raises ``ModelError`` for those that it does not
    (prompt and prefix tuning), since the model inside would answer without them.
    """
    notes: list[str] = []
    while True:
        name = type(thing).__name__
        if (inner := getattr(thing, "_orig_mod", None)) is not None:
            notes.append(f"{name}: the model inside is opened; compiled code does not call hooks")
        elif type(thing).__module__.startswith("peft.") and hasattr(thing, "get_base_model"):
            inner = _with_adapters(thing, name)
            notes.append(f"{name}: the model inside is opened, with its adapter {thing.active_adapter!r} active")
        else:
            return thing, tuple(notes)
        thing = inner


def _with_adapters(thing: Any, name: str) -> Any:
    if getattr(thing.active_peft_config, "is_prompt_learning", False):
        kind = thing.active_peft_config.peft_type
        raise ModelError(
            f"{name} with {getattr(kind, 'value', kind)}: its virtual tokens are no part of the model inside, so it "
            "cannot be opened; adapters such as LoRA can"
        )
    return thing.get_base_model()
