"""What every way of decoding does: one forward pass, one token for every row, and the check that it was a number.

For small models ``generate`` spends most of its time outside the model; here a step is one forward pass, one maximum
and one transfer. No logits processors are applied: greedy means the largest logit, whatever a model's generation
config says about repetition penalties. Knows token ids only.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ...errors import ModelError
from ...products import packed_products
from .text import StopFinder


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


@dataclass(frozen=True)
class Runner:
    """A model, and its weights as they multiply fastest here."""

    model: Any
    packed: Mapping[nn.Linear, Tensor] = field(default_factory=dict)
    """See ``products.pack``."""
    window: int | None = None
    """Tokens back that sliding layers look, the own one included."""
    mixed: bool = False
    """Whether some layers slide and others see everything."""

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dtype(self) -> torch.dtype:
        return self.model.dtype

    def mask(self, seen: Bool[Tensor, "batch 1 pos key"], back: Int[Tensor, "batch 1 pos key"]) -> Any:
        """What the model takes as its mask, of what may be ``seen`` and how many tokens ``back`` it is.

        Numbers to add: 0 where a token may look, the lowest one elsewhere.
        """
        full = self._additive(seen)
        if self.window is None:
            return full
        near = self._additive(seen & (back < self.window))
        return {"full_attention": full, "sliding_attention": near} if self.mixed else near

    def _additive(self, seen: Tensor) -> Tensor:
        zeros = torch.zeros(seen.shape, dtype=self.dtype, device=self.device)
        return zeros.masked_fill_(~seen.to(self.device), torch.finfo(self.dtype).min)

    def forward(
        self,
        ids: Int[Tensor, "batch pos"],
        mask: Any,
        positions: Tensor,
        cache: Any,
        *,
        keep: Sequence[int] | None = None,
    ) -> tuple[Float[Tensor, "batch kept vocab"], Any]:
        """Logits at the last position, or at the positions to ``keep``, and the cache afterwards."""
        accepted = _arguments(type(self.model))
        extra: dict[str, Any] = {"position_ids": positions} if "position_ids" in accepted else {}
        where = [-1] if keep is None else list(keep)
        shortened = "logits_to_keep" in accepted
        if shortened:
            extra["logits_to_keep"] = 1 if keep is None else torch.tensor(where, device=ids.device)
        with packed_products(self.packed):
            out = self.model(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True, **extra)
        return out.logits if shortened else out.logits[:, where], out.past_key_values


@lru_cache(maxsize=64)
def _arguments(model_class: type) -> frozenset[str]:
    return frozenset(inspect.signature(model_class.forward).parameters)


@torch.inference_mode()
def choose(logits: Float[Tensor, "batch vocab"], rows: Sequence[Row | None]) -> list[int]:
    """The next token of every row; what stands at a finished one (None) means nothing.

    Raises ``ModelError`` when the logits of an unfinished row are not finite.
    """
    best, tokens = logits.max(dim=-1)
    _check_finite(best, rows)
    chosen: list[int] = tokens.tolist()
    for b, row in enumerate(rows):
        if row is not None and row.temperature > 0:
            chosen[b] = _sample(logits[b], row)
    return chosen


def _check_finite(best: Float[Tensor, " batch"], rows: Sequence[Row | None]) -> None:
    # The maximum carries NaN and +inf; -inf is only the maximum where all logits are.
    finite = torch.isfinite(best)
    if bool(finite.all()):
        return
    for b, row in enumerate(rows):
        if row is not None and not bool(finite[b]):
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
