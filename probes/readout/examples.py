"""Readouts over labelled examples: is the bridge, an operand, the answer held, in failures and in matched successes?

    over_examples(lm, examples).tensors["lens.absent.bridge.failure"]  # layer place

What is compared was fixed beforehand: the mean over the layers of the upper half, at each place, of the share of foils
that the right one is above. The maps hold every layer from -1 (before block 0) on; each row shows layer 0 beside it,
for what a reader finds there already is in the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from torch import Tensor

from ...errors import InputError, NoCasesError
from ...hooks.model import Model
from ...hooks.progress import Bar, no_bar, stage
from ..examples import Example
from ..families import corrected
from ..matching import Matched
from ..result import ProbeResult, Row
from ..tables import cell_maps, group_rows, matched_pairs, matched_rows, value_rows
from .from_examples import Collected, collect_readings
from .lens import lens
from .readings import FOILS, Scores
from .ridge import ridge

Reader = Literal["lens", "ridge"]
READERS: tuple[Reader, ...] = get_args(Reader)


def over_examples(
    lm: Model, examples: Sequence[Example], *, readers: Sequence[Reader] = READERS, strength: float = 1.0,
    permutations: int = 1000, seed: int = 0, progress: Bar = no_bar,
) -> ProbeResult:  # fmt: skip
    """What wholes hold of their parts' answers and of their own, by layer and place, failures against successes.

    ``readers``: ``lens`` (the model's own head, centred over texts), ``ridge`` (trained on the part prompts, each right
    one left out; ``strength`` is its penalty). Quantity ``held_{reader}``: the share of foils that the right one is
    above, chance 0.5, by ``kind`` (bridge, operand, answer), ``place`` and ``foils`` (``absent``: like ones that the
    question does not name; ``in-prompt``: those it does). Tensors ``{reader}.{foils}.{kind}.{group}`` ``[layer place]``
    with ``difference`` and ``p`` (over the map) beside.

    Cost: one forward pass of every whole and part. Raises ``NoCasesError`` if no part has a gold answer to look for.
    """
    if unknown := [r for r in readers if r not in READERS]:
        raise InputError(f"reader {unknown[0]!r}: use {' or '.join(READERS)}")
    if lm.tokenizer is None:
        raise InputError("readouts look for names: open the model with its tokenizer")
    got = collect_readings(lm.tokenizer, examples)
    if not got.readings:
        raise NoCasesError(f"{len(examples)} examples: no whole with a gold answer and like ones to tell it from")
    places = tuple(got.readings[0][1].places)
    matched, _ = matched_pairs(list({e.case: e for e, _ in got.readings}.values()))
    rows: list[Row] = []
    tensors: dict[str, Tensor] = {}
    axes: dict[str, Sequence[str]] = {}
    warnings, values = list(got.notes), []
    for reader in readers:
        with stage(progress, f"readout: {reader}", len(got.readings)):
            try:
                scores = _scores(lm, reader, got, strength)
            except NoCasesError as e:
                warnings.append(f"{reader}: {e}")
                continue
        for foils in FOILS:
            held = [
                (replace(e, kind=r.what), s.above(r.right, r.foils(foils)))
                for (e, r), s in zip(got.readings, scores, strict=True)
                if r.foils(foils)
            ]
            if not held:
                warnings.append(f"{reader}: no question names a like one; no foils in the prompt")
                continue
            name = f"{reader}.{foils}"
            maps, map_axes, map_rows = cell_maps(
                name, f"held_{reader}_map", held, ("layer", "place"), permutations=permutations, seed=seed
            )
            for key, x in maps.items():
                full = key if key.startswith(name) else f"{name}.{key}"
                tensors[full], axes[full] = x, map_axes[key]
            rows += [_named(r, places) | {"foils": foils} for r in map_rows]
            found, kept = _rows(f"held_{reader}", held, places, matched, seed)
            found = [{**r, "foils": foils} for r in found]
            rows += found
            values += kept if foils == "absent" else []
    settings = {
        "readers": list(readers), "places": list(places), "layers": "-1 (before block 0) to the last; index l + 1",
        "compared": "mean over the layers of the upper half", "strength": strength, "chance": 0.5,
        "candidates": len(got.entities), "readings": len(got.readings), "part_prompts": len(got.parts),
        "permutations": permutations, "seed": seed, "dtype": str(lm.dtype),
    }  # fmt: skip
    return ProbeResult("readout", corrected(rows), tensors, axes, settings, warnings, values)


def _scores(lm: Model, reader: Reader, got: Collected, strength: float) -> list[Scores]:
    readings = [r for _, r in got.readings]
    if reader == "ridge":
        return ridge(lm, readings, got.parts, got.entities, strength=strength)
    found: dict[int, Scores] = {}
    for what in dict.fromkeys(r.what for r in readings):  # a text must not be centred by what else it holds
        mine = [i for i, r in enumerate(readings) if r.what == what]
        found |= zip(mine, lens(lm, [readings[i] for i in mine], got.entities), strict=True)
    return [found[i] for i in range(len(readings))]


def _rows(
    quantity: str, held: list[tuple[Example, Tensor]], places: Sequence[str], matched: Matched | None, seed: int
) -> tuple[list[Row], list[Row]]:
    """Rows of each place, and values per example of the last one."""
    rows: list[Row] = []
    values: list[Row] = []
    upper = slice((held[0][1].shape[0] + 1) // 2, None)
    examples = [e for e, _ in held]
    for p, place in enumerate(places):
        summary = [(e, float(x[upper, p].mean())) for e, x in held]
        mine = group_rows(quantity, summary, seed=seed)
        mine += matched_rows(quantity, examples, matched, lambda i, _, s=summary: s[i][1], seed=seed)
        at_0 = _layer_0(held, p)
        rows += [{**r, "place": place, "layer_0": at_0.get((r["kind"], r["group"]))} for r in mine]
        if place == places[-1]:
            values = value_rows(quantity, summary)
    return rows, values


def _layer_0(held: list[tuple[Example, Tensor]], place: int) -> dict[tuple[str, str], float]:
    """The mean at layer 0 (index 1) by kind and group."""
    found: dict[tuple[str, str], list[float]] = {}
    for e, x in held:
        found.setdefault((e.kind, e.group), []).append(float(x[1, place]))
    return {key: float(np.mean(v)) for key, v in found.items()}


def _named(row: Row, places: Sequence[str]) -> Row:
    """A row of a map with its layer as sites count them, and the name of its place."""
    found = dict(row)
    if "layer" in found:
        found["layer"] -= 1
    if "place" in found:
        found["place"] = places[found["place"]]
    return found
