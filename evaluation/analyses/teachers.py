"""Whether findings depend on the teacher, and whether filtering changed the benchmark (STaD, App. C and D)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from ...errors import InputError, NoCasesError
from ..benchmarks.stad import StadItem
from ..builders.scaffold_quality import filtering
from ..protocols import counting
from ..skills import cluster, embed, teacher_agreement
from .base import Analysis, Source
from .profiles import scaffolded_items


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

    ``source`` is a run on the originals; ``kept`` are the records that generation kept, matched by question. Topics are
    clusters of the questions' embeddings. Raises ``InputError`` where a kept question is not among the originals.
    """
    if not source.cases:
        raise InputError(f"{source.name}: no questions at hand; give a run folder on the original benchmark")
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
    test = {"clusters": found["n_clusters"], "pearson": found["pearson"], "p": found["p"]}
    return Analysis("filtering", (), {"accuracy": rows, "cluster proportions": [test]})
