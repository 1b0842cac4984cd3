"""Decoding steps that all ways of batching share, and the two ways for models that continuous batching cannot serve.

For small models ``generate`` spends most of its time outside the model. Here a step is one forward pass, one maximum
and one transfer. No logits processors are applied: greedy means the largest logit, whatever the generation config says
about repetition penalties. This module handles token ids only.

``decode`` runs left-padded batches that start together, with the model's own cache, and drops finished rows.
``decode_anew`` runs one row at a time without a cache and reads the text again for every token: slow, but always right.

``pack`` lays out weights for faster float32 products on a CPU, if a trial shows that they are faster. oneDNN, which
comes with PyTorch, multiplies with packed weights in 5 to 40 % less time than PyTorch's default library with plain
weights; fewer rows gain more. The order of sums differs, so results differ in the last bits.
"""

from __future__ import annotations

import inspect
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from ...devices import free_bytes
from ...errors import ModelError
from ...interrupts import uninterrupted
from .text import StopFinder

WORTH_PACKING = 1 << 18
"""For layers with fewer weights than this, a call costs more than the layout saves."""
SHARE = 4
"""A copy of the weights may take this share (1 / SHARE) of the free memory."""


@cache
def prefers_packed() -> bool:
    """Whether products with packed weights take at least a tenth less time on this machine; tried once per process."""
    if not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")):
        return False
    with torch.inference_mode():
        x, weight = torch.randn(16, 576), torch.randn(1536, 576)
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, None)
        return _seconds(lambda: _onednn(x, packed, None, 1536)) < 0.9 * _seconds(lambda: F.linear(x, weight))


def _seconds(run: Callable[[], Any]) -> float:
    """The shortest of several runs, so that other load on the machine has no effect."""
    times = []
    for _ in range(9):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def pack(model: nn.Module) -> dict[nn.Linear, Tensor]:
    """The weights of a model's large linear layers in packed layout; empty if packing does not pay or does not fit.

    It needs memory for a copy of them, and as much time as a forward pass over some hundred tokens.
    """
    layers = [m for m in model.modules() if type(m) is nn.Linear and "forward" not in m.__dict__]
    layers = [m for m in layers if m.weight.numel() >= WORTH_PACKING and _plain(m)]
    free = free_bytes(torch.device("cpu"))
    fits = free is None or sum(m.weight.nbytes for m in layers) * SHARE <= free
    if not (layers and fits and torch.backends.mkldnn.enabled and prefers_packed()):
        return {}
    with torch.inference_mode():
        return {m: torch.ops.mkldnn._reorder_linear_weight(m.weight, None) for m in layers}


def _plain(layer: nn.Linear) -> bool:
    held = [layer.weight, *([] if layer.bias is None else [layer.bias])]
    return all(type(t) is nn.Parameter and t.device.type == "cpu" and t.dtype == torch.float32 for t in held)


@uninterrupted
def packed_products(packed: Mapping[nn.Linear, Tensor]) -> Iterator[None]:
    """Inside this context, these layers use their packed weights if no gradient is needed; afterwards, as before."""

    def forward(layer: nn.Linear, weight: Tensor, x: Tensor) -> Tensor:
        if torch.is_grad_enabled() or x.dtype != torch.float32 or x.numel() == 0:
            return F.linear(x, layer.weight, layer.bias)
        return _onednn(x, weight, layer.bias, layer.out_features)

    try:
        for layer, weight in packed.items():
            layer.forward = partial(forward, layer, weight)  # type: ignore[method-assign]
        yield
    finally:
        for layer in packed:
            layer.__dict__.pop("forward", None)


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None, width: int) -> Tensor:
    flat = x.reshape(-1, x.shape[-1])
    y = torch.ops.mkldnn._linear_pointwise(flat, weight, bias, "none", [], "")
    return y.view(*x.shape[:-1], width)


@dataclass
class DecodedRow:
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

    @property
    def text(self) -> tuple[int, ...]:
        """The prompt and what was generated so far."""
        return (*self.ids, *self.generated)

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
    """See ``pack``."""
    window: int | None = None
    """Tokens back that sliding layers look, the own one included."""
    mixed: bool = False
    """Whether some layers slide and others see everything."""
    columns: int | None = None
    """The most columns, padding included, that the cache may have; None: any number."""

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
def choose(logits: Float[Tensor, "batch vocab"], rows: Sequence[DecodedRow | None]) -> list[int]:
    """The next token of every row; the entry of a finished row (None) has no meaning.

    Raises ``ModelError`` when the logits of an unfinished row are not finite.
    """
    best, tokens = logits.max(dim=-1)
    _check_finite(best, rows)
    chosen: list[int] = tokens.tolist()
    for b, row in enumerate(rows):
        if row is not None and row.temperature > 0:
            chosen[b] = _sample(logits[b], row)
    return chosen


def _check_finite(best: Float[Tensor, " batch"], rows: Sequence[DecodedRow | None]) -> None:
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


