"""Attention masses and lookback ratios of stored responses: how much each head attends to each part of the sequence.

masses(lm, [prompt_ids], [response_ids])[0].context  # layer head step
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import InputError
from ...hooks.attention_masses import Window
from ...hooks.capture import Request, capture, check_last

if TYPE_CHECKING:
    from ...hooks.model import Model

Form = Literal["mean", "sum"]
Ids = Sequence[int]
Span = tuple[int, int]
REGIONS = ("sink", "template", "few_shot", "question", "cue", "response")


@dataclass(frozen=True)
class Masses:
    """Attention mass of each head on context keys and on new keys, per step; without sinks the two sum to 1."""

    context: Float[Tensor, "layer head step"]
    new: Float[Tensor, "layer head step"]
    context_tokens: int
    prompt_tokens: int
    regions: Mapping[str, Float[Tensor, "layer head step"]] = field(default_factory=dict)
    """Mass on ``sink`` (position 0), ``few_shot``, ``question``, ``template`` (the rest of the context), ``cue`` and
    ``response``, each layer head step; only where the question's span was given, and ``few_shot`` only with its."""

    def ratio(self, form: Form = "mean") -> Float[Tensor, "layer head step"]:
        """Lookback ratio.

        ``mean`` divides each mass by its number of keys (the published form; it depends on both lengths), ``sum``
        uses the masses themselves. NaN if nothing is new yet: step 0 without cue tokens.
        """
        if form not in ("mean", "sum"):
            raise InputError(f"form: {form!r}; use mean or sum")
        steps = self.context.shape[-1]
        new_keys = torch.arange(steps) + self.prompt_tokens - self.context_tokens
        context, new = self.context, self.new
        if form == "mean":
            context, new = context / self.context_tokens, new / new_keys.clamp(min=1)
        return (context / (context + new)).masked_fill(new_keys == 0, torch.nan)


@dataclass(frozen=True)
class KeyRanges:
    """The key ranges that are summed, and their regions."""

    prompt: int
    context: int
    ranges: tuple[Span, ...]
    """Context and new keys first, then the parts."""
    names: tuple[str, ...]
    """Region of each part."""

    def masses(self, sums: Float[Tensor, "range layer head step"]) -> Masses:
        """From sums over the ranges, ``range layer head step``."""
        context, new, *parts = sums
        regions: dict[str, Tensor] = {}
        for name, part in zip(self.names, parts, strict=True):
            regions[name] = regions[name] + part if name in regions else part
        ordered = {name: regions[name] for name in REGIONS if name in regions}
        return Masses(context, new, self.context, self.prompt, ordered)


def layout(
    prompt: int, cue: int, end: int, question: Span | None = None, few_shot: Span | None = None, where: str = "prompt"
) -> KeyRanges:
    """Key ranges of a prompt of ``prompt`` tokens, ``cue`` of them new, in a sequence of ``end``; they tile all keys.

    Raises ``InputError`` for spans that are empty, outside the prompt, or that overlap, and for worked examples without
    a question.
    """
    context = prompt - cue
    ranges: list[Span] = [(0, context), (context, end)]
    if question is None and few_shot is not None:
        raise InputError(f"{where}: few_shot span {few_shot} without a question span; regions need the question's")
    if question is None:
        return KeyRanges(prompt, context, tuple(ranges), ())
    names = ["sink"]
    ranges.append((0, 1))
    marks = sorted((*span, name) for name, span in (("few_shot", few_shot), ("question", question)) if span is not None)
    at = 1
    for first, last, name in marks:
        if not 0 <= first < last <= prompt:
            raise InputError(f"{where}: {name} span {(first, last)} is empty or outside its {prompt} tokens")
        if first < at and at > 1:
            raise InputError(f"{where}: few_shot span {few_shot} and question span {question} overlap")
        first, last = min(max(first, 1), context), min(last, context)
        ranges += [(at, first), (first, last)]
        names += ["template", name]
        at = max(at, last)
    ranges += [(at, context), (context, prompt), (prompt, end)]
    return KeyRanges(prompt, context, tuple(ranges), (*names, "template", "cue", "response"))


