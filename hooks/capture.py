"""One teacher-forced pass for the reading probes: attention masses, block outputs and final hidden states.

    for i, got in capture(lm, [Request(ids, states=(4, 9))]):
        got.states  # layer pos d_model

Sequences are sorted by length and right-padded: with causal attention, padding influences nothing before it, so no mask
is needed, and the numbers are those of the unpadded sequence. The output head is not run (see ``head``), and only what
a request names is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ..devices import free_bytes, halving, is_out_of_memory
from ..errors import InputError, ModelError
from ..interrupts import uninterrupted
from .attention_masses import ROW_CHUNK, AllRead, Window, attention_masses
from .budget import told
from .length_limits import computed_alike, keep_rotary_angles
from .numerics import check_ready
from .parts import decoder_of
from .placement import is_dispatched

if TYPE_CHECKING:
    from .model import Model

Span = tuple[int, int]
MAX_TOKENS = 4096


@dataclass(frozen=True)
class Request:
    """One sequence and what is kept of it; spans are half-open ranges of positions."""

    ids: Sequence[int]
    states: Span | None = None
    """Positions whose block outputs (residual stream after each block, before the final norm) are kept."""
    masses: Window | None = None
    """Query rows and key ranges whose attention masses are kept."""
    hidden: Span | None = None
    """Positions whose final hidden states (after the last norm, what the head reads) are kept."""


@dataclass(frozen=True)
class Captured:
    """The results of one sequence, in the model's dtype (masses in float32); None for what was not requested."""

    states: Float[Tensor, "layer pos d_model"] | None
    masses: Float[Tensor, "region layer head step"] | None
    hidden: Float[Tensor, "hidden_pos d_model"] | None


