"""How far the residual stream moves from token to token of single responses, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...probes.examples import Example
from ...probes.trajectory import step_cosines
from .entries import Entry, Found, named
from .pieces import pieces

STEPS = 40


def move(lm: Any, examples: Sequence[Example]) -> Found:
    """Step cosines ``[layer step]`` (float16) of every response of at least two tokens."""
    long = [e for e in examples if len(e.response_ids) > 1]
    left_out = [
        f"{e.case} ({e.role}): a response of one token makes no step" for e in examples if len(e.response_ids) <= 1
    ]
    if not long:
        return Found([], left_out)
    found = step_cosines(lm, [e.prompt_ids for e in long], [e.response_ids for e in long], steps=STEPS)
    entries = [
        Entry(
            {**named(e), "tokens": pieces(lm.tokenizer, e.response_ids[: s.norms.shape[1]]),
             "response_tokens": len(e.response_ids)},
            {"cosines": s.cosines.half()}, {"cosines": ("layer", "step")},
        )
        for e, s in zip(long, found, strict=True)
    ]  # fmt: skip
    return Found(entries, left_out)
