"""Whether continuous batching is exact for a model: judged from the cache that the library makes, then tested.

    find_trust(model).reason  # None, or why the model needs another way of batching

There is no table of model names. A model qualifies if its cache holds keys and values alone, if it accepts positions
and a mask, and if a few tokens get the same logits as without batching.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache

from ...devices import is_out_of_memory
from . import continuous, decoding
from .continuous import Reader, Slots, step
from .decoding import Row, Runner

TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-6}
"""Largest accepted difference of a logit, as a share of the range of all logits; 0.05 in 16 bits."""
PLAIN = {"DynamicLayer", "DynamicSlidingWindowLayer", "DummyLayer"}
"""Layers of a cache that hold keys and values and nothing else, or nothing at all."""
SEEN = {"full_attention", "sliding_attention"}
"""Types of layers whose masks ``Runner.mask`` can make."""


@dataclass(frozen=True)
class Trust:
    """The way of batching for a model."""

    decode: Callable[[Runner, Sequence[Row], int], Iterator[int]] = continuous.decode
    reason: str | None = None
    """Why continuous batching is not used; None where it is."""
    window: int | None = None
    """See ``Runner``."""
    mixed: bool = False


def find_trust(model: Any) -> Trust:
    """Look at the cache that the library makes for this model, and try a few tokens both ways."""
    try:
        trust = _of_cache(model.config.get_text_config(decoder=True))
        if trust.reason is None:
            error = _largest_difference(Runner(model, window=trust.window, mixed=trust.mixed))
            if not error <= TOLERANCE.get(model.dtype, 0.05):  # NaN counts as a difference
                trust = Trust(reason=f"its logits differ (by {error:.2g} of their range)")
    except Exception as e:  # models raise exceptions of any kind for what they do not support
        trust = Trust(reason=f"it does not take a cache and a mask of ours ({type(e).__name__})")
    if trust.reason is None:
        return trust
    if _batches_hold(model):
        return Trust(decoding.decode, f"in fixed batches, since {trust.reason}")
    return Trust(decoding.decode_anew, f"one by one and without a cache, since {trust.reason}")


def _of_cache(config: Any) -> Trust:
    layers = DynamicCache(config=config).layers
    others = {type(layer).__name__ for layer in layers} - PLAIN
    others |= set(getattr(config, "layer_types", None) or ()) - SEEN
    if others:
        return Trust(reason=f"it remembers other things than keys and values ({', '.join(sorted(others))})")
    windows = {getattr(layer, "sliding_window", None) for layer in layers}
    if len(windows - {None}) > 1:
        return Trust(reason="its layers have sliding windows of several sizes")
    return Trust(window=max((w for w in windows if w is not None), default=None), mixed=len(windows) > 1)


def _batches_hold(model: Any) -> bool:
    """Whether a padded batch whose rows finish apart gives the tokens of each row alone."""
    tokens = _tokens(model)
    ways = {}
    for decode in (decoding.decode, decoding.decode_anew):
        rows = [Row(tuple(tokens[:3]), 4, frozenset()), Row(tuple(tokens[3:12]), 2, frozenset())]
        try:
            list(decode(Runner(model), rows, len(rows)))
        except Exception as e:
            return is_out_of_memory(e)  # then nothing was found out
        ways[decode] = [row.generated for row in rows]
    return ways[decoding.decode] == ways[decoding.decode_anew]


def _tokens(model: Any) -> list[int]:
    n = model.get_input_embeddings().num_embeddings
    return [(7 * i + 3) % n for i in range(16)]


@torch.inference_mode()
def _largest_difference(runner: Runner) -> float:
    """Between logits here and those of each text alone, as a share of their range."""
    token = _tokens(runner.model)
    # prompts that begin one another, branches within and after one reading, slots of different lengths
    prompts = [tuple(token[:3]), (*token[:5], *token[12:]), tuple(token[:8]), (*token[:6], token[10])]
    new = token[8:12]
    reader, slots, found = Reader(runner), Slots(len(prompts)), []
    for some in (prompts[:3], prompts[3:]):
        logits, columns = reader.read(some)
        slots.store(reader.cache, columns)
        found.append(logits)
    slots.release(0)
    order = [3, 1, 2]
    found.append(step(runner, slots, [new[i] for i in order]))
    texts = [torch.tensor([[*p, t]], device=runner.device) for p, t in zip(prompts, new, strict=True)]
    alone = [runner.model(input_ids=ids).logits[0, -2:] for ids in texts]
    wanted = torch.stack([*(two[0] for two in alone), *(alone[i][1] for i in order)]).float()
    wide = wanted.amax(-1) - wanted.amin(-1)
    return float(((torch.cat(found).float() - wanted).abs().amax(-1) / wide).max())
