"""Which recipes read which option: one that a recipe does not read is refused, never ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import InputError
from .recipes import INFERENCE, OBJECTIVES

_SFT = ("sft-answer", "sft-trace")
READ_BY: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("out", "depths", "preset", "evaluation", "format", "prompts", "epochs", "learning_rate", "rank", "alpha",
         "micro_batch", "max_steps", "save_every", "curve", "limit", "dtype", "thinking"),
        OBJECTIVES,
    ),
    **dict.fromkeys(("beta", "generations", "prompts_per_step"), ("grpo",)),
    "examples_per_step": _SFT,
    "solutions": ("sft-trace",),
    "layers": INFERENCE,
}  # fmt: skip
"""Options without a default of their own; the others are read by all recipes, or have one that says nothing."""


def check(recipe: str, given: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for an option (None, or False of a flag: not given) that the recipe does not read."""
    for name, recipes in READ_BY.items():
        value = given.get(name)
        unread = recipe not in recipes and recipe in (*OBJECTIVES, *INFERENCE)
        if unread and value is not None and (value is not False or name == "thinking"):  # 0 is a value
            option = f"--{'no-' if value is False else ''}{name.replace('_', '-')}"
            shown = option if isinstance(value, bool) else f"{option} {value}"
            raise InputError(f"{shown}: is for {' and '.join(recipes)}, and the recipe is {recipe}; leave it out")
    if given.get("limit") is not None and not given.get("curve"):
        raise InputError(f"--limit {given['limit']}: is of --curve; add --curve, or leave it out")
