"""Figures of pairs of questions: one accuracy against another over models, and accuracy over the size of numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes

from ...evaluation.grading import numbers
from ...evaluation.metrics import quoted
from ...evaluation.protocols import counting
from ...evaluation.protocols.counting import Item, Truth
from ..run.reader import Row, RunData
from ..run.summary import counted_rows
from . import style
from .drawing import PAIRS, Drawing, Figure, drawn, figure, need
from .grouping import labels


@dataclass(frozen=True)
class Scatter:
    """One of the diagnostic plots of Compositional GSM: one mark per run, intervals on both axes, the diagonal."""

    title: str
    x: str
    y: str
    text: str
    roles: tuple[str, ...]
    """Those that a run must have: of the x axis, of what must be right on the y axis if anything, of the y axis."""

    def __call__(self, runs: Sequence[RunData]) -> Drawing:
        chosen = [r for r in runs if set(self.roles) <= {g.role for g in r.graded}]
        names = labels(chosen)
        rows = [row for run in chosen for row in _rows(run, names[run.path], self)]
        asked = " and ".join(self.roles)
        need(rows, f"No run here asked {asked}; the protocol reasoning-gap asks it if the cases have it.")
        fig, ax = style.one_panel(4.6, 4.2)
        ax.plot([0, 1], [0, 1], "--", color=style.MUTED, linewidth=1.1)
        marks(ax, rows, self.title, self.x, self.y)
        text = f"{self.y[:1].upper()}{self.y[1:]} against {self.x}, over the same cases; dashed: equal. {self.text}"
        return drawn(fig, rows, text, chosen, "{model}")


def _scatter(name: str, command: str, order: int, *about: Any) -> Figure:
    kind = Scatter(*about)
    return Figure(name, kind.title, command, kind, "optional", order)


LEAKAGE = _scatter(
    "leakage", PAIRS + " (with cases that have meta.original)", 25,
    "Originals and their changed versions", "the original question", "with one number changed",
    "Below the diagonal: the original is easier than its changed version, as it would be after training on it.",
    ("original", "part:1"),
)  # fmt: skip
DISTRACTION = _scatter(
    "distraction", PAIRS, 26,
    "The first question, alone and inside the pair", "Q1 alone", "Q1 inside the pair",
    "Below the diagonal: the second question distracts from the first.",
    ("part:0", "pair:q1"),
)  # fmt: skip
SECOND_HOP = _scatter(
    "second-hop", PAIRS, 27,
    "The second question, alone and as second hop", "Q2 alone", "Q2 in the pair, given Q1 right",
    "Below the diagonal: the second question is harder after the first, although the first one's answer is right.",
    ("part:1", "pair:q1", "whole"),
)  # fmt: skip
CO_PRESENTED = _scatter(
    "co-presented", PAIRS, 28,
    "The second question beside an independent first", "Q2 alone", "Q2 beside an independent Q1",
    "On the diagonal: two questions in one prompt do not by themselves lower accuracy.",
    ("part:1", "co-presented"),
)  # fmt: skip


def marks(ax: Axes, rows: Sequence[Row], title: str, x: str, y: str) -> None:
    """A scatter plot of rates in percent: one cross per row, each a little smaller than the one before."""
    for i, row in enumerate(rows):
        _cross(ax, row, i)
    style.percent(ax)
    style.percent(ax, "x")
    style.dress(ax, title, x, y, grid="both")


def _cross(ax: Axes, row: Row, i: int) -> None:
    """The i-th mark, with intervals along both axes; hollow and without them if a value has fewer than 5 cases."""
    if row.get("x") is None:
        row["drawn"] = "undefined"
        return
    few, shade = {**row, "n": style.fewest(row)}, style.color(i)
    style.points(ax, [few], [row["x"]], shade, row["model"], size=stacked(i), line=False, marker=style.shape(i))
    row["drawn"] = few["drawn"]
    if row["drawn"] not in ("hollow", "undefined") and None not in (row.get("x_low"), row.get("x_high")):
        ends = [row["x_low"], row["x_high"]]
        ax.plot(ends, [row["value"]] * 2, color=shade, linewidth=1.3, alpha=0.65, solid_capstyle="butt", zorder=2)


def stacked(i: int) -> float:
    """Size of the i-th mark: each is a little smaller than the one before, so that equal values stay visible."""
    return max(4.0, 9.0 - 1.5 * i)


def _rows(run: RunData, label: str, kind: Scatter) -> list[Row]:
    items = counting.items(counted_rows(run))
    asked = [item for item in items if set(kind.roles) <= set(item.rows)]
    first, *given, last = kind.roles
    x = _rate([(True, item.truth(first)) for item in asked], asked)
    y = _rate([(item.truth(given[0]) if given else True, item.truth(last)) for item in asked], asked)
    return [{"run": run.name, "model": label, "benchmark": run.benchmark, **y,
             "x": x["value"], "x_low": x["low"], "x_high": x["high"], "n_x": x["n"]}]  # fmt: skip


def _rate(outcomes: Sequence[tuple[Truth, Truth]], items: Sequence[Item]) -> dict[str, Any]:
    found = quoted(counting.given("accuracy", outcomes, items, {})).to_dict()
    return {k: found[k] for k in ("n", "n_invalid", "count", "value", "interval", "low", "high")}


SETS = {
    "whole": "whole (the pair)",
    "part:0": "first question",
    "part:1": "second question",
    "original": "original of Q2",
}


@figure("magnitudes", "How large the answers are", PAIRS + " (with cases whose answers are numbers)", "", 39)
def magnitudes(runs: Sequence[RunData]) -> Drawing:
    """Distribution of answer magnitudes, one panel per benchmark (Compositional GSM, Fig. A.1)."""
    found = [(run, sizes) for run in one_per_benchmark(runs) if (sizes := _sizes(run))]
    chosen, rows = [run for run, _ in found], [row for _, sizes in found for row in sizes]
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
        ax.set_xticks(_decades(rows), [_power_of_ten(d) for d in _decades(rows)])
        style.dress(ax, benchmark, "size of the answer", "share of answers up to this size", grid="both")
        style.legend(ax, loc="lower right")
    text = (
        "Cumulative distribution of the size of gold answers; zero counts as below 1. Where the curves overlap, the "
        "numbers do not make the whole harder. Sets with the same sizes share one curve."
    )
    return drawn(
        fig, rows, text, chosen, "{benchmark}, {set}", intervals="Counts of cases, no intervals.", mark="Marked"
    )


def one_per_benchmark(runs: Sequence[RunData]) -> list[RunData]:
    """The largest run of each benchmark, since models share their cases."""
    best: dict[str, RunData] = {}
    for run in runs:
        if run.benchmark not in best or len(run.cases) > len(best[run.benchmark].cases):
            best[run.benchmark] = run
    return list(best.values())


def _sizes(run: RunData) -> list[Row]:
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


def _power_of_ten(exponent: int) -> str:
    return f"{10.0**exponent:g}" if -3 <= exponent <= 4 else f"1e{exponent}"
