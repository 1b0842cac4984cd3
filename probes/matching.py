"""Failures matched one to one with similar successes of the same family.

    match(examples).note

The distance of two cases is the sum of

    1 for every step of depth between them, 1 for another operation, 1 for every 25 % between the lengths of their
    prompts, and 1/2 where the tokens before their answer slots differ.

Among the pairs within the caliper as many as possible are made, and of these the set with the smallest total distance.
Covariates that stay unbalanced are reported, and contrasts are adjusted for them (``tables``).
"""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from ..errors import InputError
from ..evaluation import dependence
from ..evaluation.dependence import Sides
from ..terminal import how_many
from .effects import smallest_detectable
from .examples import Example
from .verdicts import FEWEST_PAIRS

EXACT = ("family",)
PER_LENGTH, OTHER_TOKEN = math.log(1.25), 0.5
CALIPER = 3.0
BALANCED = 0.1
"""The standardized mean difference up to which groups count as balanced (Austin 2009)."""
SHOWN = 4
"""Covariates that a note names."""


@dataclass(frozen=True)
class Stratum:
    """Cases that agree in the fields that are matched exactly."""

    key: tuple[Any, ...]
    failures: int
    successes: int
    pairs: int
    """Matched within the caliper; 0 for a dropped stratum."""


@dataclass(frozen=True)
class Balance:
    """The difference of failures and successes in one covariate, in standard deviations (failure - success)."""

    covariate: str
    before: float
    """All cases of the strata that have both groups."""
    after: float
    """The matched ones."""


@dataclass(frozen=True)
class Matched:
    """Matched failures and successes, the strata they came from and what was left out."""

    pairs: tuple[tuple[str, str], ...]
    """Case ids (failure, success)."""
    examples: tuple[Example, ...]
    """Every role of the matched cases."""
    strata: tuple[Stratum, ...]
    on: tuple[str, ...]
    """Fields that agree exactly."""
    caliper: float
    distances: tuple[float, ...] = ()
    """Of each pair."""
    balance: tuple[Balance, ...] = ()
    differences: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Unbalanced covariates, the worst first: covariate to failing case to its difference from its success."""

    @property
    def possible(self) -> bool:
        """Whether there is enough common support for a contrast (two pairs)."""
        return len(self.pairs) >= FEWEST_PAIRS

    @property
    def note(self) -> str:
        """One sentence for tables and reports: pairs, strata dropped, balance, what a null would exclude."""
        dropped = [s for s in self.strata if not s.pairs]
        failures, successes = sum(s.failures for s in self.strata), sum(s.successes for s in self.strata)
        right = how_many(successes, "success", "successes")
        text = (
            f"{len(self.pairs)} of {failures} failures matched to {right} (exactly on "
            f"{', '.join(self.on) or 'nothing'}; depth, operation, length and the token before the slot up to a "
            f"distance of {self.caliper:g}); {len(dropped)} of {len(self.strata)} strata dropped"
        )
        if not self.possible:
            return f"no contrast possible: {text}"
        worst = sorted(self.balance, key=lambda b: (-abs(b.after), -abs(b.before)))
        found = ", ".join(f"{b.covariate} {b.before:+.2f} -> {b.after:+.2f}" for b in worst[:SHOWN])
        more = f" and {len(worst) - SHOWN} less unbalanced" if len(worst) > SHOWN else ""
        return (
            f"{text}; standardized differences before -> after: {found or 'nothing varies'}{more}; {self._detectable}"
        )

    @property
    def _detectable(self) -> str:
        """The smallest effect that a paired t test finds where the values of the two of a pair are not related.

        How alike pairs are that share something only their values tell; so where they do, the note has both ends.
        """
        near = {e.case: e.shares for e in self.examples}
        labels = [Sides(near.get(f), near.get(s)) for f, s in self.pairs]
        n = len(labels)
        least = smallest_detectable(n, error=math.sqrt(2 / n), freedom=n - 1.0)
        if dependence.alone(labels):
            return f"smallest detectable effect {least:.2f} sd"
        groups = dependence.count(labels)
        if groups < dependence.FEWEST:
            few = how_many(groups, "cluster")
            return f"no test: the cases of all pairs are of {few}, and {dependence.FEWEST} are needed"
        # Where labels cross there may be more of them than pairs.
        error, freedom = math.sqrt(2 / dependence.effective(labels)), min(groups, n) - 1.0
        most = smallest_detectable(n, error=error, freedom=freedom)
        return f"smallest detectable effect {least:.2f} to {most:.2f} sd, by how alike pairs are that share something"


def check_templates(examples: Sequence[Example], notes: list[str] | None = None) -> None:
    """Check that all prompts end in the same way, so that their last positions can be compared and exchanged.

    Raises ``InputError`` if the templates' generation prompts (``cue_tokens``) differ. Their first token is not
    compared, because a tokenizer may have merged the question's end into it. If states are read at different tokens,
    ``notes`` says so.
    """
    if not examples:
        return
    size = min(e.cue_tokens - e.begun for e in examples) - 1
    seen: dict[tuple[int, ...], Example] = {}
    for e in examples:
        kind = (int(e.cue_tokens > e.begun),)  # chat or raw
        seen.setdefault((*kind, *(_prompt(e)[-size:] if size > 0 else ())), e)
    if len(seen) > 1:
        a, b = list(seen.values())[:2]
        ends = [list(_prompt(e)[-max(1, e.cue_tokens - e.begun) :]) for e in (a, b)]
        raise InputError(
            f"{a.group} {a.case!r} and {b.group} {b.case!r} have different templates: their prompts end with token ids"
            f" {ends[0]} and {ends[1]}; ask all cases with one prompt format"
        )
    last = {e.prompt_ids[-1] for e in examples}
    if len(last) > 1 and notes is not None:
        what = "prompts end with" if not any(e.begun for e in examples) else "slots follow"
        notes.append(f"{what} {len(last)} different tokens, so the states read there belong to different tokens")


def _prompt(e: Example) -> tuple[int, ...]:
    """The prompt without response tokens at its end."""
    return e.prompt_ids[: len(e.prompt_ids) - e.begun]


def token_before(e: Example) -> int:
    """The token at the answer slot: the one before the answer's first."""
    n = 0 if e.slot is None else e.slot.offset
    return e.response_ids[n - 1] if n else e.prompt_ids[-1]


