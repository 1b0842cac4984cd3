"""Analyses of STaD: the skills that limit a model, and whether the teacher or the filtering matters."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy import stats

from ...errors import InputError, NoCasesError
from .. import dependence, statistics
from ..benchmarks.stad import StadItem
from ..builders.review import filtering
from ..metrics import Metric
from ..protocols import counting
from ..protocols.base import check_needed
from ..protocols.scaffolding import Scaffolded, over_k, unsettled
from ..skills import cluster, embed, teacher_agreement
from .base import Analysis, Source, first_repeats


def scaffolded_items(source: Source) -> list[Scaffolded]:
    """Every item of a run with its minimum scaffolding."""
    return [Scaffolded.of(item, source.cases) for item in counting.items(source.rows)]


def bottlenecks_by_size(sources: Sequence[Source]) -> Analysis:
    """Of the items with k > 0 and known skills, the share whose bottleneck is 1, 2 or at least 3 different skills.

    Items with an open k that may have a bottleneck stay out of the shares, are counted and enter the bounds. Raises
    ``InputError`` for rows of another protocol.
    """
    metrics: list[Metric] = []
    rows, warnings = [], []
    for source in sources:
        check_needed(source.rows, "scaffolding", source.name)
        items = scaffolded_items(source)
        warnings += _unsettled(source, items)
        known = [s for s in items if s.bottleneck is not None]
        sizes = {str(s.bottleneck): len(s.limiting) for s in known}
        n_open = sum(s.k is None and any(map(s.revealed, s.possible)) for s in items)
        group = {"model": source.name} if len(sources) > 1 else {}
        for label, size in (("1", 1), ("2", 2), (">=3", 3)):

            def of_size(s: Scaffolded, k: int, size: int = size) -> counting.Truth | Literal["outside"]:
                return min(len(skills), 3) == size if (skills := s.revealed(k)) else "outside"

            values: list[counting.Truth] = [min(len(s.limiting), 3) == size for s in known]
            share = counting.rate("bottleneck_size", values, {**group, "skills": label}, of=[s.item for s in known])
            ends = counting.given("", [over_k(s, of_size) for s in items], [s.item for s in items], {})
            metrics.append(replace(share, n_invalid=n_open, bound_low=ends.bound_low, bound_high=ends.bound_high))
        for name, count in Counter(str(s.bottleneck) for s in known).most_common():
            rows.append({"model": source.name, "skills": sizes[name], "bottleneck": name, "count": count})
    return Analysis("bottleneck-sizes", tuple(metrics), {"bottlenecks": rows}, warnings=tuple(warnings))


def _unsettled(source: Source, items: Sequence[Scaffolded]) -> list[str]:
    return [f"{source.name}: {said}" for said in unsettled(items)]


def skills_in_context(sources: Sequence[Source]) -> Analysis:
    """For each skill: accuracy on its sub-tasks alone, and in how many bottlenecks it is (of the items with k > 0).

    ``gap`` = isolated accuracy - (1 - bottleneck share): large where a skill is present alone but has to be supplied
    in context ("present but fails in context"). Per model also Spearman's correlation of the two over skills, without
    a p: skills that are needed in the same items vary together.
    """
    warnings: list[str] = []
    tables: dict[str, list[Mapping[str, Any]]] = {"skills": [], "correlation": []}
    for source in sources:
        items = scaffolded_items(source)
        warnings += _unsettled(source, items)
        needed = [(set(s.skills), set(s.skills[: s.k])) for s in items if s.k is not None and s.k > 0 and s.skills]
        isolated: dict[str, list[tuple[bool, Hashable]]] = {}
        for s in items:
            for i, skill in enumerate(s.skills):
                value = s.item.truth(f"part:{i}")
                known = [] if value is None else [(value, s.item.cluster)]
                if skill and f"part:{i}" in s.item.rows:
                    isolated.setdefault(skill, []).extend(known)
        rows = [_skill_row(source.name, skill, values, needed) for skill, values in sorted(isolated.items())]
        tables["skills"] += sorted(rows, key=lambda r: (-(r["gap"] if r["gap"] is not None else -2), r["skill"]))
        tables["correlation"].append(_correlation(source.name, rows))
    return Analysis("skills-in-context", (), tables, warnings=tuple(warnings))


def _skill_row(
    model: str, skill: str, steps: Sequence[tuple[bool, Hashable]], needed: Sequence[tuple[set[str], set[str]]]
) -> dict[str, Any]:
    holding = [supplied for all_, supplied in needed if skill in all_]
    count = sum(skill in supplied for supplied in holding)
    values = [right for right, _ in steps]
    accuracy = sum(values) / len(values) if values else None
    share = count / len(holding) if holding else None
    exact = statistics.rate_interval(values, [near for _, near in steps])
    gap = None if share is None or accuracy is None else accuracy - (1 - share)
    return {
        "model": model, "skill": skill, "n": len(values), "isolated": accuracy, "low": exact.low, "high": exact.high,
        "bottleneck": count, "of": len(holding), "share": share, "gap": gap,
    }  # fmt: skip


def _correlation(model: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = [(r["isolated"], r["share"]) for r in rows if None not in (r["isolated"], r["share"])]
    if len(known) < 3 or len({a for a, _ in known}) < 2 or len({b for _, b in known}) < 2:
        return {"model": model, "n": len(known), "spearman": None}
    found: Any = stats.spearmanr([a for a, _ in known], [b for _, b in known])
    return {"model": model, "n": len(known), "spearman": float(found.statistic)}


def equal_accuracy(
    sources: Sequence[Source], within: float = 0.02, *, permutations: int = 5000, seed: int = 0
) -> Analysis:
    """How the bottleneck profiles of models of equal accuracy differ (``within`` as a share).

    A profile is the distribution of bottlenecks; two are compared by total variation distance (half the sum of absolute
    differences). Each item adds something to the difference of the two profiles; the test gives these parts random
    signs, which swaps the two models where both have a bottleneck, and keeps the sizes of the profiles. Items that
    share anything have one sign, and fewer than five groups of them give no p. p-values are Holm-adjusted over the
    pairs. Raises ``NoCasesError`` where no pair is equal.
    """
    profiles = {s.name: _profile(s) for s in sources}
    rows = []
    for a, b in combinations(profiles, 2):
        (right_a, named_a, near), (right_b, named_b, others) = profiles[a], profiles[b]
        if right_a is None or right_b is None or abs(right_a - right_b) > within + 1e-9:
            continue
        distance = total_variation(named_a.values(), named_b.values())
        p = None
        if distance is not None:
            p = _permutation_p(named_a, named_b, {**others, **near}, distance, permutations, seed)
        rows.append({
            "a": a, "b": b, "accuracy_a": right_a, "accuracy_b": right_b, "n_a": len(named_a), "n_b": len(named_b),
            "total_variation": distance, "p": p, "most_different": _most_different(named_a, named_b),
        })  # fmt: skip
    if not rows:
        raise NoCasesError(
            f"profiles: no two of {len(profiles)} runs are within {100 * within:g} points of each other's accuracy; "
            "raise --within"
        )
    for row, p in zip(rows, statistics.holm([r["p"] for r in rows]), strict=True):
        row["p_adjusted"] = p
    return Analysis("profiles", (), {"pairs": rows})


def _profile(source: Source) -> tuple[float | None, dict[Any, str], dict[Any, Hashable]]:
    """Accuracy, each item's bottleneck, and what each item shares; items are named by case and repeat."""
    items = scaffolded_items(source)
    right = [v for s in items if (v := s.item.truth("whole")) is not None]
    named = {(s.item.case, s.item.repeat): s.bottleneck for s in items if s.bottleneck is not None}
    near = {(s.item.case, s.item.repeat): s.item.cluster for s in items}
    return (sum(right) / len(right) if right else None), named, near


