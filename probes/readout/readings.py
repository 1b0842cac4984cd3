"""What may be held where in one text, and how a candidate's scores become shares of foils that the right one beats.

reading = Reading(ids, {"prompt-end": [17]}, "bridge", right="France", absent=("Spain", "Japan"))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from ...errors import InputError
from ...hooks.interchange import states
from ...hooks.model import Model

What = Literal["bridge", "operand", "answer"]
Foils = Literal["absent", "in-prompt"]
FOILS: tuple[Foils, ...] = ("absent", "in-prompt")


@dataclass(frozen=True)
class Reading:
    """One thing that may be held in one text."""

    ids: Sequence[int]
    places: Mapping[str, Sequence[int]]
    """Positions by name; of several positions the best counts."""
    what: What
    right: str
    absent: Sequence[str] = ()
    """Foils: like ones that the prompt does not name."""
    in_prompt: Sequence[str] = ()
    """Foils that the prompt names."""
    case: str = ""

    def foils(self, kind: Foils) -> Sequence[str]:
        return self.absent if kind == "absent" else self.in_prompt


@dataclass(frozen=True)
class Scores:
    """How strongly each candidate is held in one text; more is more."""

    names: tuple[str, ...]
    values: Float[Tensor, "layer place name"]

    def above(self, right: str, foils: Sequence[str]) -> Float[Tensor, "layer place"]:
        """The share of foils that the right one is above (ties count half); NaN without foils. Chance is 0.5."""
        if not foils:
            return torch.full(self.values.shape[:2], torch.nan)
        at = {name: i for i, name in enumerate(self.names)}
        mine, others = self.values[..., at[right], None], self.values[..., [at[f] for f in foils]]
        return ((mine > others).float() + (mine == others).float() / 2).mean(-1)


def name_tokens(tokenizer: Any, name: str) -> tuple[int, ...]:
    """Ids of the tokens that begin a name: within a sentence, and at the start of a line."""
    found = dict[int, None]()
    for text in (" " + name, name):
        ids = tokenizer(text, add_special_tokens=False).input_ids
        first = next((i for i in ids if tokenizer.decode([i]).strip()), None)
        if first is not None:
            found[int(first)] = None
    if not found:
        raise InputError(f"{name!r} tokenizes to nothing")
    return tuple(found)


def place_names(readings: Sequence[Reading]) -> tuple[str, ...]:
    """The places, which all readings must have."""
    names = tuple(readings[0].places) if readings else ()
    for r in readings:
        if tuple(r.places) != names:
            raise InputError(f"case {r.case!r}: places {list(r.places)}, others have {list(names)}; give the same ones")
    return names


def states_at(
    lm: Model, texts: Sequence[tuple[Sequence[int], Mapping[str, Sequence[int]]]], layers: Sequence[int] | None = None
) -> list[dict[str, Float[Tensor, "layer _ d_model"]]]:
    """States of each text at its places, float32: by name ``layer pos d_model``. Equal texts run once."""
    wanted: dict[tuple[int, ...], set[int]] = {}
    for ids, places in texts:
        wanted.setdefault(tuple(ids), set()).update(p for some in places.values() for p in some)
    where = [sorted(w) for w in wanted.values()]
    found = dict(zip(wanted, zip(where, states(lm, list(wanted), where, layers), strict=True), strict=True))
    out = []
    for ids, places in texts:
        positions, x = found[tuple(ids)]
        out.append({name: x[:, [positions.index(p) for p in some]].float() for name, some in places.items()})
    return out
