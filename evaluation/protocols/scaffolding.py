"""Scaffolded tasks (STaD): how many solved steps a model needs before it solves the whole.

    get("scaffolding", ask_all=True).reduce(rows, cases).metrics

k = 0 where the whole is solved, else the smallest j in 1..K-1 whose scaffold (steps 1..j revealed) is solved, else -1
(intractable; section 2.3). A level that could not be judged leaves k open: such items carry every k that is possible,
stay out of the estimates and enter the bounds. Mean k is over k > 0, as published; ``mean_k_solvable`` over k >= 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, ClassVar, Literal

from ...errors import InputError
from .. import prompts
from ..asks import Ask, Grade
from ..case import Case
from ..graded import Graded
from ..metrics import Metric, extreme_mean, truncated
from . import counting
from .asking import ask_part, ask_whole, check_formats, pending
from .base import About, Reduction
from .counting import Item, Truth


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
        needs=("whole", "scaffold:1"),
        options={"ask_all": "ask_all", "placeholders": "placeholders"},
        asks_parts=True,
        gates_parts=False,
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
        levels = range(1, len(case.parts))
        texts = {j: scaffolded(case, j) for j in levels}  # a level without one is said before anything is asked
        if whole is None:
            return pending(found, graded)
        # an invalid whole may have failed: its scaffolds bound its k
        if self.ask_all or whole.outcome != "correct":
            found += [ask_whole(case, f"scaffold:{j}", texts[j], self.format, self.max_tokens) for j in levels]
        solved = [j for j in levels if (g := graded.get(f"scaffold:{j}")) is not None and g.outcome == "correct"]
        if self.placeholders and whole.outcome != "correct" and solved:
            text = prompts.placeholder(case.question, _solved_steps(case, solved[0]))
            if isinstance(blanked := case.meta.get("placeholders"), list | tuple) and len(blanked) >= solved[0]:
                text = str(blanked[solved[0] - 1])
            found.append(ask_whole(case, f"placeholder:{solved[0]}", text, self.format, self.max_tokens))
        return pending(found, graded)

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        """k per item with its summaries per skill combination, bottlenecks, isolated skills, and three case sets."""

        def count(chosen: Sequence[Graded], _: object) -> counting.Counted:
            judged = [Scaffolded.of(item, cases) for item in counting.items(chosen)]
            found = []
            for s in (s for s in judged if s.k is not None):
                levels = [f"scaffold:{j}" for j in s.outcomes]
                roles = ["whole", *levels, *(f"part:{i}" for i in range(s.item.n_parts))]
                name = "unaided" if s.k == 0 else "intractable" if s.k == INTRACTABLE else "scaffold-k"
                found.append((name, s.item.entry(s.item.evidence(roles), value=s.k)))
            return all_metrics(judged, self.seed, stad=self.compat == "stad"), unsettled(judged), found

        sets = {"scaffold-k": "failure", "intractable": "other", "unaided": "success"}
        return counting.reduced(rows, self.compat, sets, count)


def _solved_steps(case: Case, level: int) -> list[tuple[str, str]]:
    return [(part.question, part.answer) for part in case.parts[:level]]


def scaffolded(case: Case, level: int) -> str:
    """The question with steps 1..level solved: the case's own wording where it has one, else made from the parts.

    Raises ``InputError`` where ``meta["scaffolds"]`` has fewer levels than the case has steps to reveal.
    """
    given = case.meta.get("scaffolds")
    if given is None:
        return prompts.scaffold(case.question, _solved_steps(case, level))
    if not isinstance(given, list | tuple) or len(given) < level or not given[level - 1]:
        raise InputError(
            f"case {case.id!r}: meta.scaffolds has no text for level {level}; give a list with one for each of 1..K-1, "
            "or leave the field out"
        )
    return str(given[level - 1])


def unsettled(judged: Sequence[Scaffolded]) -> list[str]:
    """How many items have no k, or an open one, as sentences."""
    found = []
    single = sum(s.steps <= 1 and s.item.truth("whole") is False for s in judged)
    if single:
        found.append(f"{single} failed items have one step only: they have no scaffold, and no k")
    open_k = sum(s.k is None for s in judged) - single
    if open_k:
        found.append(f"{open_k} of {len(judged)} items have an open k: a level is invalid or was not asked")
    return found


INTRACTABLE = -1


@dataclass(frozen=True)
class Scaffolded:
    """An item with its scaffold outcomes and every k that they allow."""

    item: Item
    steps: int
    """K, the number of steps."""
    skills: tuple[str, ...]
    outcomes: Mapping[int, Truth] = field(repr=False)
    """By level 1..K-1."""
    possible: frozenset[int]
    """The possible values of k: one where all answers are judged, none where a failed item has no scaffold."""

    @staticmethod
    def of(item: Item, cases: Mapping[str, Case] | None) -> Scaffolded:
        """The item with every k that its rows allow; steps and skills are its case's where ``cases`` has it."""
        levels = [int(role.partition(":")[2]) for role in item.rows if re.fullmatch(r"scaffold:\d+", role)]
        case = None if cases is None else cases.get(item.case)
        skills = item.first.skills
        if case is not None and any(part.skill for part in case.parts):
            skills = tuple(part.skill or "" for part in case.parts)
        steps = len(case.parts) if case is not None and case.parts else len(skills)
        steps = max(steps, max(levels, default=0) + 1, item.n_parts)
        outcomes = {j: item.truth(f"scaffold:{j}") for j in range(1, steps)}
        possible = minimum_k(item.truth("whole"), [outcomes[j] for j in range(1, steps)])
        return Scaffolded(item, steps, skills, outcomes, possible)

    @property
    def k(self) -> int | None:
        return next(iter(self.possible)) if len(self.possible) == 1 else None

    def revealed(self, k: int) -> tuple[str, ...]:
        """The skills of steps 1..k in order, each once; none unless k > 0 and all of them are known."""
        found = self.skills[:k]
        return tuple(dict.fromkeys(found)) if len(found) == k and all(found) else ()

    @property
    def limiting(self) -> tuple[str, ...]:
        return () if self.k is None else self.revealed(self.k)

    @property
    def bottleneck(self) -> str | None:
        """The limiting skills as one name."""
        return " / ".join(self.limiting) if self.limiting else None


