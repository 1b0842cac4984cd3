"""Attribution patching: a first-order estimate of every patch, and its agreement with real patching.

    attribution_patching(lm, donors, recipients, answers, units="heads").tensors["estimate"]  # pair layer head

    estimate(site, position) = (a_source - a_run) . d m / d a_run,   m = logit(answer of source) - logit(answer of run)

with both activations from plain forward passes (Nanda 2023; Syed, Rager and Conmy 2024, eq. 2). Two forward passes and
one backward pass per pair give every position, layer and head, where real patching takes one forward pass for each. It
is a screen, not a result: it misses the network's response to large changes (norms, softmax, saturation), above all in
early layers. So the same call also patches a sample for real and reports the agreement.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from einops import reduce
from jaxtyping import Float
from scipy import stats as scipy_stats
from torch import Tensor

from ...errors import InputError
from ...evaluation.dependence import Sides
from ...hooks.model import Model
from ...hooks.module_hooks import check_gradients, frozen
from ...hooks.sites import Kind, Site
from ..effects import mean_interval
from ..result import ProbeResult, Row
from .engine import chosen_layers
from .positions import Cell, Direction, Ids, Pair, check_pairs, head_count, sweep

TOP = 0.1
"""Share of the cells that the screen selects."""
Units = Literal["positions", "heads"]
stats: Any = scipy_stats


def attribution_patching(
    lm: Model, donors: Sequence[Ids], recipients: Sequence[Ids], answers: Sequence[tuple[int, int]], *,
    kind: Kind = "resid_post", units: Units = "positions", layers: Sequence[int] | None = None,
    direction: Direction = "denoising", verify: int | None = 64, seed: int = 0, max_batch: int | None = None,
) -> ProbeResult:  # fmt: skip
    """Estimate the change of the logit difference for every (layer, position) or (layer, head), and check the estimate.

    Args:
        donors: as in ``position_sweep``, as are ``recipients``, ``answers``, ``kind``, ``layers`` and ``direction``.
        units: ``positions`` (one position at a time) or ``heads`` (one head at a time at all positions, as in
            ``head_sweep``; ``kind`` is then ``head``).
        verify: how many cells to patch for real (a random sample, the same for every pair); ``None``: all, 0: none.

    Tensors, ``pair layer position`` or ``pair layer head``: ``estimate`` and ``patched``, the real change (NaN if it
    was not measured). Table, over pairs: ``spearman`` and ``pearson`` between the two within a pair, ``top_overlap``
    (share of the tenth of cells that change most that the screen also puts there, chance = a tenth) and ``slope`` (of
    the real change on the estimate; 1 where first order is all there is).
    """
    if units not in ("positions", "heads"):
        raise InputError(f'units "{units}": use positions or heads')
    kind = "head" if units == "heads" else kind
    pairs = check_pairs(lm, donors, recipients, answers, kind, direction)
    chosen = chosen_layers(lm, layers)
    sites = [Site(layer, kind) for layer in chosen]
    check_gradients(lm)
    cells = _cells(lm, len(recipients[0]), units, chosen)
    estimate = torch.stack([_estimate(lm, pair, sites, units) for pair in pairs]).float()
    notes: list[str] = []
    patched = _verified(lm, pairs, sites, cells, verify, seed, max_batch, notes)
    agreement = _agreement(estimate, patched)
    rows = [_row(q, v, pairs) for q, v in agreement.items()] if verify != 0 else []
    axes = ("pair", "layer", "position" if units == "positions" else "head")
    settings: dict[str, Any] = {
        "kind": kind, "units": units, "layers": chosen, "direction": direction, "answers": [list(a) for a in answers],
        "verified_cells": int((~patched[0].isnan()).sum()), "cells": patched[0].numel(), "top": TOP, "seed": seed,
        "dtype": str(lm.dtype), "metric": "logit of the source's answer minus that of the unpatched run's",
    }  # fmt: skip
    warnings = [] if verify != 0 else ["nothing was verified (verify=0): these are estimates, not measured effects"]
    if verify != 0 and (few := sum(v is None for v in agreement["spearman"])):
        warnings.append(
            f"{few} of {len(pairs)} pairs: fewer than 3 cells were verified or all are equal, so agreement is undefined"
        )
    tensors = {"estimate": estimate, "patched": patched}
    warnings += dict.fromkeys(notes)
    return ProbeResult("attribution_patching", rows, tensors, dict.fromkeys(tensors, axes), settings, warnings)


def _estimate(lm: Model, pair: Pair, sites: Sequence[Site], units: Units) -> Float[Tensor, "site unit"]:
    """The estimated change of the logit difference."""
    source, run = (torch.tensor([list(p)], device=lm.device) for p in pair[:2])
    with torch.no_grad():
        goal = lm.run(source, read=sites).acts
    with frozen(lm.model), torch.enable_grad():
        got = lm.run(run, read=sites)
        last = got.logits[0, -1].float()
        gradients = torch.autograd.grad(last[pair[2][0]] - last[pair[2][1]], [got.acts[s] for s in sites])
    out = []
    for site, gradient in zip(sites, gradients, strict=True):
        product = ((goal[site] - got.acts[site].detach()) * gradient)[0].double()  # pos width
        heads = lm.anatomy.heads(site.layer)[0] if units == "heads" else 1
        pattern = "pos (head d) -> head" if units == "heads" else "pos (head d) -> pos"
        out.append(reduce(product, pattern, "sum", head=heads).cpu())
    return torch.stack(out)


def _cells(lm: Model, n: int, units: Units, layers: Sequence[int]) -> list[Cell]:
    if units == "heads":
        heads = head_count(lm, layers)
        return [Cell(tuple(range(n)), h, heads) for h in range(heads)]
    return [Cell((p,)) for p in range(n)]


def _verified(
    lm: Model, pairs: Sequence[Pair], sites: Sequence[Site], cells: Sequence[Cell], verify: int | None, seed: int,
    max_batch: int | None, notes: list[str],
) -> Float[Tensor, "pair site cell"]:  # fmt: skip
    """The real change of the logit difference in the chosen cells, NaN elsewhere."""
    total = len(sites) * len(cells)
    out = torch.full((len(pairs), len(sites), len(cells)), torch.nan, dtype=torch.float32)
    if verify == 0:
        return out
    if verify is not None and verify < 0:
        raise InputError(f"verify {verify}: a number of cells, or None for all of them")
    order = np.random.default_rng(seed).permutation(total)[:verify]
    base = torch.tensor([_base(lm, pair) for pair in pairs], dtype=torch.float32)
    for i, site in enumerate(sites):
        mine = sorted(int(k) % len(cells) for k in order if int(k) // len(cells) == i)
        if mine:
            found = sweep(lm, pairs, [site], [cells[k] for k in mine], max_batch, notes)["logit_difference"]
            out[:, i, mine] = found[:, 0] - base[:, None]
    return out


@torch.no_grad()
def _base(lm: Model, pair: Pair) -> float:
    last = lm.run(torch.tensor([list(pair[1])], device=lm.device)).logits[0, -1].double()
    return float(last[pair[2][0]] - last[pair[2][1]])


def _agreement(
    estimate: Float[Tensor, "pair site cell"], patched: Float[Tensor, "pair site cell"]
) -> dict[str, list[float | None]]:
    """Agreement of estimates and real changes, per pair; None where it is undefined."""
    out: dict[str, list[float | None]] = {"spearman": [], "pearson": [], "top_overlap": [], "slope": []}
    for guess, real in zip(estimate.double(), patched.double(), strict=True):
        known = ~real.isnan()
        x, y = guess[known].numpy(), real[known].numpy()
        if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
            for values in out.values():
                values.append(None)
            continue
        size = max(1, round(TOP * len(x)))
        mine, theirs = (set(np.argsort(-np.abs(v), kind="stable")[:size].tolist()) for v in (x, y))
        out["spearman"].append(float(stats.spearmanr(x, y).statistic))
        out["pearson"].append(float(np.corrcoef(x, y)[0, 1]))
        out["top_overlap"].append(len(mine & theirs) / size)
        out["slope"].append(float(x @ y / (x @ x)))
    return out


def _row(quantity: str, values: Sequence[float | None], pairs: Sequence[Pair]) -> Row:
    """A mean over pairs; those with the same donor or recipient are not independent."""
    known = {i: v for i, v in enumerate(values) if v is not None}
    e = mean_interval(list(known.values()), [Sides(tuple(pairs[i][0]), tuple(pairs[i][1])) for i in known])
    note = "estimate against real patching, within pairs"
    return {"quantity": quantity, "group": "pairs", "n": len(known), **e._asdict(), "note": note}
