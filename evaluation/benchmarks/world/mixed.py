"""Mixed-type families in AgentCoMa's shape: counts or choices of common sense, then one operation on numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from ...cases import Case
from . import choices, counts


@dataclass(frozen=True)
class Family:
    """Cases of one kind: how they are made, with which operation, and how many of each thing."""

    name: str
    domain: str
    make: Callable[[str, str, int], Iterator[Case]]
    operation: str
    each: int = 1
    shape: str = "mixed"

    def cases(self) -> Iterator[Case]:
        """All cases of the family, in the order of its tables."""
        for case in self.make(self.name, self.operation, self.each):
            yield replace(case, family=self.name, domain=self.domain, operation=self.operation)


FAMILIES = (
    Family("count-times", "counting", counts.with_a_number, "multiplication"),
    Family("count-minus", "counting", counts.with_a_number, "subtraction"),
    Family("count-plus", "counting", counts.with_a_number, "addition", 3),
    Family("count-share", "counting", counts.with_a_number, "division"),
    Family("two-sum", "counting", counts.with_each_other, "addition", 2),
    Family("two-difference", "counting", counts.with_each_other, "subtraction", 3),
    Family("choice-more", "choosing", choices.cases, "addition"),
    Family("choice-less", "choosing", choices.cases, "subtraction"),
)
