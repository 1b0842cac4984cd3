"""What single failures say when a success's state is put in, layer by layer and token by token.

The continuations are those of the probe itself, read back from its tensors. The sweep over positions is run here, on
pairs of equally long prompts (a position must mean the same in both), within a budget of computation: those of the
most common length first, over which the figure `patching-positions` takes means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from safetensors.torch import load_file

from ...evaluation import reading
from ..examples import Example
from ..patching.positions import position_sweep
from ..positions import read_at
from .entries import SingleCase, SingleCases, decode, pieces
from .sites import SITES

FLOPS = {"cpu": 1e12, "cuda": 3e14}
"""Floating point operations that the sweeps of one run may take: some ten seconds."""
MOST_LAYERS, FEWEST_POSITIONS = 12, 8
SWEEPS, MOST_SWEEPS = 2, 6
"""Sweeps that share the budget, and how many there are where the budget takes so many over all positions."""


def patch(lm: Any, examples: Sequence[Example], folder: Path, n: int, few: Collection[str] = ()) -> SingleCases:
    """Continuations of ``n`` of the probe's pairs by layer, and a sweep over positions where lengths agree.

    ``folder`` is the probe's own; ``examples`` are all that it may have run on, ``few`` the cases that are preferred.
    """
    settings = reading.document(folder / "result.json", "run the probe again").get("settings", {})
    wholes = [e for e in examples if e.role == "whole"]
    by_case = {e.case: e for e in read_at(wholes, settings.get("position", "prompt-end")).examples}
    pairs = [(str(s), str(f)) for s, f in settings.get("cases", [])]
    known = [(i, by_case[s], by_case[f]) for i, (s, f) in enumerate(pairs) if s in by_case and f in by_case]
    # Pairs that have both pictures first, then the cases that the other probes keep too.
    equal = [p for p in known if len(p[1].prompt_ids) == len(p[2].prompt_ids) and _apart(*p[1:])]
    lengths = Counter(len(p[2].prompt_ids) for p in equal)
    equal = sorted(equal, key=lambda p: -lengths[len(p[2].prompt_ids)])
    whole = equal and len(planned(lm, equal[0][2], MOST_SWEEPS)[1]) == len(equal[0][2].prompt_ids)
    most = MOST_SWEEPS if whole else SWEEPS
    equal = equal[:most]
    others = sorted((p for p in known if p not in equal), key=lambda p: p[2].case not in few)
    kept, left_out = [*equal, *others][: max(n, len(equal))], []
    tensors = load_file(folder / "tensors.safetensors")
    layers, grid = settings["layers"], tensors["tokens"].ndim == 4  # donor x recipient, or one pair after the other
    entries: list[SingleCase] = []
    for place, donor, recipient in kept:
        d, r = settings["pairs"][place] if grid else (place, place)
        done = sum(bool(e.tensors) for e in entries)
        enough = f"no sweep over positions: {most} other pairs have one"
        sweep, why = _sweep(lm, donor, recipient, most) if done < most else (SingleCase({}), enough)
        if why:
            left_out.append(f"{recipient.case} with {donor.case}: {why}")
        about = {
            "case": recipient.case, "role": "whole", "group": recipient.group, "donor": donor.case, "layers": layers,
            "tokens": pieces(lm.tokenizer, recipient.prompt_ids), "question": list(recipient.question_span),
            "unpatched": said(lm.tokenizer, tensors["base_tokens"][r]),
            "donors_own": said(lm.tokenizer, tensors["donor_tokens"][d]),
            "patched": [said(lm.tokenizer, row) for row in tensors["tokens"][(d, r) if grid else (place,)]],
            **sweep.about,
        }  # fmt: skip
        entries.append(SingleCase(about, sweep.tensors, sweep.axes))
    return SingleCases(entries, left_out)


def said(tokenizer: Any, ids: Int[torch.Tensor, " step"]) -> str:
    """A continuation as text; its tokens after the end are -1."""
    return decode(tokenizer, [int(i) for i in ids if i >= 0])


def _apart(donor: Example, recipient: Example) -> bool:
    """Whether the two answers differ from their first token on, so that a sweep can tell them apart."""
    return donor.answer_ids[0] != recipient.answer_ids[0]


def _sweep(lm: Any, donor: Example, recipient: Example, sweeps: int) -> tuple[SingleCase, str | None]:
    nothing = SingleCase({})
    n = len(recipient.prompt_ids)
    if len(donor.prompt_ids) != n:
        return nothing, f"prompts of {len(donor.prompt_ids)} and {n} tokens, no sweep over positions"
    answers = (donor.answer_ids[0], recipient.answer_ids[0])
    if not _apart(donor, recipient):
        return nothing, "both answers begin with the same token, no sweep over positions"
    layers, positions = planned(lm, recipient, sweeps)
    if not positions:
        return nothing, f"a sweep over {lm.anatomy.n_layers} layers and {n} positions costs too much on this machine"
    tensors: dict[str, torch.Tensor] = {}
    for kind in SITES:
        got = position_sweep(
            lm, [donor.prompt_ids], [recipient.prompt_ids], [answers], kind=kind, layers=layers, positions=positions
        )
        tensors |= {f"{kind}.{name}": got.tensors[name][0].half() for name in ("recovered", "kl")}
    about: Mapping[str, Any] = {
        "sweep_layers": layers, "sweep_positions": positions, "sites": list(SITES),
        "donor_tokens": pieces(lm.tokenizer, donor.prompt_ids),
        "answers": [decode(lm.tokenizer, [a]) for a in answers],
    }  # fmt: skip
    return SingleCase(about, tensors, dict.fromkeys(tensors, ("layer", "position"))), None


def planned(lm: Any, recipient: Example, sweeps: int = SWEEPS) -> tuple[list[int], list[int]]:
    """Layers and positions of one of ``sweeps`` that fits its share of the budget: (layers, []) where none does."""
    a, n = lm.anatomy, len(recipient.prompt_ids)
    layers = _spread(range(a.n_layers), MOST_LAYERS)
    size = sum(p.numel() for p in lm.model.parameters())
    forwards = FLOPS.get(lm.device.type, FLOPS["cpu"]) / sweeps / (2 * size * n)
    most = int(forwards / len(layers) / len(SITES))
    if most >= n:
        return layers, list(range(n))
    # The question's own tokens, and always the place from which the answer is predicted.
    positions = _spread(range(*recipient.question_span), most - 1)
    return layers, sorted({*positions, n - 1}) if len(positions) + 1 >= FEWEST_POSITIONS else []


def _spread(values: Sequence[int], most: int) -> list[int]:
    """At most ``most`` of the values, evenly, ends included."""
    if len(values) <= most:
        return list(values)
    if most < 2:
        return list(values[-most:]) if most > 0 else []
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]
