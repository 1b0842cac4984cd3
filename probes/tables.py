"""Rows of the probes' tables: values of labelled examples, summarized and contrasted by kind and group.

group_rows("lookback_ratio", [(example, 0.4), ...])
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..errors import NoCasesError
from ..evaluation import dependence
from ..evaluation.dependence import Sides
from .contrast import NO_CONTRAST, MapTest, between, impossible, map_test, paired, summary_row
from .effects import NO_SPREAD, Array, hedges_g_paired, mean_interval
from .examples import Example
from .matching import Matched, match
from .result import Row
from .verdicts import MATCHED, UNMATCHED, corrected

T = TypeVar("T")
K = TypeVar("K")
Values = list[tuple[Example, T]]
GROUPS = ("failure", "success")
SAME = 1e-6
"""Values this close, relative to the largest one, are the same value: float32 rounds a sum by how it was batched."""


def by_case(values: Sequence[tuple[Example, float]]) -> dict[tuple[str, str], dict[str, float]]:
    """Values by (kind, group) and case: parts of one kind are averaged within their case, NaN values left out.

    Values that differ by rounding alone are made equal (``settled``), so that ranks and tests do not depend on it.
    """
    raw: dict[tuple[str, str], dict[str, list[float]]] = {}
    for example, value in values:
        cell = raw.setdefault((example.kind, example.group), {})
        if np.isfinite(value):
            cell.setdefault(example.case, []).append(value)
    return settled_cells({key: {case: float(np.mean(v)) for case, v in cell.items()} for key, cell in raw.items()})


def settled(values: np.ndarray) -> np.ndarray:
    """Values with those that are the same up to ``SAME`` replaced by their mean.

    Values are the same if neighbours in order are at most that distance apart. A chain that reaches ten times as far is
    not rounding and stays unchanged.
    """
    if len(values) < 2:
        return values
    order = np.argsort(values, kind="stable")
    ranked, step = values[order], SAME * np.abs(values).max()
    group = np.concatenate([[0], np.cumsum(np.diff(ranked) > step)])
    first, last = (np.searchsorted(group, group, side) for side in ("left", "right"))
    means = np.bincount(group, ranked)[group] / (last - first)
    out = np.empty_like(values)
    width = ranked[last - 1] - ranked[first]
    out[order] = np.where((width > 0) & (width <= 10 * step), means, ranked)
    return out


def settled_cells(cells: Mapping[K, Mapping[str, float]]) -> dict[K, dict[str, float]]:
    """All values of all cells, ``settled`` together."""
    flat = iter(settled(np.array([x for cell in cells.values() for x in cell.values()])).tolist())
    return {key: {case: next(flat) for case in cell} for key, cell in cells.items()}


def kinds_of(examples: Sequence[Example]) -> list[str]:
    """Kinds in a stable order, the composition first."""
    found = dict.fromkeys(e.kind for e in examples)
    return sorted(found, key=lambda k: (k != "composition", list(found).index(k)))


def group_rows(quantity: str, values: Values[float], *, seed: int = 0) -> list[Row]:
    """Rows for one number per example: by kind and group, failure against success, kind against kind within cases.

    Intervals and tests respect what cases share. ``p_adjusted`` is over these rows alone; a probe and a run correct all
    of theirs together (``verdicts.corrected``). Raises ``NoCasesError`` when there are no examples.
    """
    if not values:
        raise NoCasesError(f"{quantity}: no examples; give at least one labelled failure or success")
    cells = by_case(values)
    cluster = {e.case: e.shares for e, _ in values}
    kinds = kinds_of([e for e, _ in values])
    groups = sorted({g for _, g in cells})
    rows: list[Row] = []
    for kind in kinds:
        for group in groups:
            if (kind, group) in cells:
                rows.append(_summary(quantity, kind, group, cells[kind, group], cluster))
    across = [
        {**r, "kind": kind}
        for kind in kinds
        if (r := _failure_against_success(quantity, kind, cells, cluster, seed)) is not None
    ]
    within = [
        {**r, "kind": f"{a} - {b}", "group": group}
        for group in groups
        for a, b in combinations(kinds, 2)
        if cells.get((a, group)) and cells.get((b, group))
        for r in paired({a: cells[a, group], b: cells[b, group]}, quantity=quantity, clusters=cluster, seed=seed).table
    ]
    return rows + corrected([*across, *within])


def _summary(quantity: str, kind: str, group: str, cell: Mapping[str, float], cluster: Mapping[str, Hashable]) -> Row:
    values = list(cell.values())
    row = summary_row(quantity, group, values, [cluster[c] for c in cell])
    return {**row, "kind": kind, "sd": float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")}


def _failure_against_success(
    quantity: str, kind: str, cells: Mapping[tuple[str, str], Mapping[str, float]],
    cluster: Mapping[str, Hashable], seed: int,
) -> Row | None:  # fmt: skip
    sides = {g: cells.get((kind, g), {}) for g in GROUPS}
    if not all(sides.values()):
        return None
    near = {g: [cluster[c] for c in cell] for g, cell in sides.items()}
    found = between({g: list(v.values()) for g, v in sides.items()}, quantity=quantity, clusters=near, seed=seed)
    return found.table[-1]


def matched_pairs(examples: Sequence[Example]) -> tuple[Matched | None, str]:
    """Cases matched one to one on their wholes, where both groups have some, and a sentence about the match."""
    if {e.group for e in examples if e.role == "whole"} != set(GROUPS):
        return None, "no matched pairs: wholes of failures and successes are needed"
    found = match(examples)
    return found, found.note


def matched_rows(
    quantity: str, examples: Sequence[Example], matched: Matched | None, value: Callable[[int, int | None], float],
    size: Callable[[int], int] | None = None, *, seed: int = 0,
) -> list[Row]:  # fmt: skip
    """Failure minus success, pair by pair of matched cases: one row per kind.

    ``value(i, n)`` is the number of ``examples[i]``, computed over its first ``n`` tokens or steps where ``size`` is
    given: then n is the smallest size among the pair's examples of the kind. Pairs with NaN are left out. Intervals and
    tests respect what the failures share with each other, and what the successes do. Where matching left groups
    unbalanced the difference is adjusted for it by regression, which the row's note says.
    """
    pairs = () if matched is None else matched.pairs
    where: dict[tuple[str, str], list[int]] = {}
    for i, e in enumerate(examples):
        where.setdefault((e.case, e.kind), []).append(i)
    of = {e.case: e.shares for e in examples}
    cluster: dict[str, Hashable] = {f: Sides(of.get(f), of.get(s)) for f, s in pairs}
    rows: list[Row] = []
    for kind in kinds_of(examples):
        sides: dict[str, dict[str, float]] = {g: {} for g in GROUPS}
        for pair in pairs:
            members = [where.get((case, kind), []) for case in pair]
            if not all(members):
                continue
            n = None if size is None else min(size(i) for side in members for i in side)
            means = [np.mean([value(i, n) for i in side]) for side in members]
            if np.isfinite(means).all():
                for group, mean in zip(GROUPS, means, strict=True):
                    sides[group][pair[0]] = float(mean)
        if matched is not None and pairs:
            row: Row = {"quantity": quantity, "n": 0, **impossible(f"{NO_CONTRAST}: no matched pair has both values")}
            if sides["failure"]:
                sides = settled_cells(sides)
                row = paired(sides, quantity=quantity, clusters=cluster, seed=seed).table[0]
                row |= _adjustment(row, sides, matched, cluster)
            rows.append({**row, "group": MATCHED, "kind": kind})
    return corrected(rows)


def _adjustment(
    row: Row, sides: Mapping[str, Mapping[str, float]], matched: Matched, cluster: Mapping[str, Hashable]
) -> Row:
    """What regression on the pairs' differences changes in a row of paired differences, and its note."""
    if not matched.differences or np.isnan(row["p"]):
        return {}
    cases = list(sides["failure"])
    d = np.array([sides["failure"][c] - sides["success"][c] for c in cases])
    if not d.any():
        return {}
    covariates = {name: np.array([of[c] for c in cases]) for name, of in matched.differences.items()}
    found, names = adjusted(d, covariates, [cluster[c] for c in cases])
    left = [name for name in covariates if name not in names]
    said = [f"adjusted for {', '.join(names)}"] if names else []
    said += [f"unbalanced and not adjusted for (too few pairs): {', '.join(left)}"] if left else []
    return {**found, "note": "; ".join(filter(None, [row["note"], *said]))}


