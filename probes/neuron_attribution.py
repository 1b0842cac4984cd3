"""Integrated gradients of an answer's probability over every MLP neuron (QRNCA; knowledge neurons).

    score_{l,i} = z_{l,i} * integral_0^1 dP(answer | a * z_l) / dz_{l,i} da

with z the input of layer l's down projection at the position that predicts the answer token, and P the softmax
probability over the whole vocabulary. The scores of a layer sum to ``P - P(layer silent)``; how far the quadrature
misses that (the *completeness gap*) is known for every layer and every piece of its path, and drives the refinement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from ..errors import InputError, ModelError
from ..hooks.budget import in_prefills, row_budget, shrinking
from ..hooks.gradients import check_gradients
from ..hooks.model import Model
from ..hooks.precision import widened
from ..hooks.rows import Prefix, Query, prefill, step
from ..hooks.watches import frozen
from .neuron_paths import Path, PathSite, gated, gradients
from .neuron_quadrature import MAX_ROUNDS, START, Nodes, Panel, Rule, limit, quadrature, split, worst


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
    error: list[Tensor]
    """token layer: absolute gaps summed over the panels of the path, at least ``|gap|``"""
    nodes: list[Tensor]
    """token layer: quadrature nodes used"""
    rule: str
    site: str

    @property
    def mean(self) -> list[Tensor]:
        """Mean over the answer's tokens, one ``layer neuron`` per case."""
        return [s.mean(0) for s in self.scores]

    def unconverged(self) -> int:
        """How many (token, layer) pairs have a larger error than 1 % of the layer's effect, refinement included."""
        parts = zip(self.error, self.probability, self.silenced, strict=True)
        return int(sum((e > limit(p[:, None], z)).sum() for e, p, z in parts))


class _Part(NamedTuple):
    scores: Tensor
    """query layer panel neuron"""
    full: Tensor
    """query"""
    ends: Tensor
    """query layer panel 2: P where each panel starts and ends"""


