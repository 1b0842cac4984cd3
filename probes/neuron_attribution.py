"""Integrated gradients of an answer's probability over every MLP neuron (QRNCA; knowledge neurons).

    score_{l,i} = z_{l,i} * integral_0^1 dP(answer | a * z_l) / dz_{l,i} da

with z the input of layer l's down projection at the position that predicts the answer token, and P the softmax
probability over the whole vocabulary. The scores of a layer sum to ``P - P(layer silent)``; how far the quadrature
misses that (the *completeness gap*) is known for every layer and drives the refinement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, ModelError
from ..hooks.model import Model
from ..hooks.rows import Prefix, Query, frozen, prefill, row_budget, step
from .neuron_paths import Path, PathSite, gated

Rule = Literal["gauss-legendre", "reference", "gradient"]
START, REFINED = 8, (16, 32, 64)
MAX_TOKENS = 8192
"""Prompt tokens in one prefill."""


@dataclass(frozen=True)
class Attributions:
    """Per case, per answer token."""

    scores: list[Tensor]
    """One per case: token layer neuron"""
    probability: list[Tensor]
    """token: P of each answer token with all neurons as they are"""
    silenced: list[Tensor]
    """token layer: P with the layer's neurons at zero"""
    gap: list[Tensor]
    """token layer: completeness gap, ``sum of scores - (P - P silenced)``"""
    nodes: list[Tensor]
    """token layer: quadrature nodes used"""
    rule: str
    site: str

    @property
    def mean(self) -> list[Tensor]:
        """Mean over the answer's tokens, one ``layer neuron`` per case."""
        return [s.mean(0) for s in self.scores]

    def unconverged(self) -> int:
        """How many (token, layer) pairs miss completeness by more than 1 % even after refinement."""
        parts = zip(self.gap, self.probability, self.silenced, strict=True)
        return int(sum((_excess(g, p[:, None], z) > 0).sum() for g, p, z in parts))


class _Nodes(NamedTuple):
    at: list[float]
    weight: list[float]


def quadrature(rule: Rule, steps: int) -> tuple[list[float], list[float]]:
    """Nodes and weights on [0, 1].

    ``reference``: the average of ``steps`` equidistant points with both ends, as the published code has it.
    ``gradient``: the gradient at full activation alone (activation x gradient).
    """
    if rule == "gradient":
        return [1.0], [1.0]
    if steps < 2:
        raise InputError(f"steps: {steps}; an integral needs at least 2")
    if rule == "reference":
        return [k / (steps - 1) for k in range(steps)], [1 / steps] * steps
    if rule == "gauss-legendre":
        x, w = np.polynomial.legendre.leggauss(steps)
        return [float(v) for v in (x + 1) / 2], [float(v) for v in w / 2]
    raise InputError(f'rule: "{rule}"; use "gauss-legendre", "reference" or "gradient"')


def _excess(gap: Tensor, full: Tensor, silenced: Tensor) -> Tensor:
    """By how much a completeness gap exceeds 1 % of the layer's effect (plus a floor of at most 1e-6)."""
    floor = (1e-2 * torch.maximum(full.expand_as(silenced), silenced)).clamp_max(1e-6)
    return gap.abs() - (1e-2 * (full - silenced).abs() + floor)


class _Part(NamedTuple):
    scores: Tensor
    """query layer neuron"""
    full: Tensor
    silenced: Tensor