def cell_maps(
    name: str,
    quantity: str,
    values: Values[Float[Tensor, "..."]],
    axes: tuple[str, ...],
    *,
    permutations: int,
    seed: int = 0,
) -> tuple[dict[str, Float[Tensor, "..."]], dict[str, tuple[str, ...]], list[Row]]:
    """Mean maps by kind and group, their differences, and p-values adjusted over each whole map.

    Tensors ``{name}.{kind}.{group}``, ``difference.{kind}`` (failure - success) and ``p.{kind}`` (where each group
    has two cases), all over ``axes``; one table row per kind with the most different cell.
    """
    tensors: dict[str, Tensor] = {}
    rows: list[Row] = []
    for kind in kinds_of([e for e, _ in values]):
        stacks = {g: _case_maps([v for v in values if v[0].kind == kind and v[0].group == g]) for g in GROUPS}
        for group, (stack, _) in stacks.items():
            if len(stack):
                tensors[f"{name}.{kind}.{group}"] = torch.from_numpy(stack.mean(0)).float()
        (failure, near_f), (success, near_s) = stacks["failure"], stacks["success"]
        if not len(failure) or not len(success):
            continue
        tensors[f"difference.{kind}"] = torch.from_numpy(failure.mean(0) - success.mean(0)).float()
        try:
            found = map_test(failure, success, permutations=permutations, clusters=(near_f, near_s), seed=seed)
        except NoCasesError as e:
            rows.append({"quantity": quantity, "kind": kind, "group": UNMATCHED, "n": 0,
                         **impossible(f"{NO_CONTRAST}: {e}")})  # fmt: skip
            continue
        tensors[f"p.{kind}"] = torch.from_numpy(found.p).float()
        rows.append(_map_row(quantity, kind, found, (failure, success), (near_f, near_s), axes))
    return tensors, dict.fromkeys(tensors, axes), rows


