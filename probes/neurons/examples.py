"""Neuron attribution over labelled examples: do wholes and parts share neurons, and do failures differ?

over_examples(lm, examples).save("probes/neurons")
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from ...errors import NoCasesError
from ...hooks.model import Model
from ...hooks.precision import widens
from ...terminal import Bar, no_bar, stage
from ..examples import Example
from ..matching import Matched
from ..positions import Position, preceding_row, read_at
from ..result import ProbeResult, Row
from ..spread import InDtype, Notes, collect
from ..tables import Values, group_rows, kinds_of, matched_pairs, matched_rows, mean_row, value_rows
from ..verdicts import corrected
from .attribution import attribute_many, published_site, site_name
from .checks import agreement_rows, causal_check, estimates, rows_of, sampled
from .quadrature import PUBLISHED_STEPS, Rule, limit
from .sets import Neuron, Selection, cluster, location_map, select_clusters, share

Ids = Sequence[int]
POOL = 64
"""Examples whose full scores are in memory together."""
SURE = 1e-6
ROUNDING = 1e-5
"""In nats: a log-probability in float32 changes by a few millionths with the shape of its batch."""
_REFINED = "5 where they do, else 8 per panel, panels split until complete"
_SITES = {
    "down": "down projection input", "pre": "before the activation function, as published",
    "after-norm": "down projection input, path after the norm of the MLP's output (norm frozen)",
    "before-norm": "down projection input, path before the norm of the MLP's output, as published",
}  # fmt: skip


@dataclass(frozen=True)
class _Attributed:
    clusters: list[dict[Neuron, float]]
    probability: list[float]
    gap: list[float]
    """Largest completeness error per example, relative to P."""
    unconverged: int
    estimates: list[list[float]]
    """``Agreement`` of activation x gradient with the scores of the sampled examples."""


def over_examples(
    lm: Model, examples: Sequence[Example], *, answer_tokens: int | None = 1, rule: Rule = "gauss-legendre",
    steps: int | None = None, t: float = 0.2, u: float = 0.3, v: int = 10, bins: int = 16, draws: int = 8,
    seed: int = 0, rows_dtype: str | None = None, position: Position = "answer-slot",
    progress: Bar = no_bar,
) -> ProbeResult:  # fmt: skip
    """Which neurons carry the gold answers, by kind and group, and how much the kinds share.

    Every example is one query; all kinds and groups form one pool, on which inverse cluster attribution and common
    neurons depend. ``position``: where the answer is read, at the answer slot or at the prompt's end
    (``positions.read_at``). ``answer_tokens`` is how many tokens of the gold answer count (their mean); the default,
    the first one, is where a worked answer starts with what had to be composed. ``rows_dtype="float32"`` computes in
    float32 on weights in half precision, and adds how far rows in half precision are from that, on up to 8 queries:
    ``rows_error`` (largest difference of scores, relative to the largest score), ``rows_spearman`` and
    ``rows_overlap`` (of the ``v`` neurons with the largest scores).

    Table, per pair of kinds and group: ``neuron_overlap`` (overlap coefficient within cases), the same between
    different cases (``_mismatched``), between different cases with the same whole answer (``_same_answer``),
    their difference (``_excess`` = matched - mismatched), ``neuron_jaccard``, and the pooled and chance levels; failure
    against success for each, also pair by pair over failures matched to successes (``matched failure - success``);
    ``neurons_in_layer``: how many of a whole's neurons lie in each layer, ``shared`` with a part of its case or its
    ``own`` (without contrasts); then
    ``answer_probability``, how far activation x gradient is from these scores on up to 8 queries (``gradient_error``,
    ``gradient_spearman``, ``gradient_overlap``), and the causal check: log ratios of the answer's probability with the
    chosen neurons silenced or doubled (0 up to 1e-5), beside random neurons of the same layers.

    Tensors: ``overlap`` (and ``.failure``, ``.success``) ``[task task]``, whose diagonal compares a task with itself
    in other cases; ``location_map.{kind}`` ``[layer bin]`` and ``layer_marginal.{kind}`` ``[layer]`` (also by group),
    counts per query. Raises ``NoCasesError`` for fewer than 3 examples.
    """
    reading = read_at(examples, position)
    examples = reading.examples
    if len(examples) < 3:
        raise NoCasesError(f"{len(examples)} examples; inverse cluster attribution needs 3 queries in the pool")
    own, wide = lm, widens(lm, rows_dtype)
    lm = InDtype(own, str(rows_dtype)) if wide else own  # type: ignore[assignment]
    said: list[str] = []
    with stage(progress, "neurons: integrals", len(examples)):
        found = _attribute(lm, examples, answer_tokens, (rule, steps), (t, v), said)
    chosen = select_clusters(found.clusters, t=t, u=u, v=v)
    a = lm.anatomy
    matched, note = matched_pairs(examples)
    summary = _Summary(matched, seed)
    _overlap_rows(examples, chosen, a.all_neurons, summary)
    summary.rows += _layer_rows(examples, chosen, a.n_layers)
    probability: Values[float] = list(zip(examples, found.probability, strict=True))
    summary.add("answer_probability", probability)
    with stage(progress, "neurons: causal check", len(examples)):
        _causal_rows(lm, examples, chosen, draws, summary, said)
    rows = summary.rows + preceding_row(examples, () if matched is None else matched.pairs)
    tensors, axes = _tensors(examples, chosen, a.n_layers, a.n_neurons, bins)
    settings: dict[str, Any] = {
        **chosen.settings, "tasks": kinds_of(examples), "rule": rule,
        "steps": 1 if rule == "gradient" else steps or (PUBLISHED_STEPS if rule == "reference" else _REFINED),
        "answer_tokens": answer_tokens or "all", **reading.settings,
        "site": _SITES[site_name(own, published_site(own, rule))],
        "probability": "softmax over the whole vocabulary", "bins": bins,
        "common_neurons": len(chosen.common), "pool": "all kinds and groups", "dtype": str(lm.dtype), "seed": seed,
        "matched": note, "draws": draws, "largest_gap": max(found.gap), "diagonal": "a task with itself in other cases",
    }  # fmt: skip
    warnings = [reading.note, *reading.warnings, *_warnings(lm, examples, chosen, found, answer_tokens)]
    rows += rows_of(found.estimates, [examples[i].shares for i in sampled(len(examples))], "gradient")
    if wide:
        sample = [(e.prompt_ids, e.answer_ids[:answer_tokens], e.shares) for e in examples]
        with stage(progress, "neurons: half precision", len(sampled(len(examples)))):
            more = agreement_rows(own, sample, rule=rule, steps=steps, v=v, dtype=str(rows_dtype), notes=said)
        rows, settings = rows + more.rows, {**settings, "rows_dtype": str(rows_dtype)}
        warnings.append(f"weights in {own.dtype}, scores in {rows_dtype}: {more.note}")
    elif torch.finfo(lm.dtype).bits < 32:
        warnings.append(f'weights in {lm.dtype}: scores are off by several % of the largest; use rows_dtype="float32"')
    warnings += dict.fromkeys(said)
    return ProbeResult("neurons", corrected(rows), tensors, axes, settings, warnings, summary.values)


def key_neurons(lm: Model, examples: Sequence[Example], answer_tokens: int | None = 1) -> list[list[Neuron]]:
    """Each example's key neurons for its gold answer after its prompt, chosen with all the examples as the pool.

    For comparing models on the same cases; ``over_examples`` has the tables, checks and warnings.
    """
    examples = read_at(examples, "prompt-end").examples
    clusters = []
    for start in range(0, len(examples), POOL):
        some = examples[start : start + POOL]
        answers = [e.answer_ids[:answer_tokens] for e in some]
        found = attribute_many(lm, [e.prompt_ids for e in some], answers, quick=True)
        clusters += [cluster(scores) for scores in found.mean]
    return select_clusters(clusters).neurons


def _attribute(
    lm: Model, examples: Sequence[Example], answer_tokens: int | None, how: tuple[Rule, int | None],
    chosen: tuple[float, int], notes: list[str],
) -> _Attributed:  # fmt: skip
    compared = set(sampled(len(examples))) if how[0] != "gradient" else set()
    queries = [(e.prompt_ids, e.answer_ids[:answer_tokens], i in compared) for i, e in enumerate(examples)]
    found = collect(lm, partial(_measure, rule=how[0], steps=how[1], t=chosen[0], v=chosen[1]), queries, notes)
    return _Attributed(
        clusters=[
            {(a, b): x for (a, b), x in zip(f["neurons"].tolist(), f["scores"].tolist(), strict=True)} for f in found
        ],
        probability=[f["probability"] for f in found],
        gap=[f["gap"] for f in found],
        unconverged=sum(f["unconverged"] for f in found),
        estimates=[f["estimate"] for f in found if f["estimate"]],
    )


def _measure(
    lm: Model, queries: Sequence[tuple[Ids, Ids, bool]], notes: Notes, *, rule: Rule, steps: int | None, t: float,
    v: int,
) -> Iterator[tuple[int, dict[str, Any]]]:  # fmt: skip
    """The cluster of each query (prompt, answer) with its scores, and its completeness error.

    Where the third item of a query is true, also the agreement of activation x gradient with them.
    """
    for start in range(0, len(queries), POOL):
        some = queries[start : start + POOL]
        prompts, answers = [p for p, _, _ in some], [a for _, a, _ in some]
        got = attribute_many(lm, prompts, answers, steps, rule, quick=True, notes=notes)
        where = [i for i, (_, _, wanted) in enumerate(some) if wanted]
        compared = [prompts[i] for i in where], [answers[i] for i in where], [got.mean[i] for i in where]
        found = estimates(lm, *compared, v, notes)
        estimate = dict(zip(where, found, strict=True))
        for i, scores in enumerate(got.mean):
            kept = cluster(scores, t)
            p, silenced = got.probability[i], got.silenced[i]
            scale = torch.maximum(p[:, None].expand_as(silenced), silenced).clamp_min(1e-30)
            measured = {
                "neurons": torch.tensor(list(kept), dtype=torch.long).view(-1, 2),
                "scores": torch.tensor(list(kept.values()), dtype=torch.float64),
                "probability": float(p[0]),
                "gap": float((got.error[i] / scale).max()),
                "unconverged": int((got.error[i] > limit(p[:, None], silenced)).sum()),
                "estimate": estimate.get(i, []),
            }
            yield start + i, measured


def _warnings(
    lm: Model, examples: Sequence[Example], chosen: Selection, found: _Attributed, answer_tokens: int | None
) -> list[str]:
    out = []
    alike = {e.answer_ids[0]: {o.answer_ids for o in examples if o.answer_ids[0] == e.answer_ids[0]} for e in examples}
    shared = sum(len(alike[e.answer_ids[0]]) > 1 for e in examples)
    if shared and answer_tokens == 1:
        out.append(
            f"{shared} of {len(examples)} answers begin with the same token as another answer does (single digits, "
            "shared syllables): their neurons are those of the token alone (answer_tokens=None counts all tokens)"
        )
    empty = sum(not n for n in chosen.neurons)
    if empty:
        out.append(f"{empty} of {len(examples)} queries have no key neuron; their overlaps are undefined and left out")
    impossible = sum(p == 0 for p in found.probability)
    if impossible:
        out.append(f"{impossible} queries: the answer's probability is 0 in {lm.dtype}; nothing can be attributed")
    certain = sum(p > 1 - SURE for p in found.probability)
    if certain:
        out.append(
            f"{certain} queries: the answer's probability is within {SURE} of 1; its gradient is only rounding error"
        )
    if found.unconverged:
        out.append(f"{found.unconverged} (query, layer) pairs miss completeness by more than 1 % after refinement")
    if lm.anatomy.n_experts:
        out.append("mixture of experts: routing frozen; random neurons of the causal check are of the same experts")
    return out


def _sets(examples: Sequence[Example], chosen: Selection) -> dict[str, list[tuple[Example, list[Neuron]]]]:
    by_kind: dict[str, list[tuple[Example, list[Neuron]]]] = {k: [] for k in kinds_of(examples)}
    for e, neurons in zip(examples, chosen.neurons, strict=True):
        by_kind[e.kind].append((e, neurons))
    return by_kind


def _mean(values: Sequence[float]) -> float:
    kept = [v for v in values if not math.isnan(v)]
    return sum(kept) / len(kept) if kept else math.nan


@dataclass
class _Summary:
    """The table's rows and the examples' values, collected quantity by quantity."""

    matched: Matched | None
    seed: int
    rows: list[Row] = field(default_factory=list)
    values: list[Row] = field(default_factory=list)

    def add(self, quantity: str, values: Values[float]) -> None:
        """By kind and group, failure against success, kinds within cases, and matched failures against successes."""
        mine = [e for e, _ in values]
        self.rows += group_rows(quantity, values, seed=self.seed)
        self.rows += matched_rows(quantity, mine, self.matched, lambda i, _: values[i][1], seed=self.seed)
        self.values += value_rows(quantity, values)


def _overlap_rows(examples: Sequence[Example], chosen: Selection, n_neurons: int, into: _Summary) -> None:
    by_kind = _sets(examples, chosen)
    quantities: dict[str, Values[float]] = {}
    extra: list[Row] = []
    for a, b in combinations(by_kind, 2):
        label = f"{a} & {b}"
        for group in dict.fromkeys(e.group for e in examples):
            first = [(e, s) for e, s in by_kind[a] if e.group == group]
            second = [(e, s) for e, s in by_kind[b] if e.group == group]
            for name, values in _per_case(first, second).items():
                quantities.setdefault(name, []).extend((replace(e, kind=label), x) for e, x in values)
            extra += _level_rows(label, group, first, second, n_neurons)
    for name, values in quantities.items():
        into.add(name, values)
    into.rows += extra


def _per_case(
    first: Sequence[tuple[Example, list[Neuron]]], second: Sequence[tuple[Example, list[Neuron]]]
) -> dict[str, Values[float]]:
    out: dict[str, Values[float]] = {}
    for e, mine in first:
        same = [share(mine, s) for o, s in second if o.case == e.case]
        other = [(o, share(mine, s).overlap) for o, s in second if o.case != e.case]
        if not same:
            continue
        matched = _mean([s.overlap for s in same])
        apart = _mean([x for _, x in other])
        answer = _mean([x for o, x in other if o.answer_ids == e.answer_ids])
        for name, value in (
            ("neuron_overlap", matched),
            ("neuron_jaccard", _mean([s.jaccard for s in same])),
            ("neuron_overlap_mismatched", apart),
            ("neuron_overlap_same_answer", answer),
            ("neuron_overlap_excess", matched - apart),
        ):
            out.setdefault(name, []).append((e, value))
    return out


def _layer_rows(examples: Sequence[Example], chosen: Selection, n_layers: int) -> list[Row]:
    """How many of a whole's neurons lie in each layer, mean over cases: shared with a part of the case, and its own."""
    neurons = list(zip(examples, map(set, chosen.neurons), strict=True))
    of_parts: dict[str, set[Neuron]] = {}
    for e, mine in neurons:
        if e.role != "whole":
            of_parts.setdefault(e.case, set()).update(mine)
    wholes = [(e, mine) for e, mine in neurons if e.role == "whole" and e.case in of_parts]
    rows: list[Row] = []
    for group in dict.fromkeys(e.group for e, _ in wholes):
        for name in ("shared", "own"):
            here = [(e, (m & of_parts[e.case]) if name == "shared" else m - of_parts[e.case]) for e, m in wholes
                    if e.group == group]  # fmt: skip
            for layer in range(n_layers):
                counts = [float(sum(n[0] == layer for n in mine)) for _, mine in here]
                rows.append(
                    mean_row("neurons_in_layer", group, counts, [e.shares for e, _ in here], layer=layer, kind=name)
                )
    return rows