def minimum_k(whole: Truth, levels: Sequence[Truth]) -> frozenset[int]:
    """The possible values of k, given which answers are right, wrong, or undecided (None).

    Only the first success matters: k is 0 where the whole is right, else the first level that is, else -1. An item
    that failed and has no level at all has no k.
    """
    if whole is True:
        return frozenset({0})
    possible = {0} if whole is None else set()
    if not levels:
        return frozenset(possible | ({INTRACTABLE} if possible else set()))
    for j, right in enumerate(levels, 1):
        if right is not False:
            possible.add(j)
        if right is True:
            return frozenset(possible)
    return frozenset(possible | {INTRACTABLE})


def all_metrics(judged: Sequence[Scaffolded], seed: int, stad: bool) -> list[Metric]:
    """Every metric of the protocol; ``stad`` prints as published (mean 0 for no item, all values truncated)."""
    metrics = []
    for group, some in counting.grouped(judged, of=attrgetter("item")):
        metrics += k_metrics(some, group, seed, stad)
    combinations: dict[str, list[Scaffolded]] = {}
    for s in judged:
        if any(s.skills):
            combinations.setdefault(" + ".join(s.skills), []).append(s)
    for name, members in combinations.items():
        group = {"combination": name}
        metrics += k_metrics(members, group, seed, stad) + scaffold_success(members, group)
    metrics += bottlenecks(judged) + skill_accuracy(judged) + scaffold_success(judged, {})
    return metrics + placeholders(judged)


def k_metrics(judged: Sequence[Scaffolded], group: Mapping[str, Any], seed: int, stad: bool) -> list[Metric]:
    """Shares of k = 0, k > 0 and intractable items, and both means."""
    items = [s.item for s in judged]

    def share(metric: str, test: Callable[[int], bool], note: str | None = None) -> Metric:
        outcomes: list[tuple[Truth, Truth]] = [  # a failed item of one step has no k
            (True, _decided(s.possible, test)) if s.steps > 1 else (s.item.truth("whole"), test(0)) for s in judged
        ]
        found = counting.given(metric, outcomes, items, group, note)
        return _cut(found, 4) if stad else found

    whole, guess = [item.truth("whole") for item in items], counting.chance_note(items)
    return [
        counting.rate("composition", whole, group, of=items, note=guess),
        share("any_scaffold", lambda k: k >= 0, "solved with or without a scaffold"),
        share("k_zero", lambda k: k == 0),
        share("k_positive", lambda k: k > 0),
        share("intractable", lambda k: k < 0),
        _mean("mean_k", judged, lambda k: k > 0, group, seed, stad),
        _mean("mean_k_solvable", judged, lambda k: k >= 0, group, seed, stad),
        _non_monotone(judged, group),
    ]