def cue_counts(cue_tokens: int | Sequence[int], prompts: Sequence[Ids]) -> list[int]:
    """Cue tokens of every prompt, checked: at least one token must be context."""
    cues = [int(cue_tokens)] * len(prompts) if isinstance(cue_tokens, int | Integral) else [int(c) for c in cue_tokens]
    if len(cues) != len(prompts):
        raise InputError(f"{len(prompts)} prompts, {len(cues)} cue_tokens; give one of each")
    for i, (prompt, cue) in enumerate(zip(prompts, cues, strict=True)):
        if not 0 <= cue < len(prompt):
            raise InputError(f"prompt {i}: cue_tokens is {cue} of {len(prompt)} tokens; at least one must be context")
    return cues


def spans_of(spans: Sequence[Span | None] | None, n: int, what: str) -> Sequence[Span | None]:
    """One span or None per prompt."""
    if spans is not None and len(spans) != n:
        raise InputError(f"{n} prompts, {len(spans)} {what}; give one (or None) of each")
    return [None] * n if spans is None else spans


def iter_masses(
    lm: Model, prompts: Sequence[Ids], responses: Sequence[Ids], cue_tokens: int | Sequence[int] = 0, *,
    question_spans: Sequence[Span | None] | None = None, few_shot_spans: Sequence[Span | None] | None = None,
    max_tokens: int | None = None, notes: list[str] | None = None,
) -> Iterator[tuple[int, Masses]]:  # fmt: skip
    """Masses of each pair as soon as they are computed, with the pair's index; see ``masses``."""
    if len(prompts) != len(responses):
        raise InputError(f"{len(prompts)} prompts, {len(responses)} responses; give one of each")
    cues, n = cue_counts(cue_tokens, prompts), len(prompts)
    questions = spans_of(question_spans, n, "question_spans")
    examples = spans_of(few_shot_spans, n, "few_shot_spans")
    requests, layouts = [], []
    for i, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
        if not len(response):
            raise InputError(f"response {i}: no tokens; a ratio needs at least one response token")
        check_last(lm, response, f"response {i}")
        end = len(prompt) + len(response)
        found = layout(len(prompt), cues[i], end, questions[i], examples[i], f"prompt {i}")
        layouts.append(found)
        window = Window(len(prompt) - 1, end - 1, found.ranges)
        requests.append(Request([*prompt, *response[:-1]], masses=window))
    for i, got in capture(lm, requests, max_tokens=max_tokens, notes=notes):
        assert got.masses is not None
        yield i, layouts[i].masses(got.masses.cpu())


def masses(
    lm: Model, prompts: Sequence[Ids], responses: Sequence[Ids], cue_tokens: int | Sequence[int] = 0, *,
    question_spans: Sequence[Span | None] | None = None, few_shot_spans: Sequence[Span | None] | None = None,
    max_tokens: int | None = None,
) -> list[Masses]:  # fmt: skip
    """Context and new attention masses of every head at every step, teacher-forced on the token ids given.

    Exact under sdpa and eager, without holding attention maps. Keys outside a sliding window have no mass but count
    as keys. With ``question_spans`` (half-open, prompt positions; ``few_shot_spans`` for worked examples before them)
    masses are also split by region. Raises ``InputError`` for empty responses, spans outside their prompt and cue
    tokens that leave no context, and what ``capture`` does.
    """
    found = dict(
        iter_masses(
            lm, prompts, responses, cue_tokens, question_spans=question_spans, few_shot_spans=few_shot_spans,
            max_tokens=max_tokens,
        )
    )  # fmt: skip
    return [found[i] for i in range(len(prompts))]


def ratios(
    lm: Model, prompts: Sequence[Ids], responses: Sequence[Ids], cue_tokens: int | Sequence[int] = 0, *,
    form: Form = "mean", max_tokens: int | None = None,
) -> list[Float[Tensor, "layer head _"]]:  # fmt: skip
    """Lookback ratios ``layer head step`` (float32), one tensor per pair of prompt and response token ids.

    ``cue_tokens`` trailing prompt tokens count as new (one number, or one per prompt). Column i belongs to the
    attention that predicts response token i. Where nothing is new yet (step 0 with no cue tokens) the ratio is NaN.
    """
    return [m.ratio(form) for m in masses(lm, prompts, responses, cue_tokens, max_tokens=max_tokens)]