def _level_rows(
    label: str, group: str, first: Sequence[tuple[Example, list[Neuron]]],
    second: Sequence[tuple[Example, list[Neuron]]], n_neurons: int,
) -> list[Row]:  # fmt: skip
    """Pooled overlap and chance levels: no interval, they are not means over cases; n counts pairs within cases."""
    sizes = [max(len(x), len(y)) for e, x in first for o, y in second if e.case == o.case and x and y]
    union = [{n for _, s in side for n in s} for side in (first, second)]
    pooled = share(*map(sorted, union))
    base: Row = {"group": group, "kind": label, "n": len(sizes), "low": math.nan, "high": math.nan, "interval": "none"}
    levels = {
        "neuron_overlap_pooled": pooled.overlap,
        "neuron_jaccard_pooled": pooled.jaccard,
        "neuron_overlap_pooled_chance": max(map(len, union)) / n_neurons if all(union) else math.nan,
        "neuron_overlap_chance": sum(sizes) / len(sizes) / n_neurons if sizes else math.nan,
    }
    return [{"quantity": name, "value": value, **base} for name, value in levels.items()]


def _causal_rows(
    lm: Model, examples: Sequence[Example], chosen: Selection, draws: int, into: _Summary, notes: list[str]
) -> None:
    some = [i for i, n in enumerate(chosen.neurons) if n]
    if not some or not draws:
        return
    check = causal_check(
        lm, [examples[i].prompt_ids for i in some], [examples[i].answer_ids for i in some],
        [chosen.neurons[i] for i in some], draws=draws, seed=into.seed, notes=notes,
    )  # fmt: skip
    for name, own, control in (
        ("suppress_log_ratio", "suppressed", "random_suppressed"),
        ("amplify_log_ratio", "amplified", "random_amplified"),
    ):
        changed, random = (_beyond_rounding(check.change(which)).tolist() for which in (own, control))
        excess = [x - y for x, y in zip(changed, random, strict=True)]
        for quantity, values in ((name, changed), (f"{name}_random", random), (f"{name}_excess", excess)):
            into.add(quantity, [(examples[i], x) for i, x in zip(some, values, strict=True)])


