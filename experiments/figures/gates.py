"""Figures that count cases: through the gates, by outcome, failed step, revealed steps, and cause of failure."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ...evaluation.metrics import Metric
from ...evaluation.protocols.counting import items
from ...evaluation.protocols.scaffolding import INTRACTABLE, Scaffolded
from ..run.diagnosis import CAUSES, CauseShare, meaning
from ..run.reader import Row, RunData
from ..run.summary import counted_failures, counted_rows, diagnosed_failures, of_known_parts
from . import style
from .drawing import EVALUATE, GAP, GATE, SCAFFOLDS, Drawing, drawn, figure, need, point
from .grouping import ACROSS, grouped, having, labels, labels_by_benchmark, of_largest_families, steps_of

QUADRANTS = {
    "11": "both steps right",
    "10": "only step 1 right",
    "01": "only step 2 right",
    "00": "no step right",
    "all": "every step right",
    "some": "some steps wrong",
}
COUNTS = "Counts, no intervals."
_QUADRANT_COLORS = {
    "1": style.FAILURE, "11": style.FAILURE, "111": style.FAILURE, "all": style.FAILURE,
    "0": style.PALETTE[7], "00": style.PALETTE[7], "000": style.PALETTE[7], "10": style.PALETTE[4],
    "100": style.PALETTE[4], "some": style.PALETTE[4], "01": style.PALETTE[5], "010": style.PALETTE[5],
    "001": style.PALETTE[0], "011": style.PALETTE[2], "101": style.PALETTE[3], "110": style.PALETTE[6],
}  # fmt: skip


@figure("gate-funnel", "Through the gates", GATE, "first", 3)
def gate_funnel(runs: Sequence[RunData]) -> Drawing:
    """Counts of cases from all cases, through the gates, to the failures."""
    names = labels(runs)
    rows = [{"run": r.name, "model": names[r.path], **stage} for r in runs for stage in _stages(r)]
    need(rows, "No run here has gate counts.")
    shown = [r for r in runs if any(row["model"] == names[r.path] for row in rows)]
    within = labels_by_benchmark(shown)
    by_benchmark = [[r for r in shown if r.benchmark == b] for b in dict.fromkeys(r.benchmark for r in shown)]
    lines = [mine[i : i + ACROSS] for mine in by_benchmark for i in range(0, len(mine), ACROSS)]
    most = max(sum(row["model"] == names[r.path] for row in rows) for r in shown)
    fig, grid = style.grid_of(len(lines), max(map(len, lines)), 2.7, max(2.1, 0.2 * most))
    top = max(row["count"] for row in rows) or 1
    for line, axes in zip(lines, grid, strict=True):
        before: list[str] = []
        for run, ax in zip_longest(line, axes):
            if run is None:
                ax.set_axis_off()
                continue
            mine = [row for row in rows if row["model"] == names[run.path]]
            stages = [row["stage"] for row in mine]
            _funnel(ax, mine, top, stages if stages != before else [])
            before = stages
            style.dress(ax, f"{style.plain(within[run.path], 20)}, {style.counted(mine[0]['n'])}", grid=None)
        if len({r.benchmark for r in shown}) > 1:
            axes[0].set_ylabel(style.plain(line[0].benchmark, 24), fontsize=8.5, color=style.INK)
    text = (
        "Cases that pass each gate, and the cases among them that are answered wrong. A case with an unknown gate (an "
        "invalid answer) passes no gate."
    )
    return drawn(fig, rows, text, shown, "{model}", intervals=COUNTS, mark="Starred")


def _funnel(ax: Axes, rows: Sequence[Row], top: int, stages: Sequence[str]) -> None:
    """One run's bars; without ``stages``, their names stand at the panel before."""
    for i, row in enumerate(rows):
        failed = row["stage"].startswith("whole wrong")
        shade = style.FAILURE if failed else style.SUCCESS
        ax.barh(i, row["count"], alpha=0.9 if failed else 0.75, height=0.62, **style.bar(row["n"], shade))
        ax.text(row["count"] + 0.02 * top, i, str(row["count"]), va="center", fontsize=8, color=style.INK)
    ax.set_yticks(range(len(stages)), stages)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, top * 1.16)
    ax.tick_params(left=False)
    ax.set_xticks([])
    ax.spines["bottom"].set_visible(False)


