"""How expected every token of single questions was: what Min-K% and Min-K%++ average over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...probes.examples import Example
from ...probes.min_k import token_scores
from .entries import Entry, Found, named
from .pieces import pieces


def surprise(lm: Any, examples: Sequence[Example]) -> Found:
    """Log-probability and z ``[token]`` (float32) of the question's own tokens, with their positions."""
    scores = token_scores(lm, [e.prompt_ids for e in examples], [e.question_span for e in examples])
    entries = [
        Entry(
            {**named(e), "tokens": pieces(lm.tokenizer, e.prompt_ids), "first": s.positions[0],
             "question": list(e.question_span)},
            {"log_prob": torch.from_numpy(s.log_prob).float(), "z": torch.from_numpy(s.z).float()},
            {"log_prob": ("token",), "z": ("token",)},
        )
        for e, s in zip(examples, scores, strict=True)
    ]  # fmt: skip
    return Found(entries)
