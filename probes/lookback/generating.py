"""Attention masses recorded while the model generates: the same numbers as teacher forcing, without a second pass.

generate(lm, [prompt_ids], max_new_tokens=32).masses[0].ratio()  # layer head step
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...errors import InputError, ModelError
from ...hooks.attention_masses import Window, attention_masses
from ...hooks.capture import check_ids
from ...hooks.length_limits import check_batch, keep_rotary_angles
from ...hooks.model import check_left
from ...hooks.parts import empty_cache
from ...hooks.surroundings import check_ready
from .teacher_forced import Ids, KeyRanges, Masses, Span, cue_counts, layout, spans_of

if TYPE_CHECKING:
    from ...hooks.model import Model

Pick = Callable[[Float[Tensor, "batch vocab"]], Int[Tensor, "batch"]]


@dataclass(frozen=True)
class RecordedGeneration:
    """Responses and the attention masses recorded during generation, one per prompt."""

    responses: list[list[int]]
    """Token ids, the final end token included where one was generated."""
    masses: list[Masses]


def greedy(logits: Float[Tensor, "batch vocab"]) -> Int[Tensor, "batch"]:
    """The most likely token of each row."""
    return logits.argmax(-1)


@torch.no_grad()
def generate(
    lm: Model, prompts: Sequence[Ids], max_new_tokens: int, cue_tokens: int | Sequence[int] = 0, *,
    question_spans: Sequence[Span | None] | None = None, few_shot_spans: Sequence[Span | None] | None = None,
    eos: Sequence[int] | None = None, pick: Pick = greedy, max_tokens: int = 4096,
) -> RecordedGeneration:  # fmt: skip
    """Generate with a cache and record at every step the masses of the query that predicts the next token.

    Args:
        cue_tokens, question_spans, few_shot_spans: as in ``masses``.
        eos: token ids that end a response (default: the model's).
        pick: chooses tokens from logits; greedy by default.
        max_tokens: left-padded prompts share a batch while prompts and responses together stay below this.

    No keys are evicted on sliding-window layers, so positions are absolute. Raises ``InputError`` for prompts that
    with their response exceed the context, ``ModelError`` for a model in training mode and for NaN.
    """
    check_ready(lm.model)
    if max_new_tokens < 1:
        raise InputError(f"max_new_tokens is {max_new_tokens}; generate at least one")
    cues, n = cue_counts(cue_tokens, prompts), len(prompts)
    questions = spans_of(question_spans, n, "question_spans")
    examples = spans_of(few_shot_spans, n, "few_shot_spans")
    layouts = [
        layout(len(p), cues[i], len(p) + max_new_tokens, questions[i], examples[i], f"prompt {i}")
        for i, p in enumerate(prompts)
    ]
    for i, prompt in enumerate(prompts):
        check_ids(lm, prompt, f"prompt {i}")
    _check_context(lm, prompts, max_new_tokens)
    ends = tuple(lm.eos_ids if eos is None else eos)
    out: dict[int, tuple[list[int], Masses]] = {}
    for batch in _batches(prompts, max_new_tokens, max_tokens):
        writer = _BatchGenerator(lm, [prompts[i] for i in batch], [layouts[i] for i in batch])
        out.update(zip(batch, writer.write(max_new_tokens, ends, pick), strict=True))
    return RecordedGeneration([out[i][0] for i in range(n)], [out[i][1] for i in range(n)])


def _check_context(lm: Model, prompts: Sequence[Ids], new: int) -> None:
    limit, longest = lm.anatomy.context, max(map(len, prompts), default=0)
    if limit is not None and longest + new - 1 > limit:
        raise InputError(
            f"{longest} prompt and {new} response tokens are more than the model's context of {limit}; generate fewer"
        )


def _batches(prompts: Sequence[Ids], new: int, max_tokens: int) -> list[list[int]]:
    batches: list[list[int]] = []
    for i in sorted(range(len(prompts)), key=lambda i: -len(prompts[i])):
        width = new + len(prompts[batches[-1][0]]) if batches else 0
        if not batches or (len(batches[-1]) + 1) * width > max_tokens:
            batches.append([])
        batches[-1].append(i)
    return batches


class _BatchGenerator:
    """Generates one batch of left-padded prompts token by token."""

    def __init__(self, lm: Model, prompts: Sequence[Ids], layouts: Sequence[KeyRanges]):
        self.lm, self.layouts = lm, layouts
        self.width = max(map(len, prompts))
        self.pads = [self.width - len(p) for p in prompts]
        rows = [[p[0]] * pad + list(p) for p, pad in zip(prompts, self.pads, strict=True)]
        self.ids = torch.tensor(rows, device=lm.device)
        self.mask = torch.ones_like(self.ids)
        for row, pad in enumerate(self.pads):
            self.mask[row, :pad] = 0
        self.cache = empty_cache(lm.model)
        self.sums: list[list[Tensor]] = [[] for _ in prompts]

    def write(self, new: int, ends: Sequence[int], pick: Pick) -> list[tuple[list[int], Masses]]:
        responses: list[list[int]] = [[] for _ in self.pads]
        done = [False] * len(self.pads)
        for step in range(new):
            token = pick(self._step(step, done))
            for row, value in enumerate(token.tolist()):
                if not done[row]:
                    responses[row].append(int(value))
                    done[row] = int(value) in ends
            if all(done):
                break
            self.ids = token[:, None].to(self.lm.device)
            self.mask = torch.cat([self.mask, self.mask.new_ones(len(self.pads), 1)], 1)
        return [(r, lay.masses(torch.cat(s, -1))) for r, lay, s in zip(responses, self.layouts, self.sums, strict=True)]

    def _step(self, step: int, done: Sequence[bool]) -> Float[Tensor, "batch vocab"]:
        """Run one forward pass and record the masses of every unfinished row's last query."""
        last = self.width - 1 + step
        windows = [
            None if ended else Window(last, last + 1, tuple((a + pad if a else 0, b + pad) for a, b in lay.ranges))
            for ended, pad, lay in zip(done, self.pads, self.layouts, strict=True)
        ]
        positions = (self.mask.cumsum(-1) - 1).clamp(min=0)[:, -self.ids.shape[1] :]
        model: Any = self.lm.model
        options = {"logits_to_keep": 1} if model._supports_logits_to_keep() else {}
        check_left(model, self.lm.anatomy, self.mask)
        check_batch(model, self.ids, self.mask, int(self.cache.get_seq_length()))
        with attention_masses(model, windows) as found, keep_rotary_angles(model):
            logits = model(
                input_ids=self.ids, attention_mask=self.mask if any(self.pads) else None, position_ids=positions,
                past_key_values=self.cache, use_cache=True, **options,
            ).logits[:, -1]  # fmt: skip
        for kept, masses in zip(self.sums, found, strict=True):
            if masses is not None:
                if not torch.isfinite(masses).all():
                    raise ModelError(
                        f"NaN or infinite attention masses at step {step}; check the weights and the dtype"
                    )
                kept.append(masses.cpu())
        if torch.isnan(logits).any():
            raise ModelError(f"NaN in the logits at step {step}; check the weights and the dtype")
        return logits
