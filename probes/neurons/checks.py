"""Checks of attributions: chosen neurons against random ones, and cheap scores against exact ones.

    causal_check(lm, prompts, answers, chosen.neurons).change("suppressed")  # log ratio of P per case
    agreement(cheap, full, v=10).spearman

Dai et al. 2022, section 4.3: neurons that carry an answer lower its probability when silenced and raise it when
doubled; as many random neurons of the same layers should not. This happens at the position that predicts the answer's
first token, with all variants of a case as rows of one recomputed position. ``agreement`` compares half precision with
float32, and activation x gradient with the integral.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from ...errors import InputError
from ...hooks import experts
from ...hooks.budget import in_prefills, row_budget, shrinking
from ...hooks.model import Model
from ...hooks.module_hooks import ModuleHook
from ...hooks.rows import Prefix, prefill, step
from ..contrast import summary_row
from ..result import Row
from ..spread import Fleet, Notes, collect
from .attribution import attribute_many
from .quadrature import Rule
from .sets import Neuron

_Variants = tuple[Sequence[int], int, Sequence[Sequence[Neuron]]]
"""Prompt, target token, and the sets of neurons that are scaled."""


@dataclass(frozen=True)
class CausalCheck:
    """Log-probability of each case's answer token, in nats."""

    base: Float[Tensor, "case"]
    suppressed: Float[Tensor, "case"]
    amplified: Float[Tensor, "case"]
    random_suppressed: Float[Tensor, "case draw"]
    """With as many random neurons of the same layers; NaN if a layer has too few others"""
    random_amplified: Float[Tensor, "case draw"]

    def change(self, which: str) -> Float[Tensor, "case"]:
        """Log of the ratio P(changed) / P, with random draws averaged; ``which`` names a field."""
        x = getattr(self, which)
        return (x.mean(1) if x.dim() == 2 else x) - self.base


def causal_check(
    lm: Model,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    neurons: Sequence[Sequence[Neuron]],
    *,
    suppress: float = 0.0,
    amplify: float = 2.0,
    draws: int = 8,
    seed: int = 0,
    notes: list[str] | None = None,
) -> CausalCheck:
    """Log-probability of each answer's first token with a case's neurons scaled.

    Args:
        neurons: per case, as ``select`` gives them; a case without neurons stays unchanged.
        suppress: factor on the activations that weakens them.
        amplify: factor on the activations that strengthens them.
        draws: random sets per case, from the same layers and disjoint from the chosen ones.
        notes: says where memory ran out and batches were halved; by default a warning does.
    """
    if not len(prompts) == len(answers) == len(neurons):
        raise InputError(
            f"{len(prompts)} prompts, {len(answers)} answers, {len(neurons)} sets; need one of each per case"
        )
    if not len(prompts) or draws < 1:
        raise InputError(f"{len(prompts)} cases, draws={draws}; need at least one of each")
    for i, (answer, chosen) in enumerate(zip(answers, neurons, strict=True)):
        _check_case(lm, i, answer, chosen)
    rng = np.random.default_rng(seed)
    sets = [[list(chosen), *(_random_like(lm, chosen, rng) for _ in range(draws))] for chosen in neurons]
    variants = [(prompt, answer[0], s) for prompt, answer, s in zip(prompts, answers, sets, strict=True)]
    out = torch.stack(collect(lm, partial(_measure, factors=(suppress, amplify)), variants, notes))
    for row, (chosen, *random) in zip(out, sets, strict=True):
        if len(random[0]) < len(chosen):
            row[2 : 2 + draws] = row[3 + draws :] = torch.nan
    base, low, high = out[:, 0], out[:, 1 : 2 + draws], out[:, 2 + draws :]
    return CausalCheck(base, low[:, 0], high[:, 0], low[:, 1:], high[:, 1:])


def _check_case(lm: Model, i: int, answer: Sequence[int], chosen: Sequence[Neuron]) -> None:
    a = lm.anatomy
    if not len(answer) or not 0 <= answer[0] < a.vocab_size:
        raise InputError(f"answer {i}: {list(answer)[:3]}; give token ids below {a.vocab_size}, at least one")
    for layer, index in chosen:
        if not 0 <= layer < a.n_layers or not 0 <= index < (a.layers[layer].n_neurons or a.n_neurons):
            raise InputError(
                f"neuron ({layer}, {index}) of case {i}: it has {a.n_layers} layers of {a.n_neurons} neurons"
            )


