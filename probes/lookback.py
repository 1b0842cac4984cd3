"""Lookback ratio: how much each head looks back at the prompt while the response is written.

Chuang et al. 2024 (Lookback Lens, eq. 1-3): for the query that predicts response token i, with the attention weights
of one head split at the end of the context, A = mean weight on context keys, B = mean weight on new keys (response
tokens so far, and the trailing ``cue_tokens`` of the prompt), ratio = A / (A + B). The query that predicts token i
stands at position N - 1 + i of a prompt of N tokens; it is itself a key, and so new from step 1 on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from ..errors import InputError
from ..hooks.attention import Window
from ..hooks.capture import Request, capture
from .examples import Example
from .result import ProbeResult
from .tables import Values, cell_maps, group_rows

if TYPE_CHECKING:
    from ..hooks.model import Model

Form = Literal["mean", "sum"]
Ids = Sequence[int]


@dataclass(frozen=True)
class Masses:
    """Attention mass of each head on context and on new keys, per step; without sinks the two sum to 1."""

    context: Tensor
    """layer head step"""
    new: Tensor
    """layer head step"""
    context_tokens: int
    prompt_tokens: int
    regions: Mapping[str, Tensor] = field(default_factory=dict)
    """Mass on ``sink`` (position 0), ``template`` (the rest of the context), ``question``, ``cue`` and ``response``,
    each layer head step; only where the question's span was given."""

    def ratio(self, form: Form = "mean") -> Tensor:
        """Lookback ratio [layer head step].

        ``mean`` divides each mass by its number of keys (the published form; it depends on both lengths), ``sum``
        takes the masses as they are. NaN where nothing is new yet: step 0 without cue tokens.
        """
        steps = self.context.shape[-1]
        new_keys = torch.arange(steps) + self.prompt_tokens - self.context_tokens
        context, new = self.context, self.new
        if form == "mean":
            context, new = context / self.context_tokens, new / new_keys.clamp(min=1)
        return (context / (context + new)).masked_fill(new_keys == 0, torch.nan)


def _cues(cue_tokens: int | Sequence[int], prompts: Sequence[Ids], responses: Sequence[Ids]) -> list[int]:
    cues = [cue_tokens] * len(prompts) if isinstance(cue_tokens, int) else list(cue_tokens)
    if not len(prompts) == len(responses) == len(cues):
        raise InputError(
            f"{len(prompts)} prompts, {len(responses)} responses, {len(cues)} cue_tokens; give one of each"
        )
    for i, (prompt, response, cue) in enumerate(zip(prompts, responses, cues, strict=True)):
        if not response:
            raise InputError(f"response {i}: no tokens; a ratio needs at least one response token")
        if not 0 <= cue < len(prompt):
            raise InputError(f"prompt {i}: cue_tokens is {cue} of {len(prompt)} tokens; at least one must be context")
    return cues


def iter_masses(
    lm: Model, prompts: Sequence[Ids], responses: Sequence[Ids], cue_tokens: int | Sequence[int] = 0, *,
    question_spans: Sequence[tuple[int, int] | None] | None = None, max_tokens: int = 4096,
) -> Iterator[tuple[int, Masses]]:  # fmt: skip
    """Masses pair by pair as they finish, with the pair's index; see ``masses``."""
    cues = _cues(cue_tokens, prompts, responses)
    spans = [None] * len(prompts) if question_spans is None else question_spans
    requests = []
    for i, (prompt, response, cue) in enumerate(zip(prompts, responses, cues, strict=True)):
        n, context, end = len(prompt), len(prompt) - cue, len(prompt) + len(response)
        ranges = ((0, context), (context, end), *_region_ranges(spans[i], context, n, end, i))
        requests.append(Request([*prompt, *response[:-1]], masses=Window(n - 1, end - 1, ranges)))
    for i, got in capture(lm, requests, max_tokens=max_tokens):
        assert got.masses is not None
        context, new, *parts = got.masses.cpu()
        regions = {}
        if parts:
            sink, before, question, after, cue, response = parts
            regions = {"sink": sink, "template": before + after, "question": question, "cue": cue, "response": response}
        yield i, Masses(context, new, len(prompts[i]) - cues[i], len(prompts[i]), regions)


def _region_ranges(
    span: tuple[int, int] | None, context: int, prompt: int, end: int, i: int
) -> tuple[tuple[int, int], ...]:
    """Sink, template before the question, question, template after it, cue, response; they tile all keys."""
    if span is None:
        return ()
    first, last = span
    if not 0 <= first < last <= prompt:
        raise InputError(f"prompt {i}: question span {span} is empty or outside its {prompt} tokens")
    first, last = min(max(first, 1), context), min(last, context)
    return (0, 1), (1, first), (first, last), (last, context), (context, prompt), (prompt, end)


