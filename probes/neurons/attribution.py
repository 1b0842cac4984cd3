"""Integrated gradients of an answer's probability over every MLP neuron (QRNCA; knowledge neurons).

    attribute(lm, prompt_ids, answer_ids)  # layer neuron

    score_{l,i} = z_{l,i} * integral_0^1 dP(answer | a * z_l) / dz_{l,i} da

with z the input of layer l's down projection at the position that predicts the answer token, and P the softmax
probability over the whole vocabulary. The scores of a layer sum to ``P - P(layer silent)``; how far the quadrature
misses that (the *completeness gap*) is known for every layer and every piece of its path, and decides the refinement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ...errors import InputError
from ...hooks.budget import in_prefills, row_budget, shrinking
from ...hooks.capture import check_ids, id_rows
from ...hooks.model import Model
from ...hooks.module_hooks import check_gradients, frozen
from ...hooks.precision import widened
from ...hooks.rows import Prefix, Query, prefill
from ...hooks.sites import Site
from ...terminal import tick
from .paths import PathSite, gated
from .quadrature import (
    MAX_ROUNDS,
    NODES,
    PUBLISHED_STEPS,
    QUICK,
    How,
    Nodes,
    Panel,
    Rule,
    again,
    aged,
    in_passes,
    limit,
    lobatto,
    quadrature,
    split,
    sweep,
    worst,
)


@dataclass(frozen=True)
class Attributions:
    """One tensor per case, over its answer tokens."""

    scores: list[Float[Tensor, "_ layer neuron"]]
    probability: list[Float[Tensor, "_"]]
    """P of each answer token with all neurons unchanged"""
    silenced: list[Float[Tensor, "_ layer"]]
    """P with the layer's neurons at zero"""
    gap: list[Float[Tensor, "_ layer"]]
    """Completeness gap, ``sum of scores - (P - P silenced)``"""
    error: list[Float[Tensor, "_ layer"]]
    """Absolute gaps summed over the panels of the path, at least ``|gap|``"""
    nodes: list[Int[Tensor, "_ layer"]]
    """Quadrature nodes used"""
    rule: str
    site: str

    @property
    def mean(self) -> list[Float[Tensor, "layer neuron"]]:
        """Mean over the answer's tokens, per case."""
        return [s.mean(0) for s in self.scores]

    def unconverged(self) -> int:
        """How many (token, layer) pairs have a larger error than 1 % of the layer's effect, refinement included."""
        parts = zip(self.error, self.probability, self.silenced, strict=True)
        return int(sum((e > limit(p[:, None], z)).sum() for e, p, z in parts))


TRIED = 0.5
"""Share of a query's work in its first try, for progress; each later round is half of the rest."""


def _integrate(lm: Model, prefix: Prefix, targets: Tensor, work: _Work, how: How) -> tuple[_Done, Tensor]:
    """Integrate the given panels of every (query, layer); and P unchanged, per query.

    All layers of a query run together if all have work; otherwise they run layer by layer, because few need more than a
    first try.
    """
    together = sorted({layer for _, layer in work})
    everything = len(work) == len(together) * len({q for q, _ in work})
    done: _Done = {}
    full = torch.zeros(len(prefix.queries), device=lm.device, dtype=torch.promote_types(lm.dtype, torch.float32))
    for layers in [together] if everything else [[layer] for layer in together]:
        queries = sorted({q for q, layer in work if layer in layers})
        widths = [max(len(work[q, layer]) for layer in layers) for q in queries]
        chosen = prefix.select(queries)
        for some, which in in_passes(lm, chosen, layers, widths, how):
            panels = torch.ones(len(some), len(which), max(widths[i] for i in some), 2, device=lm.device)
            for i, row in enumerate(some):
                for j, column in enumerate(which):
                    pieces = work[queries[row], layers[column]]
                    panels[i, j, : len(pieces)] = torch.tensor(pieces, device=lm.device)
            index = torch.tensor([queries[i] for i in some], device=lm.device)
            part = sweep(lm, chosen.select(some), targets[index], [layers[j] for j in which], panels, how)
            full[index] = part.full
            for i, row in enumerate(some):
                for j, column in enumerate(which):
                    key = queries[row], layers[column]
                    done[key] = _panels(work[key], part.scores[i, j], part.start[i, j], how.nodes)
            tick(how.ticks * len(some) * len(which))
    return done, full


def _panels(pieces: Sequence[tuple[float, float]], scores: Tensor, start: Tensor, nodes: Nodes) -> list[_Piece]:
    """Panels, whose gaps are not known yet, with P at their start; the padding of shorter lists is dropped."""
    sums, starts = scores.double().sum(-1).tolist(), start.double().tolist()
    n = len(nodes.at) + bool(nodes.end)
    return [_Piece(Panel(a, b, scores[k], sums[k], n), starts[k]) for k, (a, b) in enumerate(pieces)]


class _Piece(NamedTuple):
    panel: Panel
    start: float
    """P where the panel starts"""