def _stages(run: RunData) -> list[Row]:
    """The funnel of one run, first stage first."""
    both, whole = run.one("double_gate"), run.one("residual_failure")
    if both and whole:
        atom, sub = run.one("atom_gate"), run.one("sub_question_gate")
        found = [("all cases", _every(both))]
        found += [(n, m.count) for n, m in (("atoms stable", atom), ("sub-questions right", sub)) if m]
        return _counted([*found, ("both gates", both.count), ("whole wrong, gated", whole.count)])
    both, press = run.one("both"), run.one("press_gap")
    if both and press:
        steps = [(_step(i, m, both), m.count) for i in steps_of(run) if (m := run.one(f"step:{i}"))]
        every = "both" if len(steps) == 2 else "all parts"
        last = [(f"{every} right", both.count), (f"whole wrong, {every} right", press.count)]
        return _counted([("all cases", _every(both)), *steps, *last])
    return []


def _every(gate: Metric) -> int:
    """The number of all cases, also of those whose gate an invalid answer leaves unknown."""
    return gate.n + gate.n_invalid


def _step(i: int, found: Metric, every: Metric) -> str:
    """The name of a step's stage; where some cases have fewer steps, with the number of those that have it."""
    asked = _every(found)
    of = f" (of {asked})" if asked < _every(every) else ""
    return f"step {i + 1} right{of}"


def _counted(found: Sequence[tuple[str, Any]]) -> list[Row]:
    whole = found[0][1]
    drawn = style.weight(whole)
    return [{"stage": s, "count": int(c), "n": whole, "drawn": drawn} for s, c in found if c is not None]


@figure("failure-quadrants", "Which steps were right when the whole was wrong", GAP, "first", 4)
def failure_quadrants(runs: Sequence[RunData], group_by: str | None = None) -> Drawing:
    """Failed wholes split by which steps were right (AgentCoMa, Fig. 5; with ``group_by``, Fig. 10)."""
    order = grouped(having(runs, "quadrant"), group_by)
    chosen, names = order.runs, order.names
    rows = []
    for run in chosen:
        found = sorted(((str(m.group["quadrant"]), m) for m in run.select("quadrant", "quadrant")), key=_quadrant_order)
        rows += [
            {**point(run, names[run.path], m, quadrant=q, steps=_right(q)),
             "drawn": "undefined" if m.value is None else style.weight(m.n)}
            for q, m in found
        ]  # fmt: skip
    need(rows, "No run here has failure quadrants; the protocol compositionality-gap counts them.")
    wrong = any(r["n"] for r in rows)
    need(wrong, "No whole was judged wrong in these runs, so there are no failures to split by their steps.")
    models = list(dict.fromkeys(r["model"] for r in rows))
    keys = list(dict.fromkeys(r["quadrant"] for r in rows if r["quadrant"] in QUADRANTS or r["value"]))
    fig, ax = style.one_panel(6.6, 1.3 + 0.42 * len(models))
    stacks = {key: (_QUADRANT_COLORS[key], _right(key)) for key in keys}
    _stacked(ax, rows, "quadrant", stacks, models, lambda row: row["model"], 0.62)
    style.names(ax, models, 30, 0.4, 0.6)
    style.dress(ax, "Which steps were right when the whole was wrong", "share of failed wholes", grid=None)
    text = "Failed wholes by which of their steps were right when asked alone; numbers in the bars are counts."
    text += order.text
    said = f"The bars have no intervals; the csv has the interval of each share. {style.interval_methods(rows)}"
    return drawn(fig, rows, text, chosen, "{model}", intervals=said, mark="Starred")


def _right(quadrant: str) -> str:
    """Which steps were right, in words; of three steps, which were wrong, as a case may have fewer.

    >>> _right("101")
    'step 2 wrong'
    """
    wrong = [str(i) for i, one in enumerate(quadrant, 1) if one == "0"]
    if quadrant in QUADRANTS:
        return QUADRANTS[quadrant]
    if not wrong:
        return QUADRANTS["all"]
    *before, last = wrong
    return f"step{'s' if before else ''} {', '.join(before)}{' and ' if before else ''}{last} wrong"


