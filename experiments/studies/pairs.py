"""Compare matched pairs of models on the same cases, with intervals. Every difference is A - B."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InputError
from ...evaluation.graded import Graded
from ...evaluation.metrics import Metric
from ...evaluation.protocols import counting
from ...evaluation.protocols.compare import compare
from .published import beside, pair_name
from .results import described
from .study import Row, Study, StudyRun, StudyTable

_STEPS = {"part:0": "step:0", "part:1": "step:1", "whole": "composition"}


def table(study: Study) -> list[StudyTable]:
    """The tables of a study's pairs: accuracies, the gap, and for double-gate runs the three channels."""
    rows = [row for pair in study.spec.pairs for data in study.data for row in _pair_rows(study, pair, data)]
    note = "Every difference is A − B over the cases that both models were asked. In cost pairs, A is the cheap model."
    return [StudyTable("pairs", "Matched pairs", rows, note)] if rows else []


def _pair_rows(study: Study, pair: Any, data: str) -> list[Row]:
    a, b = (study.one(label, data) for label in (pair.a, pair.b))
    name = f"{pair.kind}: {pair.a} − {pair.b}"
    if a is None or b is None:
        missing = " and ".join(n for n, r in ((pair.a, a), (pair.b, b)) if r is None)
        return [{"pair": name, "data": data, "what": "failed", "shown": f"no run of {missing}", "n": 0}]
    rows, models = [], pair_name(a.model.model, b.model.model)
    # The paper's pairs are instruct - pretrained, so its numbers do not apply to pairs matched in another way.
    alike = pair.kind == "tuning" or study.preset.protocol == "double-gate"
    try:
        found = differences(a, b, study.spec.seed)
    except InputError as e:  # for example, runs that were stopped early
        return [{"pair": name, "data": data, "what": "failed", "shown": str(e), "n": 0}]
    for metric in found:
        text, source = beside(study.preset.name, metric.metric, metric.group, models, data, references=alike)
        shown = described(metric.metric, metric)
        rows.append({**shown, "pair": name, "data": data, "published": text, "source": source})
    return rows


def differences(a: StudyRun, b: StudyRun, seed: int = 0) -> list[Metric]:
    """A - B of accuracies and gaps, paired over cases, and the three channels if both are double-gate runs.

    Raises ``InputError`` if the runs share no case.
    """
    if a.run.protocol == b.run.protocol == "double-gate":
        return list(compare(a.run.graded, b.run.graded, {**b.run.cases, **a.run.cases}, seed).metrics)
    return gains(a.run.graded, b.run.graded, seed)


def gains(a: Sequence[Graded], b: Sequence[Graded], seed: int = 0) -> list[Metric]:
    """``pair_gain`` of each step and of the whole, and ``pair_gap``: the difference of comp - S1 * S2."""
    sides = [{i.case: i for i in counting.items(rows)} for rows in (a, b)]
    shared = [c for c in sides[0] if c in sides[1]]
    pairs = [(sides[0][c], sides[1][c]) for c in shared]
    clusters = counting.clusters_of([x for x, _ in pairs])
    found = []
    for role, quantity in _STEPS.items():
        if any(role in x.rows and role in y.rows for x, y in pairs):
            left, right = ([item.truth(role) for item in side] for side in zip(*pairs, strict=True))
            group = {"quantity": quantity}
            found.append(counting.difference("pair_gain", left, right, group, seed=seed, of=[x for x, _ in pairs]))
    table = [[side.truth(r) for side in pair for r in ("whole", "part:0", "part:1")] for pair in pairs]
    known = [i for i, row in enumerate(table) if None not in row]
    if known and all(x.n_parts >= 2 for x, _ in pairs):
        found.append(_gap_difference([table[i] for i in known], len(table) - len(known), clusters, known, seed))
    return found


def _gap_difference(
    rows: Sequence[Sequence[Any]], n_invalid: int, clusters: Sequence[Any] | None, known: Sequence[int], seed: int
) -> Metric:
    columns = [(1.0, *(float(bool(v)) for v in row)) for row in rows]

    def gap(s: np.ndarray) -> np.ndarray:
        means = s[..., 1:] / s[..., :1]
        return (means[..., 0] - means[..., 1] * means[..., 2]) - (means[..., 3] - means[..., 4] * means[..., 5])

    own = None if clusters is None else [clusters[i] for i in known]
    note = "(whole - S1*S2) of A - that of B"
    return counting.statistic("pair_gap", columns, gap, {}, seed=seed, n_invalid=n_invalid, clusters=own, note=note)