_Work = dict[tuple[int, int], list[tuple[float, float]]]
_Done = dict[tuple[int, int], "list[_Piece]"]


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


def _attribute_prefix(lm: Model, prefix: Prefix, targets: Tensor, how: How) -> _Table:
    n, n_layers = len(prefix.queries), lm.anatomy.n_layers
    first: _Work = {(q, layer): [(0.0, 1.0)] for q in range(n) for layer in range(n_layers)}
    cases = len({q.prompt for q in prefix.queries})
    done, full = _integrate(lm, prefix, targets, first, how._replace(ticks=TRIED * cases / len(first)))
    # Known values of P along each layer's path: at its end, and where panels start.
    known = {key: {1.0: float(full[key[0]])} for key in done}
    paths = {key: _complete(found, known[key]) for key, found in done.items()}
    silenced = torch.zeros(n, n_layers, device=lm.device, dtype=full.dtype)
    for (q, layer), found in done.items():
        silenced[q, layer] = found[0].start
    accepted = limit(full[:, None], silenced, rounding=_rounding(lm)).tolist()
    finer = how._replace(nodes=quadrature("gauss-legendre", NODES)) if how.adaptive else how
    for attempt in range(MAX_ROUNDS if how.adaptive else 0):
        poor: dict[tuple[int, int], list[Panel]] = {}
        work: _Work = {}
        for key, panels in paths.items():
            allowed = accepted[key[0]][key[1]]
            bad = panels if attempt == 0 else worst(panels, allowed)
            pieces = [p for panel in bad for p in (again(panel, allowed) if attempt == 0 else split(panel))]
            if pieces:
                poor[key], work[key] = bad, pieces
        if not work:
            break
        left = (1 - TRIED) * cases / 2 ** (1 + attempt)
        done, _ = _integrate(lm, prefix, targets, work, finer._replace(ticks=left / len(work)))
        for key, found in done.items():
            kept = [p for p in paths[key] if not any(p is bad for bad in poor[key])]
            new = _complete(found, known[key])
            for i, parent in enumerate(poor[key] if attempt else ()):
                aged(parent, new[2 * i : 2 * i + 2])
            paths[key] = [*kept, *new]
    rows = [[paths[q, layer] for layer in range(n_layers)] for q in range(n)]
    return _Table(
        scores=torch.stack([torch.stack([sum_scores(p) for p in row]) for row in rows]),
        full=full,
        silenced=silenced,
        error=torch.tensor([[sum(abs(x.gap) for x in p) for p in row] for row in rows], dtype=full.dtype),
        nodes=torch.tensor([[sum(x.nodes for x in p) for p in row] for row in rows]),
    )


def _rounding(lm: Model) -> float:
    """Relative error of a probability that was computed in half precision: a few units in the last place."""
    return 4 * torch.finfo(lm.dtype).eps if lm.dtype in (torch.float16, torch.bfloat16) else 0.0


def _complete(found: Sequence[_Piece], known: dict[float, float]) -> list[Panel]:
    """Panels with their gaps, from P at their ends; new values of P along the path are added to ``known``."""
    known |= {piece.panel.start: piece.start for piece in found}
    for piece in found:
        panel = piece.panel
        panel.gap -= known[panel.end] - piece.start
    return [piece.panel for piece in found]


