"""Scaffolded tasks (STaD): how many solved steps a model needs before it solves the whole.

    get("scaffolding", ask_all=True).reduce(rows, cases).metrics

k = 0 where the whole is solved, else the smallest j in 1..K-1 whose scaffold (steps 1..j revealed) is solved, else -1
(intractable; section 2.3). A level that could not be judged leaves k open: such items carry every k that is possible,
stay out of the estimates and enter the bounds. Mean k is over k > 0, as published; ``mean_k_solvable`` over k >= 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ...errors import InputError
from .. import prompts
from ..asks import Ask, Grade
from ..case import Case
from ..graded import Graded
from ..metrics import Metric
from . import counting, scaffold_metrics
from .asking import ask_part, ask_whole, check_formats, pending
from .base import About, CaseSet, Entry, Reduction
from .scaffold_metrics import Scaffolded


@dataclass(frozen=True)
class Scaffolding:
    """``--protocol scaffolding``.

    ``ask_all`` asks the scaffolds of solved wholes too (the paper only of failed ones); ``placeholders`` asks each
    item's scaffold at its own k with the values blanked. Scaffolded wordings come from ``meta["scaffolds"]`` (one for
    each of the levels 1..K-1) or are made from the parts. All roles have the same token budget.
    """

    format: str = "cot"
    ask_all: bool = False
    placeholders: bool = True
    max_tokens: int | None = None
    compat: str | None = None
    seed: int = 0
    name: str = field(default="scaffolding", init=False)
    about: ClassVar = About(
        roles=("whole", "part:N", "scaffold:N", "placeholder:N"),
        options={"ask_all": "ask_all", "placeholders": "placeholders"},
        asks_parts=True,
        columns=(
            ("composition", "whole right, nothing revealed", "rate"),
            ("any_scaffold", "right with or without steps revealed", "rate"),
            ("k_positive", "right only with steps revealed", "rate"),
            ("intractable", "wrong at every level", "rate"),
            ("mean_k", "steps to reveal, where any had to be", "number"),
        ),
    )

    def __post_init__(self) -> None:
        check_formats(self.format)

    def asks(self, case: Case, graded: Mapping[str, Grade]) -> list[Ask]:
        """Round 1: the whole and all sub-tasks; 2: the scaffolds of what failed; 3: the placeholder at its k."""
        found = [ask_whole(case, "whole", case.question, self.format, self.max_tokens)]
        found += [
            ask_part(case, i, f"part:{i}", part.question, self.format, self.max_tokens)
            for i, part in enumerate(case.parts)
        ]
        whole = graded.get("whole")
        if whole is None:
            return pending(found, graded)
        levels = range(1, len(case.parts))
        # an invalid whole may have failed: its scaffolds bound its k
        if self.ask_all or whole.outcome != "correct":
            found += [
                ask_whole(case, f"scaffold:{j}", scaffolded(case, j), self.format, self.max_tokens) for j in levels
            ]
        solved = [j for j in levels if (g := graded.get(f"scaffold:{j}")) is not None and g.outcome == "correct"]
        if self.placeholders and whole.outcome != "correct" and solved:
            text = prompts.placeholder(case.question, _solved_steps(case, solved[0]))
            if isinstance(blanked := case.meta.get("placeholders"), list | tuple) and len(blanked) >= solved[0]:
                text = str(blanked[solved[0] - 1])
            found.append(ask_whole(case, f"placeholder:{solved[0]}", text, self.format, self.max_tokens))
        return pending(found, graded)

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        """k per item with its summaries per skill combination, bottlenecks, isolated skills, and three case sets."""
        metrics: list[Metric] = []
        warnings: list[str] = []
        entries: dict[str, list[Entry]] = {"scaffold-k": [], "intractable": [], "unaided": []}
        for group, chosen in counting.by_model(counting.published(rows, self.compat)):
            judged = [Scaffolded.of(item, cases) for item in counting.items(chosen)]
            found = scaffold_metrics.all_metrics(judged, self.seed, stad=self.compat == "stad")
            metrics += [replace(m, group={**group, **m.group}) for m in found]
            warnings += _warnings(judged)
            for s in judged:
                if s.k is not None:
                    name = "unaided" if s.k == 0 else "intractable" if s.k < 0 else "scaffold-k"
                    roles = [
                        "whole",
                        *(f"scaffold:{j}" for j in s.outcomes),
                        *(f"part:{i}" for i in range(s.item.n_parts)),
                    ]
                    entries[name].append(s.item.entry(s.item.evidence(roles), value=s.k))
        sets = (
            CaseSet("scaffold-k", "failure", tuple(entries["scaffold-k"])),
            CaseSet("intractable", "other", tuple(entries["intractable"])),
            CaseSet("unaided", "success", tuple(entries["unaided"])),
        )
        return Reduction(tuple(metrics), sets, tuple(warnings))


def _solved_steps(case: Case, level: int) -> list[tuple[str, str]]:
    return [(part.question, part.answer) for part in case.parts[:level]]


def scaffolded(case: Case, level: int) -> str:
    """The question with steps 1..level solved: the case's own wording where it has one, else made from the parts.

    Raises ``InputError`` where ``meta["scaffolds"]`` has fewer levels than the case has steps to reveal.
    """
    given = case.meta.get("scaffolds")
    if isinstance(given, list | tuple):
        if len(given) < level or not given[level - 1]:
            raise InputError(
                f"case {case.id!r}: meta.scaffolds has no text for level {level}; give one for each of 1..K-1, "
                "or leave the field out"
            )
        return str(given[level - 1])
    return prompts.scaffold(case.question, _solved_steps(case, level))


def _warnings(judged: Sequence[Scaffolded]) -> list[str]:
    found = []
    single = sum(s.steps <= 1 and s.item.truth("whole") is False for s in judged)
    if single:
        found.append(f"{single} failed items have one step only: they have no scaffold, and no k")
    open_k = sum(s.k is None for s in judged) - single
    if open_k:
        found.append(f"{open_k} of {len(judged)} items have an open k: a level is invalid or was not asked")
    return found