def _case_maps(values: Sequence[tuple[Example, Tensor]]) -> tuple[np.ndarray, list[Hashable]]:
    """Maps averaged within cases [case ...] and the cases' clusters; maps with NaN cells are left out."""
    cases: dict[str, list[np.ndarray]] = {}
    cluster: dict[str, Hashable] = {}
    for example, value in values:
        if torch.isfinite(value).all():
            cases.setdefault(example.case, []).append(value.double().cpu().numpy())
            cluster[example.case] = example.shares
    if not cases:
        return np.zeros((0,)), []
    return np.stack([np.mean(v, axis=0) for v in cases.values()]), list(cluster.values())


def _map_row(
    quantity: str, kind: str, found: MapTest, maps: tuple[np.ndarray, np.ndarray],
    clusters: tuple[list[Hashable], list[Hashable]], axes: tuple[str, ...],
) -> Row:  # fmt: skip
    cell = np.unravel_index(int(np.abs(found.statistic).argmax()), found.statistic.shape)
    values = {g: m[(slice(None), *cell)] for g, m in zip(GROUPS, maps, strict=True)}
    apart = between(values, quantity=quantity, clusters=dict(zip(GROUPS, clusters, strict=True))).table[-1]
    where = {axis: int(i) for axis, i in zip(axes, cell, strict=True)}
    significant = int((found.p < 0.05).sum())
    return {
        **apart, **_simultaneous(found, cell), "effect_low": np.nan, "effect_high": np.nan,
        "kind": kind, **where, "p": float(found.p[cell]), "p_adjusted": float(found.p[cell]),
        "test": found.method, "family": f"{quantity}: all cells of {kind}",
        "note": f"most different of {found.p.size} cells, chosen after seeing them; {significant} cells at p < 0.05",
    }  # fmt: skip


