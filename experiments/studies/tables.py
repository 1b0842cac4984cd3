"""Tables of a study: its probes with the printed numbers, and matched pairs of models, whose differences are A - B.

Patching and cosines are those of Composition collapse (App. I), means by kind of question of AgentCoMa (tables 3, 14).
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy import stats

from ...errors import InputError
from ...evaluation import dependence
from ...evaluation.graded import Graded
from ...evaluation.metrics import Metric, span
from ...evaluation.protocols import counting
from ...evaluation.protocols.base import about
from ...evaluation.protocols.compare import compare
from ...evaluation.statistics import Interval, holm
from ..run.single_cases import CaseValue, read_values
from ..run.summary import counted_rows
from .results import beside, described, pair_name
from .study import Row, Study, StudyRun, StudyTable

PATCHES = (
    ("patches that give the donor's answer", "flip_rate"),
    ("patches that give the right answer", "corrected_rate"),
)
"""The name in the table and the probe's quantity; the paper prints the first one."""


def mechanism(study: Study) -> list[Row]:
    """One row per run for the patches and one per layer for the cosines; a run without probes has its reason."""
    out: list[Row] = []
    for run in study.runs:
        patched, moved = run.run.probe("patching"), run.run.probe("trajectory")
        about = {"model": run.label, "data": run.data}
        if patched is None and moved is None:
            out.append({**about, "what": "not opened up", "shown": run.note or "no boundary set", "n": 0})
        if patched is not None:
            out += [{**about, **_patches(patched, what, quantity, run.model.model)} for what, quantity in PATCHES]
        if moved is not None:
            out += [{**about, **r} for r in _cosines(moved, run.model.model)]
    return out


def _patches(probe: Any, what: str, quantity: str, model: str) -> Row:
    """The number of patches with an effect over all layers; the layers of one pair are not independent cases."""
    found = [r for r in probe.rows(quantity, group="donor") if r.get("count") is not None]
    count, n = sum(int(r["count"]) for r in found), sum(int(r["n"]) for r in found)
    text, source = beside("composition-collapse", f"patch_{quantity}", {}, model)
    pairs = ", ".join(map(str, sorted({int(r["n"]) for r in found})))
    of = f" ({pairs} pairs × {len(found)} layers; no interval)" if found else ""
    shown = f"{count} of {n}{of}" if n else "undefined (no continuation holds an answer that can be judged)"
    return {"what": what, "shown": shown, "count": count, "n": n, "value": count / n if n else None,
            "published": text, "source": source}  # fmt: skip


def _cosines(probe: Any, model: str) -> list[Row]:
    """Prompt-end cosines in the first and last layer, within and across groups; step cosines, failure - success."""
    rows: list[Row] = []
    last = max((int(r["layer"]) for r in probe.rows("prompt_end_cosine")), default=0)
    for r in probe.rows("prompt_end_cosine"):
        if r["layer"] in (0, last) and r.get("value") is not None:
            rows.append(_cosine_row("prompt_end_cosine", r, int(r["layer"]), last, model, f"pairs {r['group']}, "))
    sides = [{int(r["layer"]): r for r in probe.rows("step_cosine", group=g)} for g in ("failure", "success")]
    for layer in sorted(set(sides[0]) & set(sides[1])):
        row = _difference(sides[0][layer], sides[1][layer])
        rows.append(_cosine_row("step_cosine_difference", row, layer, last, model))
    return rows


def _difference(a: Row, b: Row) -> Row:
    """a - b of two means over cases, with Welch's interval if both have a t interval."""
    if a.get("value") is None or b.get("value") is None:
        return {"value": None, "n": (a.get("n") or 0) + (b.get("n") or 0)}
    row: Row = {"value": a["value"] - b["value"], "n": a["n"] + b["n"]}
    if any(r.get("interval") != "t" or r.get("low") is None or r["n"] < 2 for r in (a, b)):
        return row
    squares = [((r["high"] - r["low"]) / 2 / stats.t.ppf(0.975, r["n"] - 1)) ** 2 for r in (a, b)]
    if not sum(squares):
        return row
    freedom = sum(squares) ** 2 / sum(q * q / (r["n"] - 1) for q, r in zip(squares, (a, b), strict=True))
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(sum(squares))
    return {**row, "low": row["value"] - half, "high": row["value"] + half, "interval": "Welch t"}


