"""How large the answers of a benchmark are: pairs that are harder only because their numbers grew would show here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...evaluation.grading import numbers
from ..run.reader import Array, Row, RunData
from . import style
from .drawing import Drawing, caption, need
from .figure import PAIRS, figure

SETS = {
    "whole": "whole (the pair)",
    "part:0": "first question",
    "part:1": "second question",
    "original": "original of Q2",
}


@figure("magnitudes", "How large the answers are", PAIRS + " (with cases whose answers are numbers)", "", 39)
def magnitudes(runs: Sequence[RunData]) -> Drawing:
    """Distribution of answer magnitudes, one panel a benchmark (Compositional GSM, Fig. A.1)."""
    rows = [row for run in _one_per_benchmark(runs) for row in _rows(run)]
    need(rows, "No benchmark here has numbers for answers.")
    benchmarks = list(dict.fromkeys(r["benchmark"] for r in rows))
    fig, panels = style.grid_of(1, len(benchmarks), 4.6, 3.4, sharey=True)
    for ax, benchmark in zip(panels[0], benchmarks, strict=True):
        mine = [r for r in rows if r["benchmark"] == benchmark]
        of_set = {name: [r for r in mine if r["set"] == name] for name in dict.fromkeys(r["set"] for r in mine)}
        for i, (name, values) in enumerate(_apart({k: np.sort([r["log10"] for r in v]) for k, v in of_set.items()})):
            n = len(values)
            few = n < style.HOLLOW_BELOW
            shares = np.arange(1, n + 1) / n
            # A curve of a handful of answers is no distribution: its points are shown and not joined.
            form: dict[str, Any] = (
                {"linestyle": "none", "marker": "o", "markerfacecolor": style.PAPER}
                if few
                else {"linewidth": max(1.4, 3.4 - 0.9 * i), "linestyle": "-" if n >= style.MARKED_BELOW else "--"}
            )
            ax.plot(values, shares, color=style.color(i), drawstyle="steps-post", label=f"{' = '.join(name)} (n={n})",
                    **form)  # fmt: skip
            for r in (r for one in name for r in of_set[one]):
                r["drawn"] = style.weight(n)
        style.percent(ax)
        ax.set_xticks(_decades(mine), [_power(d) for d in _decades(mine)])
        style.dress(ax, benchmark, "size of the answer", "share of answers up to this size", grid="both")
        style.legend(ax, loc="lower right")
    text = (
        "Cumulative distribution of the size of gold answers, zero counted as below 1. Where the curves lie on each "
        "other, the whole is no harder by its numbers."
    )
    sizes = Counter((r["benchmark"], r["set"]) for r in rows)
    counted = [{**r, "n": sizes[r["benchmark"], r["set"]]} for r in rows]
    said = caption(text, counted, runs, "{benchmark}, {set}", intervals="Counts of cases, no intervals.", mark="Dashed")
    return Drawing(style.finished(fig), counted, said)


def _apart(sets: Mapping[str, Array]) -> list[tuple[list[str], Array]]:
    """Sets whose sizes are the same as one curve: of many benchmarks the last step's answer is the whole's."""
    found: list[tuple[list[str], Array]] = []
    for name, values in sets.items():
        same = next((names for names, known in found if np.array_equal(known, values)), None)
        if same is None:
            found.append(([name], values))
        else:
            same.append(name)
    return found


def _one_per_benchmark(runs: Sequence[RunData]) -> list[RunData]:
    """Models share their cases: the largest run of each benchmark stands for it."""
    best: dict[str, RunData] = {}
    for run in runs:
        if run.benchmark not in best or len(run.cases) > len(best[run.benchmark].cases):
            best[run.benchmark] = run
    return list(best.values())


def _rows(run: RunData) -> list[Row]:
    rows: list[Row] = []
    for case in run.cases.values():
        answers = {"whole": (case.answer_type, case.answer)}
        for i, part in enumerate(case.parts[:2]):
            answers[f"part:{i}"] = (part.answer_type, part.answer)
        original = case.meta.get("original")
        if isinstance(original, dict) and "answer" in original:
            answers["original"] = ("number", str(original["answer"]))
        for role, (kind, answer) in answers.items():
            found = numbers.parse(answer) if kind == "number" else None
            if found is not None:
                value = float(found.value)
                size = abs(value)
                rows.append({"benchmark": run.benchmark, "case": case.id, "set": SETS[role], "value": value,
                             "log10": math.log10(size) if size > 0 else -0.5})  # fmt: skip
    return rows


def _decades(rows: Sequence[Row]) -> list[int]:
    ends = [r["log10"] for r in rows]
    low, high = math.floor(min(ends)), max(math.ceil(max(ends)), math.floor(min(ends)) + 1)
    return list(range(low, high + 1, max(1, (high - low) // 6)))


def _power(exponent: int) -> str:
    return f"{10.0**exponent:g}" if -3 <= exponent <= 4 else f"1e{exponent}"
