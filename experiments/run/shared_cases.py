"""Which cases two runs share, and which asks put the same question in both."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from ...evaluation.case import Case, Part
from ...evaluation.graded import Graded
from ...evaluation.protocols.base import BARE
from ...terminal import how_many
from .reader import RunData


@dataclass(frozen=True)
class SharedCases:
    """The cases of two runs, according to their case files."""

    n_a: int
    n_b: int
    same: tuple[str, ...]
    """Ids that mean the same question in both runs."""
    changed: tuple[str, ...]
    """Ids that mean one question in A and another in B."""
    changed_parts: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """For each unchanged case, the numbers of the parts that differ (another decomposition)."""

    def comparable(self, case: str, role: str) -> bool:
        """Whether an ask of that role puts the same question in both runs."""
        if case in self.changed:
            return False
        return self.changed_parts.get(case, frozenset()).isdisjoint(_parts_of(role))

    def of(self, rows: Iterable[Graded]) -> list[Graded]:
        """The rows of one run whose asks put the same question in both."""
        return [row for row in rows if self.comparable(row.case, row.role)]

    def sentence(self) -> str:
        """A sentence that says how many cases both runs have."""
        same = "1 case is" if len(self.same) == 1 else f"{len(self.same)} cases are"
        text = f"{same} the same in both runs (A has {self.n_a}, B {self.n_b})"
        if self.changed:
            text += f"; {how_many(len(self.changed), 'id')} in common but with another question or answer, not compared"
        if self.changed_parts:
            text += f"; parts that differ in {how_many(len(self.changed_parts), 'case')} are not compared"
        return text


def shared_cases(a: RunData, b: RunData) -> SharedCases:
    """Compare the cases of two runs. For a run without a case file (graded rows of any origin), only the ids count."""
    left, right = a.cases, b.cases
    if not left or not right:
        return SharedCases(len(left), len(right), (), ())
    both = [case for case in left if case in right]
    changed = tuple(case for case in both if _asked(left[case]) != _asked(right[case]))
    same = tuple(case for case in both if case not in set(changed))
    parts = {case: found for case in same if (found := _changed_parts(left[case].parts, right[case].parts))}
    return SharedCases(len(left), len(right), same, changed, parts)


def _asked(of: Case | Part) -> tuple[Any, ...]:
    return of.question, of.answer, of.options, *(of.evidence if isinstance(of, Case) else ())


def _changed_parts(a: Sequence[Part], b: Sequence[Part]) -> frozenset[int]:
    asked = zip_longest(map(_asked, a), map(_asked, b))
    return frozenset(i for i, (left, right) in enumerate(asked) if left != right)


def _parts_of(role: str) -> Iterable[int]:
    """The numbers of the parts that an ask of a role puts, reveals or is right about; none for the whole."""
    kind, number = (*role.removeprefix(BARE).split(":"), "")[:2]
    if kind in ("pair", "co-presented"):
        return (int(kind != "pair"),)
    if not number.isdecimal():
        return ()
    return range(int(number)) if kind in ("scaffold", "placeholder") else [int(number)] * (kind == "part")