class _TargetProbability(torch.autograd.Function):
    """P(target) of every row, ``query row``, from logits ``query row vocab``; one table over the vocabulary at a time.

    dP/dlogits = P (onehot - p) is written over p itself, so it can be differentiated once only.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        ctx.p, ctx.dtype = logits.softmax(-1, dtype=torch.promote_types(logits.dtype, torch.float32)), logits.dtype
        ctx.index = targets[:, None, None].expand(-1, logits.shape[1], 1)
        ctx.own = ctx.p.gather(-1, ctx.index)
        return ctx.own[..., 0].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        scale = ctx.own * grads[0][..., None]
        out = ctx.p.mul_(-scale)
        out.scatter_add_(-1, ctx.index, scale)
        ctx.p = None
        return out.to(ctx.dtype), None


def _sweep(lm: Model, prefix: Prefix, targets: Tensor, layers: Sequence[int], panels: Tensor, how: _How) -> _Part:
    """Scores over some panels ``query layer panel 2`` from one forward and one backward pass of rows."""
    wide = torch.promote_types(lm.dtype, torch.float32)
    nodes, silent, whole = how.nodes.with_ends()
    x = torch.tensor(nodes.at, device=lm.device, dtype=wide)
    w = torch.tensor(nodes.weight, device=lm.device, dtype=wide)
    start, width = panels[..., :1].to(wide), (panels[..., 1:] - panels[..., :1]).to(wide)
    at, weight = start + width * x, width * w  # query layer panel node
    paths = [Path(lm.anatomy.layers[n], at[:, i].flatten(1).to(lm.dtype), how.site) for i, n in enumerate(layers)]
    with torch.enable_grad():
        out = step(
            lm,
            prefix,
            grow={layer: p.grow for layer, p in zip(layers, paths, strict=True)},
            watch=[watch for p in paths for watch in p.watches()],
        )
        prob: Tensor = _TargetProbability.apply(out.logits, targets)  # type: ignore[assignment]
        del out  # its logits are the largest tensor here
        by_node = prob[:, 1:].reshape(at.shape)
        leaves = [p.leaf for p in paths if p.leaf is not None]
        found = gradients((by_node * weight).sum(), leaves)
    check_gradients(lm)
    per_panel = [g.unflatten(1, at.shape[2:]).sum(2) for g in found]
    of_layers = [p.scores(g) for p, g in zip(paths, per_panel, strict=True)]
    # Layers may differ in width; what narrower ones do not have scores 0.
    scores = torch.stack([pad(s.to(lm.device), (0, lm.anatomy.n_neurons - s.shape[-1])) for s in of_layers], 1)
    if not torch.isfinite(scores).all():
        raise ModelError("attribution gave NaN or infinite scores; check weights and dtype")
    return _Part(scores.detach(), prob[:, 0].detach(), by_node[..., [silent, whole]].detach())


class _How(NamedTuple):
    nodes: Nodes
    site: PathSite
    max_rows: int | None
    adaptive: bool


def _pieces(
    lm: Model, prefix: Prefix, layers: Sequence[int], per_layer: int, max_rows: int | None
) -> Iterator[tuple[list[int], list[int]]]:
    """(queries, positions in ``layers``) that fit into memory together."""
    n, longest = len(prefix.queries), max(q.position for q in prefix.queries)
    rows = max_rows or row_budget(lm, 1, longest, graph=True)
    per_query = 1 + len(layers) * per_layer
    if per_query <= rows:
        size = max(1, rows // per_query)
        for start in range(0, n, size):
            yield list(range(start, min(start + size, n))), list(range(len(layers)))
        return
    size = max(1, (rows - 1) // per_layer)
    for q in range(n):
        for start in range(0, len(layers), size):
            yield [q], list(range(start, min(start + size, len(layers))))


def _integrate(lm: Model, prefix: Prefix, targets: Tensor, work: _Work, how: _How) -> tuple[_Done, Tensor]:
    """Integrate the panels asked for of every (query, layer); and P as it is, per query."""
    queries, layers = sorted({q for q, _ in work}), sorted({layer for _, layer in work})
    panels = torch.ones(len(queries), len(layers), max(map(len, work.values())), 2, device=lm.device)
    for (q, layer), pieces in work.items():
        panels[queries.index(q), layers.index(layer), : len(pieces)] = torch.tensor(pieces, device=lm.device)
    chosen = prefix.select(queries)
    done: _Done = {}
    full = torch.zeros(len(prefix.queries), device=lm.device, dtype=torch.promote_types(lm.dtype, torch.float32))
    per_layer = panels.shape[2] * len(how.nodes.with_ends()[0].at)
    for some, which in _pieces(lm, chosen, layers, per_layer, how.max_rows):
        index = torch.tensor([queries[i] for i in some], device=lm.device)
        block = panels[torch.tensor(some)[:, None], torch.tensor(which)]
        part = _sweep(lm, chosen.select(some), targets[index], [layers[j] for j in which], block, how)
        full[index] = part.full
        for i, row in enumerate(some):
            for j, column in enumerate(which):
                key = queries[row], layers[column]
                done[key] = _panels(work.get(key, ()), part.scores[i, j], part.ends[i, j])
    return {k: v for k, v in done.items() if k in work}, full


def _panels(pieces: Sequence[tuple[float, float]], scores: Tensor, ends: Tensor) -> list[tuple[Panel, float]]:
    """Panels with the probability at their start; the padding of shorter lists is left behind."""
    sums, edges = scores.double().sum(-1).tolist(), ends.double().tolist()
    return [
        (Panel(a, b, scores[k], sums[k] - (edges[k][1] - edges[k][0])), edges[k][0]) for k, (a, b) in enumerate(pieces)
    ]


_Work = dict[tuple[int, int], list[tuple[float, float]]]
_Done = dict[tuple[int, int], "list[tuple[Panel, float]]"]


@dataclass
class _Table:
    """Results for all queries of one prefill."""

    scores: Tensor
    full: Tensor
    silenced: Tensor
    error: Tensor
    nodes: Tensor

    def gap(self) -> Tensor:
        return self.scores.sum(-1) - (self.full[:, None] - self.silenced)


def _attribute_prefix(lm: Model, prefix: Prefix, targets: Tensor, how: _How) -> _Table:
    n, n_layers = len(prefix.queries), lm.anatomy.n_layers
    first: _Work = {(q, layer): [(0.0, 1.0)] for q in range(n) for layer in range(n_layers)}
    done, full = _integrate(lm, prefix, targets, first, how)
    paths = {key: [p for p, _ in found] for key, found in done.items()}
    silenced = torch.zeros(n, n_layers, device=lm.device, dtype=full.dtype)
    for (q, layer), found in done.items():
        silenced[q, layer] = found[0][1]
    accepted = limit(full[:, None], silenced).tolist()
    for _ in range(MAX_ROUNDS if how.adaptive else 0):
        poor = {key: worst(panels, accepted[key[0]][key[1]]) for key, panels in paths.items()}
        work = {key: [piece for p in bad for piece in split(p)] for key, bad in poor.items() if bad}
        if not work:
            break
        done, _ = _integrate(lm, prefix, targets, work, how)
        for key, found in done.items():
            kept = [p for p in paths[key] if not any(p is bad for bad in poor[key])]
            paths[key] = [*kept, *(p for p, _ in found)]
    rows = [[paths[q, layer] for layer in range(n_layers)] for q in range(n)]
    return _Table(
        scores=torch.stack([torch.stack([sum_scores(p) for p in row]) for row in rows]),
        full=full,
        silenced=silenced,
        error=torch.tensor([[sum(abs(x.gap) for x in p) for p in row] for row in rows], dtype=full.dtype),
        nodes=torch.tensor([[len(p) * len(how.nodes.at) for p in row] for row in rows]),
    )


def sum_scores(panels: Sequence[Panel]) -> Tensor:
    """Scores of a whole path: neuron."""
    return panels[0].scores if len(panels) == 1 else torch.stack([p.scores for p in panels]).sum(0)


def attribute_many(
    lm: Model,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    steps: int | None = None,
    rule: Rule = "gauss-legendre",
    *,
    site: PathSite | None = None,
    max_rows: int | None = None,
    rows_dtype: str | torch.dtype | None = None,
) -> Attributions:
    """Attribution of each answer, teacher-forced after its prompt, to every neuron; token ids in, one result per case.

    Args:
        steps: quadrature nodes. By default 8 Gauss-Legendre nodes per panel, one panel at first, panels split until
            completeness holds to 1 % of the layer's effect; 20 for ``rule="reference"``. A number given is not refined.
        rule: ``gauss-legendre``, ``reference`` (the published average of equidistant points) or ``gradient``
            (activation x gradient, the cheap estimate).
        site: ``down`` (input of the down projection) or ``pre`` (before the activation function, which the published
            code uses on GPT-2; the default of ``rule="reference"`` where the MLP is not gated).
        max_rows: rows recomputed at once; by default what fits into memory. Halved, with a warning, when it does not.
        rows_dtype: ``float32`` computes prompts, rows and gradients in float32 on weights that stay in half precision
            (a block of them is widened at a time), as ``model.float()`` would; by default the dtype of the weights.

    In mixtures of experts neuron i of expert e has index ``e * d_mlp + i`` (``by_expert`` unfolds them); the routing is
    frozen and experts that were not chosen score 0. Where layers differ in width, narrower ones are padded with 0.

    Raises ``InputError`` for empty prompts or answers, ``ModelError`` for experts of an unknown make or NaN.
    """
    if len(prompts) != len(answers):
        raise InputError(f"{len(prompts)} prompts and {len(answers)} answers; need one answer per prompt")
    for i, (p, a) in enumerate(zip(prompts, answers, strict=True)):
        if not len(p) or not len(a):
            raise InputError(f"case {i}: {'prompt' if not len(p) else 'answer'} without a token")
    if site is None:
        plain = rule == "reference" and not all(gated(layer) for layer in lm.anatomy.layers)
        site = "pre" if plain else "down"
    nodes = quadrature(rule, (20 if rule == "reference" else START) if steps is None else steps)
    how = _How(nodes, site, max_rows, adaptive=rule == "gauss-legendre" and steps is None)
    out: dict[int, _Table] = {}
    with frozen(lm.model), widened(lm, rows_dtype):
        lengths = [len(p) + len(a) - 1 for p, a in zip(prompts, answers, strict=True)]
        for batch in in_prefills(lm, lengths):
            longest = max(lengths[i] for i in batch)

            def work(rows: int | None, batch: list[int] = batch) -> dict[int, _Table]:
                return _attribute_batch(lm, batch, prompts, answers, how._replace(max_rows=rows))

            def budget(longest: int = longest) -> int:
                return row_budget(lm, 1, longest, graph=True)

            out.update(shrinking(work, max_rows, budget))
    tables = [out[i] for i in range(len(prompts))]
    return Attributions(
        scores=[t.scores for t in tables],
        probability=[t.full for t in tables],
        silenced=[t.silenced for t in tables],
        gap=[t.gap() for t in tables],
        error=[t.error for t in tables],
        nodes=[t.nodes for t in tables],
        rule=rule,
        site=site,
    )


def _attribute_batch(
    lm: Model,
    batch: Sequence[int],
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    how: _How,
) -> dict[int, _Table]:
    fed = [[*prompts[i], *answers[i][:-1]] for i in batch]
    queries = [Query(n, len(prompts[i]) - 1 + t) for n, i in enumerate(batch) for t in range(len(answers[i]))]
    targets = torch.tensor([t for i in batch for t in answers[i]], device=lm.device)
    if int(targets.max()) >= lm.anatomy.vocab_size or int(targets.min()) < 0:
        raise InputError(
            f"answer token {int(targets.max())}: the vocabulary has {lm.anatomy.vocab_size}; wrong tokenizer?"
        )
    table = _attribute_prefix(lm, prefill(lm, fed, queries), targets, how)
    result, start = {}, 0
    for i in batch:
        part = slice(start, start + len(answers[i]))
        result[i] = _Table(
            *(x[part].cpu() for x in (table.scores, table.full, table.silenced, table.error, table.nodes))
        )
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
    rows_dtype: str | torch.dtype | None = None,
) -> Tensor:
    """Attribution of one answer to every neuron: ``layer neuron``, the mean over the answer's tokens.

    ``per_token`` keeps them: ``token layer neuron``. Options and errors as in ``attribute_many``, which also reports
    probabilities and completeness gaps.
    """
    scores = attribute_many(lm, [prompt], [answer], steps, rule, site=site, rows_dtype=rows_dtype).scores[0]
    return scores if per_token else scores.mean(0)