def match(
    examples: Sequence[Example], *, on: Sequence[str] = EXACT, caliper: float = CALIPER, role: str = "whole"
) -> Matched:
    """Pair failures with successes one to one: as many pairs as possible within the caliper, at the smallest distance.

    Cases are matched on the example of ``role``; every role of a matched case is kept. ``on`` are fields of ``Example``
    that must agree exactly, ``caliper`` the largest distance of a pair (see the module). The answer may be that no
    contrast is possible (``Matched.possible``). Raises ``InputError`` for an unknown field, a caliper that is no
    distance, when no example has the role, for a case that has it twice, and for prompts of different templates.
    """
    if not caliper >= 0:
        raise InputError(f"caliper={caliper}; give the largest distance of a pair, 0 or more")
    unknown = [name for name in on if name not in Example.__dataclass_fields__]
    if unknown:
        raise InputError(f"cannot match on {unknown}; use fields of Example such as family, depth, operation")
    chosen = [e for e in examples if e.role == role]
    if examples and not chosen:
        raise InputError(f"no example has the role {role!r}; roles are {sorted({e.role for e in examples})}")
    seen: set[str] = set()
    for e in chosen:
        if e.case in seen:
            raise InputError(f"case {e.case!r}: several examples of role {role!r}; give each case once, in one group")
        seen.add(e.case)
    check_templates(chosen)
    strata: dict[tuple[Any, ...], dict[str, list[Example]]] = defaultdict(lambda: {"failure": [], "success": []})
    for e in chosen:
        if e.group not in ("failure", "success"):
            raise InputError(f"case {e.case!r}: group is {e.group!r}; matching needs 'failure' or 'success'")
        strata[tuple(getattr(e, name) for name in on)][e.group].append(e)
    pairs: list[tuple[Example, Example]] = []
    rows: list[Stratum] = []
    for key in sorted(strata, key=repr):
        failures, successes = strata[key]["failure"], strata[key]["success"]
        found = assign(failures, successes, caliper)
        pairs += found
        rows.append(Stratum(key, len(failures), len(successes), len(found)))
    kept = {e.case for pair in pairs for e in pair}
    both = [e for s in strata.values() if all(s.values()) for e in (*s["failure"], *s["success"])]
    balance = _balance(both, pairs)
    return Matched(
        tuple((f.case, s.case) for f, s in pairs), tuple(e for e in examples if e.case in kept), tuple(rows), tuple(on),
        caliper, tuple(distance(f, s) for f, s in pairs), tuple(balance), _differences(balance, pairs),
    )  # fmt: skip


def distance(a: Example, b: Example) -> float:
    """The distance of two cases; infinite where only one has a depth."""
    if (a.depth is None) != (b.depth is None):
        return math.inf
    depth = 0 if a.depth is None or b.depth is None else abs(a.depth - b.depth)
    length = abs(math.log(len(_prompt(a)) / len(_prompt(b)))) / PER_LENGTH
    return depth + (a.operation != b.operation) + length + OTHER_TOKEN * (token_before(a) != token_before(b))


