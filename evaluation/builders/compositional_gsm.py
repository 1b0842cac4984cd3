"""Builds a Compositional GSM benchmark from items with code-form solutions (Hosseini et al. 2024, section 2, App. A).

A pair is two items: the answer of the first, X, takes the place of one number of the second. The second item's code is
run with X, and the pair is kept only if the new answer is a different positive integer near the old one. The paper
says no more than that; what "near" and "sensible" mean here is in ``Rules``. The program of a pair, in which the first
solution gives X to the second, is run too and must come to the pair's answer. Every candidate that was tried and not
taken is returned with its reason. Without a model nothing is random but the order of tries, which follows ``seed``.
"""

import ast
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import ks_2samp

from ...errors import InputError, NoCasesError
from ...terminal import tick
from .. import prompts
from ..case import Case, Part
from ..protocols.reasoning_gap import co_present
from ..sandbox import CodeResult, Limits, run_code
from .code_items import CodeItem, ReplaceableNumber, has_x, slots, whole, with_constant, with_mention

_FORBIDDEN = 1e6
LIMITS = Limits(seconds=0.5)
"""For one solution: a replaced number can make its loop endless."""


@dataclass(frozen=True)
class Rules:
    """What a candidate must satisfy."""

    max_ratio: float = 5.0
    """The new answer is at most this many times larger or smaller than the old one."""
    max_constant_ratio: float = 10.0
    """The same limit for X and the number that it replaces: 4,000 eggs for breakfast are not plausible."""
    plausible_steps: bool = True
    """No variable turns negative, or fractional, that was not so before."""
    tries: int = 24
    """First questions tried for each number of a second question."""

    def __post_init__(self) -> None:
        for name in ("max_ratio", "max_constant_ratio"):
            if not (math.isfinite(value := getattr(self, name)) and value > 1):
                raise InputError(f"{name} {value:g}: give a number above 1")
        if self.tries < 1:
            raise InputError(f"tries {self.tries}: give a number of at least 1")


@dataclass(frozen=True)
class CandidatePair:
    """A pair of items that satisfies the rules."""

    first: CodeItem
    second: CodeItem
    slot: ReplaceableNumber
    answer: int

    @property
    def cost(self) -> float:
        """How far the answer moved, in powers of ten."""
        return abs(math.log10(self.answer / self.second.answer))

    @property
    def names(self) -> dict[str, Any]:
        return {"q1": self.first.id, "q2": self.second.id, "constant": self.slot.value, "x": self.first.answer}


@dataclass(frozen=True)
class Built:
    """The benchmark, everything that was left out, and how well the answers' magnitudes match."""

    cases: list[Case]
    rejected: list[dict[str, Any]]
    """One record per candidate not taken: what it was, ``stage`` and ``reason``."""
    magnitude: dict[str, Any] = field(default_factory=dict)
    """Two-sample Kolmogorov-Smirnov statistic and p-value between log10 answers of pairs and of all items."""


def build(items: Sequence[CodeItem], size: int | None = None, seed: int = 0, rules: Rules | None = None) -> Built:
    """Make pairs from ``items``: each item is at most once a first and at most once a second question.

    ``size`` pairs are drawn so that their answers' magnitudes are distributed as the items' answers (None: as many as
    allow it up to 5 % of them). Equal arguments give equal results.

    Raises ``NoCasesError`` if fewer than ``size`` pairs, or none, satisfy the rules.
    """
    rules = rules or Rules()
    if not items:
        raise NoCasesError("no item can be used; give items whose code comes to their answer")
    rng = random.Random(seed)
    candidates, rejected = _candidates(items, rng, rules)
    pairs, spare, failed = _pairs(candidates)
    rejected += failed
    rejected += [{**c.names, "answer": c.answer, "stage": "pairing", "reason": "another-pair-chosen"} for c in spare]
    chosen, surplus = _match_magnitudes(pairs, [i.answer for i in items], size, rng)
    rejected += [{**c.names, "answer": c.answer, "stage": "magnitude", "reason": "quota-full"} for c in surplus]
    if not chosen:
        raise NoCasesError(f"none of {len(items)} items makes a pair; give more items or wider rules ({rules})")
    # Each Q2 also gets another pair's Q1, on which it does not depend: the capacity control (figure 12).
    cases = co_present([as_case(c) for c in chosen], seed)
    return Built(cases, rejected, _comparison(chosen, items))


def _candidates(
    items: Sequence[CodeItem], rng: random.Random, rules: Rules
) -> tuple[list[CandidatePair], list[dict[str, Any]]]:
    found: list[CandidatePair] = []
    rejected: list[dict[str, Any]] = [
        {"q1": i.id, "stage": "first", "reason": "question-has-x"} for i in items if has_x(i)
    ]
    givers = [i for i in items if not has_x(i)]
    for second in items:
        tick(1)
        usable, refused = slots(second)
        rejected += [{"q2": second.id, "stage": "number", **r} for r in refused]
        before = run_code(second.code, limits=LIMITS, variables=True)
        for slot in usable:
            for first in _firsts(givers, second, slot, rng, rules):
                outcome = _try(first, second, slot, before, rules)
                if isinstance(outcome, CandidatePair):
                    found.append(outcome)
                else:
                    names = {"q1": first.id, "q2": second.id, "constant": slot.value, "x": first.answer}
                    rejected.append({**names, "stage": "execution", **outcome})
    return found, rejected


