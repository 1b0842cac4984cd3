"""One batch of prompts decoded to the end: left-padded, cached, finished rows dropped on the way.

For small models ``generate`` spends most of its time outside the model; this loop does one forward pass, one maximum
and one transfer a step. It applies no logits processors: greedy means the largest logit, whatever a model's
generation config says about repetition penalties. Knows token ids only.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...errors import ModelError
from .text import StopFinder

# Dropping rows copies the cache once, as much as a step does: worth it from an eighth of the rows on.
KEEP_FULL = 0.875


@dataclass
class Row:
    """One prompt on its way to an answer."""

    ids: tuple[int, ...]
    budget: int
    """Tokens that may be generated."""
    eos_ids: frozenset[int]
    stop: StopFinder | None = None
    temperature: float = 0.0
    seed: str | None = None
    """Seed of this row's own random numbers, so that a sample does not depend on the batch."""
    where: str = ""
    """Named in errors."""
    generated: list[int] = field(default_factory=list)
    finish: str | None = None
    """``stop`` or ``length`` once finished."""

    def accept(self, token: int) -> bool:
        """Add a token; True when the answer is complete."""
        self.generated.append(token)
        if token in self.eos_ids or (self.stop is not None and self.stop.found(self.generated)):
            self.finish = "stop"
        elif len(self.generated) >= self.budget:
            self.finish = "length"
        return self.finish is not None


@torch.inference_mode()
def _prefill(model: Any, rows: Sequence[Row]) -> tuple[Tensor, Any, Tensor | None]:
    length = max(len(r.ids) for r in rows)
    pads = [length - len(r.ids) for r in rows]
    ids = torch.tensor([[0] * p + list(r.ids) for p, r in zip(pads, rows, strict=True)], device=model.device)
    pad = torch.tensor(pads, device=model.device)
    steps = torch.arange(length, device=model.device)
    # Without padding the mask is left out: attention kernels are faster then.
    mask = (steps >= pad[:, None]).long() if any(pads) else None
    positions = (steps - pad[:, None]).clamp(min=0)
    logits, cache = _forward(model, ids, mask, positions, None)
    return logits, cache, mask


def _forward(model: Any, ids: Tensor, mask: Tensor | None, positions: Tensor, cache: Any) -> tuple[Tensor, Any]:
    accepted = _arguments(type(model))
    extra = {"position_ids": positions} if "position_ids" in accepted else {}
    if "logits_to_keep" in accepted:
        extra["logits_to_keep"] = 1  # type: ignore[assignment]
    out = model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True, **extra)
    return out.logits[:, -1], out.past_key_values


@lru_cache(maxsize=64)
def _arguments(model_class: type) -> frozenset[str]:
    return frozenset(inspect.signature(model_class.forward).parameters)


def decode_batch(model: Any, rows: Sequence[Row]) -> Iterator[int]:
    """Decode all rows; yields the index of each row when it has finished. Costs one forward pass a token.

    Raises ``ModelError`` when the logits of an unfinished row are not finite.
    """
    logits, cache, mask = _prefill(model, rows)
    alive = list(range(len(rows)))  # row index by batch position; -1 once finished
    while True:
        tokens = _choose(logits, rows, alive)
        for b, token in enumerate(tokens):
            if alive[b] >= 0 and rows[alive[b]].accept(token):
                yield alive[b]
                alive[b] = -1
        keep = [b for b, r in enumerate(alive) if r >= 0]
        if not keep:
            return
        with torch.inference_mode():
            if len(keep) <= KEEP_FULL * len(alive) and _drop(cache, keep, model.device):
                alive, tokens = [alive[b] for b in keep], [tokens[b] for b in keep]
                mask = None if mask is None else mask[torch.tensor(keep, device=model.device)]
            if mask is not None:
                mask = torch.cat([mask, mask.new_ones(len(alive), 1)], dim=1)
            # Finished rows stay at the first position: learned positions end with the context.
            positions = [len(rows[r].ids) + len(rows[r].generated) - 1 if r >= 0 else 0 for r in alive]
            step = torch.tensor([tokens, positions], device=model.device)
            logits, cache = _forward(model, step[0][:, None], mask, step[1][:, None], cache)


def _drop(cache: Any, keep: list[int], device: torch.device) -> bool:
    if not hasattr(cache, "batch_select_indices"):
        return False
    cache.batch_select_indices(torch.tensor(keep, device=device))
    return True


@torch.inference_mode()
def _choose(logits: Float[Tensor, "batch vocab"], rows: Sequence[Row], alive: Sequence[int]) -> list[int]:
    best, tokens = logits.max(dim=-1)
    _check_finite(best, rows, alive)
    chosen: list[int] = tokens.tolist()
    for b, r in enumerate(alive):
        if r >= 0 and rows[r].temperature > 0:
            chosen[b] = _sample(logits[b], rows[r])
    return chosen


def _check_finite(best: Float[Tensor, " batch"], rows: Sequence[Row], alive: Sequence[int]) -> None:
    # The maximum carries NaN and +inf; -inf is only the maximum where all logits are.
    finite = torch.isfinite(best)
    if bool(finite.all()):
        return
    for b, r in enumerate(alive):
        if r >= 0 and not bool(finite[b]):
            row = rows[r]
            raise ModelError(
                f"{row.where}: the logits of token {len(row.generated) + 1} are {best[b].item()}; "
                "check the weights, and use float32 or bfloat16 instead of float16"
            )


def _sample(logits: Float[Tensor, " vocab"], row: Row) -> int:
    """Inverse-CDF sample from softmax(logits / T); step t of a row always uses the same random number."""
    u = random.Random(f"{row.seed}:{len(row.generated)}").random()
    cumulative = torch.softmax(logits.double() / row.temperature, dim=-1).cumsum(-1)
    index: Int[Tensor, ""] = torch.searchsorted(cumulative, u * cumulative[-1])
    return min(int(index), logits.shape[-1] - 1)