def total_variation(a: Any, b: Any) -> float | None:
    """Half the sum of absolute differences of two distributions of names; None where one is empty."""
    first, second = Counter(a), Counter(b)
    return sum(map(abs, _differences(first, second).values())) / 2 if first and second else None


def _differences(first: Counter[str], second: Counter[str]) -> dict[str, float]:
    """By name, its share in the first less that in the second."""
    n, m = max(first.total(), 1), max(second.total(), 1)
    return {k: first[k] / n - second[k] / m for k in first.keys() | second.keys()}


def _most_different(a: Mapping[Any, str], b: Mapping[Any, str]) -> list[str]:
    delta = _differences(Counter(a.values()), Counter(b.values()))
    top = sorted(delta, key=lambda k: (-abs(delta[k]), k))[:3]
    return [f"{k}: {100 * delta[k]:+.1f} points" for k in top if delta[k]]


def _permutation_p(
    a: Mapping[Any, str], b: Mapping[Any, str], near: Mapping[Any, Hashable], seen: float, permutations: int, seed: int
) -> float | None:
    """Share of signs, the observed ones included, with which the profiles are at least as far apart; None for too few
    groups of items.

    An item's part is what its bottleneck in each profile has beyond the profile of both models together. To swap all
    items would make profiles of unlike sizes alike in size, and so less apart than they are by chance.
    """
    names = {k: i for i, k in enumerate(dict.fromkeys([*a.values(), *b.values()]))}
    cases = list(dict.fromkeys([*a, *b]))
    group = dependence.joined([near[c] for c in cases])
    units = int(group.max()) + 1
    if units < min(len(cases), dependence.FEWEST):
        return None
    first, second = np.zeros((2, units, len(names)))
    for side, of in ((first, a), (second, b)):
        for case, unit in zip(cases, group, strict=True):
            if case in of:
                side[unit, names[of[case]]] += 1
    both = (first + second).sum(0) / (len(a) + len(b))
    one, other = ((side - side.sum(1, keepdims=True) * both) / side.sum() for side in (first, second))
    rng = np.random.default_rng(seed)
    hits = 1
    for _ in range(permutations):
        hits += np.abs(rng.choice((-1.0, 1.0), units) @ (one - other)).sum() / 2 >= seen - 1e-9
    return int(hits) / (permutations + 1)