def _sweep(lm: Model, prefix: Prefix, targets: Tensor, layers: Sequence[int], nodes: _Nodes, site: PathSite) -> _Part:
    """Scores of some layers from one forward and one backward pass of rows."""
    # The last row of each layer is its silent end: not part of the sum, but what completeness is measured against.
    at = torch.tensor([*nodes.at, 0.0], device=lm.device, dtype=lm.dtype)
    weight = torch.tensor([*nodes.weight, 0.0], device=lm.device, dtype=torch.float32)
    paths = [Path(lm.anatomy.layers[layer], at, site) for layer in layers]
    with torch.enable_grad():
        out = step(
            lm,
            prefix,
            grow={layer: p.grow for layer, p in zip(layers, paths, strict=True)},
            watch=[w for p in paths for w in p.watches()],
        )
        wide = torch.promote_types(out.logits.dtype, torch.float32)
        index = targets[:, None, None].expand(-1, out.logits.shape[1], 1)
        prob = out.logits.softmax(-1, dtype=wide).gather(-1, index)[..., 0]  # query row
        by_layer = prob[:, 1:].unflatten(1, (len(layers), -1))  # query layer node
        gradients = torch.autograd.grad((by_layer * weight).sum(), [p.leaf for p in paths if p.leaf is not None])
    scores = torch.stack([p.scores(g) for p, g in zip(paths, gradients, strict=True)], 1)
    if not torch.isfinite(scores).all():
        raise ModelError("attribution gave NaN or infinite scores; check weights and dtype")
    return _Part(scores.detach(), prob[:, 0].detach(), by_layer[..., -1].detach())