def capture(
    lm: Model, requests: Sequence[Request], *, max_tokens: int | None = None, notes: list[str] | None = None
) -> Iterator[tuple[int, Captured]]:
    """Run ``requests`` in right-padded batches of ``max_tokens`` tokens or less; yields ``(index, Captured)``.

    The longest sequences come first, so that memory runs out either at once or never. By default batches are as large
    as the free memory allows, and at most 4096 tokens; where memory still runs out, a batch is halved and run again,
    and ``notes`` (or a warning) says so. Raises ``InputError`` for empty sequences, ids outside the vocabulary, spans
    outside the sequence and sequences longer than the context; ``ModelError`` for a model in training mode, for NaN or
    infinite activations, and for a single sequence that does not fit into memory.
    """
    check_ready(lm.model)
    for i, request in enumerate(requests):
        _check(request, f"sequence {i}", lm)
    limit = token_budget(lm) if max_tokens is None else max_tokens
    if max_tokens is None and limit < MAX_TOKENS and sum(len(r.ids) for r in requests) > limit:
        told(notes)(f"little memory is free: {limit} tokens a pass instead of {MAX_TOKENS}")
    left = [
        sorted(together, key=lambda i: (-len(requests[i].ids), i))
        for together in reversed(computed_alike(lm.model, [len(r.ids) for r in requests]))
    ]
    batch: list[int] = []

    def attempt(most: int | None) -> Iterator[tuple[int, Captured]]:
        nonlocal limit, batch
        limit = limit if most is None else most * len(requests[batch[0]].ids)
        for order in left:
            while order:
                batch = order[: max(1, limit // len(requests[order[0]].ids))]
                found = _run(lm, [requests[i] for i in batch])
                del order[: len(batch)]
                yield from zip(batch, found, strict=True)

    try:
        yield from halving(attempt, None, lambda _: len(batch), told(notes))
    except (RuntimeError, MemoryError) as e:
        if not is_out_of_memory(e):
            raise
        raise ModelError(
            f"sequence {batch[0]}: one pass over {len(requests[batch[0]].ids)} tokens does not fit into memory; "
            "shorten it, or use a smaller dtype or another device"
        ) from e


def capture_all(lm: Model, requests: Sequence[Request]) -> list[Captured]:
    """The results of ``capture`` in the order of the requests."""
    found = dict(capture(lm, requests))
    return [found[i] for i in range(len(requests))]


def token_budget(lm: Model, free: int | None = None) -> int:
    """Tokens that one pass may hold: a quarter of the free memory by a rough count of activations, at most 4096."""
    a = lm.anatomy
    free = free_bytes(lm.device) if free is None else free
    if free is None:
        return MAX_TOKENS
    size = torch.finfo(lm.dtype).bits // 8
    attention = ROW_CHUNK * a.n_heads * 4  # scores of one chunk of query rows, float32
    per_token = size * (16 * a.d_model + 4 * a.d_mlp + a.n_layers * a.d_model) + attention
    return max(1, min(MAX_TOKENS, free // 4 // per_token))


def check_last(lm: Any, response: Sequence[int], where: str) -> None:
    """``InputError`` if a response's last token, which is predicted but never run, is outside the vocabulary."""
    vocab = lm.anatomy.vocab_size
    if not 0 <= int(response[-1]) < vocab:
        raise InputError(f"{where}: token id {int(response[-1])}; the model has {vocab} embeddings; wrong tokenizer?")


def id_rows(rows: Iterable[Sequence[int]], what: str) -> list[Sequence[int]]:
    """Sequences of token ids as a list. ``InputError`` if one is text or no sequence; ``what`` says what each is.

    >>> id_rows([[5, 31], [77]], "prompt")
    [[5, 31], [77]]
    """
    found = list(rows)
    for i, row in enumerate(found):
        if isinstance(row, str):
            raise InputError(f"{what} {i}: {row[:20]!r} is text; give its token ids")
        try:
            len(row)
        except TypeError as e:  # a number, or an element of a flat tensor
            raise InputError(f"{what} {i}: {row!r} is no sequence; give token ids as in [[5, 31]]") from e
    return found


def check_ids(lm: Any, ids: Sequence[int], where: str) -> None:
    """``InputError`` if there are no token ids, or one is outside the vocabulary."""
    vocab = lm.anatomy.vocab_size
    if not len(ids):
        raise InputError(f"{where}: no token ids; give at least one")
    if isinstance(ids, str):
        raise InputError(f"{where}: {ids[:20]!r} is text; give its token ids")
    if not (0 <= min(ids) and max(ids) < vocab):
        raise InputError(f"{where}: ids lie in {min(ids)}..{max(ids)}; the model has {vocab} embeddings")


def _check(request: Request, where: str, lm: Model) -> None:
    n = len(request.ids)
    check_ids(lm, request.ids, where)
    limit = lm.anatomy.context
    if limit is not None and n > limit:
        raise InputError(
            f"{where}: {n} tokens are more than the model's context of {limit}; shorten prompt or response"
        )
    rows = None if request.masses is None else (request.masses.first, request.masses.last)
    for name, span in (("states", request.states), ("hidden", request.hidden), ("masses", rows)):
        if span is not None and not 0 <= span[0] < span[1] <= n:
            raise InputError(f"{where}: {name} span {span[0]}:{span[1]} is empty or outside its {n} tokens")


@torch.no_grad()
def _run(lm: Model, requests: Sequence[Request]) -> list[Captured]:
    width = max(len(r.ids) for r in requests)
    # Padded with the last real token: any id does, and a pad id would make some models warn about a missing mask.
    ids = torch.tensor([[*r.ids, *[r.ids[-1]] * (width - len(r.ids))] for r in requests])
    states: list[list[Tensor]] = [[] for _ in requests]
    wanted = [r.masses for r in requests]
    with ExitStack() as stack:
        if any(r.states for r in requests):
            blocks = [layer.block for layer in lm.anatomy.layers]
            stack.enter_context(_block_outputs(blocks, [r.states for r in requests], states))
        # Where only masses are wanted, nothing after the last layer's keys is needed.
        only = not (any(r.states or r.hidden for r in requests) or is_dispatched(lm.model))
        tapped = attention_masses(lm.model, wanted, only=only) if any(wanted) else nullcontext([None] * len(requests))
        masses = stack.enter_context(tapped)
        stack.enter_context(keep_rotary_angles(lm.model))
        hidden = torch.empty(0)
        with suppress(AllRead):
            hidden = decoder_of(lm.model)(input_ids=ids.to(lm.device), use_cache=False).last_hidden_state
    return [
        Captured(
            states=torch.stack([s.to(lm.device) for s in states[b]]) if r.states else None,
            masses=_finite(masses[b], "attention masses"),
            hidden=_finite(hidden[b, slice(*r.hidden)].clone(), "hidden states") if r.hidden else None,
        )
        for b, r in enumerate(requests)
    ]


def _finite(x: Tensor | None, what: str) -> Tensor | None:
    if x is not None and not torch.isfinite(x).all():
        raise ModelError(f"NaN or infinite {what}; check the weights and the dtype (float16 overflows, try float32)")
    return x


@uninterrupted
def _block_outputs(
    layers: Sequence[nn.Module], spans: Sequence[Span | None], into: list[list[Tensor]]
) -> Iterator[None]:
    """Inside, the given positions of every block's output are kept, per sequence in layer order."""

    def keep(module: nn.Module, args: Any, output: Any) -> None:
        x = output[0] if isinstance(output, tuple) else output
        for b, span in enumerate(spans):
            if span is not None:
                part = x[b, slice(*span)].clone()
                into[b].append(_finite(part, f"states after block {len(into[b])}"))  # type: ignore[arg-type]

    with ExitStack() as hooks:
        for layer in layers:
            hooks.enter_context(layer.register_forward_hook(keep))
        yield