def _decided(possible: frozenset[int], test: Callable[[int], bool]) -> Truth:
    verdicts = {test(k) for k in possible}
    return verdicts.pop() if len(verdicts) == 1 else None


def _cut(metric: Metric, digits: int) -> Metric:
    if metric.value is None:
        return metric
    return replace(metric, value=truncated(metric.value, digits))


def _mean(
    metric: str,
    judged: Sequence[Scaffolded],
    test: Callable[[int], bool],
    group: Mapping[str, Any],
    seed: int,
    stad: bool,
) -> Metric:
    """Mean of k over the items that pass ``test``; items with an undecided k enter the bounds if they may pass."""
    chosen = [s for s in judged if s.k is not None and test(s.k)]
    values = [int(s.k or 0) for s in chosen]
    unsure = [([k for k in s.possible if test(k)], s) for s in judged if s.k is None]
    optional = [(ks, any(not test(k) for k in s.possible)) for ks, s in unsure if ks]
    found = counting.statistic(
        metric,
        [(k, 1) for k in values],
        lambda s: s[..., 0] / s[..., 1],
        group,
        seed=seed,
        n_invalid=len(optional),
        count=sum(values),
        of=[s.item for s in chosen],
        bounds=(_extreme(values, optional, min), _extreme(values, optional, max)),
        possible=(int(not test(0)), max((s.steps - 1 for s in chosen), default=1)),
        skewed=True,
    )
    if found.low is None and values:
        found = replace(found, interval="no spread")
    return found if not stad else _cut(replace(found, value=found.value if values else 0.0), 2)


def _extreme(
    values: Sequence[int], optional: Sequence[tuple[list[int], bool]], end: Callable[[Sequence[int]], int]
) -> float | None:
    """The least (largest) mean that undecided items allow: doubtful items join only if they lower (raise) it."""
    fixed = [*values, *(end(ks) for ks, may_leave in optional if not may_leave)]
    return extreme_mean(fixed, [end(ks) for ks, may_leave in optional if may_leave], end)


def _non_monotone(judged: Sequence[Scaffolded], group: Mapping[str, Any]) -> Metric:
    """Of the items with k > 0, those that fail again at a level above k (the paper does not look)."""

    def fails_above(s: Scaffolded, k: int) -> Truth | Literal["outside"]:
        above = [s.outcomes[j] for j in s.outcomes if j > k]
        return counting.opposite(counting.all_of(above)) if k > 0 and above else "outside"

    outcomes = [over_k(s, fails_above) for s in judged]
    note = "of the items with k > 0 and a level above k"
    return counting.given("non_monotone", outcomes, [s.item for s in judged], group, note)


def over_k(s: Scaffolded, value: Callable[[Scaffolded, int], Truth | Literal["outside"]]) -> tuple[Truth, Truth]:
    """(inside, value) for ``counting.given``, of an item that may have several k: None where these differ."""
    found = {value(s, k) for k in s.possible}
    inside = found - {"outside"}
    values: set[Any] = inside or {None}
    return (None if len(found) > len(inside) > 0 else bool(inside)), values.pop() if len(values) == 1 else None