def teacher_of(source: Source) -> str:
    """The teacher that wrote a run's scaffolds. Raises ``InputError`` where the cases name none, or several."""
    names = {str(c.meta["teacher"]) for c in source.cases.values() if c.meta.get("teacher")}
    if len(names) != 1:
        raise InputError(f"{source.name}: its cases name {len(names)} teachers; give runs on scaffolds of one teacher")
    return names.pop()


def teachers(sources: Sequence[Source], top: int = 5) -> Analysis:
    """For each pair of teachers and each target model: which of the ``top`` bottlenecks both find.

    Raises ``NoCasesError`` where no target was evaluated under two teachers.
    """
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for source in sources:
        named = Counter(s.bottleneck for s in scaffolded_items(source) if s.bottleneck is not None)
        mine = counts.setdefault(teacher_of(source), {})
        if source.model in mine:
            raise InputError(f"{source.name}: {source.model!r} was given twice under teacher {teacher_of(source)!r}")
        mine[source.model] = dict(named)
    rows, means = [], []
    for a, b in combinations(counts, 2):
        if counts[a].keys().isdisjoint(counts[b]):
            continue
        found, mean = teacher_agreement(counts[a], counts[b], top)
        means.append({"first": a, "second": b, "models": len(found), "top": top, "mean_shared": mean})
        rows += [
            {"first": a, "second": b, "model": f.model, "shared": f.overlap, "skills": list(f.shared)} for f in found
        ]
    if not rows:
        raise NoCasesError(f"teachers: {len(counts)} teacher; give runs of the same targets under two teachers")
    return Analysis("teachers", (), {"agreement": rows, "mean": means})


def filtered(source: Source, kept: Sequence[StadItem], n_clusters: int = 20) -> Analysis:
    """A target's accuracy on all original questions and on those kept, and whether their topics are alike.

    A correlation of the topics is expected of any part of the questions: ``p_random`` compares it with random parts.
    ``source`` is a run on the originals; ``kept`` are the records that generation kept, matched by question. Topics are
    clusters of the questions' embeddings. Raises ``InputError`` where a kept question is not among the originals.
    """
    if not source.cases:
        raise InputError(f"{source.name}: its questions are not known; give a run folder on the original benchmark")
    by_question = {c.question: c.id for c in source.cases.values()}
    if strange := [i.id for i in kept if i.question not in by_question]:
        raise InputError(f"kept item {strange[0]!r}: its question is not among the originals of {source.name}")
    ids = list(source.cases)
    labels = cluster(embed([source.cases[i].question for i in ids]), min(n_clusters, len(ids))).labels
    wholes = {r.case: counting.truth(r) for r in source.rows if r.role == "whole" and not r.repeat}
    found = filtering(
        {i: wholes.get(i) for i in ids},
        [by_question[i.question] for i in kept],
        {i: int(label) for i, label in zip(ids, labels, strict=True)},
    )
    rows = [{"items": "all", **found["before"]}, {"items": "kept", **found["after"]}]
    test = {"clusters": found["n_clusters"]} | {
        key: found[key] for key in ("pearson", "p", "random_low", "random_high", "p_random")
    }
    tables = {"accuracy": rows, "cluster proportions": [test]}
    return Analysis("filtering", (), tables, warnings=first_repeats([source]))
