"""Prompt-end patching, literally: a hook, the whole sequence recomputed for every token. Slow on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


def _first(x: Any) -> Tensor:
    return x[0] if isinstance(x, tuple) else x


def block_output(model: nn.Module, ids: Tensor, block: nn.Module) -> Tensor:
    """Residual stream after a block at every position: pos d_model."""
    seen: list[Tensor] = []
    handle = block.register_forward_hook(lambda _m, _a, out: seen.append(_first(out).detach()))
    with torch.no_grad():
        model(ids)
    handle.remove()
    return seen[0][0].clone()


def patched_greedy(
    model: Any, recipient: Sequence[int], block: nn.Module, at: int, state: Tensor, n_tokens: int
) -> tuple[list[int], Tensor]:
    """Greedy continuation with the state after ``block`` replaced at position ``at``; and the first logits."""

    def put(_m: nn.Module, _a: Any, out: Any) -> Any:
        x = _first(out).clone()
        x[0, at] = state
        return (x, *out[1:]) if isinstance(out, tuple) else x

    ids, first, tokens = list(recipient), None, []
    for _ in range(n_tokens):
        handle = block.register_forward_hook(put)
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -1]
        handle.remove()
        first = logits if first is None else first
        tokens.append(int(logits.argmax()))
        ids.append(tokens[-1])
    assert first is not None
    return tokens, first


def greedy(model: Any, prompt: Sequence[int], n_tokens: int) -> list[int]:
    ids = list(prompt)
    for _ in range(n_tokens):
        with torch.no_grad():
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]