def sum_scores(panels: Sequence[Panel]) -> Float[Tensor, "neuron"]:
    """Scores of a complete path."""
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
    quick: bool = False,
    notes: list[str] | None = None,
) -> Attributions:
    """Attribution of each answer (token ids, teacher-forced after its prompt) to every neuron.

    Args:
        steps: quadrature nodes. By default 8 per panel (both ends of the first panel are nodes: Lobatto), one panel at
            first, and panels are split until completeness holds to 1 % of the layer's effect; 20 for
            ``rule="reference"``. A given number is not refined.
        rule: ``gauss-legendre``, ``reference`` (the published average of equidistant points) or ``gradient``
            (activation x gradient, the cheap estimate).
        site: ``down`` (input of the down projection; behind a norm of the MLP's output the path runs after it, and
            ``Attributions.site`` says ``after-norm``), or what the published code does and ``rule="reference"`` takes:
            ``pre`` (before the activation function) where the MLP is not gated, ``before-norm`` (neurons are scaled
            before such a norm).
        max_rows: rows recomputed together; by default as many as fit. Halved when memory runs out, with a note in
            ``notes`` (or a warning).
        rows_dtype: ``float32`` computes prompts, rows and gradients in float32 on weights that stay in half precision
            (one block at a time is widened), as ``model.float()`` would; by default the dtype of the weights.
        quick: 5 nodes in layers where they meet completeness to 0.3 %; scores are then within about a thousandth of the
            largest one, which is enough to choose neurons.

    In mixtures of experts neuron i of expert e has index ``e * d_mlp + i`` (``by_expert`` unfolds them); the routing is
    frozen and experts that were not chosen score 0. Where layers differ in width, narrower ones are padded with 0.

    Raises ``InputError`` for empty prompts or answers, ``ModelError`` for experts of an unknown make or NaN.
    """
    prompts, answers = id_rows(prompts, "prompt"), id_rows(answers, "answer")
    if len(prompts) != len(answers):
        raise InputError(f"{len(prompts)} prompts and {len(answers)} answers; need one answer per prompt")
    for i, (p, a) in enumerate(zip(prompts, answers, strict=True)):
        if not len(p) or not len(a):
            raise InputError(f"case {i}: {'prompt' if not len(p) else 'answer'} without a token")
    site = site or published_site(lm, rule)
    adaptive = rule == "gauss-legendre" and steps is None
    if adaptive and site == "down":
        nodes = lobatto(QUICK if quick else NODES)
    else:
        nodes = quadrature(rule, (PUBLISHED_STEPS if rule == "reference" else NODES) if steps is None else steps)
    how = How(nodes, site, max_rows, adaptive)
    out: dict[int, _Table] = {}
    with frozen(lm.model), widened(lm, rows_dtype):
        lengths = [len(p) + len(a) - 1 for p, a in zip(prompts, answers, strict=True)]
        for batch in in_prefills(lm, lengths):
            longest = max(lengths[i] for i in batch)

            def work(rows: int | None, batch: list[int] = batch) -> dict[int, _Table]:
                return _attribute_batch(lm, batch, prompts, answers, how._replace(max_rows=rows))

            def budget(longest: int = longest) -> int:
                return row_budget(lm, 1, longest, graph=True)

            out.update(shrinking(work, max_rows, budget, notes))
    tables = [out[i] for i in range(len(prompts))]
    return Attributions(
        scores=[t.scores for t in tables],
        probability=[t.full for t in tables],
        silenced=[t.silenced for t in tables],
        gap=[t.gap() for t in tables],
        error=[t.error for t in tables],
        nodes=[t.nodes for t in tables],
        rule=rule,
        site=site_name(lm, site),
    )


def published_site(lm: Model, rule: Rule) -> PathSite:
    """Where the neurons of a rule are scaled: with ``reference`` as the published code does it, else ``down``."""
    if rule != "reference":
        return "down"
    if not all(gated(layer) for layer in lm.anatomy.layers):
        return "pre"
    return "before-norm" if any(layer.post_norm is not None for layer in lm.anatomy.layers) else "down"


def site_name(lm: Model, site: PathSite) -> str:
    """The site with what it means on this model: ``down`` is ``after-norm`` where a norm follows the MLP."""
    behind = any(layer.post_norm is not None for layer in lm.anatomy.layers)
    return "after-norm" if site == "down" and behind else site


def _attribute_batch(
    lm: Model, batch: Sequence[int], prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], how: How
) -> dict[int, _Table]:
    fed = [[*prompts[i], *answers[i][:-1]] for i in batch]
    queries = [Query(n, len(prompts[i]) - 1 + t) for n, i in enumerate(batch) for t in range(len(answers[i]))]
    targets = torch.tensor([t for i in batch for t in answers[i]], device=lm.device)
    for t in (int(targets.min()), int(targets.max())):
        if not 0 <= t < lm.anatomy.vocab_size:
            raise InputError(f"answer token {t}: the vocabulary has {lm.anatomy.vocab_size}; wrong tokenizer?")
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
) -> Float[Tensor, "layer neuron"] | Float[Tensor, "token layer neuron"]:
    """Attribution of one answer to every neuron: the mean over its tokens, or with ``per_token`` each token's.

    Options and errors are those of ``attribute_many``, which also reports probabilities and completeness gaps.
    """
    scores = attribute_many(lm, [prompt], [answer], steps, rule, site=site, rows_dtype=rows_dtype).scores[0]
    return scores if per_token else scores.mean(0)


def positive_by_position(lm: Model, prompt: Sequence[int], answer: int) -> Float[Tensor, "position"]:
    """What pushes an answer token up at each position: the positive part of activation x gradient over all neurons.

    Of the log-probability of ``answer`` after the prompt, in nats: one forward and one backward pass give every
    position, which integrals cannot. At the last position these are the scores of ``rule="gradient"`` over P (behind a
    norm of the MLP's output, with that norm free). Raises ``InputError`` for a mixture of experts.
    """
    if lm.anatomy.n_experts:
        raise InputError(
            "mixture of experts: its neurons are those of the chosen experts, not the same ones everywhere"
        )
    check_ids(lm, prompt, "prompt")
    check_ids(lm, [answer], "answer")
    check_gradients(lm)
    sites = [Site(layer, "neuron") for layer in range(lm.anatomy.n_layers)]
    with frozen(lm.model), torch.enable_grad():
        got = lm.run(torch.tensor([list(prompt)], device=lm.device), read=sites)
        goal = got.logits[0, -1].float().log_softmax(-1)[answer]
        gradients = torch.autograd.grad(goal, [got.acts[s] for s in sites])
    pushes = [(got.acts[s].detach() * g)[0].float() for s, g in zip(sites, gradients, strict=True)]
    return torch.stack([x.clamp_min(0).sum(-1).cpu() for x in pushes]).sum(0)
