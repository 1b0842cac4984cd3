"""For models whose memory of a text is not keys and values alone; see ``continuous`` for all others.

``decode``: batches that start together, left-padded, with the model's own cache, finished rows dropped on the way.
``decode_anew``: one row after the other without any cache, each text read anew for every token: slow, and always right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from .decoding import Row, Runner, choose

# Dropping rows copies the cache once, as much as a step does: worth it from an eighth of the rows on.
KEEP_FULL = 0.875


def decode(runner: Runner, rows: Sequence[Row], n: int) -> Iterator[int]:
    """Decode the rows, ``n`` at a time; yields the index of each when it has finished.

    Raises ``ModelError`` when the logits of an unfinished row are not finite.
    """
    for start in range(0, len(rows), n):
        for i in _batch(runner, rows[start : start + n]):
            yield start + i


@torch.inference_mode()
def _read(runner: Runner, row: Row) -> Tensor:
    ids = torch.tensor([[*row.ids, *row.generated]], device=runner.device)
    return runner.model(input_ids=ids).logits[:, -1]


def decode_anew(runner: Runner, rows: Sequence[Row], n: int) -> Iterator[int]:
    """As ``decode``, whatever ``n``. Costs the square of a text's length."""
    for i, row in enumerate(rows):
        while not row.accept(choose(_read(runner, row), [row])[0]):
            pass
        yield i


def _batch(runner: Runner, rows: Sequence[Row]) -> Iterator[int]:
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
def _prefill(runner: Runner, rows: Sequence[Row]) -> tuple[Tensor, Any, Tensor | None]:
    length = max(len(r.ids) for r in rows)
    pads = [length - len(r.ids) for r in rows]
    ids = torch.tensor([[0] * p + list(r.ids) for p, r in zip(pads, rows, strict=True)], device=runner.device)
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
