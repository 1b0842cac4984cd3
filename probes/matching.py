"""Failures matched to successes that ask for the same: same family, depth and operation, and about the same length."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..errors import InputError
from .effects import smallest_detectable
from .examples import Example

FIELDS = ("family", "depth", "operation")


@dataclass(frozen=True)
class Stratum:
    """Cases that agree in the matching fields."""

    key: tuple[Any, ...]
    failures: int
    successes: int
    pairs: int
    """Matched within the length caliper; 0 for a dropped stratum."""


@dataclass(frozen=True)
class Matched:
    """Matched failures and successes, the strata they came from and what was left out."""

    pairs: tuple[tuple[str, str], ...]
    """Case ids (failure, success)."""
    examples: tuple[Example, ...]
    """Every role of the matched cases."""
    strata: tuple[Stratum, ...]
    on: tuple[str, ...]
    caliper: float

    @property
    def possible(self) -> bool:
        """Whether there is common support enough for a contrast (two pairs)."""
        return len(self.pairs) >= 2

    @property
    def note(self) -> str:
        """One sentence for tables and reports: pairs, strata dropped, cases left out, what a null would exclude."""
        dropped = [s for s in self.strata if not s.pairs]
        failures, successes = sum(s.failures for s in self.strata), sum(s.successes for s in self.strata)
        text = (
            f"{len(self.pairs)} of {failures} failures matched to {successes} successes on {', '.join(self.on)} and"
            f" length (within {self.caliper:.0%}); {len(dropped)} of {len(self.strata)} strata dropped"
        )
        if not self.possible:
            return f"no contrast possible: {text}"
        return f"{text}; smallest detectable effect {smallest_detectable(len(self.pairs), len(self.pairs)):.2f} sd"


def check_templates(examples: Sequence[Example], notes: list[str] | None = None) -> None:
    """That all prompts end alike, so that their last positions can be compared and exchanged.

    Raises ``InputError`` where the templates' generation prompts (``cue_tokens``) differ. Their first token is not
    compared, since a tokenizer may have merged the question's end into it; where nothing else is left, different last
    tokens are said in ``notes``.
    """
    if not examples:
        return
    size = min(e.cue_tokens for e in examples) - 1
    seen: dict[tuple[int, ...], Example] = {}
    for e in examples:
        kind = (int(e.cue_tokens > 0),)  # chat or raw
        seen.setdefault((*kind, *(e.prompt_ids[-size:] if size > 0 else ())), e)
    if len(seen) > 1:
        a, b = list(seen.values())[:2]
        ends = [list(e.prompt_ids[len(e.prompt_ids) - max(1, e.cue_tokens) :]) for e in (a, b)]
        raise InputError(
            f"{a.group} {a.case!r} and {b.group} {b.case!r} have different templates: their prompts end with token ids"
            f" {ends[0]} and {ends[1]}; ask all cases with one prompt format"
        )
    last = {e.prompt_ids[-1] for e in examples}
    if len(last) > 1 and notes is not None:
        notes.append(f"prompts end with {len(last)} different tokens: states at their ends are not of the same token")


def match(
    examples: Sequence[Example], *, on: Sequence[str] = FIELDS, caliper: float = 0.1, role: str = "whole"
) -> Matched:
    """Pair failures with successes one to one, within strata, closest in prompt length first.

    Cases are matched on the example of ``role``; every role of a matched case is kept. Within a stratum the assignment
    has as many pairs as possible whose lengths differ by at most ``caliper`` of the longer one (or one token), and
    among those the smallest total difference. The answer may be that no contrast is possible (``Matched.possible``).
    Raises ``InputError`` for an unknown field, when no example has the role, for a case that has it twice, and for
    prompts of different templates.
    """
    unknown = [name for name in on if name not in Example.__dataclass_fields__]
    if unknown:
        raise InputError(f"cannot match on {unknown}; use fields of Example such as {', '.join(FIELDS)}")
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
    pairs: list[tuple[str, str]] = []
    rows: list[Stratum] = []
    for key in sorted(strata, key=repr):
        failures, successes = strata[key]["failure"], strata[key]["success"]
        found = _assign(failures, successes, caliper)
        pairs += found
        rows.append(Stratum(key, len(failures), len(successes), len(found)))
    kept = {case for pair in pairs for case in pair}
    return Matched(tuple(pairs), tuple(e for e in examples if e.case in kept), tuple(rows), tuple(on), caliper)


def _assign(failures: Sequence[Example], successes: Sequence[Example], caliper: float) -> list[tuple[str, str]]:
    if not failures or not successes:
        return []
    a, b = (np.array([len(e.prompt_ids) for e in side], dtype=float) for side in (failures, successes))
    gap = np.abs(a[:, None] - b[None])
    allowed = gap <= np.maximum(1.0, caliper * np.maximum(a[:, None], b[None]))
    cost = np.where(allowed, gap, 1e3 * (1 + gap.max()) * (1 + min(len(a), len(b))))
    rows, columns = linear_sum_assignment(cost)
    return [(failures[i].case, successes[j].case) for i, j in zip(rows, columns, strict=True) if allowed[i, j]]