def _measure(
    lm: Model, variants: Sequence[_Variants], notes: Notes, *, factors: tuple[float, float]
) -> Iterator[tuple[int, Tensor]]:
    """Log-probabilities of each case: unchanged, each set suppressed, each set amplified."""
    per_case, longest = 1 + 2 * len(variants[0][2]), max(len(p) for p, _, _ in variants)

    def budget() -> int:
        return row_budget(lm, 1, longest, graph=False)

    def work(rows: int | None, some: list[int]) -> list[tuple[int, Tensor]]:
        size, out = max(1, (rows or budget()) // per_case), []
        for part in (some[start : start + size] for start in range(0, len(some), size)):
            prefix = prefill(lm, [variants[i][0] for i in part])
            targets = torch.tensor([variants[i][1] for i in part], device=lm.device)
            found = _scaled(lm, prefix, targets, [variants[i][2] for i in part], factors).double().cpu()
            out += zip(part, found, strict=True)
        return out

    for some in in_prefills(lm, [len(p) for p, _, _ in variants]):
        yield from shrinking(partial(work, some=some), None, budget, notes)


def _random_like(lm: Model, chosen: Sequence[Neuron], rng: np.random.Generator) -> list[Neuron]:
    """As many other neurons of the same layers (of the same experts, because other experts may not run)."""
    taken = set(chosen)
    out: list[Neuron] = []
    pools = [(layer, _pool(lm, layer, index)) for layer, index in chosen]
    for layer, pool in sorted(set(pools)):
        free = [i for i in range(*pool) if (layer, i) not in taken]
        count = min(pools.count((layer, pool)), len(free))
        out += [(layer, int(i)) for i in rng.choice(free, size=count, replace=False)]
    return out


def _pool(lm: Model, layer: int, index: int) -> tuple[int, int]:
    """The range of neurons with which a neuron of a layer is compared."""
    part = lm.anatomy.layers[layer]
    if part.down is not None:
        return 0, part.n_neurons or lm.anatomy.d_mlp
    expert = index // lm.anatomy.d_mlp
    return expert * lm.anatomy.d_mlp, (expert + 1) * lm.anatomy.d_mlp


def _scaling(lm: Model, layer: int, by: Float[Tensor, "query row neuron"]) -> ModuleHook:
    """Multiply the neurons of a layer."""
    part, width = lm.anatomy.layers[layer], lm.anatomy.d_mlp
    if part.down is not None:
        return ModuleHook(part.down, "in", lambda z: z * by.to(z.device))
    of_token = by.flatten(0, 1)

    def change(e: int, tokens: Tensor, z: Tensor) -> Tensor:
        return z * of_token.to(z.device)[tokens, e * width : (e + 1) * width]

    return ModuleHook(experts.required(part.experts), "experts", change)


@torch.no_grad()
def _scaled(
    lm: Model, prefix: Prefix, targets: Tensor, sets: Sequence[Sequence[Sequence[Neuron]]], factors: tuple[float, float]
) -> Tensor:
    """Log-probabilities ``query variant``: unchanged, each set suppressed, each set amplified."""
    n_sets = len(sets[0])
    variants = 1 + 2 * n_sets
    scale: dict[int, Tensor] = {}
    for q, of_case in enumerate(sets):
        for s, neurons in enumerate(of_case):
            for layer, index in neurons:
                if layer not in scale:
                    width = lm.anatomy.layers[layer].n_neurons or lm.anatomy.d_mlp
                    scale[layer] = torch.ones(len(sets), variants, width, device=lm.device, dtype=lm.dtype)
                scale[layer][q, 1 + s, index] = factors[0]
                scale[layer][q, 1 + n_sets + s, index] = factors[1]
    hooks = [_scaling(lm, layer, by) for layer, by in scale.items()]
    out = step(lm, prefix, grow={-1: lambda x: x.expand(-1, variants, -1).contiguous()}, hooks=hooks)
    log_p = out.logits.log_softmax(-1, dtype=torch.promote_types(out.logits.dtype, torch.float32))
    return log_p.gather(-1, targets[:, None, None].expand(-1, variants, 1))[..., 0]


SAMPLE = 8
"""Queries on which both are computed."""


class ScoreAgreement(NamedTuple):
    """How well the cheap scores of one query agree with the exact ones."""

    error: float
    """Largest absolute difference of scores, relative to the largest exact score."""
    spearman: float
    """Rank correlation over all neurons."""
    overlap: float
    """Share of the ``v`` largest scores that both have."""


def agreement(cheap: Float[Tensor, "layer neuron"], full: Float[Tensor, "layer neuron"], v: int) -> ScoreAgreement:
    """ScoreAgreement of two sets of scores; NaN if all scores are 0 or equal."""
    a, b = cheap.double().flatten(), full.double().flatten()
    top = [set(x.topk(min(v, x.numel())).indices.tolist()) for x in (a, b)]
    error = float((a - b).abs().max() / b.abs().max())
    if a.min() == a.max() or b.min() == b.max():
        return ScoreAgreement(error, math.nan, math.nan)
    ranks: Any = stats.spearmanr(a, b)
    return ScoreAgreement(error, float(ranks.statistic), len(top[0] & top[1]) / len(top[0]))


def measure(
    lm: Model, queries: Sequence[tuple[Sequence[int], Sequence[int]]], notes: Notes, *, rule: Rule, steps: int | None,
    v: int, dtype: str,
) -> Iterator[tuple[int, list[float]]]:  # fmt: skip
    """``ScoreAgreement`` of each query (prompt, answer)."""
    for i, (prompt, answer) in enumerate(queries):
        half = attribute_many(lm, [prompt], [answer], steps, rule, notes=notes).mean[0]
        full = attribute_many(lm, [prompt], [answer], steps, rule, rows_dtype=dtype, notes=notes).mean[0]
        yield i, list(agreement(half, full, v))


class Measured(NamedTuple):
    """Rows of a table, and a sentence about them."""

    rows: list[Row]
    note: str


def agreement_rows(
    lm: Model | Fleet, queries: Sequence[tuple[Sequence[int], Sequence[int], Hashable]], *, rule: Rule,
    steps: int | None, v: int, dtype: str, notes: Notes = None,
) -> Measured:  # fmt: skip
    """Rows ``rows_error``, ``rows_spearman`` and ``rows_overlap`` of evenly spaced (prompt, answer, cluster)."""
    sample = [queries[i] for i in sampled(len(queries))]
    what: Any = partial(measure, rule=rule, steps=steps, v=v, dtype=dtype)
    found = collect(lm, what, [(p, a) for p, a, _ in sample], notes)
    worst = max((x[0] for x in found if math.isfinite(x[0])), default=0.0)
    note = f"in that of the weights they differ by up to {worst:.1%} of the largest ({len(sample)} queries)"
    return Measured(rows_of(found, [c for _, _, c in sample], "rows"), note)


def sampled(n: int) -> list[int]:
    """Up to 8 of n queries, evenly spaced."""
    size = min(SAMPLE, n)
    return [i * n // size for i in range(size)]


def estimates(
    lm: Model, prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]],
    full: Sequence[Float[Tensor, "layer neuron"]], v: int, notes: Notes = None,
) -> list[list[float]]:  # fmt: skip
    """``ScoreAgreement`` of activation x gradient with the scores of each query."""
    cheap = attribute_many(lm, prompts, answers, rule="gradient", notes=notes).mean if prompts else []
    return [list(agreement(a, b, v)) for a, b in zip(cheap, full, strict=True)]


def rows_of(found: Sequence[Sequence[float]], clusters: Sequence[Hashable], name: str) -> list[Row]:
    """Rows ``NAME_error``, ``NAME_spearman`` and ``NAME_overlap`` from the ``ScoreAgreement`` of some queries."""
    table = torch.tensor(found, dtype=torch.float64).view(-1, len(ScoreAgreement._fields))
    rows: list[Row] = []
    for field, values in zip(ScoreAgreement._fields, table.T, strict=True):
        known = [i for i in range(len(found)) if bool(values[i].isfinite())]
        if known:
            near = [clusters[i] for i in known]
            row = summary_row(f"{name}_{field}", "all", values[known].numpy(), near)
            rows.append({**row, "kind": "all"})
    return rows