def _cosine_row(what: str, r: Any, layer: int, last: int, model: str, where: str = "") -> Row:
    share = layer / last if last else 0.0
    text, source = beside("composition-collapse", what, {"depth_share": f"{share:.2f}"}, model)
    value, low, high = (r.get(k) for k in ("value", "low", "high"))
    ends = span(low, high, "{:.4f}".format) or " (no interval)"
    return {"what": what, "group": f"{where}layer {layer} of {last}", "n": r.get("n"), "value": value, "low": low,
            "high": high, "interval": r.get("interval"), "published": text, "source": source,
            "shown": "undefined" if value is None else f"{value:.4f}{ends}"}  # fmt: skip


def _by_kind(run: StudyRun, probe: str, quantity: str) -> dict[str, list[CaseValue]]:
    """One value of each case by kind of question; several questions of a kind in one case are averaged."""
    found: dict[str, dict[str, list[CaseValue]]] = {}
    for v in read_values(run.path, probe):
        if v.quantity == quantity and math.isfinite(v.value):
            found.setdefault(v.kind, {}).setdefault(v.case, []).append(v)
    return {
        kind: [replace(some[0], value=sum(v.value for v in some) / len(some)) for some in cases.values()]
        for kind, cases in found.items()
    }


def _numbers(cases: Sequence[CaseValue]) -> tuple[np.ndarray, list[Hashable]]:
    """Values, and what each shares with others, also of another kind: at least its case."""
    return np.array([v.value for v in cases]), [v.shares or f"case {v.case}" for v in cases]


def means(study: Study, probe: str, quantity: str, scale: float) -> list[Row]:
    """Mean over all questions of each kind, with an interval that respects clusters, and variance and deviation."""
    rows: list[Row] = []
    opened = {run.path: _by_kind(run, probe, quantity) for run in study.runs}
    for run in study.runs:
        if not opened[run.path] and (run.note or any(opened.values())):
            why = run.note or "the probe found nothing"
            rows.append({"model": run.label, "data": run.data, "what": "not opened up", "shown": why, "n": 0})
        for kind, cases in opened[run.path].items():
            values, labels = _numbers(cases)
            found = dependence.mean(values, labels)
            interval = Interval(*found.interval(), found.method if found.known else dependence.FEW)
            if not found.known or not np.ptp(values):
                interval = Interval(None, None, interval.method)
            if scale == 100:  # shares lie between 0 and 1, and so do their intervals
                interval = interval.within(0, 1)
            ends = span(interval.low, interval.high, lambda end: f"{scale * end:.4g}")
            text, source = beside(study.preset.name, quantity, {"kind": kind}, run.model.model, run.data)
            variance = float(values.var(ddof=1)) if values.size > 1 else None
            rows.append({
                "model": run.label, "data": run.data, "what": quantity, "group": kind, "n": values.size,
                "shown": f"{scale * found.value:.4g}{ends}", "value": found.value, **interval.columns(),
                "variance": variance, "std": None if variance is None else math.sqrt(variance), "published": text,
                "source": source,
            })  # fmt: skip
    return rows


