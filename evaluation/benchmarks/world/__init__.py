"""``--benchmark world``: two-hop and mixed-type questions over facts of common knowledge, generated from fact tables.

``world`` are all families, ``world:two-hop`` and ``world:mixed`` those of one shape, ``world:capital-currency,count-times``
those named. The cases and their order are the same everywhere; docs/world.md says what they are and what is shared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from ....errors import InputError, did_you_mean
from ...cases import Case
from . import mixed, two_hop

PROTOCOL = "compositionality-gap"
EXAMPLES = "examples.jsonl"
"""Worked examples of our own about none of the cases' entities (``few_shot.read``)."""

_TWO_HOP: dict[str, Callable[[], Iterable[Case]]] = {f.name: partial(two_hop.cases, f) for f in two_hop.FAMILIES}
SHAPES = {"two-hop": _TWO_HOP, "mixed": mixed.FAMILIES}


def read_world(which: str = "") -> list[Case]:
    """The cases of a shape, of some families (parted by commas), or all; each family in an order of its own.

    The order of a family is drawn once and for all, so that its first cases are a fair sample of it.
    Raises ``InputError`` for a family that there is not.
    """
    every = {**_TWO_HOP, **mixed.FAMILIES}
    wanted = SHAPES.get(which) or {name: every.get(name) for name in which.split(",")} if which else every
    found = []
    for name, make in wanted.items():
        if make is None:
            known = [*SHAPES, *every]
            raise InputError(
                f"world:{which}: no family {name!r}; use {', '.join(SHAPES)} or families of {', '.join(every)}"
                + did_you_mean(name, known)
            )
        cases = list(make())
        random.Random(f"world/{name}").shuffle(cases)
        found += [replace(c, benchmark="world", meta={"protocol": PROTOCOL, **c.meta}) for c in cases]
    return found