def bottlenecks(judged: Sequence[Scaffolded]) -> list[Metric]:
    """How often each set of skills is the bottleneck, of the items with k > 0; most frequent first.

    Items with an open k that may have one stay out of the shares, are counted and enter the bounds.
    """
    named = [s.bottleneck for s in judged if s.bottleneck is not None]
    sizes = {s.bottleneck: len(s.limiting) for s in judged}  # a name of a skill may itself hold a slash
    items = [s.item for s in judged if s.bottleneck is not None]
    ways = [{" / ".join(s.revealed(k)) for k in s.possible} for s in judged if s.k is None]
    unsure = [(frozenset(names - {""}), "" in names) for names in ways if names - {""}]
    nameless = sum(s.k is not None and s.k > 0 and s.bottleneck is None for s in judged)
    left = f"{nameless} items with k > 0 lack a skill and are left out" if nameless else None
    found = []
    for name, _ in Counter(named).most_common():
        note = counting.join(f"{sizes[name]} skills" if sizes[name] > 1 else "1 skill", left)
        share = counting.rate("bottleneck", [b == name for b in named], {"skill": name}, of=items, note=note)
        low, high = _share_bounds(named.count(name), len(named), name, unsure)
        found.append(replace(share, n_invalid=len(unsure), bound_low=low, bound_high=high))
    return found


def _share_bounds(
    count: int, n: int, name: str, unsure: Sequence[tuple[frozenset[str], bool]]
) -> tuple[float | None, float | None]:
    """The least and largest share of a bottleneck; ``unsure``: what open items may have, whether they may have none."""
    only = sum(names == {name} and not may_leave for names, may_leave in unsure)
    other = sum(bool(names - {name}) for names, _ in unsure)
    this = sum(name in names for names, _ in unsure)
    elsewhere = sum(name not in names and not may_leave for names, may_leave in unsure)
    return (count + only) / (n + only + other), (count + this) / (n + this + elsewhere)


def skill_accuracy(judged: Sequence[Scaffolded]) -> list[Metric]:
    """Accuracy on sub-tasks alone by skill: over all items, and over the failed ones only, as published."""
    table: dict[str, list[tuple[Scaffolded, Truth]]] = {}
    for s in judged:
        for i in range(s.item.n_parts):
            role = f"part:{i}"
            if role in s.item.rows:
                skill = s.skills[i] if i < len(s.skills) and s.skills[i] else s.item.rows[role].kind
                table.setdefault(skill or f"step {i}", []).append((s, s.item.truth(role)))
    metrics = []
    for skill, found in table.items():
        own, group = [s.item for s, _ in found], {"skill": skill}
        metrics.append(counting.rate("skill_accuracy", [v for _, v in found], group, of=own, note="all items"))
        outcomes = [(_failed(s), v) for s, v in found]
        group = {**group, "whole": "incorrect"}
        metrics.append(counting.given("skill_accuracy", outcomes, own, group, "failed items only"))
    return metrics


def scaffold_success(judged: Sequence[Scaffolded], group: Mapping[str, Any]) -> list[Metric]:
    """Of the items that failed unaided, those solved with steps 1..level revealed, other levels regardless."""
    failed = [s for s in judged if _failed(s) is not False]
    metrics = []
    for level in range(1, max((s.steps for s in failed), default=1)):
        chosen = [s for s in failed if level in s.outcomes]
        outcomes = [(_failed(s), s.outcomes[level]) for s in chosen]
        cell = {**group, "level": level}
        note = None
        if group.get("combination"):
            revealed = {" / ".join(dict.fromkeys(s.skills[:level])) for s in chosen}
            note = f"revealed: {', '.join(sorted(revealed))}"
        metrics.append(counting.given("scaffold_success", outcomes, [s.item for s in chosen], cell, note))
    return metrics


def _failed(s: Scaffolded) -> Truth:
    return counting.opposite(s.item.truth("whole"))


def placeholders(judged: Sequence[Scaffolded]) -> list[Metric]:
    """Of the items with k > 0, those solved at k with the revealed values blanked (App. E); open where not asked."""
    levels = sorted({k for s in judged for k in s.possible if f"placeholder:{k}" in s.item.rows})
    metrics = []
    for level in (None, *levels) if levels else ():

        def blanked(s: Scaffolded, k: int, level: int | None = level) -> Truth | Literal["outside"]:
            return s.item.truth(f"placeholder:{k}") if k > 0 and level in (None, k) else "outside"

        outcomes = [over_k(s, blanked) for s in judged]
        group = {} if level is None else {"level": level}
        note = "solved with the values blanked; with them: all"
        metrics.append(counting.given("placeholder", outcomes, [s.item for s in judged], group, note))
    return metrics