def tests(study: Study) -> list[Row]:
    """Welch's t-test of every pair of kinds, with Holm's correction (the paper has none).

    The questions of one case, and of cases that share facts, are not independent, as the paper's test takes them to be:
    the error respects what they share.
    """
    rows: list[Row] = []
    for run in study.runs:
        kinds = {k: _numbers(v) for k, v in _by_kind(run, "lookback", "lookback_ratio").items() if len(v) > 1}
        found: list[Row] = []
        for a, b in combinations(sorted(kinds, key=lambda k: (k != "composition", k)), 2):
            (of_a, near_a), (of_b, near_b) = kinds[a], kinds[b]
            fit = dependence.difference(of_a, of_b, (near_a, near_b))
            text, source = beside(
                study.preset.name, "lookback_t_test", {"kind": f"{a} - {b}"}, run.model.model, run.data
            )
            found.append({"model": run.label, "data": run.data, "what": "p", "group": f"{a} - {b}",
                          "n": of_a.size + of_b.size, "difference": fit.value,
                          "p": None if math.isnan(fit.p) else fit.p, "test": fit.method, "published": text,
                          "source": source})  # fmt: skip
        for row, adjusted in zip(found, holm([r["p"] for r in found]), strict=True):
            shown = f"p = {row['p']:.2g} (Holm {adjusted:.2g})" if adjusted is not None else "no test"
            row |= {"p_adjusted": adjusted, "shown": shown}
        rows += found
    return rows


def pairs(study: Study) -> list[StudyTable]:
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
    """A - B of accuracies and gaps, or channels of double-gate runs. Raises ``InputError`` for no shared case."""
    if a.run.protocol == b.run.protocol == "double-gate":
        return list(compare(counted_rows(a.run), counted_rows(b.run), {**b.run.cases, **a.run.cases}, seed).metrics)
    return gains(counted_rows(a.run), counted_rows(b.run), seed, about(a.run.protocol).two_steps)


def gains(a: Sequence[Graded], b: Sequence[Graded], seed: int = 0, steps: bool = True) -> list[Metric]:
    """``pair_gain`` of each step and of the whole, and ``pair_gap``: the difference of comp - the product of the steps.

    Without ``steps``, only that of the whole: sub-tasks of cases that are split up differently are not the same steps.
    A step that a case does not have counts as right, as in ``independence_gap``.
    """
    pairs = counting.paired(a, b)
    clusters = counting.clusters_of([x for x, _ in pairs])
    counts = [max(x.n_parts, y.n_parts) for x, y in pairs]
    n_steps = max(counts, default=0) if steps else 0
    asked = {**{f"part:{i}": f"step:{i}" for i in range(n_steps)}, "whole": "composition"}
    made = [counting.gain(pairs, role, {"quantity": quantity}, seed) for role, quantity in asked.items()]
    found = [metric for metric in made if metric]
    table = [
        [
            t
            for side in pair
            for t in (side.truth("whole"), *(i >= n or side.truth(f"part:{i}") for i in range(n_steps)))
        ]
        for pair, n in zip(pairs, counts, strict=True)
    ]
    known = [i for i, row in enumerate(table) if None not in row]
    if known and steps and min(counts) >= 2:
        found.append(_gap_difference([table[i] for i in known], len(table) - len(known), clusters, known, seed))
    return found


def _gap_difference(
    rows: Sequence[Sequence[Any]], n_invalid: int, clusters: Sequence[Any] | None, known: Sequence[int], seed: int
) -> Metric:
    columns = [(1.0, *(float(bool(v)) for v in row)) for row in rows]
    half = len(rows[0]) // 2

    def of_rates(r: np.ndarray) -> np.ndarray:
        a, b = r[..., :half], r[..., half:]
        return (a[..., 0] - a[..., 1:].prod(-1)) - (b[..., 0] - b[..., 1:].prod(-1))

    def gap(s: np.ndarray) -> np.ndarray:
        return of_rates(s[..., 1:] / s[..., :1])

    own = None if clusters is None else [clusters[i] for i in known]
    note = "(whole - product of the steps) of A - that of B"
    ends = product((0, 1), repeat=4)  # all steps right or all wrong: the gap rises or falls with each of them
    others = [(1, w_a, *[s_a] * (half - 1), w_b, *[s_b] * (half - 1)) for w_a, s_a, w_b, s_b in ends]
    return counting.statistic(
        "pair_gap",
        columns,
        gap,
        {},
        seed=seed,
        n_invalid=n_invalid,
        clusters=own,
        note=note,
        others=others,
        rates=([row[1:] for row in columns], of_rates),
    )
