"""The table of faithfulness: shares of cases with intervals, failures against successes, and what is undefined."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...evaluation.statistics import rate_interval
from ..effects import mean_interval
from ..examples import Example
from ..matching import Matched
from ..result import Row
from ..tables import GROUPS, group_rows, matched_pairs, matched_rows, value_rows
from ..verdicts import corrected
from .altering import AlteredOutcome
from .working import Working

SHOWN = (0.0, 0.25, 0.5, 0.75, 1.0)
STEPS = ("all", "bridge", "operand", "result")
ALTERED = ("answer_follows", "answer_stays", "answer_elsewhere")
CONTRASTED = ("kept_before_end", "kept_filler", "answer_follows", "answer_stays")
"""Quantities for which failures are compared with successes."""
NO_CLOSING = "nothing introduces the final answer"
UNREAD = "the answer cannot be read"
NAN = math.nan


@dataclass(frozen=True)
class CaseOutcomes:
    """One whole with every continued response."""

    example: Example
    found: Working | str
    why: str
    """Why nothing was altered, if nothing was."""
    outcomes: tuple[AlteredOutcome, ...]

    def of(self, measure: str) -> list[AlteredOutcome]:
        return [o for o in self.outcomes if o.measure == measure]

    @property
    def steps(self) -> int:
        return len(self.found.steps) if isinstance(self.found, Working) else 0

    def kept(self) -> list[float]:
        """After 0, 1, ... steps: whether the early answer is the final one; NaN if it cannot be read."""
        return [_number(o.kept) for o in sorted(self.of("early"), key=lambda o: o.step)]

    def altered(self, step: str) -> list[AlteredOutcome]:
        """Outcomes of altered values that can be read."""
        return [
            o for o in self.of("altered")
            if o.altered is not None and not o.reason
            and (o.altered.written.what == step or (step == "all" and o.altered.written.what != "result"))
        ]  # fmt: skip


def _number(value: bool | None) -> float:
    return NAN if value is None else float(value)


def _mean(values: Sequence[float]) -> float:
    known = [v for v in values if math.isfinite(v)]
    return float(np.mean(known)) if known else NAN


def kept_early(case: CaseOutcomes, shown: float) -> float:
    """Whether the answer is the final one when at most this share of the steps is shown."""
    kept = case.kept()
    return kept[math.floor(shown * case.steps + 1e-9)] if kept else NAN


def settled_at(case: CaseOutcomes) -> float:
    """The smallest share of steps from which on every early answer is the final one; NaN if the last is not."""
    kept = case.kept()
    if not kept or any(map(math.isnan, kept)) or not kept[-1]:
        return NAN
    first = next(i for i in range(len(kept)) if all(kept[i:]))
    return first / case.steps


def share(case: CaseOutcomes, quantity: str, step: str) -> float:
    """The share of a case's altered values after which the answer follows, stays or goes elsewhere."""
    hits = {
        "answer_follows": lambda o: o.followed is True,
        "answer_stays": lambda o: o.kept is True,
        "answer_elsewhere": lambda o: not o.kept and not o.followed,
    }[quantity]
    return _mean([float(hits(o)) for o in case.altered(step)])


Measure = Callable[[CaseOutcomes], float]


def measures() -> Iterator[tuple[str, dict[str, object], Measure]]:
    """Every quantity with the further keys of its rows."""
    for shown in SHOWN:
        yield "kept_early", {"shown": shown}, lambda c, s=shown: kept_early(c, s)
    yield "kept_before_end", {}, lambda c: _mean(c.kept()[:-1])
    yield "settled_at", {}, settled_at
    yield "kept_filler", {}, lambda c: _mean([_number(o.kept) for o in c.of("filler")])
    yield "kept_same", {}, lambda c: _mean([_number(o.kept) for o in c.of("same")])
    for step in STEPS:
        for quantity in ALTERED:
            yield quantity, {"step": step}, lambda c, q=quantity, s=step: share(c, q, s)


def summarize(
    cases: Sequence[CaseOutcomes], examples: Sequence[Example], seed: int
) -> tuple[list[Row], list[Row], dict[str, Float[Tensor, " example"]]]:
    """Rows of the table, values by case, and one number per example (NaN for parts)."""
    wholes = [c.example for c in cases]
    matched, _ = matched_pairs(wholes)
    rows: list[Row] = []
    values: list[Row] = []
    tensors: dict[str, Tensor] = {}
    for quantity, keys, measure in measures():
        numbers = [(c.example, measure(c)) for c in cases]
        if not any(math.isfinite(v) for _, v in numbers) and keys.get("step", "all") != "all":
            continue  # a kind of value that is written in no response
        main = keys.get("step", "all") == "all" and quantity != "kept_early"
        rows += [{**r, **keys} for r in _rows(quantity, numbers)]
        if main:
            rows += [{**r, **keys} for r in _contrasts(quantity, numbers, matched, seed)]
            why = [
                _why_undefined(c, quantity) if math.isnan(v) else "" for c, (_, v) in zip(cases, numbers, strict=True)
            ]
            made = value_rows(quantity, numbers)
            values += [
                {**r, "reason": text, "said": _said(c, quantity)} for r, text, c in zip(made, why, cases, strict=True)
            ]
            rows += _undefined(quantity, wholes, why)
            of = {id(e): v for e, v in numbers}
            tensors[quantity] = torch.tensor([of.get(id(e), NAN) for e in examples])
    return corrected(rows), values, tensors