def _firsts(
    items: Sequence[CodeItem], second: CodeItem, slot: ReplaceableNumber, rng: random.Random, rules: Rules
) -> list[CodeItem]:
    """First questions worth trying: their answer is near the number that it is to replace."""
    limit = math.log(rules.max_constant_ratio)
    near = [i for i in items if i.id != second.id and slot.value > 0 and abs(math.log(i.answer / slot.value)) <= limit]
    return rng.sample(near, min(rules.tries, len(near)))


def _try(
    first: CodeItem, second: CodeItem, slot: ReplaceableNumber, before: CodeResult, rules: Rules
) -> CandidatePair | dict[str, Any]:
    """The candidate, or the reason why these items do not make one."""
    if first.answer == slot.value:
        return {"reason": "same-number"}
    changed = with_constant(second.code, slot, str(first.answer))
    after = run_code(changed, limits=LIMITS, variables=True)
    if not after.ok:
        return {"reason": f"code-{after.reason}", "detail": after.detail}
    answer = whole(after.value)
    if answer is None:
        return {"reason": "no-integer", "answer": after.value}
    if answer < 1:
        return {"reason": "not-positive", "answer": answer}
    if answer == second.answer:
        return {"reason": "answer-unchanged", "answer": answer}
    if max(answer, second.answer) > rules.max_ratio * min(answer, second.answer):
        return {"reason": "answer-too-far", "answer": answer}
    if rules.plausible_steps and (step := _implausible(before, after)):
        return {"reason": "implausible-step", "answer": answer, "detail": step}
    return CandidatePair(first, second, slot, answer)


def _implausible(before: CodeResult, after: CodeResult) -> str | None:
    """A variable that is no longer a natural number (half a person, minus three eggs)."""
    for name, old in before.variables.items():
        new = after.variables.get(name)
        if isinstance(old, int | float) and isinstance(new, int | float) and not isinstance(new, bool):
            if old >= 0 > new or (whole(old) is not None and whole(new) is None):
                return f"{name} is {new}"
    return None


def _pairs(candidates: list[CandidatePair]) -> tuple[list[CandidatePair], list[CandidatePair], list[dict[str, Any]]]:
    """The best pairs whose joint programs come to their answers, the candidates left over, and those that failed.

    Only programs of chosen pairs are run: where one fails its pair is struck out, and pairs are chosen again.
    """
    sound: set[int] = set()
    rejected: list[dict[str, Any]] = []
    while True:
        pairs, spare = _assign(candidates)
        failed: dict[int, dict[str, Any]] = {}
        for c in pairs:
            if id(c) not in sound:
                problem = _joint_problem(c)
                if problem is None:
                    sound.add(id(c))
                else:
                    failed[id(c)] = {**c.names, "stage": "joint", **problem}
        if not failed:
            return pairs, spare, rejected
        rejected += failed.values()
        candidates = [c for c in candidates if id(c) not in failed]


def _joint_problem(c: CandidatePair) -> dict[str, Any] | None:
    """Why the program of a pair fails: it does not run, or its result is not the pair's answer; else None."""
    result = run_code(pair_code(c), limits=replace(LIMITS, seconds=2 * LIMITS.seconds))
    if not result.ok:
        return {"reason": f"code-{result.reason}", "detail": result.detail}
    if whole(result.value) != c.answer:
        return {"reason": "joint-answer-differs", "answer": c.answer, "detail": f"the program came to {result.text}"}
    return None


def _assign(candidates: Sequence[CandidatePair]) -> tuple[list[CandidatePair], list[CandidatePair]]:
    """As many pairs as possible, and among these the ones whose answers moved least."""
    if not candidates:
        return [], []
    firsts = {i: n for n, i in enumerate(dict.fromkeys(c.first.id for c in candidates))}
    seconds = {i: n for n, i in enumerate(dict.fromkeys(c.second.id for c in candidates))}
    cost = np.full((len(firsts), len(seconds)), _FORBIDDEN)
    best: dict[tuple[int, int], CandidatePair] = {}
    for c in candidates:
        place = (firsts[c.first.id], seconds[c.second.id])
        if c.cost < cost[place]:
            cost[place], best[place] = c.cost, c
    rows, columns = linear_sum_assignment(cost)
    chosen = [best[p] for p in zip(rows.tolist(), columns.tolist(), strict=True) if p in best]
    taken = {id(c) for c in chosen}
    return chosen, [c for c in candidates if id(c) not in taken]


