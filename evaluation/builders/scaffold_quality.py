"""How good decompositions are, and whether filtering changed the benchmark (STaD, App. B and C)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from scipy.stats import pearsonr

from ...errors import InputError, NoCasesError
from .. import prompts
from ..asks import Ask
from ..benchmarks.stad import StadItem
from ..engines.base import Engine, ask_all
from ..grading.grade import grade
from ..journal import Journal
from ..judging import AnswerToJudge, agree
from . import scaffold_requests as requests


@dataclass(frozen=True)
class Share:
    """A count out of a number; ``value`` is None where the number is 0."""

    count: int
    n: int
    n_unjudged: int = 0
    """Left out of ``n``."""

    @property
    def value(self) -> float | None:
        return self.count / self.n if self.n else None


def redundancy(items: Sequence[StadItem]) -> Share:
    """Pairs of steps of one item with the same answer, over all intermediate answers (App. B).

    The last step's answer is the final one and no intermediate answer. Answers are equal as graders find them equal:
    ``5`` and ``5.0`` are.
    """
    pairs = total = 0
    for item in items:
        answers = [s.answer for s in item.steps[:-1] if s.answer is not None]
        total += len(answers)
        pairs += sum(grade(a, "stop", b, _kind(b)).outcome == "correct" for a, b in combinations(answers, 2))
    return Share(pairs, total)


def _kind(answer: str) -> str:
    from ..gold import typed_answer

    return typed_answer(answer)[1]


def coverage(
    items: Sequence[StadItem],
    solver: Engine,
    judge: Engine | None = None,
    journal: Journal | None = None,
    *,
    max_tokens: int = 2000,
) -> tuple[Share, dict[str, bool | None]]:
    """Share of items whose final answer the solver finds from the steps and their answers alone (App. B).

    The solver sees neither the question nor the last step's answer. The second result is the verdict per item
    (None: not judged, left out of the share).
    """
    asks = [
        Ask(
            case=item.id,
            role="coverage",
            prompt=prompts.render(requests.coverage_request([(s.segment, s.answer or "") for s in item.steps]), "cot"),
            gold=item.answer,
            answer_type=item.answer_type,
            format="cot",
            max_tokens=max_tokens,
        )
        for item in items
    ]
    responses = ask_all(solver, asks, journal)
    rows = [
        AnswerToJudge(i.id, "coverage", i.question, i.answer, i.answer_type, r.text, "cot", r.finish_reason)
        for i, r in zip(items, responses, strict=True)
    ]
    verdicts = {row.case: v.right for row, v in zip(rows, agree(rows, judge, journal), strict=True)}
    judged = [v for v in verdicts.values() if v is not None]
    return Share(sum(judged), len(judged), len(verdicts) - len(judged)), verdicts


def filtering(
    correct: Mapping[str, bool | None], retained: Sequence[str], clusters: Mapping[str, int]
) -> dict[str, Any]:
    """Whether the items kept are like all items (App. C): a model's accuracy on both, and their topics.

    ``correct`` holds a target's verdict on every original item (None: not judged), ``clusters`` the cluster of each.
    Returns counts and accuracies before and after, and Pearson's correlation of the cluster proportions.

    Raises ``InputError`` for items that are not among the originals, ``NoCasesError`` for fewer than three clusters.
    """
    if strange := [i for i in retained if i not in correct or i not in clusters]:
        raise InputError(f"retained item {strange[0]!r} is not among the original items; give both from one benchmark")
    before, after = _accuracy(correct, list(correct)), _accuracy(correct, retained)
    names = sorted({clusters[i] for i in correct})
    if len(names) < 3:
        raise NoCasesError(f"{len(names)} clusters; a correlation of their proportions needs at least 3")
    shares = [_proportions(ids, clusters, names) for ids in (list(correct), retained)]
    test: Any = pearsonr(*shares) if len(set(shares[1])) > 1 and len(set(shares[0])) > 1 else None
    return {
        "before": before,
        "after": after,
        "difference": None if None in (before["value"], after["value"]) else after["value"] - before["value"],
        "n_clusters": len(names),
        "pearson": None if test is None else float(test.statistic),
        "p": None if test is None else float(test.pvalue),
    }


def _accuracy(correct: Mapping[str, bool | None], ids: Sequence[str]) -> dict[str, Any]:
    judged = [v for i in ids if (v := correct[i]) is not None]
    value = sum(judged) / len(judged) if judged else None
    return {"count": sum(judged), "n": len(judged), "n_unjudged": len(ids) - len(judged), "value": value}


def _proportions(ids: Sequence[str], clusters: Mapping[str, int], names: Sequence[int]) -> list[float]:
    counts = Counter(clusters[i] for i in ids)
    return [counts[n] / max(len(ids), 1) for n in names]
