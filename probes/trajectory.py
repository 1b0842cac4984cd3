"""Cosines of residual states: between cases at the prompt's end, and from step to step of a response.

    prompt_end_cosines(lm, donors, recipients).dr  # one mean cosine per layer

Composition collapse (App. I): the state h_l is the output of decoder block l, before the final norm, at the last token
of the full prompt. Cosines are formed in float64, since in bfloat16 they saturate at 0.9999; plain ones are dominated
by a few massive dimensions and by the template, so centered ones (minus the layer's mean state) are reported as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import comb, prod
from typing import Literal

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float
from scipy import stats
from torch import Tensor

from ..errors import InputError, NoCasesError
from ..evaluation import dependence
from ..hooks.capture import Request, capture, check_last, id_rows
from ..hooks.model import Model
from ..terminal import Bar, no_bar, stage
from .effects import NO_SPREAD
from .examples import Example
from .matching import check_templates
from .positions import Position, read_at
from .result import ProbeResult, Row
from .spread import Notes, collect
from .tables import Values, cell_maps, matched_pairs, matched_rows, mean_row, value_rows
from .verdicts import corrected

Alignment = Literal["predictive", "token"]
Ids = Sequence[int]


def prompt_end_states(
    lm: Model, prompts: Sequence[Ids], *, max_tokens: int | None = None, notes: list[str] | None = None
) -> Float[Tensor, "prompt layer d_model"]:
    """Block outputs at the last token of every prompt, in float64."""
    prompts = id_rows(prompts, "prompt")
    if not prompts:
        raise InputError("no prompts; give at least one")
    requests = [Request(p, states=(max(0, len(p) - 1), len(p))) for p in prompts]
    return torch.stack([s[:, 0] for s in collect(lm, partial(_capture, max_tokens=max_tokens), requests, notes)])


def _capture(
    lm: Model, requests: Sequence[Request], notes: Notes, *, max_tokens: int | None
) -> Iterator[tuple[int, Tensor]]:
    """States of each request, layer pos d_model, float64."""
    for i, got in capture(lm, requests, max_tokens=max_tokens, notes=notes):
        assert got.states is not None
        yield i, got.states.double().cpu()


def cosine_matrix(states: Float[Tensor, "n layer d_model"], centered: bool = False) -> Float[Tensor, "layer n n"]:
    """Cosine of every pair of states, per layer."""
    x = rearrange(states.double(), "n layer d -> layer n d")
    if centered:
        x = x - x.mean(1, keepdim=True)
    x = torch.nn.functional.normalize(x, dim=-1, eps=0.0 if not centered else 1e-12)
    return x @ x.mT


@dataclass(frozen=True)
class PromptEndCosines:
    """Mean cosines per layer: within donors (pairs i<j), within recipients, across; NaN if there is no pair."""

    dd: Float[Tensor, "layer"]
    rr: Float[Tensor, "layer"]
    dr: Float[Tensor, "layer"]
    matrix: Float[Tensor, "layer n n"]
    """Donors first"""
    centered: bool


def prompt_end_cosines(
    lm: Model, donors: Sequence[Ids], recipients: Sequence[Ids], *, centered: bool = False,
    max_tokens: int | None = None,
) -> PromptEndCosines:  # fmt: skip
    """Cosines between prompt-end states of two groups of prompts, per layer (float64).

    ``centered`` subtracts the mean state of all prompts given. Raises ``NoCasesError`` for an empty group.
    """
    if not donors or not recipients:
        raise NoCasesError(f"{len(donors)} donors and {len(recipients)} recipients; give at least one of each")
    matrix = cosine_matrix(prompt_end_states(lm, [*donors, *recipients], max_tokens=max_tokens), centered)
    return _split(matrix, len(donors), centered)


def _split(matrix: Float[Tensor, "layer all all"], n: int, centered: bool) -> PromptEndCosines:
    def within(m: Tensor) -> Tensor:
        i, j = torch.triu_indices(m.shape[1], m.shape[2], offset=1)
        return m[:, i, j].mean(1)

    dr = matrix[:, :n, n:].mean((1, 2))
    return PromptEndCosines(within(matrix[:, :n, :n]), within(matrix[:, n:, n:]), dr, matrix, centered)


@dataclass(frozen=True)
class StepCosines:
    """cos(h_l(t), h_l(t+1)) of one response, and the norms of the states, in float64."""

    cosines: Float[Tensor, "layer step"]
    norms: Float[Tensor, "layer state"]
    alignment: Alignment


def step_cosines(
    lm: Model, prompts: Sequence[Ids], responses: Sequence[Ids], *, alignment: Alignment = "predictive",
    steps: int = 40, eos: Sequence[int] | None = None, max_tokens: int | None = None,
    notes: list[str] | None = None,
) -> list[StepCosines]:  # fmt: skip
    """Cosines between consecutive states over the first ``steps`` response tokens, teacher-forced on token ids.

    ``predictive``: the states that predict the tokens, the first one at the prompt's end (what a step-wise runner
    sees); ``token``: the states at the tokens themselves, without a final end token (``eos``, default the model's).
    n states give n - 1 cosines; a response of one token gives none. Raises ``InputError`` for an unknown alignment or
    an empty response.
    """
    ends = lm.eos_ids if eos is None else eos
    prompts, responses = id_rows(prompts, "prompt"), id_rows(responses, "response")
    if len(prompts) != len(responses) or steps < 1:
        raise InputError(
            f"{len(prompts)} prompts, {len(responses)} responses, steps={steps}; give one of each, steps >= 1"
        )
    requests = [
        _request(p, r, alignment, steps, ends, i) for i, (p, r) in enumerate(zip(prompts, responses, strict=True))
    ]
    for i, response in enumerate(responses):
        check_last(lm, response, f"response {i}")
    found = collect(lm, partial(_measure_steps, max_tokens=max_tokens), requests, notes)
    return [StepCosines(f["cosines"], f["norms"], alignment) for f in found]


def _measure_steps(
    lm: Model, requests: Sequence[Request], notes: Notes, *, max_tokens: int | None
) -> Iterator[tuple[int, dict[str, Tensor]]]:
    for i, states in _capture(lm, requests, notes, max_tokens=max_tokens):
        yield i, _steps(states)


def _steps(states: Float[Tensor, "layer pos d_model"]) -> dict[str, Tensor]:
    norms = states.norm(dim=-1)
    dots = (states[:, 1:] * states[:, :-1]).sum(-1)
    return {"cosines": dots / (norms[:, 1:] * norms[:, :-1]), "norms": norms}


def _request(prompt: Ids, response: Ids, alignment: Alignment, steps: int, eos: Sequence[int], i: int) -> Request:
    if alignment not in ("predictive", "token"):
        raise InputError(f"alignment is {alignment!r}; use 'predictive' or 'token'")
    if not len(prompt) or not len(response):
        raise InputError(
            f"pair {i}: {len(prompt)} prompt and {len(response)} response tokens; give at least one of each"
        )
    kept, n = list(response[:steps]), len(prompt)
    if alignment == "predictive":
        return Request([*prompt, *kept[:-1]], states=(n - 1, n - 1 + len(kept)))
    if kept[-1] in eos and len(kept) > 1:
        kept = kept[:-1]
    return Request([*prompt, *kept], states=(n, n + len(kept)))


def over_examples(
    lm: Model, examples: Sequence[Example], *, role: str = "whole", alignment: Alignment = "predictive",
    steps: int = 40, eos: Sequence[int] | None = None, permutations: int = 1000, seed: int = 0,
    max_tokens: int | None = None, position: Position = "answer-slot",
    progress: Bar = no_bar,
) -> ProbeResult:  # fmt: skip
    """Prompt-end cosines (donors = successes, recipients = failures) and step cosines by group, for one role.

    ``position``: where the states of the ``prompt_end`` and ``centered`` rows are read, at each response's answer slot
    or at the prompt's end. Steps always cover the full response.

    Table: per layer the plain and centered cosines (within successes, within failures, across) over pairs that share
    nothing, their ``separation`` (mean within groups - across) with a label-permutation p, also over all layers
    (``p_map``), and mean step cosines by group and over matched pairs. Tensors (dd: successes, rr: failures, dr:
    across): ``prompt_end.dd|rr|dr`` and ``centered.dd|rr|dr`` ``[layer]``, ``step.{group}`` and ``step_norm.{group}``
    ``[layer step]``, ``step_n.{group}`` ``[step]``. A group without examples is left out and said in the warnings.
    """
    chosen = [e for e in examples if e.role == role]
    if not chosen:
        raise NoCasesError(f"no example has the role {role!r}; roles are {sorted({e.role for e in examples})}")
    rows: list[Row] = []
    tensors: dict[str, Tensor] = {}
    warnings: list[str] = []
    reading = read_at(chosen, position)
    warnings += [reading.note, *reading.warnings]
    donors = [e for e in reading.examples if e.group == "success"]
    recipients = [e for e in reading.examples if e.group == "failure"]
    if donors and recipients:
        check_templates([*donors, *recipients], warnings)
        prompts = [e.prompt_ids for e in (*donors, *recipients)]
        with stage(progress, "trajectory: states", len(prompts)):
            states = prompt_end_states(lm, prompts, max_tokens=max_tokens, notes=warnings)
        for name, centered in (("prompt_end", False), ("centered", True)):
            cosines = _split(cosine_matrix(states, centered), len(donors), centered)
            tensors |= {f"{name}.{k}": getattr(cosines, k).float() for k in ("dd", "rr", "dr")}
            labels = [e.shares for e in (*donors, *recipients)]
            rows += separation_rows(
                f"{name}_cosine", cosines.matrix.numpy(), len(donors), labels, permutations=permutations, seed=seed
            )
    else:
        warnings.append(f"{len(donors)} successes and {len(recipients)} failures: no prompt-end comparison possible")
    with stage(progress, "trajectory: responses", len(chosen)):
        found = step_cosines(
            lm, [e.prompt_ids for e in chosen], [e.response_ids for e in chosen], alignment=alignment, steps=steps,
            eos=eos, max_tokens=max_tokens, notes=warnings,
        )  # fmt: skip
    step_rows, step_tensors = _step_summary(chosen, found, permutations, seed)
    tensors |= step_tensors
    by_prefix = {"step_n": ("step",), "step": ("layer", "step"), "step_norm": ("layer", "step")}
    axes = {name: by_prefix.get(name.split(".")[0], ("layer",)) for name in tensors}
    settings = {
        "role": role, "alignment": alignment, "steps": steps, "state": "block output before the final norm",
        **reading.settings,
        "dtype": str(lm.dtype), "permutations": permutations, "seed": seed,
    }  # fmt: skip
    means = [float(f.cosines.nanmean()) if f.cosines.numel() else float("nan") for f in found]
    kept = value_rows("step_cosine", list(zip(chosen, means, strict=True)))
    matched, _ = matched_pairs(chosen)
    step_rows += matched_rows("step_cosine", chosen, matched, lambda i, _: means[i], seed=seed)
    return ProbeResult("trajectory", corrected([*rows, *step_rows]), tensors, axes, settings, warnings, kept)


def _step_summary(
    examples: Sequence[Example], found: Sequence[StepCosines], permutations: int, seed: int
) -> tuple[list[Row], dict[str, Tensor]]:
    rows: list[Row] = []
    tensors: dict[str, Tensor] = {}
    maps: Values[Tensor] = []
    for group in sorted({e.group for e in examples}):
        mine = [(e, f) for e, f in zip(examples, found, strict=True) if e.group == group]
        width = max(f.norms.shape[1] for _, f in mine)
        cosines = torch.stack([_padded(f.cosines, width - 1) for _, f in mine])
        tensors[f"step.{group}"] = cosines.nanmean(0).float()
        tensors[f"step_norm.{group}"] = torch.stack([_padded(f.norms, width) for _, f in mine]).nanmean(0).float()
        tensors[f"step_n.{group}"] = (~cosines[:, 0].isnan()).sum(0)
        per_layer = cosines.nanmean(2)
        maps += [(e, x) for (e, _), x in zip(mine, per_layer, strict=True)]
        clusters = [e.shares for e, _ in mine]
        rows += [
            mean_row("step_cosine", group, per_layer[:, layer].tolist(), clusters, layer=layer)
            for layer in range(per_layer.shape[1])
        ]
    cells, _, map_rows = cell_maps(
        "step_mean", "step_cosine_layers", maps, ("layer",), permutations=permutations, seed=seed
    )
    tensors |= {f"step_p.{k.split('.', 1)[1]}": v for k, v in cells.items() if k.startswith("p.")}
    return rows + map_rows, tensors


def _padded(x: Tensor, width: int) -> Tensor:
    return torch.nn.functional.pad(x, (0, width - x.shape[1]), value=torch.nan)


def separation_rows(
    quantity: str, matrix: np.ndarray, n: int, labels: Sequence[Hashable], *, permutations: int = 1000, seed: int = 0
) -> list[Row]:
    """Mean cosines [layer n n], donors (the first ``n``) before recipients, and whether they are apart: rows per layer.

    Pairs that share anything (``labels``, one a case) are left out of the means. Intervals leave one cluster out at a
    time (jackknife, Student t), tests permute the labels donor and recipient: of whole clusters where none has both,
    else within clusters. Where facts cross, only cases that share nothing are taken, which the rows say.
    """
    crossed = dependence.crossing(labels)
    kept = dependence.apart(labels) if crossed else list(range(len(labels)))
    m = matrix[:, kept][:, :, kept]
    group = dependence.joined([labels[i] for i in kept])
    donor = np.array(kept) < n
    other = ~donor
    allowed = (group[:, None] != group).astype(float)
    value = _means(m, allowed, donor[None], other[None])
    k = int(group.max()) + 1
    rest = np.arange(k)[:, None] != group
    without = _means(m, allowed, rest * donor, rest * other)
    sides = np.array([[(side & (group == g)).any() for g in range(k)] for side in (donor, other)])
    note = f"facts cross: {len(kept)} of {len(labels)} cases that share nothing" if crossed else ""
    counts = {name: _pairs(allowed, *pair) for name, pair in
              (("dd", (donor, donor)), ("rr", (other, other)), ("dr", (donor, other)))}  # fmt: skip
    members = {"dd": donor, "rr": other, "dr": donor | other}
    rows: list[Row] = []
    for name, shown in (("dd", "within successes"), ("rr", "within failures"), ("dr", "across")):
        own = {"dd": sides[:1], "rr": sides[1:], "dr": sides}[name]
        for layer in range(len(m)):
            rows.append({
                "quantity": quantity, "group": shown, "layer": layer, "n": int(counts[name]),
                "n_cases": int(members[name].sum()), "value": float(value[name][layer, 0]),
                **_jackknife(float(value[name][layer, 0]), without[name][layer], own, note),
            })  # fmt: skip
    if min(donor.sum(), (other).sum()) < 2:
        return rows
    null = _null(m, allowed, donor, group, permutations, np.random.default_rng(seed))
    own = _separation(value)[:, 0]
    for layer, (v, tested) in enumerate(zip(own, _tests(own, null), strict=True)):
        rows.append({
            "quantity": f"{quantity}_separation", "group": "within - across", "layer": layer, "n": len(kept),
            "value": float(v), **_jackknife(float(v), _separation(without)[layer], sides, note, most=2), **tested,
        })  # fmt: skip
    return rows


def _pairs(allowed: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
    """How many pairs, each once, a mean is over."""
    return float(u @ allowed @ v) / (2 if u is v else 1)


def _means(m: np.ndarray, allowed: np.ndarray, a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """Weighted mean cosines [layer draw] over the pairs allowed, for weights a of donors and b [draw case]."""
    a, b, kept = a.astype(float), b.astype(float), m * allowed

    def mean(u: np.ndarray, v: np.ndarray) -> np.ndarray:
        total = np.einsum("lrj,rj->lr", u @ kept, v)
        weight = np.einsum("rj,rj->r", u @ allowed, v)
        return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)

    return {"dd": mean(a, a), "rr": mean(b, b), "dr": mean(a, b)}


def _separation(means: dict[str, np.ndarray]) -> np.ndarray:
    return (means["dd"] + means["rr"]) / 2 - means["dr"]


def _jackknife(value: float, without: np.ndarray, sides: np.ndarray, note: str, most: float = 1) -> Row:
    """Student t interval from the values with each cluster left out; ``sides`` [side cluster] says who is where.

    Skewed clusters leave fewer degrees of freedom, as in ``dependence``. A cosine lies between -1 and 1 (``most``).
    """
    fewest = int(sides.sum(1).min())
    none: Row = {"low": np.nan, "high": np.nan}
    if fewest < dependence.FEWEST or not np.isfinite(value):
        return {**none, "interval": dependence.FEW, "note": note}
    apart = [sides[0] & ~sides[-1], sides[-1] & ~sides[0]]
    parts = apart if (apart[0] | apart[1]).all() else [sides.any(0)]
    off = [(len(x) - 1) ** 0.5 / len(x) ** 0.5 * (x.mean() - x) for part in parts for x in (without[part],)]
    variances = [float((x**2).sum()) for x in off]
    variance = sum(variances)
    if not np.isfinite(variance) or variance <= 1e-24 * value**2:
        return {**none, "interval": NO_SPREAD, "note": note}
    below = sum(v**2 / (len(x) - 1) for v, x in zip(variances, off, strict=True))
    skewness = sum(float((x**3).sum()) * len(x) / (len(x) - 2) for x in off) / variance**1.5
    freedom = max(1 / (below / variance**2 + dependence.SKEWED * skewness**2), 1.0)
    half = float(stats.t.ppf(0.975, freedom)) * variance**0.5
    low, high = max(value - half, -most), min(value + half, most)
    return {"low": low, "high": high, "interval": "jackknife over clusters, t", "note": note}


FEWEST_LABELINGS = 20
"""Fewest ways to permute the labels that allow a p of 0.05."""


def _null(
    m: np.ndarray, allowed: np.ndarray, donor: np.ndarray, group: np.ndarray, permutations: int,
    rng: np.random.Generator,
) -> np.ndarray | None:  # fmt: skip
    """Separations under permuted labels [layer draw]; None if there are too few ways to permute them."""
    sizes, donors = np.bincount(group), np.bincount(group, donor)
    if ((donors == 0) | (donors == sizes)).all():
        of_cluster = donors > 0
        ways = comb(len(sizes), int(of_cluster.sum()))
        labels = rng.permuted(np.tile(of_cluster, (permutations, 1)), axis=1)[:, group]
    else:
        ways = prod(comb(int(s), int(d)) for s, d in zip(sizes, donors, strict=True))
        places = np.argsort(group, kind="stable")
        order = np.argsort(group + rng.random((permutations, len(group))), axis=1)
        labels = np.empty((permutations, len(group)), dtype=bool)
        labels[:, places] = donor[order]
    return None if ways < FEWEST_LABELINGS else _separation(_means(m, allowed, labels, ~labels))


def _tests(own: np.ndarray, null: np.ndarray | None) -> list[Row]:
    """Test columns per layer."""
    if null is None or np.isnan(own).any():
        why = "too few ways to permute labels" if null is None else "a group has no pair that shares nothing"
        nan, test = np.nan, f"none ({why})"
        return [{"effect": nan, "effect_size": "permutation z", "p": nan, "test": test, "p_map": nan} for _ in own]
    sd = np.nanstd(null, axis=1)
    sd = np.where(sd > 1e-12, sd, np.inf)  # less is rounding
    centred = np.abs(null - np.nanmean(null, axis=1, keepdims=True))
    scaled = np.nan_to_num(centred / sd[:, None])
    z = (own - np.nanmean(null, axis=1)) / sd
    # Labels as they were, drawn again, have the same separation up to rounding.
    least = np.abs(z) * (1 - 1e-9)
    return [
        {"effect": float(x), "effect_size": "permutation z", "test": "label permutation",
         "p": float((1 + (scaled[layer] >= least[layer]).sum()) / (1 + null.shape[1])),
         "p_map": float((1 + (scaled.max(0) >= least[layer]).sum()) / (1 + null.shape[1]))}
        for layer, x in enumerate(z)
    ]  # fmt: skip
