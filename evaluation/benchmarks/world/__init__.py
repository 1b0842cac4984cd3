"""Questions over facts of common knowledge, generated from fact tables that ship (``--benchmark world``).

``two_hop`` reads the facts and has the families that lead from an entity over a second one to the answer; ``mixed``
those with a step of common sense and an operation on numbers.
``world`` is all families, ``world:two-hop`` and ``world:mixed`` those of one shape, ``world:geography`` those of one
domain, ``world:book-country,choice-more`` those named. The cases are the same everywhere; docs/world.md lists the
families and says what cases share.
"""

import random
from dataclasses import replace
from pathlib import Path

from ....errors import InputError, did_you_mean
from ....terminal import words
from ...case import Case
from ..catalog import benchmark
from . import mixed, two_hop

ASKED = {"protocol": "compositionality-gap", "format": "short"}
"""How the cases are asked unless told otherwise: in every case's ``meta``."""
EXAMPLES = Path(__file__).with_name("examples.jsonl")
"""Worked examples about other entities than the cases (``few_shot.read``)."""


@benchmark("world", ships=True, examples=EXAMPLES)
def read_world(which: str = "") -> list[Case]:
    """The cases of the shapes, domains and families named in ``which`` (parted by commas), or all of them.

    A family's order is drawn once and for all, so that its first cases are a fair sample of it.
    Raises ``InputError`` for a name that no family has.
    """
    families = (*two_hop.FAMILIES, *mixed.FAMILIES)
    wanted = set(words(which)) or {"two-hop", "mixed"}
    known = dict.fromkeys(name for f in families for name in (f.shape, f.domain, f.name))
    if unknown := sorted(wanted - known.keys()):
        raise InputError(
            f"world:{which}: no family {unknown[0]!r}; leave it out for all, or name some of {', '.join(known)}"
            + did_you_mean(unknown[0], known)
        )
    found = []
    for family in families:
        if wanted & {family.shape, family.domain, family.name}:
            cases = list(family.cases())
            random.Random(f"world/{family.name}").shuffle(cases)
            found += [replace(c, benchmark="world", meta={**ASKED, **c.meta}) for c in cases]
    return found