def _quadrant_order(found: tuple[str, Metric]) -> int:
    return list(QUADRANTS).index(found[0]) if found[0] in QUADRANTS else len(QUADRANTS)


@figure("outcomes", "How every answer was graded", EVALUATE, "behavior", 13)
def outcomes(runs: Sequence[RunData]) -> Drawing:
    """Correct, incorrect, abstained and invalid answers by what was asked; no answer is left out."""
    names = labels(runs)
    rows = []
    for run in runs:
        counts = Counter((role_class(g.role), g.outcome) for g in run.graded)
        for role in dict.fromkeys(k for k, _ in counts):
            n = sum(v for (k, _), v in counts.items() if k == role)
            rows += [{"run": run.name, "model": names[run.path], "role": role, "outcome": o, "count": counts[role, o],
                      "n": n, "value": counts[role, o] / n, "drawn": style.weight(n)}
                     for o in style.OUTCOME_COLORS]  # fmt: skip
    need(rows, "No run here has graded answers yet.")
    bars = list(dict.fromkeys((r["model"], r["role"]) for r in rows))
    fig, ax = style.one_panel(6.6, 1.2 + 0.28 * len(bars))
    stacks = {outcome: (shade, outcome) for outcome, shade in style.OUTCOME_COLORS.items()}
    _stacked(ax, rows, "outcome", stacks, bars, lambda row: (row["model"], row["role"]), 0.66, counts=False)
    ax.set_yticks(range(len(bars)), [f"{style.plain(m, 36)} · {style.plain(r, 24)}" for m, r in bars])
    ax.set_ylim(len(bars) - 0.4, -0.6)
    style.dress(ax, "How every answer was graded", "share of answers", grid=None)
    text = "Outcomes of all graded answers by what was asked."
    return drawn(fig, rows, text, runs, "{model}, {role}", intervals=COUNTS, mark="Starred")


def _stacked(
    ax: Axes, rows: Sequence[Row], column: str, stacks: Mapping[str, tuple[str, str]], bars: Sequence[Any],
    bar: Callable[[Row], Any], height: float, *, counts: bool = True,
) -> None:  # fmt: skip
    """Shares on top of each other, one bar for each of ``bars``, with n at its end; ``stacks``: shade and name of each
    value of the column. ``counts`` writes the counts into the shares that have room."""
    for shade, name in stacks.values():  # names for the legend, even if the first bar is hollow
        ax.barh(0, 0, color=shade, label=name)
    for y, one in enumerate(bars):
        mine, left = [row for row in rows if bar(row) == one], 0.0
        for key, (shade, _) in stacks.items():
            row = next((r for r in mine if r[column] == key), None)
            if row is None or not row["value"]:  # an empty bar would still show its edge
                continue
            ax.barh(y, row["value"], left=left, height=height, **style.bar(row["n"], shade))
            if counts and row["value"] > 0.08:
                ink = style.INK if row["drawn"] == "hollow" else style.ON_LIGHT
                middle = left + row["value"] / 2
                ax.text(middle, y, f"{row['count']:.0f}", ha="center", va="center", fontsize=8, color=ink)
            left += row["value"]
        ax.text(1.02, y, style.counted(mine[0]["n"]), va="center", fontsize=8, color=style.MUTED)
    style.percent(ax, "x")
    ax.set_xlim(0, 1.12)


def role_class(role: str) -> str:
    """``part:0:paraphrase:2`` -> ``part paraphrase``: roles without their numbers."""
    return " ".join(word for word in role.split(":") if not word.isdigit())


