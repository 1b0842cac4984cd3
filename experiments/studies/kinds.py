"""Means and tests over all questions of a kind, from a probe's table, as in AgentCoMa's tables 3 and 14."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from scipy import stats

from ...evaluation.statistics import holm
from .published import beside
from .study import Row, Study, StudyRun


def pooled(rows: Sequence[Mapping[str, Any]]) -> tuple[int, float, float]:
    """(n, mean, sd) of the union of groups, from the n, mean and sd (with n - 1) of each group."""
    known = [(r["n"], r["value"], r.get("sd") or 0.0) for r in rows if r.get("value") is not None and r.get("n")]
    n = sum(k for k, _, _ in known)
    if not n:
        return 0, math.nan, math.nan
    mean = sum(k * m for k, m, _ in known) / n
    squares = sum((k - 1) * s * s + k * (m - mean) ** 2 for k, m, s in known)
    return n, mean, math.sqrt(squares / (n - 1)) if n > 1 else math.nan


def _by_kind(run: StudyRun, probe: str, quantity: str) -> dict[str, tuple[int, float, float]]:
    found = run.run.probe(probe)
    rows = [r for r in found.rows(quantity) if r.get("group") in ("failure", "success")] if found else []
    kinds = dict.fromkeys(str(r["kind"]) for r in rows if r.get("kind") and " - " not in str(r["kind"]))
    return {kind: pooled([r for r in rows if r["kind"] == kind]) for kind in kinds}


def means(study: Study, probe: str, quantity: str, scale: float) -> list[Row]:
    """Mean over all questions of each kind, with a t interval, variance and standard deviation."""
    rows: list[Row] = []
    opened = {run.path: _by_kind(run, probe, quantity) for run in study.runs}
    for run in study.runs:
        if not opened[run.path] and (run.note or any(opened.values())):
            why = run.note or "the probe found nothing"
            rows.append({"model": run.label, "data": run.data, "what": "not opened up", "shown": why, "n": 0})
        for kind, (n, mean, sd) in opened[run.path].items():
            half = stats.t.ppf(0.975, n - 1) * sd / math.sqrt(n) if n > 1 else math.nan
            text, source = beside(study.preset.name, quantity, {"kind": kind}, run.model.model, run.data)
            low, high = (None, None) if math.isnan(half) else (mean - half, mean + half)
            if (
                scale == 100 and low is not None and high is not None
            ):  # shares lie between 0 and 1, and so do their intervals
                low, high = max(low, 0.0), min(high, 1.0)
            ends = "" if low is None or high is None else f" [{scale * low:.4g}, {scale * high:.4g}]"
            rows.append({
                "model": run.label, "data": run.data, "what": quantity, "group": kind, "n": n,
                "shown": f"{scale * mean:.4g}{ends}" if n else "undefined", "value": mean if n else None, "low": low,
                "high": high, "interval": "t", "variance": sd * sd if n > 1 else None, "std": sd if n > 1 else None,
                "published": text, "source": source,
            })  # fmt: skip
    return rows


def tests(study: Study) -> list[Row]:
    """Welch's t-test of every pair of kinds from their n, mean and sd, with Holm's correction (the paper has none)."""
    rows: list[Row] = []
    for run in study.runs:
        kinds = {k: v for k, v in _by_kind(run, "lookback", "lookback_ratio").items() if v[0] > 1}
        found: list[Row] = []
        for a, b in combinations(sorted(kinds, key=lambda k: (k != "composition", k)), 2):
            (n_a, mean_a, sd_a), (n_b, mean_b, sd_b) = kinds[a], kinds[b]
            test = stats.ttest_ind_from_stats(mean_a, sd_a, n_a, mean_b, sd_b, n_b, equal_var=False)
            text, source = beside(
                study.preset.name, "lookback_t_test", {"kind": f"{a} - {b}"}, run.model.model, run.data
            )
            found.append({"model": run.label, "data": run.data, "what": "p", "group": f"{a} - {b}", "n": n_a + n_b,
                          "difference": mean_a - mean_b, "p": float(test.pvalue), "published": text,
                          "source": source})  # fmt: skip
        for row, adjusted in zip(found, holm([r["p"] for r in found]), strict=True):
            row |= {"p_adjusted": adjusted, "shown": f"p = {row['p']:.2g} (Holm {adjusted:.2g})"}
        rows += found
    return rows
