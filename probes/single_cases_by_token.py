"""What neurons and readouts give at every token of single cases: the rows beside attention and patching in the report.

The probes themselves read one position (neurons) or a few named places (readouts). These tables show the same
quantities at every token of the text.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from ..errors import NoCasesError
from .examples import Example
from .neurons.attribution import positive_by_position
from .positions import Position, read_at
from .readout.examples import Collected, collect_readings, upper
from .readout.readings import lens_by_token
from .single_cases import SingleCase, SingleCases, decode, named, pieces


def neuron_cases(lm: Any, examples: Sequence[Example], position: Position) -> SingleCases:
    """Share of the neurons' positive attribution ``[token]`` at every token before the gold answer.

    An estimate (``positive_by_position``), of the answer's first token, read where the probe reads it (``position``).
    """
    if lm.anatomy.n_experts:
        return SingleCases([], ["a mixture of experts: neurons are not told apart by token"])
    wholes = [e for e in examples if e.role == "whole"]
    if not any(e.slot for e in wholes) and position == "answer-slot":
        return SingleCases([], ["the answer could be located in no response"])
    entries = []
    for e in read_at(wholes, position).examples:
        found = positive_by_position(lm, e.prompt_ids, e.answer_ids[0])
        total = float(found.sum())
        about = {
            **named(e), "tokens": pieces(lm.tokenizer, e.prompt_ids), "question": list(e.question_span),
            "answer": decode(lm.tokenizer, e.answer_ids[:1]), "neurons": lm.anatomy.all_neurons, "total": total,
            "method": "positive part of activation x gradient of log P", "dtype": str(lm.dtype),
        }  # fmt: skip
        entries.append(SingleCase(about, {"share": found / total if total else found}, {"share": ("token",)}))
    return SingleCases(entries)


def readout_cases(lm: Any, few: Sequence[Example], every: Sequence[Example], folder: Path) -> SingleCases:
    """Lens and ridge ``[reading token]`` of what each whole may hold, over the layers that the probe compares.

    The lens is read at every token from the question on, ``ridge`` where the probe read it (its own numbers, NaN
    elsewhere). ``every``: the candidates and the texts to centre by.
    """
    got = collect_readings(lm.tokenizer, every)
    wanted = {e.case for e in few}
    every_layer = range(-1, lm.anatomy.n_layers)
    layers = list(every_layer)[upper(len(every_layer))]
    tensors = load_file(folder / "tensors.safetensors")
    lens: dict[int, torch.Tensor] = {}
    left_out = []
    for what in dict.fromkeys(r.what for _, r in got.readings):
        mine = [i for i, (_, r) in enumerate(got.readings) if r.what == what]
        kept = [n for n, i in enumerate(mine) if got.readings[i][0].case in wanted]
        readings, first = zip(*((got.readings[i][1], got.readings[i][0].question_span[0]) for i in mine), strict=True)
        try:
            found = lens_by_token(lm, readings, got.entities, first, kept, layers)
        except NoCasesError as e:
            left_out.append(f"{what}: {e}")
            continue
        lens |= {mine[n]: x for n, x in zip(kept, found, strict=True)}
    entries = []
    for case in dict.fromkeys(e.case for e, _ in got.readings if e.case in wanted):
        mine = [i for i, (e, _) in enumerate(got.readings) if e.case == case and i in lens]
        if mine:
            entries.append(
                _held(lm, got, mine, torch.stack([lens[i] for i in mine]), tensors.get("wholes.ridge"), layers)
            )
    return SingleCases(entries, left_out)


def _held(
    lm: Any, got: Collected, mine: Sequence[int], lens: torch.Tensor, ridge: torch.Tensor | None, layers: Sequence[int]
) -> SingleCase:
    e, reading = got.readings[mine[0]]
    start, held = e.question_span[0], [got.readings[i][1] for i in mine]
    about = {
        **named(e), "tokens": pieces(lm.tokenizer, reading.ids), "question": list(e.question_span), "first": start,
        "layers": list(layers), "places": {name: list(at) for name, at in reading.places.items()},
        "readings": [{"what": r.what, "right": r.right, "foils": len(r.absent)} for r in held],
    }  # fmt: skip
    tensors = {"lens": lens.float()}
    if ridge is not None and len(ridge) == len(got.readings):
        at_places = torch.full_like(tensors["lens"], torch.nan)
        for place, at in enumerate(reading.places.values()):
            at_places[:, at[-1] - start] = ridge[list(mine), place].float()
        tensors["ridge"] = at_places
    return SingleCase(about, tensors, dict.fromkeys(tensors, ("reading", "token")))