@figure("k-histogram", "Steps that had to be revealed", SCAFFOLDS, "first", 6)
def k_histogram(runs: Sequence[RunData]) -> Drawing:
    """How many steps had to be revealed before the whole was right (STaD, min-k)."""
    names = labels(runs)
    rows: list[Row] = []
    for run in runs:
        ladders = _ladders(run)
        n = len(ladders)
        about = {"run": run.name, "model": names[run.path], "n": n, "drawn": style.weight(n)}
        counts = Counter(next(iter(some)) if len(some) == 1 else OPEN if some else NO_LADDER for some in ladders)
        for k in sorted(counts, key=lambda k: (isinstance(k, str), k == INTRACTABLE, k)):
            most = sum(k in some for some in ladders) if isinstance(k, int) else counts[k]
            ends = {"bound_low": counts[k] / n, "bound_high": most / n} if isinstance(k, int) else {}
            said = k if isinstance(k, str) else "none" if k == INTRACTABLE else str(k)
            rows.append({**about, "k": k if isinstance(k, int) else None, "revealed": said, "count": counts[k],
                         "value": counts[k] / n, "bound_low": None, "bound_high": None, **ends})  # fmt: skip
    asked = any(g.role.startswith("scaffold:") for r in runs for g in r.graded)
    judged = any(row["k"] is not None for row in rows)
    need(judged, "No ladder here could be judged up to the step that decides it." if asked else
         "No run here asked with scaffolds; use the protocol scaffolding.")  # fmt: skip
    models = list(dict.fromkeys(r["model"] for r in rows))
    fig, panels = style.grid_of(1, len(models), 3.0, 2.8, sharey=True)
    shades = {OPEN: style.MUTED, NO_LADDER: style.MUTED, "none": style.FAILURE}
    for ax, model in zip(panels[0], models, strict=True):
        mine = [r for r in rows if r["model"] == model]
        for i, row in enumerate(mine):
            ax.bar(i, row["count"], width=0.7, **style.bar(row["n"], shades.get(row["revealed"], style.SUCCESS)))
            ax.text(i, row["count"], str(row["count"]), ha="center", va="bottom", fontsize=8, color=style.INK)
        ax.set_xticks(range(len(mine)), [r["revealed"] for r in mine])
        title = f"{style.plain(model, 24)}, {style.counted(mine[0]['n'])}"
        style.dress(ax, title, "steps revealed", "cases" if ax is panels[0][0] else "")
    shown = {row["revealed"] for row in rows}
    text = (
        "Fewest revealed steps with which the whole is right: 0 = none needed, “none” = wrong at every level"
        + ", “open” = a deciding answer was not asked for or could not be graded" * (OPEN in shown)
        + f", “{NO_LADDER}” = wrong, and there is no step to reveal" * (NO_LADDER in shown)
        + ". Shares in the csv are over all cases; the bounds count the open cases that may belong to a bar."
    )
    return drawn(fig, rows, text, runs, "{model}", intervals=COUNTS, mark="Starred")


OPEN, NO_LADDER = "open", "no ladder"


def _ladders(run: RunData) -> list[frozenset[int]]:
    """For each item every number of steps that its answers allow, as the protocol counts them."""
    if not any(g.role.startswith("scaffold:") for g in run.graded):
        return []
    return [Scaffolded.of(item, run.cases).possible for item in items(counted_rows(run))]


@figure("bottlenecks", "Bottleneck skills", SCAFFOLDS, "first", 7)
def bottlenecks(runs: Sequence[RunData], top: int = 5) -> Drawing:
    """The skills whose steps, when revealed, most often turned a failure into a success (STaD, Fig. 3)."""
    names = labels(runs)
    rows = []
    for run in runs:
        found = [m for m in run.metrics if m.metric == "bottleneck" and m.count]
        for m in sorted(found, key=lambda m: -(m.count or 0))[:top]:
            skill = m.group.get("skill") or m.group.get("combination") or "?"
            skill = " + ".join(map(str, skill)) if isinstance(skill, list) else str(skill)
            rows.append({**point(run, names[run.path], m, skill=skill), "drawn": style.weight(m.n)})
    need(rows, "No run here has bottleneck skills; the protocol scaffolding counts them.")
    models = list(dict.fromkeys(r["model"] for r in rows))
    fig, panels = style.grid_of(len(models), 1, 5.6, 2.1)
    for (ax,), model in zip(panels, models, strict=True):
        mine = [r for r in rows if r["model"] == model]
        for y, row in enumerate(mine):
            ax.barh(y, row["count"], height=0.6, **style.bar(row["n"], style.SUCCESS))
        ax.set_yticks(range(len(mine)), [style.plain(r["skill"], 44) for r in mine])
        ax.set_ylim(max(len(mine), 3) - 0.4, -0.6)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        style.dress(ax, f"{style.plain(model, 24)}, {style.counted(mine[0]['n'])}", "cases", grid="x")
    text = (
        f"The {top} most frequent bottleneck skills per model: revealing a step that needs the skill turned a failure "
        "into a success. n: cases that are right only with steps revealed."
    )
    return drawn(fig, rows, text, runs, "{model}", intervals=COUNTS, mark="Starred")


