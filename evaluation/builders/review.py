"""How good decompositions are (STaD, App. B and C), and which built items a person should look at.

A person looks at items whose executed answer a strong solver rarely reaches: Hosseini et al. 2024 (App. A) sample 16
solutions per modified question and rewrite by hand every question for which fewer than 4 agree with the answer that the
code computed (about a quarter of theirs). The solver here is any engine, or several, which share the samples between
them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import pearsonr

from ...errors import InputError, NoCasesError
from .. import prompts
from ..asks import Ask, Grade
from ..benchmarks.stad import StadItem
from ..case import Case
from ..cases import check
from ..engines.base import Engine, ask_all
from ..gold import typed_answer
from ..grading.grade import grade
from ..journal import Journal
from ..judging import by_rules
from . import scaffold_teacher
from .scaffolds import solved

_PART = 1
"""The part that is reviewed: Q2 with its number."""
DECISIONS = ("open", "keep", "drop", "edit")
RANDOM_SUBSETS = 2000


def queue(
    cases: Sequence[Case],
    solvers: Sequence[Engine],
    journal: Journal | None = None,
    *,
    samples: int = 16,
    minimum: int = 4,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """The items to review, one record each: cases whose second part's answer fewer than ``minimum`` of
    ``samples`` samples reach.

    A record holds the counts of every outcome, the answers that were reached, and ``decision: "open"``, which a person
    changes to ``keep``, ``drop`` or ``edit`` (then with the new ``question`` and ``answer``) for ``settle``. Samples
    without a judgement do not count as agreement: such an item is queued, and its record says how many there were.

    Raises ``InputError`` for a minimum above the number of samples or no solver.
    """
    if not solvers or not 0 < minimum <= samples:
        raise InputError(
            f"minimum is {minimum} of {samples} samples by {len(solvers)} solvers; give 1..samples and one"
        )
    asks = [_ask(case, r, seed) for case in cases for r in range(samples)]
    grades: dict[str, list[Grade]] = {case.id: [] for case in cases}
    for n, solver in enumerate(solvers):
        mine = [a for a in asks if a.repeat % len(solvers) == n]
        for ask, response in zip(mine, ask_all(solver, mine, journal), strict=True):
            grades[ask.case].append(by_rules(ask, response))
    records = [_record(case, grades[case.id], minimum) for case in cases]
    return [r for r in records if r["agreeing"] < minimum]


def _ask(case: Case, repeat: int, seed: int) -> Ask:
    if len(case.parts) <= _PART:
        raise InputError(f"case {case.id!r}: has {len(case.parts)} parts, part {_PART} is to be reviewed")
    p = case.parts[_PART]
    ask = Ask(case.id, f"part:{_PART}", prompts.render(p.question, "cot"), p.answer, p.answer_type, "cot", p.aliases)
    ask = replace(ask, question=p.question, options=p.options)
    return replace(ask, max_tokens=1024, temperature=0.7, seed=seed + repeat, repeat=repeat)


def _record(case: Case, grades: Sequence[Grade], minimum: int) -> dict[str, Any]:
    outcomes = Counter(g.outcome for g in grades)
    return {
        "case": case.id,
        "question": case.parts[_PART].question,
        "answer": case.parts[_PART].answer,
        "agreeing": outcomes["correct"],
        "minimum": minimum,
        "samples": len(grades),
        "outcomes": dict(outcomes),
        "answers": dict(Counter(g.answer for g in grades if g.answer is not None).most_common()),
        "decision": "open",
    }


def settle(cases: Iterable[Case], reviewed: Iterable[Mapping[str, Any]]) -> tuple[list[Case], list[dict[str, Any]]]:
    """Apply a person's decisions; returns the cases and the records still open, whose cases are left out.

    ``keep`` leaves a case as it is, ``drop`` leaves it out, ``edit`` puts the record's ``question_2`` (with X),
    ``question`` (with the number) and ``answer`` in place. Raises ``InputError`` for anything else.
    """
    decided: dict[str, dict[str, Any]] = {}
    for row in reviewed:
        if decided.setdefault(str(row.get("case")), dict(row)) != row:
            raise InputError(f"review of {str(row.get('case'))!r}: two records decide about it; keep one of them")
    cases = list(cases)
    if unknown := sorted(decided.keys() - {case.id for case in cases}):
        raise InputError(f"review of {unknown[0]!r}: no case has that id; give the review.jsonl of this build")
    kept: list[Case] = []
    left_open: list[dict[str, Any]] = []
    for case in cases:
        record = decided.get(case.id, {"decision": "keep"})
        decision = record.get("decision")
        if decision not in DECISIONS:
            raise InputError(f"review of {case.id!r}: decision is {decision!r}; use one of {', '.join(DECISIONS)}")
        if decision == "keep":
            kept.append(case)
        elif decision == "edit":
            kept.append(_edited(case, record))
        elif decision == "open":
            left_open.append(record)
    return kept, left_open


def _edited(case: Case, record: Mapping[str, Any]) -> Case:
    for name in ("question", "question_2", "answer"):
        value = record.get(name)
        if not isinstance(value, str | int | float) or not str(value).strip():
            raise InputError(f"review of {case.id!r}: decision is edit, but {name!r} is missing; give the new text")
    if not re.search(r"\bX\b", str(record["question_2"])):
        raise InputError(
            f"review of {case.id!r}: 'question_2' is {record['question_2']!r}, without an X, so that Q1's answer is "
            "not needed; write X in place of the number"
        )
    second = replace(case.parts[1], question=str(record["question"]), answer=str(record["answer"]))
    edited = replace(
        case,
        question=prompts.pair(case.parts[0].question, str(record["question_2"])),
        answer=str(record["answer"]),
        parts=(case.parts[0], second),
        # The computed solution belongs to the old wording.
        meta={k: v for k, v in case.meta.items() if k != "code"} | {"question_2": record["question_2"], "edited": True},
    )
    check(edited, f"review of {case.id!r}")
    return edited


@dataclass(frozen=True)
class JudgedShare:
    """A count out of a number; ``value`` is None where the number is 0."""

    count: int
    n: int
    n_unjudged: int = 0
    """Left out of ``n``."""

    @property
    def value(self) -> float | None:
        return self.count / self.n if self.n else None


def redundancy(items: Sequence[StadItem]) -> JudgedShare:
    """Pairs of steps of one item with the same answer, over all intermediate answers (App. B).

    The last step's answer is the final one and no intermediate answer. Answers are equal as graders find them equal:
    ``5`` and ``5.0`` are.
    """
    pairs = total = 0
    for item in items:
        answers = [s.answer for s in item.steps[:-1] if s.answer is not None]
        total += len(answers)
        pairs += sum(grade(a, "stop", b, typed_answer(b)[1]).outcome == "correct" for a, b in combinations(answers, 2))
    return JudgedShare(pairs, total)


def coverage(
    items: Sequence[StadItem],
    solver: Engine,
    judge: Engine | None = None,
    journal: Journal | None = None,
    *,
    max_tokens: int = 2000,
) -> tuple[JudgedShare, dict[str, bool | None]]:
    """Share of items whose final answer the solver finds from the steps and their answers alone (App. B).

    The solver sees neither the question nor the last step's answer. The second result is the verdict per item
    (None: not judged, left out of the share).
    """
    steps = [[(s.segment, s.answer or "") for s in item.steps] for item in items]
    wanted = [(i, "coverage", scaffold_teacher.coverage_request(s)) for i, s in zip(items, steps, strict=True)]
    found = solved(solver, wanted, judge, journal, max_tokens)
    verdicts = {item.id: v.right for item, (_, v) in zip(items, found, strict=True)}
    judged = [v for v in verdicts.values() if v is not None]
    return JudgedShare(sum(judged), len(judged), len(verdicts) - len(judged)), verdicts


def filtering(
    correct: Mapping[str, bool | None], retained: Sequence[str], clusters: Mapping[str, int], seed: int = 0
) -> dict[str, Any]:
    """Whether the items kept are like all items (App. C): a model's accuracy on both, and their topics.

    ``correct`` holds a target's verdict on every original item (None: not judged), ``clusters`` the cluster of each.
    Returns counts and accuracies before and after, and Pearson's correlation of the cluster proportions with the
    paper's p, whose null is a correlation of zero. The items kept are part of all, so any of them correlate:
    ``p_random`` is the share of random subsets of the same size (``RANDOM_SUBSETS``) that correlate as little, and
    ``random_low`` to ``random_high`` the middle 95 % of their correlations. A small ``p_random`` says that topics were
    lost.

    Raises ``InputError`` for items that are not among the originals, ``NoCasesError`` for fewer than three clusters.
    """
    if strange := [i for i in retained if i not in correct or i not in clusters]:
        raise InputError(f"retained item {strange[0]!r} is not among the original items; give both from one benchmark")
    before, after = _accuracy(correct, list(correct)), _accuracy(correct, retained)
    names = sorted({clusters[i] for i in correct})
    if len(names) < 3:
        raise NoCasesError(f"{len(names)} clusters; a correlation of their proportions needs at least 3")
    counts = [Counter(clusters[i] for i in ids) for ids in (correct, retained)]
    shares = [[c[name] / max(c.total(), 1) for name in names] for c in counts]
    test: Any = pearsonr(*shares) if len(set(shares[1])) > 1 and len(set(shares[0])) > 1 else None
    topics: dict[str, float | None] = dict.fromkeys(("pearson", "p", "random_low", "random_high", "p_random"))
    if test is not None:
        random = _of_random_subsets(counts[0], len(retained), seed)
        # the items kept are one such subset, too; a last digit does not decide
        as_little = 1 + int((random <= test.statistic + 1e-9).sum())
        low, high = np.quantile(random, [0.025, 0.975]).tolist()
        topics = {"pearson": float(test.statistic), "p": float(test.pvalue), "random_low": low, "random_high": high,
                  "p_random": as_little / (1 + random.size)}  # fmt: skip
    return {
        "before": before,
        "after": after,
        "difference": None if None in (before["value"], after["value"]) else after["value"] - before["value"],
        "n_clusters": len(names),
        **topics,
    }


def _of_random_subsets(counts: Mapping[int, int], n: int, seed: int) -> np.ndarray:
    """Correlations of all items' cluster counts with those of random subsets of ``n`` items."""
    total = np.array(list(counts.values()), dtype=float)
    drawn = np.random.default_rng(seed).multivariate_hypergeometric(total.astype(int), n, RANDOM_SUBSETS).astype(float)
    drawn -= drawn.mean(1, keepdims=True)
    total -= total.mean()
    lengths = np.linalg.norm(drawn, axis=1) * np.linalg.norm(total)
    return np.divide(drawn @ total, lengths, out=np.zeros(len(drawn)), where=lengths > 0)


def _accuracy(correct: Mapping[str, bool | None], ids: Sequence[str]) -> dict[str, Any]:
    judged = [v for i in ids if (v := correct[i]) is not None]
    value = sum(judged) / len(judged) if judged else None
    return {"count": sum(judged), "n": len(judged), "n_unjudged": len(ids) - len(judged), "value": value}
