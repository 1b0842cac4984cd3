"""Single prompts and responses, token by token: where heads look, how far states move, how expected tokens were.

Attention is kept per key for a few cases, in float16: query N - 1 + i predicts response token i, and ``ratio`` is
formed from the masses that are kept here, as in ``probes.lookback``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ...hooks.attention_masses import Window
from ...hooks.capture import Request, capture_all
from ..examples import Example
from ..lookback.teacher_forced import Masses
from ..min_k import token_scores
from ..trajectory import step_cosines
from .entries import SingleCase, SingleCases, named, pieces

LOOKBACK_STEPS = 64
"""Response tokens whose attention is kept."""
COSINE_STEPS = 40
"""Response tokens whose movement is kept."""
KEYS = 1024
"""Ranges of keys told apart; longer prompts have tokens outside the question merged."""
ENTRY_BYTES, TOTAL_BYTES = 1_000_000, 8_000_000
HELD_BYTES = 2**28
"""Masses of one case that may be in memory before heads are chosen."""
Span = tuple[int, int]


def look(lm: Any, examples: Sequence[Example], differences: Mapping[str, Float[Tensor, "layer head"]]) -> SingleCases:
    """Ratio ``[layer head step]`` and attention ``[head step key]`` of every example.

    ``differences``: by kind the map ``[layer head]`` of failures minus successes; where not all heads fit, those with
    the largest absolute difference are kept.
    """
    budget = min(ENTRY_BYTES, TOTAL_BYTES // max(1, len(examples)))
    return SingleCases([_entry(lm, e, differences.get(e.kind), budget) for e in examples])


def _entry(lm: Any, example: Example, difference: Tensor | None, budget: int) -> SingleCase:
    a, prompt = lm.anatomy, len(example.prompt_ids)
    spans = key_spans(prompt, example.question_span, prompt + min(len(example.response_ids), LOOKBACK_STEPS))
    steps = min(
        len(example.response_ids), LOOKBACK_STEPS, max(1, HELD_BYTES // (4 * a.n_layers * a.n_heads * len(spans)))
    )
    response = example.response_ids[:steps]
    spans = [s for s in spans if s[0] < prompt + steps]
    window = Window(prompt - 1, prompt - 1 + steps, tuple(spans))
    (got,) = capture_all(lm, [Request([*example.prompt_ids, *response[:-1]], masses=window)])
    assert got.masses is not None
    masses = got.masses.cpu().float()  # key layer head step
    heads = chosen_heads(masses.shape[1:3], difference, max(1, budget // (2 * steps * len(spans))))
    index = torch.tensor(heads)
    attention = masses[:, index[:, 0], index[:, 1]].permute(1, 2, 0)
    words = pieces(lm.tokenizer, [*example.prompt_ids, *response])
    about = {
        **named(example), "prompt_tokens": prompt, "response_tokens": len(example.response_ids), "steps": steps,
        "context_tokens": prompt - example.cue_tokens, "question": list(example.question_span), "tokens": words,
        "spans": None if all(b - a == 1 for a, b in spans) else [list(s) for s in spans],
        "heads": [list(h) for h in heads], "of_heads": a.n_layers * a.n_heads,
    }  # fmt: skip
    tensors = {"ratio": _ratio(masses, spans, example).half(), "attention": attention.half()}
    return SingleCase(about, tensors, {"ratio": ("layer", "head", "step"), "attention": ("head", "step", "key")})


def _ratio(masses: Tensor, spans: Sequence[Span], example: Example) -> Tensor:
    prompt = len(example.prompt_ids)
    context = torch.tensor([b <= prompt - example.cue_tokens for _, b in spans])
    return Masses(masses[context].sum(0), masses[~context].sum(0), int(prompt - example.cue_tokens), prompt).ratio()


def key_spans(prompt: int, question: Span, end: int, most: int = KEYS) -> list[Span]:
    """Half-open key ranges that tile ``0:end``: one per token where they are at most ``most``.

    In longer sequences tokens before the question are merged, as few at a time as it takes; the question, what follows
    it and the response stay single tokens (and may exceed ``most`` alone).
    """
    if end <= most:
        return [(i, i + 1) for i in range(end)]
    single = end - question[0]
    size = -(-question[0] // max(1, most - single))
    merged = [(i, min(i + size, question[0])) for i in range(0, question[0], size)]
    return merged + [(i, i + 1) for i in range(question[0], end)]


def chosen_heads(
    shape: Sequence[int], difference: Float[Tensor, "layer head"] | None, most: int
) -> list[tuple[int, int]]:
    """(layer, head) pairs in order: all, or those with the largest absolute difference (without one, the last)."""
    layers, heads = int(shape[0]), int(shape[1])
    if layers * heads <= most:
        return [(i, j) for i in range(layers) for j in range(heads)]
    weight = torch.arange(layers * heads).float() if difference is None else difference.abs().nan_to_num(-1).flatten()
    return sorted((int(i) // heads, int(i) % heads) for i in weight.topk(most).indices)


def move(lm: Any, examples: Sequence[Example]) -> SingleCases:
    """Step cosines ``[layer step]`` (float16) of every response of at least two tokens."""
    long = [e for e in examples if len(e.response_ids) > 1]
    left_out = [
        f"{e.case} ({e.role}): a response of one token makes no step" for e in examples if len(e.response_ids) <= 1
    ]
    if not long:
        return SingleCases([], left_out)
    found = step_cosines(lm, [e.prompt_ids for e in long], [e.response_ids for e in long], steps=COSINE_STEPS)
    entries = [
        SingleCase(
            {**named(e), "tokens": pieces(lm.tokenizer, e.response_ids[: s.norms.shape[1]]),
             "response_tokens": len(e.response_ids)},
            {"cosines": s.cosines.half()}, {"cosines": ("layer", "step")},
        )
        for e, s in zip(long, found, strict=True)
    ]  # fmt: skip
    return SingleCases(entries, left_out)


def surprise(lm: Any, examples: Sequence[Example]) -> SingleCases:
    """Log-probability and z ``[token]`` (float32) of the question's own tokens, with their positions."""
    scores = token_scores(lm, [e.prompt_ids for e in examples], [e.question_span for e in examples])
    entries = [
        SingleCase(
            {**named(e), "tokens": pieces(lm.tokenizer, e.prompt_ids), "first": s.positions[0],
             "question": list(e.question_span)},
            {"log_prob": torch.from_numpy(s.log_prob).float(), "z": torch.from_numpy(s.z).float()},
            {"log_prob": ("token",), "z": ("token",)},
        )
        for e, s in zip(examples, scores, strict=True)
    ]  # fmt: skip
    return SingleCases(entries)