@figure("causes", "Causes of failure", "composcope diagnose RUN", "first", 30)
def causes(runs: Sequence[RunData]) -> Drawing:
    """Share of each cause among failures whose parts are all right, with a block per group and a panel per run."""
    found = {run.path: diagnosed for run in runs if (diagnosed := diagnosed_failures(run)) is not None}
    runs = [run for run in runs if run.path in found]
    names = labels(runs)
    rows = [row for run in runs for row in _cause_rows(found[run.path].found.shares, run.name, names[run.path])]
    need(rows, "No run here was diagnosed; `composcope diagnose RUN` names the cause of each failure.")
    order = sorted({r["cause"] for r in rows}, key=lambda c: (CAUSES.index(c.partition(":")[0]), c))
    shown, left_out = of_largest_families(
        rows, lambda r: r["group"] if r["group"].startswith("family ") else None, "count"
    )
    known = " whose parts are all right" * all(of_known_parts(run.protocol) for run in runs)
    text = (
        f"Causes of the failures{known}, as shares of each group. A case without a demonstrated cause is undetermined. "
    ) + "; ".join(f"{cause}: {meaning(cause)}" for cause in order) + f".{left_out}"  # fmt: skip
    verdicts = {run.path: len(found[run.path].found.verdicts) for run in runs}
    some = {
        names[run.path]: f"Only {verdicts[run.path]} of {every} failures were diagnosed."
        for run in runs
        if verdicts[run.path] < (every := len(counted_failures(run)))
    }
    left = {names[path]: said for path, diagnosed in found.items() if (said := diagnosed.left_out())}
    for said in (some, left):
        text += "".join(f" {f'{name}: ' if len(found) > 1 else ''}{what}" for name, what in said.items())
    panels = list(dict.fromkeys(r["model"] for r in rows))
    return drawn(
        _cause_panels(shown, panels, order), rows, text, runs, "{model}, " * (len(panels) > 1) + "{group}, {cause}"
    )


def _cause_rows(shares: Sequence[CauseShare], run: str, model: str) -> list[Row]:
    """The shares of a run over all failures, and by family and depth where there are several."""
    groups = ["all", *(g for g in ("family", "depth") if len({s.value for s in shares if s.group == g}) > 1)]
    return [
        {"run": run, "model": model, "group": s.group if s.group == "all" else f"{s.group} {s.value}",
         "cause": s.cause, "value": s.share, "low": s.low, "high": s.high, "count": s.count, "n": s.n,
         "interval": s.interval}
        for s in shares if s.group in groups
    ]  # fmt: skip


def _cause_panels(rows: Sequence[Row], panels: Sequence[str], order: Sequence[str]) -> Figure:
    most = max(len({r["group"] for r in rows if r["model"] == p}) for p in panels)
    fig, axes = style.grid_of(len(panels), 1, 5.6, 1.2 + 0.14 * most * (len(order) + 1))
    for (ax,), panel in zip(axes, panels, strict=True):
        mine = [r for r in rows if r["model"] == panel]
        groups = list(dict.fromkeys((r["group"], r["n"]) for r in mine))
        said = [f"{style.plain(group, 28)} (n={n})" for group, n in groups]
        style.dots(ax, mine, "cause", order, groups, said, lambda r: (r["group"], r["n"]))
        style.percent(ax, "x")
        style.dress(ax, style.plain(panel, 30), "share of the failures" * (panel == panels[-1]), grid="x")
    return fig