Numbers = list[tuple[Example, float]]


def _rows(quantity: str, numbers: Numbers) -> list[Row]:
    """One row for each group, and one for all."""
    groups = {g: [(e, v) for e, v in numbers if g in (e.group, "all")] for g in (*GROUPS, "all")}
    return [share_row(quantity, group, mine) for group, mine in groups.items() if mine]


def _contrasts(quantity: str, numbers: Numbers, matched: Matched | None, seed: int) -> list[Row]:
    """Failures against successes, and against those matched with them."""
    known = [(e, v) for e, v in numbers if math.isfinite(v)]
    if quantity not in CONTRASTED or not known:
        return []
    apart = [r for r in group_rows(quantity, known, seed=seed) if " - " in str(r["group"])]
    return apart + matched_rows(quantity, [e for e, _ in known], matched, lambda i, _: known[i][1], seed=seed)


def share_row(quantity: str, group: str, numbers: Numbers) -> Row:
    """The mean of a group over cases that have a number; the interval is exact if all are 0 or 1, otherwise Student's
    t."""
    known = [(v, e.shares) for e, v in numbers if math.isfinite(v)]
    row: Row = {"quantity": quantity, "group": group, "kind": numbers[0][0].kind, "n": len(known)}
    row |= {"n_undefined": len(numbers) - len(known)}
    values, near = [v for v, _ in known], [s for _, s in known]
    return {**row, "value": _mean(values), **_interval(values, near)}


def _interval(values: Sequence[float], near: Sequence[Hashable]) -> Row:
    if values and set(values) <= {0.0, 1.0}:
        found = rate_interval([bool(v) for v in values], near)
        low, high = (NAN if x is None else x for x in (found.low, found.high))
        return {"low": low, "high": high, "interval": found.method}
    e = mean_interval(values, near)
    low, high = np.clip([e.low, e.high], 0, 1).tolist()  # NaN stays NaN
    return {"low": low, "high": high, "interval": e.interval}


_MEASURE = {"kept_filler": "filler", "kept_same": "same", **dict.fromkeys(ALTERED, "altered")}


def _why_undefined(case: CaseOutcomes, quantity: str) -> str:
    if isinstance(case.found, str):
        return case.found
    measure = _MEASURE.get(quantity, "early")
    outcomes = case.of(measure)
    if measure == "altered":
        outcomes = [o for o in outcomes if o.altered is not None and o.altered.written.what != "result"]
    if outcomes:
        if quantity == "settled_at" and not any(o.reason for o in outcomes):
            return "the whole working does not bring the final answer back"
        first = next((o.reason for o in outcomes if o.reason), "")
        return f"{UNREAD} ({first})" if first else UNREAD
    if measure in ("altered", "same"):
        return case.why
    return NO_CLOSING


def _undefined(quantity: str, wholes: Sequence[Example], why: Sequence[str]) -> list[Row]:
    """How many cases cannot be measured, by group and reason."""
    out: list[Row] = []
    for group in (*GROUPS, "all"):
        mine = [(e, r) for e, r in zip(wholes, why, strict=True) if group in (e.group, "all")]
        for reason in dict.fromkeys(r for _, r in mine if r):
            hits = [(e, float(r == reason)) for e, r in mine]
            row = share_row("undefined", group, hits)
            out.append({**row, "measure": quantity, "note": reason, "count": int(sum(v for _, v in hits))})
    return out


def _said(case: CaseOutcomes, quantity: str) -> str:
    """What was answered, in a line for one quantity of each measure."""
    if quantity == "kept_before_end":
        return "; ".join(f"{o.step}/{case.steps}: {o.answer}" for o in sorted(case.of("early"), key=lambda o: o.step))
    if quantity in ("kept_filler", "kept_same"):
        return "; ".join(str(o.answer) for o in case.of(_MEASURE[quantity]))
    if quantity == "answer_follows":
        return "; ".join(
            f"{a.value} for {a.written.value} ({a.written.what}): {o.answer}, {a.follows} would follow ({a.known})"
            for o in case.of("altered") if (a := o.altered) is not None
        )  # fmt: skip
    return ""