def _pieces(lm: Model, prefix: Prefix, layers: Sequence[int], n_nodes: int, max_rows: int | None):
    """(queries, layers) that fit into memory together."""
    n, longest = len(prefix.queries), max(q.position for q in prefix.queries)
    rows = max_rows or row_budget(lm, 1, longest, graph=True)
    per_query = 1 + len(layers) * (n_nodes + 1)
    if per_query <= rows:
        size = max(1, rows // per_query)
        for start in range(0, n, size):
            yield list(range(start, min(start + size, n))), list(layers)
        return
    size = max(1, (rows - 1) // (n_nodes + 1))
    for q in range(n):
        for start in range(0, len(layers), size):
            yield [q], list(layers[start : start + size])


@dataclass
class _Table:
    """Results for all queries of one prefill."""

    scores: Tensor
    full: Tensor
    silenced: Tensor
    nodes: Tensor

    def gap(self) -> Tensor:
        return self.scores.sum(-1) - (self.full[:, None] - self.silenced)


def _fill(
    lm: Model,
    prefix: Prefix,
    targets: Tensor,
    todo: Tensor,
    nodes: _Nodes,
    site: PathSite,
    rows: int | None,
    into: _Table,
) -> None:
    """Compute the (query, layer) pairs marked in ``todo`` with one set of nodes."""
    queries = [int(i) for i in todo.any(1).nonzero()]
    layers = [int(i) for i in todo.any(0).nonzero()]
    chosen = prefix.select(queries)
    for some, part_layers in _pieces(lm, chosen, layers, len(nodes.at), rows):
        index = torch.tensor([queries[i] for i in some], device=lm.device)
        part = _sweep(lm, chosen.select(some), targets[index], part_layers, nodes, site)
        for j, layer in enumerate(part_layers):
            mark = todo[index, layer]
            at = index[mark]
            into.scores[at, layer] = part.scores[mark, j].float()
            into.silenced[at, layer] = part.silenced[mark, j]
            into.nodes[at, layer] = len(nodes.at)
        into.full[index] = part.full


def _attribute_prefix(
    lm: Model, prefix: Prefix, targets: Tensor, steps: int | None, rule: Rule, site: PathSite, max_rows: int | None
) -> _Table:
    a, n = lm.anatomy, len(prefix.queries)
    table = _Table(
        torch.zeros(n, a.n_layers, a.d_mlp, device=lm.device),
        torch.zeros(n, device=lm.device),
        torch.zeros(n, a.n_layers, device=lm.device),
        torch.zeros(n, a.n_layers, dtype=torch.long, device=lm.device),
    )
    todo = torch.ones(n, a.n_layers, dtype=torch.bool, device=lm.device)
    start = steps or (20 if rule == "reference" else START)
    rounds = [start, *REFINED] if rule == "gauss-legendre" and steps is None else [start]
    for count in rounds:
        if not todo.any():
            break
        _fill(lm, prefix, targets, todo, _Nodes(*quadrature(rule, count)), site, max_rows, table)
        todo = _excess(table.gap(), table.full[:, None], table.silenced) > 0
    return table


def _batches(prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Cases in prefills of similar length."""
    order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]) - len(answers[i]))
    batch: list[int] = []
    for i in order:
        width = len(prompts[(batch or [i])[0]]) + len(answers[(batch or [i])[0]])
        if batch and (len(batch) + 1) * width > MAX_TOKENS:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def attribute_many(
    lm: Model,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    steps: int | None = None,
    rule: Rule = "gauss-legendre",
    *,
    site: PathSite | None = None,
    max_rows: int | None = None,
) -> Attributions:
    """Attribution of each answer, teacher-forced after its prompt, to every neuron; token ids in, one result per case.

    Args:
        steps: quadrature nodes. By default 8 Gauss-Legendre nodes, refined to 16, 32 and 64 in the layers whose
            completeness gap exceeds 1 % of their effect; 20 for ``rule="reference"``. A number given is not refined.
        rule: ``gauss-legendre``, ``reference`` (the published average of equidistant points) or ``gradient``
            (activation x gradient, the cheap estimate).
        site: ``down`` (input of the down projection) or ``pre`` (before the activation function, which the published
            code uses on GPT-2; the default of ``rule="reference"`` where the MLP is not gated).
        max_rows: rows recomputed at once; by default what fits into memory.

    Raises ``InputError`` for empty prompts or answers, ``ModelError`` for models with experts or NaN.
    """
    if len(prompts) != len(answers):
        raise InputError(f"{len(prompts)} prompts and {len(answers)} answers; need one answer per prompt")
    for i, (p, a) in enumerate(zip(prompts, answers, strict=True)):
        if not len(p) or not len(a):
            raise InputError(f"case {i}: {'prompt' if not len(p) else 'answer'} without a token")
    if site is None:
        plain = rule == "reference" and not all(gated(layer) for layer in lm.anatomy.layers)
        site = "pre" if plain else "down"
    out: dict[int, _Table] = {}
    with frozen(lm.model):
        for batch in _batches(prompts, answers):
            out.update(_attribute_batch(lm, batch, prompts, answers, (steps, rule, site, max_rows)))
    tables = [out[i] for i in range(len(prompts))]
    return Attributions(
        scores=[t.scores for t in tables],
        probability=[t.full for t in tables],
        silenced=[t.silenced for t in tables],
        gap=[t.gap() for t in tables],
        nodes=[t.nodes for t in tables],
        rule=rule,
        site=site,
    )


def _attribute_batch(
    lm: Model,
    batch: Sequence[int],
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    how: tuple[int | None, Rule, PathSite, int | None],
) -> dict[int, _Table]:
    fed = [[*prompts[i], *answers[i][:-1]] for i in batch]
    queries = [Query(n, len(prompts[i]) - 1 + t) for n, i in enumerate(batch) for t in range(len(answers[i]))]
    targets = torch.tensor([t for i in batch for t in answers[i]], device=lm.device)
    if int(targets.max()) >= lm.anatomy.vocab_size or int(targets.min()) < 0:
        raise InputError(
            f"answer token {int(targets.max())}: the vocabulary has {lm.anatomy.vocab_size}; wrong tokenizer?"
        )
    table = _attribute_prefix(lm, prefill(lm, fed, queries), targets, *how)
    result, start = {}, 0
    for i in batch:
        part = slice(start, start + len(answers[i]))
        result[i] = _Table(*(x[part].cpu() for x in (table.scores, table.full, table.silenced, table.nodes)))
        start = part.stop
    return result


def attribute(
    lm: Model,
    prompt: Sequence[int],
    answer: Sequence[int],
    steps: int | None = None,
    rule: Rule = "gauss-legendre",
    *,
    per_token: bool = False,
    site: PathSite | None = None,
) -> Tensor:
    """Attribution of one answer to every neuron: ``layer neuron``, the mean over the answer's tokens.

    ``per_token`` keeps them: ``token layer neuron``. Options and errors as in ``attribute_many``, which also reports
    probabilities and completeness gaps.
    """
    scores = attribute_many(lm, [prompt], [answer], steps, rule, site=site).scores[0]
    return scores if per_token else scores.mean(0)