def _simultaneous(found: MapTest, cell: tuple[np.intp, ...]) -> Row:
    """The interval of a cell that was chosen after seeing all: wide enough for all cells of the map together."""
    difference, t = float(found.difference[cell]), float(found.statistic[cell])
    if not np.isfinite([t, found.threshold]).all() or t == 0:
        return {"low": np.nan, "high": np.nan, "interval": NO_SPREAD}
    half = found.threshold * abs(difference / t)
    return {"low": difference - half, "high": difference + half, "interval": "over all cells of the map"}


def value_rows(quantity: str, values: Values[float]) -> list[Row]:
    """One row per example, for ``ProbeResult.values``."""
    return [
        {"case": e.case, "role": e.role, "kind": e.kind, "group": e.group, "cluster": e.cluster,
         "crossed": "; ".join(e.crossed), "quantity": quantity, "value": float(v)}
        for e, v in values
    ]  # fmt: skip


def mean_row(quantity: str, group: str, values: Sequence[float], clusters: Sequence[Hashable], **keys: object) -> Row:
    """One mean with interval and further keys (layer, role, ...); NaN values are left out and counted."""
    kept = [(v, c) for v, c in zip(values, clusters, strict=True) if np.isfinite(v)]
    e = mean_interval([v for v, _ in kept], [c for _, c in kept])
    row: Row = {"quantity": quantity, "group": group, "n": len(kept), **e._asdict()}
    return {**row, "n_nan": len(values) - len(kept), **keys}


PAIRS_EACH = 5
"""Pairs that are needed for every covariate adjusted for."""


_ALIKE = 1e-6
"""Singular value of covariates, none above 1, below which the others give one of them."""


def adjusted(
    d: Array, covariates: Mapping[str, Array], clusters: Sequence[Hashable] | None = None, level: float = 0.95
) -> tuple[Row, list[str]]:
    """Columns of a row to replace, and the covariates that were adjusted for; nothing if none can be.

    Covariates come worst first; those that do not vary, or for which there are too few pairs, are left. Errors respect
    what pairs share.
    """
    names: list[str] = []
    design = np.ones((len(d), 1))
    for name, x in covariates.items():
        wider = np.column_stack([design, x / (np.abs(x).max() or 1)])  # their size changes nothing but the rounding
        if design.shape[1] <= len(d) // PAIRS_EACH and np.linalg.matrix_rank(wider, _ALIKE) == wider.shape[1]:
            names, design = [*names, name], wider
        elif names and np.ptp(x) > 1e-12 and np.linalg.matrix_rank(wider[:, 1:], _ALIKE) == design.shape[1] - 1:
            names.append(name)  # the others give it, as "operation add" does "operation mul"; it takes no one's place
    if not names or np.ptp(d) <= 1e-12 * np.abs(d).max():
        return {}, []
    fit = dependence.regression(d, design, clusters)
    if not fit.known or fit.clusters < design.shape[1] + 1:
        return {}, []
    low, high = fit.interval(level)
    left = d - design @ np.linalg.lstsq(design, d, rcond=None)[0]
    effect = hedges_g_paired(fit.value + left, level, clusters)
    row: Row = {
        "value": fit.value, "low": low, "high": high, "interval": f"{fit.method}, regression",
        "effect": effect.value, "effect_low": effect.low, "effect_high": effect.high,
        "test": f"regression, {fit.method}", "p": fit.p, "unadjusted": float(d.mean()),
    }  # fmt: skip
    return row, names
