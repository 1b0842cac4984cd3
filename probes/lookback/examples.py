"""The lookback ratios of labelled examples, by kind and group: ``over_examples``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...hooks.model import Model
from ...terminal import Bar, no_bar, stage
from ..contrast import between
from ..examples import Example
from ..matching import Matched
from ..result import ProbeResult, Row
from ..spread import Notes, spread
from ..tables import Values, by_case, cell_maps, group_rows, kinds_of, matched_pairs, matched_rows, value_rows
from ..verdicts import corrected
from .measuring import Form, iter_masses


def over_examples(
    lm: Model, examples: Sequence[Example], *, form: Form = "mean", steps: int | None = None,
    max_tokens: int | None = None, permutations: int = 1000, seed: int = 0, progress: Bar = no_bar,
) -> ProbeResult:  # fmt: skip
    """Lookback ratios of labelled examples, by kind and group.

    The scalar of an example is the NaN-mean over layers, heads and steps (Lookback Lens' trivial baseline; AgentCoMa,
    Table 3, prints it times 100). Table: per kind and group; failure against success per kind, also pair by pair over
    failures matched to successes (``matched failure - success``); kinds against each other within cases. That for the
    published form, for the sums, which do not depend on how many keys there are, for the mean attention mass on each
    region (``mass_sink``, ``mass_template``, ``mass_question``, ...), and as ``lookback_ratio_length_matched`` over
    the first steps only: as many as the shortest response of the case (or of the matched pair) has. For the published
    form kinds are also compared as if they were of different cases (``lookback_ratio_unpaired``, Welch's t), as
    AgentCoMa does; the paired test is the right one.
    ``steps`` caps the steps used everywhere. Tensors: ``ratio.{kind}.{group}`` and ``difference.{kind}`` (failure -
    success) ``[layer head]``, with ``p.{kind}`` from a maximum-statistic permutation over the whole map; ``wholes``
    ``[case layer head]`` of every whole, in the order of the setting ``cases``.
    """
    maps: Values[Tensor] = []
    by_step: list[np.ndarray] = [np.empty(0)] * len(examples)
    scalars: dict[str, dict[int, float]] = {}
    notes: list[str] = []
    nan_steps = 0
    measure = partial(_measure, form=form, steps=steps, max_tokens=max_tokens)
    with stage(progress, "lookback: attention", len(examples)):
        arrived = sorted(spread(lm, measure, examples, notes), key=lambda f: f[0])
    for i, found in arrived:
        maps.append((examples[i], found["map"]))
        by_step[i] = found["by_step"]
        nan_steps += int(found["nan_steps"])
        for name, value in found["scalars"].items():
            scalars.setdefault(name, {})[i] = value
    matched, note = matched_pairs(examples)
    rows = []
    for name, values in scalars.items():
        rows += group_rows(name, [(examples[i], v) for i, v in values.items()], seed=seed)
        rows += matched_rows(name, examples, matched, lambda i, _, v=values: v.get(i, np.nan), seed=seed)
    rows += _unpaired([(examples[i], v) for i, v in scalars.get("lookback_ratio", {}).items()])
    rows += _length_matched(examples, by_step, matched, seed)
    tensors, axes, map_rows = cell_maps(
        "ratio", "lookback_ratio_map", maps, ("layer", "head"), permutations=permutations, seed=seed
    )
    wholes = [(e.case, found) for e, found in maps if e.role == "whole"]
    if wholes:
        tensors["wholes"] = torch.stack([found for _, found in wholes]).half()
        axes["wholes"] = ("case", "layer", "head")
    settings = {
        "cases": [case for case, _ in wholes], "form": form, "steps": steps,
        "alignment": "query N-1+i predicts response token i", "matched": note,
        "nan_steps": nan_steps, "dtype": str(lm.dtype), "permutations": permutations, "seed": seed,
    }  # fmt: skip
    if nan_steps:
        notes.append(f"{nan_steps} steps with nothing new yet are NaN and left out of means")
    kept = [
        r for name, found in scalars.items() for r in value_rows(name, [(examples[i], v) for i, v in found.items()])
    ]
    return ProbeResult("lookback", corrected([*rows, *map_rows]), tensors, axes, settings, notes, kept)


def _measure(
    lm: Model, examples: Sequence[Example], notes: Notes, *, form: Form, steps: int | None, max_tokens: int | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Per example: the ratio by layer and head (mean over steps) and by step (mean over heads), and its scalars."""
    other: Form = "sum" if form == "mean" else "mean"
    for i, m in iter_masses(
        lm, [e.prompt_ids for e in examples], [e.response_ids[:steps] for e in examples],
        [e.cue_tokens for e in examples], question_spans=[e.question_span for e in examples],
        few_shot_spans=[e.few_shot_span for e in examples], max_tokens=max_tokens, notes=notes,
    ):  # fmt: skip
        ratio = m.ratio(form).double()
        own = {
            "lookback_ratio": ratio.nanmean(),
            f"lookback_ratio_{other}": m.ratio(other).double().nanmean(),
            **{f"mass_{name}": mass.double().mean() for name, mass in m.regions.items()},
        }
        found = {"map": ratio.nanmean(-1), "by_step": ratio.mean((0, 1)).numpy()}
        scalars = {name: float(value) for name, value in own.items()}
        yield i, {**found, "nan_steps": int(ratio[0, 0].isnan().sum()), "scalars": scalars}


def _unpaired(values: Values[float]) -> list[Row]:
    """Kinds against each other within a group, ignoring their pairing by case."""
    name, cells = "lookback_ratio_unpaired", by_case(values)
    rows: list[Row] = []
    for group in sorted({g for _, g in cells}):
        for a, b in combinations(kinds_of([e for e, _ in values]), 2):
            sides = {kind: list(cells.get((kind, group), {}).values()) for kind in (a, b)}
            if all(sides.values()):
                row = between(sides, quantity=name).table[-1]
                rows.append({**row, "kind": f"{a} - {b}", "group": group})
    return rows


def _length_matched(
    examples: Sequence[Example], by_step: Sequence[np.ndarray], matched: Matched | None, seed: int
) -> list[Row]:
    """Ratios over equally many first steps: within a case (all its roles), and within each matched pair."""
    name = "lookback_ratio_length_matched"
    shortest: dict[str, int] = {}
    for e, x in zip(examples, by_step, strict=True):
        shortest[e.case] = min(len(x), shortest.get(e.case, len(x)))

    def over_first(i: int, steps: int | None) -> float:
        x = by_step[i][:steps]
        return float(np.nanmean(x)) if np.isfinite(x).any() else float("nan")

    values = [(e, over_first(i, shortest[e.case])) for i, e in enumerate(examples)]
    rows = group_rows(name, values, seed=seed)
    return rows + matched_rows(name, examples, matched, over_first, lambda i: len(by_step[i]), seed=seed)
