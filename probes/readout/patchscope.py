"""Patchscopes-like reading: a state is put into a prompt that repeats words, and the model is asked to go on.

Unlike the lens it reads answers of several tokens (Ghandeharioun et al. 2024). The prompt shows other names being
repeated ("Spain: Spain"), and ends in a placeholder, at which the state is put in after the same layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import InputError
from ...hooks.edits import Patch, residual
from ...hooks.interchange import forced
from ...hooks.model import Model

PLACEHOLDER = "x"


def repeating_prompt(tokenizer: Any, shown: Sequence[str]) -> tuple[list[int], int]:
    """Ids of a prompt that repeats names, and the position of its placeholder."""
    text = "".join(f"{name}: {name}\n" for name in shown) + PLACEHOLDER
    ids, through = (list(tokenizer(t).input_ids) for t in (text, text + ":"))
    if through[: len(ids)] != ids:
        raise InputError("the tokenizer joins the placeholder with the colon after it; this reading needs them apart")
    return through, len(ids) - 1


def patchscope(
    lm: Model, states: Float[Tensor, "text d_model"], layers: Sequence[int], names: Sequence[str],
    shown: Sequence[str], *, max_rows: int | None = None,
) -> Float[Tensor, "text name"]:  # fmt: skip
    """Log-probability per token of each name after each state was put in after its layer.

    ``shown``: names that the prompt repeats; none of ``names``.
    """
    if lm.tokenizer is None or set(shown) & set(names) or not shown:
        raise InputError("patchscope: give a model with its tokenizer, and names to show that are not read out")
    ids, at = repeating_prompt(lm.tokenizer, shown)
    rows = [[Patch(residual(layer), at, x)] for layer, x in zip(layers, states, strict=True)]
    said = [lm.tokenizer(" " + name, add_special_tokens=False).input_ids for name in names]
    return torch.stack([x.mean(1) for x in forced(lm, ids, said, rows, max_rows=max_rows)], 1)