def _match_magnitudes(
    pairs: Sequence[CandidatePair], answers: Sequence[int], size: int | None, rng: random.Random
) -> tuple[list[CandidatePair], list[CandidatePair]]:
    """Draw pairs so that each quantile bin of the items' answers (at most ten) has its share."""
    if size is not None and (size < 1 or size > len(pairs)):
        raise NoCasesError(f"size is {size}, but {len(pairs)} pairs satisfy the rules; give 1 to {len(pairs)}")
    edges = np.unique(np.quantile(answers, np.linspace(0, 1, 1 + min(10, max(1, len(answers) // 20)))))[1:-1]
    shares = np.bincount(np.digitize(answers, edges), minlength=len(edges) + 1) / len(answers)
    bins: list[list[CandidatePair]] = [[] for _ in shares]
    for pair in rng.sample(list(pairs), len(pairs)):
        bins[int(np.digitize(pair.answer, edges))].append(pair)
    counts = np.array([len(b) for b in bins])
    total = size or _largest_match(shares, counts)
    wanted = np.minimum(_quotas(shares, total), counts)
    while wanted.sum() < total:
        # A bin without enough pairs leaves its share to the bins that are relatively emptiest.
        room = np.where(wanted < counts, wanted / np.maximum(shares, 1e-9), np.inf)
        wanted[int(np.argmin(room))] += 1
    chosen = [c for b, n in zip(bins, wanted.tolist(), strict=True) for c in b[:n]]
    surplus = [c for b, n in zip(bins, wanted.tolist(), strict=True) for c in b[n:]]
    return sorted(chosen, key=lambda c: (c.second.id, c.first.id)), surplus


def _largest_match(shares: np.ndarray, counts: np.ndarray) -> int:
    """The most pairs of which at most 5 % are in another bin than they should be."""
    for total in range(int(counts.sum()), 1, -1):
        if np.maximum(_quotas(shares, total) - counts, 0).sum() <= 0.05 * total:
            return total
    return min(1, int(counts.sum()))


def _quotas(shares: np.ndarray, total: int) -> np.ndarray:
    """Whole numbers that add up to ``total`` in these shares (largest remainder)."""
    exact = shares * total
    quotas = np.floor(exact).astype(int)
    order = np.argsort(quotas - exact, kind="stable")
    quotas[order[: total - quotas.sum()]] += 1
    return quotas


def _comparison(chosen: Sequence[CandidatePair], items: Sequence[CodeItem]) -> dict[str, Any]:
    test: Any = ks_2samp(np.log10([c.answer for c in chosen]), np.log10([i.answer for i in items]))
    return {
        "test": "ks_2samp of log10 answers",
        "n_pairs": len(chosen),
        "n_items": len(items),
        "statistic": float(test.statistic),
        "p": float(test.pvalue),
        "median_pairs": float(np.median([c.answer for c in chosen])),
        "median_items": float(np.median([i.answer for i in items])),
    }


def as_case(c: CandidatePair) -> Case:
    """The pair as a case: parts are Q1 and Q2 with the number in place of X, the whole is the pair."""
    with_x = with_mention(c.second.question, c.slot, "X")
    with_number = with_mention(c.second.question, c.slot, str(c.first.answer))
    return Case(
        id=f"{c.first.id}+{c.second.id}",
        question=prompts.pair(c.first.question, with_x),
        answer=str(c.answer),
        answer_type="number",
        parts=(
            Part(c.first.question, str(c.first.answer), "math", "number"),
            Part(with_number, str(c.answer), "math", "number"),
        ),
        benchmark="compositional-gsm",
        depth=2,
        cluster=c.second.id,
        meta={
            "protocol": "reasoning-gap",
            "question_2": with_x,
            "x": c.first.answer,
            "constant": c.slot.value,
            "original": {"q1": c.first.id, "q2": c.second.id, "question": c.second.question, "answer": c.second.answer},
            "code": pair_code(c),
            "crossed": c.first.id,  # which may be the second item of another pair
        },
    )


def pair_code(c: CandidatePair) -> str:
    """The pair's solution in code: ``solve_q1`` gives X, ``solution`` uses it (App. F)."""
    first = c.first.code.replace("def solution(", "def solve_q1(", 1)
    second = with_constant(c.second.code, c.slot, "X")
    function = next(n for n in ast.parse(second).body if isinstance(n, ast.FunctionDef) and n.name == "solution")
    lines, start = second.split("\n"), function.body[0]
    line = lines[start.lineno - 1].encode()
    before, rest = line[: start.col_offset].decode(), line[start.col_offset :].decode()
    # A body on its own line keeps its indentation; a body after the colon gets one more statement.
    lines[start.lineno - 1] = (
        f"{before}X = solve_q1(); {rest}" if before.strip() else f"{before}X = solve_q1()\n{line.decode()}"
    )
    return f"{first}\n" + "\n".join(lines)
