"""The figure of answer magnitudes, which shows whether pairs are harder only because their numbers are larger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...evaluation.grading import numbers
from ..run.reader import Row, RunData
from . import style
from .drawing import Drawing, drawn, need
from .figure import PAIRS, figure

SETS = {
    "whole": "whole (the pair)",
    "part:0": "first question",
    "part:1": "second question",
    "original": "original of Q2",
}


@figure("magnitudes", "How large the answers are", PAIRS + " (with cases whose answers are numbers)", "", 39)
def magnitudes(runs: Sequence[RunData]) -> Drawing:
    """Distribution of answer magnitudes, one panel per benchmark (Compositional GSM, Fig. A.1)."""
    rows = [row for run in _one_per_benchmark(runs) for row in _rows(run)]
    need(rows, "No benchmark here has numbers as answers.")
    benchmarks = list(dict.fromkeys(r["benchmark"] for r in rows))
    fig, panels = style.grid_of(1, len(benchmarks), 4.6, 3.4, sharex=True, sharey=True)
    for ax, benchmark in zip(panels[0], benchmarks, strict=True):
        mine = [r for r in rows if r["benchmark"] == benchmark]
        for i, name in enumerate(dict.fromkeys(r["set"] for r in mine)):
            curve = [r for r in mine if r["set"] == name]
            # A handful of answers is not a distribution: show its points without joining them.
            form: dict[str, Any] = {"linestyle": "none", "marker": "o", "markerfacecolor": style.PAPER}
            if curve[0]["drawn"] != "hollow":
                form = {"linewidth": 1.7, "linestyle": style.dash(i), "drawstyle": "steps-post"}
            ax.plot([r["x"] for r in curve], [r["value"] for r in curve], color=style.color(i),
                    label=f"{name} (n={len(curve)})", **form)  # fmt: skip
        style.percent(ax)
        ax.set_xticks(_decades(rows), [_power(d) for d in _decades(rows)])
        style.dress(ax, benchmark, "size of the answer", "share of answers up to this size", grid="both")
        style.legend(ax, loc="upper left")
    text = (
        "Cumulative distribution of the size of gold answers; zero counts as below 1. Where the curves overlap, the "
        "numbers do not make the whole harder. Sets with the same sizes share one curve."
    )
    return drawn(fig, rows, text, runs, "{benchmark}, {set}", intervals="Counts of cases, no intervals.", mark="Marked")


def _one_per_benchmark(runs: Sequence[RunData]) -> list[RunData]:
    """The largest run of each benchmark, since models share their cases."""
    best: dict[str, RunData] = {}
    for run in runs:
        if run.benchmark not in best or len(run.cases) > len(best[run.benchmark].cases):
            best[run.benchmark] = run
    return list(best.values())


def _rows(run: RunData) -> list[Row]:
    """One row per answer, by size: ``x`` is its decimal logarithm, ``value`` the share of answers up to it."""
    sizes: dict[str, list[tuple[float, float, str]]] = {}
    for case in run.cases.values():
        answers = {"whole": (case.answer_type, case.answer)}
        answers |= {f"part:{i}": (part.answer_type, part.answer) for i, part in enumerate(case.parts[:2])}
        original = case.meta.get("original")
        if isinstance(original, dict) and "answer" in original:
            answers["original"] = ("number", str(original["answer"]))
        for role, (kind, answer) in answers.items():
            found = numbers.parse(answer) if kind == "number" else None
            if found is not None:
                size = abs(float(found.value))
                x = math.log10(size) if size > 0 else -0.5
                sizes.setdefault(SETS[role], []).append((x, float(found.value), case.id))
    curves: dict[tuple[float, ...], list[str]] = {}
    for name, known in sizes.items():
        known.sort()
        curves.setdefault(tuple(x for x, _, _ in known), []).append(name)
    return [
        {"benchmark": run.benchmark, "case": case, "set": " = ".join(names), "answer": answer, "n": len(xs), "x": x,
         "value": (i + 1) / len(xs), "drawn": style.weight(len(xs))}
        for xs, names in curves.items() for i, (x, answer, case) in enumerate(sizes[names[0]])
    ]  # fmt: skip


def _decades(rows: Sequence[Row]) -> list[int]:
    ends = [r["x"] for r in rows]
    low, high = math.floor(min(ends)), max(math.ceil(max(ends)), math.floor(min(ends)) + 1)
    return list(range(low, high + 1, max(1, (high - low) // 6)))


def _power(exponent: int) -> str:
    return f"{10.0**exponent:g}" if -3 <= exponent <= 4 else f"1e{exponent}"
