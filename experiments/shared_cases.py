"""What two runs share: the same id is the same case only where the question and its right answer are the same, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .run import read_cases_lines

Asked = tuple[Any, Any]
"""A question and its right answer."""


@dataclass(frozen=True)
class Shared:
    """Cases of two runs, as their case files have them."""

    n_a: int
    n_b: int
    same: tuple[str, ...]
    """Ids that stand for the same question in both."""
    changed: tuple[str, ...]
    """Ids that stand for one question in A and for another in B."""
    changed_parts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Of cases that are the same: roles of parts that are not (another decomposition)."""

    def comparable(self, case: str, role: str) -> bool:
        """Whether an ask of that role is the same question in both runs."""
        if case in self.changed:
            return False
        part = ":".join(role.split(":")[:2])
        return part not in self.changed_parts.get(case, frozenset())

    def sentence(self) -> str:
        """How many cases both runs have, in words."""
        same = "1 case is" if len(self.same) == 1 else f"{len(self.same)} cases are"
        text = f"{same} the same in both runs (A has {self.n_a}, B {self.n_b})"
        if self.changed:
            text += f"; {_many(len(self.changed), 'id')} in common but with another question or answer, not compared"
        if self.changed_parts:
            text += f"; parts that differ in {_many(len(self.changed_parts), 'case')} are not compared"
        return text


def shared_cases(a: str | Path, b: str | Path) -> Shared:
    """Compare the case files of two runs; a run without one (anyone's graded rows) is taken at its ids."""
    sides = [_cases(Path(run)) for run in (a, b)]
    if any(side is None for side in sides):
        return Shared(len(sides[0] or ()), len(sides[1] or ()), (), ())
    left, right = (side or {} for side in sides)
    both = [case for case in left if case in right]
    changed = tuple(case for case in both if _asked(left[case]) != _asked(right[case]))
    same = tuple(case for case in both if case not in set(changed))
    parts = {case: found for case in same if (found := _changed_parts(left[case], right[case]))}
    return Shared(len(left), len(right), same, changed, parts)


def _cases(run: Path) -> dict[str, Mapping[str, Any]] | None:
    return {str(c["id"]): c for c in read_cases_lines(run)} if (run / "cases.jsonl").is_file() else None


def _asked(of: Mapping[str, Any]) -> Asked:
    return of.get("question"), of.get("answer")


def _changed_parts(a: Mapping[str, Any], b: Mapping[str, Any]) -> frozenset[str]:
    sides = [[_asked(p) for p in of.get("parts") or ()] for of in (a, b)]
    n = max(map(len, sides))
    return frozenset(f"part:{i}" for i in range(n) if any(i >= len(s) for s in sides) or sides[0][i] != sides[1][i])


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