def _sample(logits: Float[Tensor, " vocab"], row: DecodedRow) -> int:
    """Inverse-CDF sample from softmax(logits / T); step t of a row always uses the same random number."""
    u = random.Random(f"{row.seed}:{len(row.generated)}").random()
    cumulative = torch.softmax(logits.double() / row.temperature, dim=-1).cumsum(-1)
    index: Int[Tensor, ""] = torch.searchsorted(cumulative, u * cumulative[-1])
    return min(int(index), logits.shape[-1] - 1)


# Dropping rows copies the cache once, as much as a step does: worth it from an eighth of the rows on.
KEEP_FULL = 0.875


def decode(runner: Runner, rows: Sequence[DecodedRow], n: int) -> Iterator[int]:
    """Decode the rows, ``n`` at a time; yields the index of each when it has finished.

    Raises ``ModelError`` when the logits of an unfinished row are not finite.
    """
    start = 0
    while start < len(rows):
        some = rows[start : start + n]
        while len(some) > 1 and not _fit(runner, some):
            some = some[: len(some) // 2]
        for i in _batch(runner, some):
            yield start + i
        start += len(some)


def _fit(runner: Runner, rows: Sequence[DecodedRow]) -> bool:
    """Whether the longest prompt and the longest answer have room beside each other."""
    return runner.columns is None or max(len(r.ids) for r in rows) + max(r.budget for r in rows) <= runner.columns


@torch.inference_mode()
def _read(runner: Runner, row: DecodedRow) -> Tensor:
    ids = torch.tensor([row.text], device=runner.device)
    return runner.model(input_ids=ids).logits[:, -1]


def decode_anew(runner: Runner, rows: Sequence[DecodedRow], n: int) -> Iterator[int]:
    """As ``decode``, whatever ``n``. Costs the square of a text's length."""
    for i, row in enumerate(rows):
        while not row.accept(choose(_read(runner, row), [row])[0]):
            pass
        yield i


def in_stages(
    first: Callable[[Runner, Sequence[DecodedRow], int], Iterator[int]], limits: Sequence[int], runner: Runner,
    rows: Sequence[DecodedRow], n: int,
) -> Iterator[int]:  # fmt: skip
    """As ``first``, for a model that computes all of a text differently once it has more than so many tokens.

    Texts on both sides of a limit share no forward pass, and a text that grows past it is read again.
    """
    budgets, left, way = [row.budget for row in rows], list(range(len(rows))), first
    for limit in [*limits, sys.maxsize]:
        some = [i for i in left if len(rows[i].text) <= limit]
        left = [i for i in left if len(rows[i].text) > limit]
        for i in some:
            rows[i].budget = min(budgets[i], limit + 1 - len(rows[i].ids))
        for k in way(runner, [rows[i] for i in some], n):
            row = rows[some[k]]
            row.budget = budgets[some[k]]
            if row.finish == "length" and len(row.generated) < row.budget:
                row.finish = None
                left.append(some[k])
            else:
                yield some[k]
        way = first if first is decode_anew else decode


def _batch(runner: Runner, rows: Sequence[DecodedRow]) -> Iterator[int]:
    logits, cache, mask = _prefill(runner, rows)
    alive = list(range(len(rows)))  # row index by batch position; -1 once finished
    while True:
        tokens = choose(logits, [rows[r] if r >= 0 else None for r in alive])
        for b, token in enumerate(tokens):
            if alive[b] >= 0 and rows[alive[b]].accept(token):
                yield alive[b]
                alive[b] = -1
        keep = [b for b, r in enumerate(alive) if r >= 0]
        if not keep:
            return
        with torch.inference_mode():
            if len(keep) <= KEEP_FULL * len(alive) and _drop(cache, keep, runner.device):
                alive, tokens = [alive[b] for b in keep], [tokens[b] for b in keep]
                mask = None if mask is None else mask[torch.tensor(keep, device=runner.device)]
            if mask is not None:
                mask = torch.cat([mask, mask.new_ones(len(alive), 1)], dim=1)
            # Finished rows stay at the first position: learned positions end with the context.
            positions = [len(rows[r].ids) + len(rows[r].generated) - 1 if r >= 0 else 0 for r in alive]
            step = torch.tensor([tokens, positions], device=runner.device)
            kept, cache = runner.forward(step[0][:, None], mask, step[1][:, None], cache)
            logits = kept[:, -1]


@torch.inference_mode()
def _prefill(runner: Runner, rows: Sequence[DecodedRow]) -> tuple[Tensor, Any, Tensor | None]:
    length = max(len(r.text) for r in rows)
    pads = [length - len(r.text) for r in rows]
    ids = torch.tensor([[0] * p + list(r.text) for p, r in zip(pads, rows, strict=True)], device=runner.device)
    pad = torch.tensor(pads, device=runner.device)
    steps = torch.arange(length, device=runner.device)
    # Without padding the mask is left out: attention kernels are faster then.
    mask = (steps >= pad[:, None]).long() if any(pads) else None
    positions = (steps - pad[:, None]).clamp(min=0)
    logits, cache = runner.forward(ids, mask, positions, None)
    return logits[:, -1], cache, mask


def _drop(cache: Any, keep: list[int], device: torch.device) -> bool:
    if not all(hasattr(layer, "batch_select_indices") for layer in getattr(cache, "layers", [None])):
        return False
    cache.batch_select_indices(torch.tensor(keep, device=device))
    return True
