"""A case behind the two gates, as metrics and analyses see it."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import counting
from .base import Evidence
from .counting import Item, Truth


@dataclass(frozen=True)
class Gated:
    """A case with what its gates and its whole say."""

    item: Item
    atom: Truth
    """None also where it has no atoms (see ``has_atoms``)."""
    has_atoms: bool
    sub: Truth
    whole: Truth
    evidence: tuple[Evidence, ...] = field(repr=False, default=())

    @property
    def double(self) -> Truth:
        """Both gates; the sub-question gate alone where there are no atoms."""
        return counting.all_of([self.atom, self.sub]) if self.has_atoms else self.sub