def assign(failures: Sequence[Example], successes: Sequence[Example], caliper: float) -> list[tuple[Example, Example]]:
    """The largest one-to-one set of pairs within the caliper, of these the one with the smallest total distance."""
    if not failures or not successes:
        return []
    apart = np.array([[distance(f, s) for s in successes] for f in failures])
    allowed = (apart <= caliper) & np.isfinite(apart)
    # One more pair is worth any distance: a forbidden pair costs more than all allowed pairs together.
    forbidden = (1 + apart[allowed].max(initial=0)) * (1 + min(apart.shape))
    rows, columns = linear_sum_assignment(np.where(allowed, apart, forbidden))
    return [(failures[i], successes[j]) for i, j in zip(rows, columns, strict=True) if allowed[i, j]]


def spread_out(pairs: Sequence[tuple[str, str]], examples: Sequence[Example]) -> list[tuple[str, str]]:
    """Pairs in such an order that the first n are spread evenly over families, depths and operations, for every n.

    The next pair always comes from the stratum with the fewest pairs so far and, among these, from the family, depth
    and operation with the fewest.
    """
    strata: dict[tuple[Any, ...], list[tuple[str, str]]] = defaultdict(list)
    of = {e.case: _stratum(e) for e in examples}
    for pair in pairs:
        strata[of[pair[0]]].append(pair)
    left, order = {key: iter(found) for key, found in strata.items()}, []
    taken: Counter[Any] = Counter()
    while len(order) < len(pairs):
        key = min(
            (k for k in left if taken[k] < len(strata[k])),
            key=lambda k: (taken[k], sum(taken[i, name] for i, name in enumerate(k))),
        )
        order.append(next(left[key]))
        taken.update([key, *enumerate(key)])
    return order


def kept(pairs: Sequence[tuple[str, str]], of: Sequence[tuple[str, str]], examples: Sequence[Example]) -> str:
    """How many of the pairs of each family, depth and operation were kept, for notes."""
    stratum = {e.case: _stratum(e) for e in examples}
    parts = []
    for i, name in enumerate(("family", "depth", "operation")):
        before, after = (Counter(stratum[f][i] for f, _ in some) for some in (of, pairs))
        if len(before) > 1:
            values = sorted(before, key=lambda v: (str(type(v)), v))
            counts = [f"{v} {after[v]} of {before[v]}" for v in values]
            parts.append(f"{name}: {', '.join(counts)}")
    return "; ".join(parts)


def _stratum(e: Example) -> tuple[Any, ...]:
    return e.family, e.depth, e.operation


# Balance.


def _covariates(examples: Sequence[Example]) -> dict[str, NDArray[np.float64]]:
    """Numbers per example: depth (where all have one), log length, and 0 or 1 for each operation."""
    found: dict[str, NDArray[np.float64]] = {}
    if all(e.depth is not None for e in examples):
        found["depth"] = np.array([float(e.depth or 0) for e in examples])
    found["length"] = np.array([math.log(len(_prompt(e))) for e in examples])
    operations = dict.fromkeys(str(e.operation) for e in examples)
    for operation in operations if len(operations) > 1 else ():
        found[f"operation {operation}"] = np.array([float(str(e.operation) == operation) for e in examples])
    return found


def _balance(examples: Sequence[Example], pairs: Sequence[tuple[Example, Example]]) -> list[Balance]:
    """Standardized mean differences of all that varies, in standard deviations from before matching."""
    if not pairs:
        return []
    index = {e.case: i for i, e in enumerate(examples)}
    failed = np.array([e.group == "failure" for e in examples])
    sides = [[index[e.case] for e in side] for side in zip(*pairs, strict=True)]
    found = []
    for name, x in _covariates(examples).items():
        spread = math.sqrt((x[failed].var() + x[~failed].var()) / 2)
        if spread > 1e-12:
            before, after = x[failed].mean() - x[~failed].mean(), x[sides[0]].mean() - x[sides[1]].mean()
            found.append(Balance(name, float(before / spread), float(after / spread)))
    return found


def _differences(balance: Sequence[Balance], pairs: Sequence[tuple[Example, Example]]) -> dict[str, dict[str, float]]:
    """Covariates that are unbalanced after matching, the worst first: each pair's difference, by its failing case."""
    failures, successes = (list(side) for side in zip(*pairs, strict=True)) if pairs else ([], [])
    values = _covariates([*failures, *successes]) if pairs else {}
    worst = sorted((b for b in balance if abs(b.after) > BALANCED), key=lambda b: -abs(b.after))
    found = {}
    for name in (b.covariate for b in worst if b.covariate in values):
        apart = values[name][: len(pairs)] - values[name][len(pairs) :]
        found[name] = {f.case: float(d) for f, d in zip(failures, apart, strict=True)}
    return found
