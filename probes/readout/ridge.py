"""A linear reader trained on part prompts only: ridge regression from a state to the vector of the part's answer.

A candidate's vector is its row of the unembedding. So candidates that training never saw can be scored, and each text
is read by a reader from which its right one was left out: a reader that saw it may recognise the text, and would find
the answer at layer 0 already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from einops import einsum
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from ...errors import NoCasesError
from ...hooks.model import Model
from .readings import Reading, Scores, place_names, states_at

FEWEST = 5
"""Part prompts, with so many answers, that a reader is trained on at least."""


class PartPrompt(NamedTuple):
    """A part asked on its own: what the reader is trained on."""

    ids: Sequence[int]
    places: Mapping[str, Sequence[int]]
    answer: str


def entity_vectors(lm: Model, entities: Mapping[str, Sequence[int]]) -> Float[Tensor, "name d_model"]:
    """Rows of the unembedding, averaged over a name's beginnings."""
    weight = lm.unembedding.head.weight
    return torch.stack([weight[list(ids)].float().mean(0).cpu() for ids in entities.values()])


@torch.no_grad()
def ridge(
    lm: Model, readings: Sequence[Reading], parts: Sequence[PartPrompt], entities: Mapping[str, Sequence[int]], *,
    strength: float = 1.0, layers: Sequence[int] | None = None,
) -> list[Scores]:  # fmt: skip
    """Scores of all ``entities`` in every text: cosine of what the reader says with each candidate's vector.

    Each place has a reader of its own per layer, trained on the same place of the part prompts (of several positions
    the last). ``strength``: the penalty, in units of the mean squared length of the standardized states. Raises
    ``NoCasesError`` if fewer than five part prompts with five answers are left beside a text's own.
    """
    names, places = tuple(entities), place_names(readings)
    vectors = entity_vectors(lm, entities)
    known = [p for p in parts if p.answer in entities]
    labels = [p.answer for p in known]
    y = vectors[[names.index(a) for a in labels]]

    def at_places(texts: Sequence[tuple[Sequence[int], Mapping[str, Sequence[int]]]]) -> Tensor:
        """``layer_place text d_model``"""
        found = states_at(lm, texts, layers)
        return torch.stack([torch.stack([f[p][:, -1] for p in places], 1) for f in found], 2).flatten(0, 1).cpu()

    train, test = at_places([(p.ids, p.places) for p in known]), at_places([(r.ids, r.places) for r in readings])
    out = torch.empty(len(readings), len(test), len(names))
    for right in dict.fromkeys(r.right for r in readings):
        kept = torch.tensor([i for i, a in enumerate(labels) if a != right], dtype=torch.long)
        if len(kept) < FEWEST or len({labels[i] for i in kept}) < FEWEST:
            raise NoCasesError(
                f"{len(kept)} part prompts without the answer {right!r}; a reader needs {FEWEST} with {FEWEST} answers"
            )
        mine = [i for i, r in enumerate(readings) if r.right == right]
        out[mine] = _read(train[:, kept], y[kept], test[:, mine], vectors, strength).transpose(0, 1)
    n_layers = len(test) // len(places)
    return [Scores(names, x.unflatten(0, (n_layers, len(places)))) for x in out]


def _read(
    train: Float[Tensor, "cell item d"], y: Float[Tensor, "item v"], test: Float[Tensor, "cell text d"],
    vectors: Float[Tensor, "name v"], strength: float,
) -> Float[Tensor, "cell text name"]:  # fmt: skip
    mean, spread = train.mean(1, keepdim=True), train.std(1, keepdim=True)
    h, x = ((z - mean) / (spread + 1e-6 * spread.amax(-1, keepdim=True) + 1e-12) for z in (train, test))
    gram = einsum(h, h, "cell a d, cell b d -> cell a b")
    penalty = strength * gram.diagonal(dim1=1, dim2=2).mean(1)
    penalty = torch.where(penalty > 0, penalty, 1)  # states that do not differ say nothing
    penalized = gram + penalty[:, None, None] * torch.eye(gram.shape[1])
    weights = torch.linalg.solve(penalized, (y - y.mean(0)).expand(len(h), -1, -1))
    said = einsum(x, h, weights, "cell text d, cell item d, cell item v -> cell text v")
    return normalize(said, dim=-1) @ normalize(vectors - y.mean(0), dim=-1).T
