"""Attention masses and lookback ratios of responses: how much each head attends to each part of the sequence.

    masses(lm, [prompt_ids], [response_ids])[0].context  # layer head step
    generate(lm, [prompt_ids], max_new_tokens=32).masses[0].ratio()  # layer head step

Stored responses are read by teacher forcing. ``generate`` records the same numbers while the model writes, without a
second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from operator import index
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...errors import InputError, ModelError
from ...hooks.attention_masses import Window, attention_masses
from ...hooks.budget import in_prefills
from ...hooks.capture import Request, capture, check_ids, check_last, id_rows
from ...hooks.length_limits import check_batch, keep_rotary_angles
from ...hooks.model import Model
from ...hooks.numerics import check_left, check_ready
from ...hooks.parts import empty_cache, logits_option

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
        raise InputError(f"{where}: few_shot span {few_shot} without a question span; give the question's span, too")
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
    try:
        one = isinstance(cue_tokens, int | Integral)
        cues = [index(cue_tokens)] * len(prompts) if one else [index(c) for c in cue_tokens]
    except TypeError as e:
        raise InputError(f"cue_tokens is {cue_tokens!r}; give a whole number, or one per prompt") from e
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


def _layouts(
    prompts: Sequence[Ids], new: Sequence[int], cue_tokens: int | Sequence[int],
    questions: Sequence[Span | None] | None, few_shot: Sequence[Span | None] | None,
) -> list[KeyRanges]:  # fmt: skip
    """The key ranges of every prompt with its ``new`` tokens of response."""
    cues, n = cue_counts(cue_tokens, prompts), len(prompts)
    asked, shown = spans_of(questions, n, "question_spans"), spans_of(few_shot, n, "few_shot_spans")
    return [layout(len(p), cues[i], len(p) + new[i], asked[i], shown[i], f"prompt {i}") for i, p in enumerate(prompts)]


def iter_masses(
    lm: Model, prompts: Sequence[Ids], responses: Sequence[Ids], cue_tokens: int | Sequence[int] = 0, *,
    question_spans: Sequence[Span | None] | None = None, few_shot_spans: Sequence[Span | None] | None = None,
    max_tokens: int | None = None, notes: list[str] | None = None,
) -> Iterator[tuple[int, Masses]]:  # fmt: skip
    """Masses of each pair as soon as they are computed, with the pair's index; see ``masses``."""
    prompts, responses = id_rows(prompts, "prompt"), id_rows(responses, "response")
    if len(prompts) != len(responses):
        raise InputError(f"{len(prompts)} prompts, {len(responses)} responses; give one of each")
    layouts = _layouts(prompts, list(map(len, responses)), cue_tokens, question_spans, few_shot_spans)
    requests = []
    for i, (prompt, response) in enumerate(zip(prompts, responses, strict=True)):
        if not len(response):
            raise InputError(f"response {i}: no tokens; a ratio needs at least one response token")
        check_last(lm, response, f"response {i}")
        window = Window(len(prompt) - 1, len(prompt) + len(response) - 1, layouts[i].ranges)
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
        cue_tokens: as in ``masses``, and so are ``question_spans`` and ``few_shot_spans``.
        eos: token ids that end a response (default: the model's).
        pick: chooses tokens from logits; greedy by default.
        max_tokens: left-padded prompts share a batch while prompts and responses together stay below this.

    No keys are evicted on sliding-window layers, so positions are absolute. Raises ``InputError`` for prompts that
    with their response exceed the context, ``ModelError`` for a model in training mode and for NaN.
    """
    check_ready(lm.model)
    if max_new_tokens < 1:
        raise InputError(f"max_new_tokens is {max_new_tokens}; generate at least one")
    prompts = id_rows(prompts, "prompt")
    layouts = _layouts(prompts, [max_new_tokens] * len(prompts), cue_tokens, question_spans, few_shot_spans)
    for i, prompt in enumerate(prompts):
        check_ids(lm, prompt, f"prompt {i}")
    limit, longest = lm.anatomy.context, max(map(len, prompts), default=0)
    if limit is not None and longest + max_new_tokens - 1 > limit:
        raise InputError(
            f"{longest} prompt and {max_new_tokens} response tokens are more than the model's context of {limit}; "
            "generate fewer"
        )
    ends = tuple(lm.eos_ids if eos is None else eos)
    out: dict[int, tuple[list[int], Masses]] = {}
    for batch in in_prefills(lm, [len(p) + max_new_tokens for p in prompts], max_tokens):
        writer = _BatchGenerator(lm, [prompts[i] for i in batch], [layouts[i] for i in batch])
        out.update(zip(batch, writer.write(max_new_tokens, ends, pick), strict=True))
    return RecordedGeneration([out[i][0] for i in range(len(out))], [out[i][1] for i in range(len(out))])


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
            None if ended else Window(last, last + 1, tuple((a + pad, b + pad) for a, b in lay.ranges))
            for ended, pad, lay in zip(done, self.pads, self.layouts, strict=True)
        ]
        positions = (self.mask.cumsum(-1) - 1).clamp(min=0)[:, -self.ids.shape[1] :]
        model: Any = self.lm.model
        options = logits_option(model, 1)
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