def _beyond_rounding(change: Tensor) -> Tensor:
    """Changes of a log-probability, with those up to ``ROUNDING`` set to 0, so that ranks do not depend on rounding."""
    return torch.where(change.abs() <= ROUNDING, torch.zeros_like(change), change)


def _tensors(
    examples: Sequence[Example], chosen: Selection, n_layers: int, d_mlp: int, bins: int
) -> tuple[dict[str, Tensor], dict[str, tuple[str, ...]]]:
    tensors: dict[str, Tensor] = {"overlap": _matrix(_sets(examples, chosen))}
    axes: dict[str, tuple[str, ...]] = {"overlap": ("task", "task")}
    for group in dict.fromkeys(e.group for e in examples):
        members = [i for i, e in enumerate(examples) if e.group == group]
        part = {k: [(e, s) for e, s in v if e.group == group] for k, v in _sets(examples, chosen).items()}
        tensors[f"overlap.{group}"] = _matrix(part)
        axes[f"overlap.{group}"] = ("task", "task")
        for kind in part:
            sets = [chosen.neurons[i] for i in members if examples[i].kind == kind]
            _add_map(tensors, axes, f"{kind}.{group}", sets, (n_layers, d_mlp, bins))
    for kind, pairs in _sets(examples, chosen).items():
        _add_map(tensors, axes, kind, [s for _, s in pairs], (n_layers, d_mlp, bins))
    return tensors, axes


def _add_map(
    tensors: dict[str, Tensor], axes: dict[str, tuple[str, ...]], name: str, sets: Sequence[list[Neuron]],
    size: tuple[int, int, int],
) -> None:  # fmt: skip
    if not sets:
        return
    counts = location_map(sets, *size).float()
    tensors[f"location_map.{name}"], axes[f"location_map.{name}"] = counts, ("layer", "bin")
    tensors[f"layer_marginal.{name}"], axes[f"layer_marginal.{name}"] = counts.sum(1), ("layer",)


def _matrix(by_kind: dict[str, list[tuple[Example, list[Neuron]]]]) -> Tensor:
    """Mean overlap of tasks within cases; on the diagonal a task with itself between cases."""
    kinds = list(by_kind)
    out = torch.full((len(kinds), len(kinds)), math.nan, dtype=torch.float32)
    for i, a in enumerate(kinds):
        for j, b in enumerate(kinds):
            pairs = [
                share(x, y).overlap for e, x in by_kind[a] for o, y in by_kind[b] if (e.case == o.case) == (i != j)
            ]
            out[i, j] = _mean(pairs)
    return out
