"""Lookback ratios literally as published: one eager forward per generated token, whole attention maps, plain means."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedModel


@torch.no_grad()
def ratios(
    model: PreTrainedModel, prompt: list[int], response: list[int], cue_tokens: int, form: str = "mean"
) -> Tensor:
    """[layer head step] from a model that was made with eager attention."""
    context = len(prompt) - cue_tokens
    columns = []
    for step in range(len(response)):
        ids = torch.tensor([prompt + response[:step]])
        maps = model(input_ids=ids, output_attentions=True, use_cache=False).attentions
        rows = torch.stack([m[0, :, -1, :] for m in maps])
        old, new = rows[..., :context], rows[..., context:]
        a, b = (old.mean(-1), new.mean(-1)) if form == "mean" else (old.sum(-1), new.sum(-1))
        columns.append(a / (a + b) if new.shape[-1] else torch.full_like(a, torch.nan))
    return torch.stack(columns, dim=-1)