def masses(
    lm: Model, prompts: Sequence[Ids], responses: Sequence[Ids], cue_tokens: int | Sequence[int] = 0, *,
    question_spans: Sequence[tuple[int, int] | None] | None = None, max_tokens: int = 4096,
) -> list[Masses]:  # fmt: skip
    """Context and new attention masses of every head at every step, teacher-forced on the token ids given.

    Exact under sdpa and eager; attention maps are never held. Keys outside a sliding window have no mass but count as
    keys. With ``question_spans`` (half-open, prompt positions) masses are also split by region. Raises ``InputError``
    for empty responses and for cue tokens that leave no context, and what ``capture`` does.
    """
    pairs = iter_masses(lm, prompts, responses, cue_tokens, question_spans=question_spans, max_tokens=max_tokens)
    found = dict(pairs)
    return [found[i] for i in range(len(prompts))]


def ratios(
    lm: Model, prompts: Sequence[Ids], responses: Sequence[Ids], cue_tokens: int | Sequence[int] = 0, *,
    form: Form = "mean", max_tokens: int = 4096,
) -> list[Tensor]:  # fmt: skip
    """Lookback ratios [layer head step] (float32), one tensor per pair of prompt and response token ids.

    ``cue_tokens`` trailing prompt tokens count as new (one number, or one per prompt). Column i belongs to the
    attention that predicts response token i. Where nothing is new yet (step 0 with no cue tokens) the ratio is NaN.
    """
    return [m.ratio(form) for m in masses(lm, prompts, responses, cue_tokens, max_tokens=max_tokens)]


def over_examples(
    lm: Model, examples: Sequence[Example], *, form: Form = "mean", steps: int | None = None,
    max_tokens: int = 4096, permutations: int = 1000, seed: int = 0,
) -> ProbeResult:  # fmt: skip
    """Lookback ratios of labelled examples, by kind and group.

    The scalar of an example is the NaN-mean over layers, heads and steps (Lookback Lens' trivial baseline; AgentCoMa,
    Table 3, prints it times 100). Table: per kind and group; failure against success per kind; kinds against each
    other within cases; for the published form, for the sums, which do not depend on how many keys there are, and for
    the mean attention mass on each region (``mass_sink``, ``mass_template``, ``mass_question``, ...).
    ``steps`` caps the steps used, so that responses of different lengths are compared over the same ones. Tensors:
    ``ratio.{kind}.{group}`` and ``difference.{kind}`` (failure - success) ``[layer head]``, with ``p.{kind}`` from a
    maximum-statistic permutation over the whole map.
    """
    prompts = [e.prompt_ids for e in examples]
    responses = [e.response_ids[:steps] for e in examples]
    maps: Values[Tensor] = []
    scalars: dict[Form, Values[float]] = {"mean": [], "sum": []}
    regions: dict[str, Values[float]] = {}
    nan_steps = 0
    cues, spans = [e.cue_tokens for e in examples], [e.question_span for e in examples]
    for i, m in iter_masses(lm, prompts, responses, cues, question_spans=spans, max_tokens=max_tokens):
        for name, mass in m.regions.items():
            regions.setdefault(name, []).append((examples[i], float(mass.double().mean())))
        for f in ("mean", "sum"):
            ratio = m.ratio(f)
            scalars[f].append((examples[i], float(ratio.double().nanmean())))
            if f == form:
                maps.append((examples[i], ratio.double().nanmean(-1)))
                nan_steps += int(ratio[0, 0].isnan().sum())
    rows = group_rows("lookback_ratio", scalars[form], seed=seed)
    other: Form = "sum" if form == "mean" else "mean"
    rows += group_rows(f"lookback_ratio_{other}", scalars[other], seed=seed)
    for name, values in regions.items():
        rows += group_rows(f"mass_{name}", values, seed=seed)
    tensors, axes, map_rows = cell_maps(
        "ratio", "lookback_ratio_map", maps, ("layer", "head"), permutations=permutations, seed=seed
    )
    settings = {
        "form": form, "steps": steps, "alignment": "query N-1+i predicts response token i",
        "nan_steps": nan_steps, "dtype": str(lm.model.dtype), "permutations": permutations, "seed": seed,
    }  # fmt: skip
    warnings = [f"{nan_steps} steps with nothing new yet are NaN and left out of means"] if nan_steps else []
    return ProbeResult("lookback", [*rows, *map_rows], tensors, axes, settings, warnings)
