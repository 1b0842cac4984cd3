"""The logit lens, centred: what each layer would say of every candidate, less what it says of it in other texts.

A raw lens ranks candidates by how common they are. So from each candidate's logit the mean over the other texts whose
right one is another is taken away, at the same layer and place; what is left says what this text adds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from einops import reduce
from jaxtyping import Float
from torch import Tensor

from ...errors import InputError, NoCasesError
from ...hooks.model import Model
from .readings import Reading, Scores, place_names, states_at

ROUNDING = 1e-5
"""A centred score below this share of the largest is rounding error."""


@torch.no_grad()
def lens(
    lm: Model, readings: Sequence[Reading], entities: Mapping[str, Sequence[int]], *, centred: bool = True,
    layers: Sequence[int] | None = None,
) -> list[Scores]:  # fmt: skip
    """Scores of all ``entities`` (name to the ids that begin it) in every text.

    A candidate's logit is that of its likeliest beginning, less the mean over candidates; of several positions of a
    place the highest counts. ``layers``: by default -1 (before block 0) to the last. ``centred`` needs other texts with
    other right ones: ``NoCasesError`` without.
    """
    names = tuple(entities)
    for r in readings:
        if r.right not in entities:
            raise InputError(f"case {r.case!r}: {r.right!r} is not among the {len(names)} entities")
    place_names(readings)
    tokens = sorted({t for ids in entities.values() for t in ids})
    index = [[tokens.index(t) for t in ids] for ids in entities.values()]

    def scores(x: Tensor) -> Tensor:
        """``layer pos d_model`` to ``layer name``."""
        logits = lm.unembed(x, tokens).float().cpu()
        of_names = torch.stack([logits[..., i].amax(-1) for i in index], -1)
        return reduce(of_names - of_names.mean(-1, keepdim=True), "layer pos name -> layer name", "max")

    found = states_at(lm, [(r.ids, r.places) for r in readings], layers)
    every = torch.stack([torch.stack([scores(x) for x in places.values()], 1) for places in found])
    if centred:
        left = every - elsewhere(every, names, [r.right for r in readings])
        rounding = ROUNDING * every.abs().amax(-1, keepdim=True)
        every = torch.where(left.abs() <= rounding, 0, left)  # texts with the same state there tell nothing apart
    return [Scores(names, x) for x in every]


def elsewhere(
    scores: Float[Tensor, "text layer place name"], names: Sequence[str], right: Sequence[str]
) -> Float[Tensor, "text layer place name"]:
    """Each candidate's mean score over the other texts whose right one is another."""
    other = torch.tensor([[name != r for name in names] for r in right], dtype=scores.dtype)[:, None, None]
    total, n = (other * scores).sum(0, keepdim=True) - other * scores, other.sum(0, keepdim=True) - other
    if not bool((n > 0).all()):
        few = names[int((n <= 0).flatten(0, 2).any(0).nonzero()[0])]
        raise NoCasesError(f"{len(right)} texts: none other than those of {few!r} to centre its scores by; give more")
    return total / n
