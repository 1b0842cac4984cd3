"""Prompt-end and step cosines with one full forward per state and a Python loop over pairs."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel


@torch.no_grad()
def last_states(model: PreTrainedModel, ids: list[int]) -> Tensor:
    """Block outputs at the last token [layer d_model].

    transformers' ``hidden_states`` hold the embedding first and, in the last place, the state after the final norm:
    the last block's output is taken from what goes into that norm.
    """
    decoder: Any = model.get_decoder()
    norm = decoder.norm if hasattr(decoder, "norm") else decoder.ln_f
    into: list[Tensor] = []
    handle = norm.register_forward_pre_hook(lambda module, args: into.append(args[0]))
    try:
        states = model(input_ids=torch.tensor([ids]), output_hidden_states=True, use_cache=False).hidden_states
    finally:
        handle.remove()
    return torch.stack([*(h[0, -1] for h in states[1:-1]), into[-1][0, -1]]).double()


def cosine(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


def mean_cosine(first: list[Tensor], second: list[Tensor] | None = None) -> Tensor:
    """Mean over pairs i < j of one group, or over all pairs of two groups: [layer]."""
    if second is None:
        found = [cosine(first[i], first[j]) for i in range(len(first)) for j in range(i + 1, len(first))]
    else:
        found = [cosine(a, b) for a in first for b in second]
    return torch.stack(found).mean(0)


def step_cosines(model: PreTrainedModel, prompt: list[int], response: list[int], alignment: str) -> Tensor:
    """[layer step]"""
    first = 0 if alignment == "predictive" else 1
    ends = range(first, first + len(response))
    states = [last_states(model, prompt + response[:n]) for n in ends]
    return torch.stack([cosine(a, b) for a, b in itertools.pairwise(states)], dim=-1)
