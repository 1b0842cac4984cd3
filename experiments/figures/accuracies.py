"""Figures of accuracies: of steps and whole with their gaps, by scaffolds, extra context, way of asking and skill."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...evaluation.graded import role_order
from ...evaluation.metrics import Metric, span
from ...evaluation.protocols import counting
from ...evaluation.protocols.base import about
from ...evaluation.protocols.reasoning_gap import code_gain
from ...files import short_name
from ..run.compare import shared_cases
from ..run.reader import Row, RunData
from ..run.summary import chance_stated, counted_rows
from . import style
from .drawing import CONTEXT, GAP, SCAFFOLDS, VERSUS, Drawing, curves, drawn, figure, need, point
from .grouping import grouped, having, labels, labels_by_benchmark, steps_of, table
from .scatters import marks


@figure("scaffold-gain", "With any scaffold", SCAFFOLDS, "optional", 20)
def scaffold_gain(runs: Sequence[RunData]) -> Drawing:
    """Accuracy on the originals and with any scaffold, one panel per benchmark (STaD, Fig. 2)."""
    chosen = having(runs, "composition", "any_scaffold")
    names = labels_by_benchmark(chosen)
    series = {"composition": "original", "any_scaffold": "with any scaffold"}
    rows = [
        point(r, names[r.path], m, benchmark=r.benchmark, asked=text)
        for r in chosen
        for metric, text in series.items()
        if (m := r.one(metric))
    ]
    need(rows, "No run here asked with scaffolds; use the protocol scaffolding.")
    text = (
        "Share solved as asked, and solved as asked or with any number of steps revealed. The gain comes from the "
        "revealed values; it does not show a better model."
    )
    return _panels(rows, chosen, "asked", list(series.values()), "accuracy", text)


@figure("context-control", "First steps with the whole's numbers added", CONTEXT, "optional", 23)
def context_control(runs: Sequence[RunData]) -> Drawing:
    """First steps, first steps with the whole's numbers added, and the whole (AgentCoMa, Fig. 6)."""
    chosen = [r for r in having(runs, "step:0", "composition") if r.one("step:0", prompt="extra-context")]
    names = labels_by_benchmark(chosen)
    rows: list[Row] = []
    for run in chosen:
        found = {
            "first step": run.one("step:0"),
            "first step, extra context": run.one("step:0", prompt="extra-context"),
            "whole": run.one("composition"),
        }
        rows += [point(run, names[run.path], m, benchmark=run.benchmark, asked=k) for k, m in found.items() if m]
    need(rows, "No run here asked first steps with extra context: the cases have no such wording.")
    order = ["first step", "first step, extra context", "whole"]
    text = "Accuracy on the first step, on the first step with the whole's irrelevant numbers added, and on the whole."
    return _panels(rows, chosen, "asked", order, "accuracy", text)


def _panels(rows: list[Row], runs: Sequence[RunData], key: str, order: Sequence[str], axis: str, text: str) -> Drawing:
    """Horizontal dots by model, with one color per value of ``key`` and one panel per benchmark."""
    benchmarks = list(dict.fromkeys(r["benchmark"] for r in rows))
    models = list(dict.fromkeys(r["model"] for r in rows))
    step = len(order) + 1
    fig, panels = style.grid_of(1, len(benchmarks), 4.6, 1.4 + 0.24 * len(models) * step, sharey=True)
    for ax, benchmark in zip(panels[0], benchmarks, strict=True):
        mine = [r for r in rows if r["benchmark"] == benchmark]
        style.dots(ax, mine, key, order, models, [style.plain(m, 30) for m in models])
        style.percent(ax, "x")
        style.dress(ax, benchmark, axis, grid="x")
    return drawn(fig, rows, text, runs, f"{{model}}, {{benchmark}}, {{{key}}}")


@figure("prompt-gain", "Relative gain of other ways to ask", GAP + " --also cot,self-ask", "optional", 24)
def prompt_gain(runs: Sequence[RunData]) -> Drawing:
    """Relative gain of other ways to ask over the usual way; code comes first (Compositional GSM, Fig. 8)."""
    chosen = [r for r in runs if any(_way(g.role) for g in r.graded)]
    names = labels(chosen)
    rows = [row for run in chosen for row in _gains(run, names[run.path])]
    need(rows, "No run here asked wholes in another way; use --code or --also cot,self-ask, ...")
    ways = list(dict.fromkeys(r["way"] for r in rows))
    models = list(dict.fromkeys(r["model"] for r in rows))
    fig, panels = style.grid_of(1, len(ways), 4.0, 1.4 + 0.34 * len(models), sharey=True)
    for ax, way in zip(panels[0], ways, strict=True):
        mine = [r for r in rows if r["way"] == way]
        places = [models.index(r["model"]) for r in mine]
        style.points(ax, mine, places, style.color(0), "", line=False, horizontal=True)
        ax.axvline(0, color=style.MUTED, linewidth=1)
        style.names(ax, models, 28)
        style.signed_percent(ax)
        style.dress(ax, way, "relative gain", grid="x")
    text = (
        "(accuracy asked this way − accuracy of the usual whole) / accuracy of the usual whole, over the cases judged "
        "both ways; undefined where no usual whole is right."
    )
    return drawn(fig, rows, text, chosen, "{model}, {way}")


_OF_A_GAIN = ("n", "n_invalid", "value", "interval", "low", "high")


def _way(role: str) -> str | None:
    """The way of asking of a role; None for the usual whole and for parts."""
    if role in ("code", "self-ask"):
        return role
    return role.removeprefix("whole:") if role.startswith("whole:") and role != "whole:reversed" else None


def _gains(run: RunData, label: str) -> list[Row]:
    items = counting.items(counted_rows(run))
    rows: list[Row] = []
    for role in sorted({r for item in items for r in item.rows if _way(r)}):
        asked = [item for item in items if role in item.rows]
        known = [pair for i in asked if None not in (pair := (i.truth(role), i.truth("whole")))]
        counts = {name: sum(pair[i] is True for pair in known) for i, name in enumerate(("count", "usual"))}
        gain = code_gain(asked, {}, run.seed, role).to_dict()
        rows.append({"run": run.name, "model": label, "way": _way(role), **counts,
                     **{k: gain[k] for k in _OF_A_GAIN}})  # fmt: skip
    return rows


@figure("skill-heatmap", "Skills asked alone", SCAFFOLDS, "optional", 21)
def skill_heatmap(runs: Sequence[RunData], top: int = 12) -> Drawing:
    """Accuracy on each skill asked alone, skill x model, the most frequent skills first (STaD, Table 2)."""
    chosen = having(runs, "skill_accuracy")
    names = labels(chosen)
    rows = [
        point(r, names[r.path], m, skill=str(m.group["skill"]))
        for r in chosen
        for m in r.select("skill_accuracy", "skill")
    ]
    need(rows, "No run here has accuracies by skill: the parts name no skills.")
    sizes: dict[str, int] = {}
    for r in rows:
        sizes[r["skill"]] = max(sizes.get(r["skill"], 0), r["n"] or 0)
    skills = sorted(sizes, key=lambda s: -sizes[s])
    shown, models = skills[:top], list(dict.fromkeys(r["model"] for r in rows))
    fig, ax = style.one_panel(3.4 + 0.75 * len(models), 1.5 + 0.34 * len(shown))
    table(ax, rows, shown, models, lambda r: (r["skill"], r["model"]))
    for row in rows:
        if row["skill"] not in shown:
            row["drawn"] = "no"
    turned = max(len(m) for m in models) > 9
    ax.set_xticks(range(len(models)), [style.plain(m, 22) for m in models], rotation=30 if turned else 0,
                  ha="right" if turned else "center")  # fmt: skip
    ax.set_yticks(range(len(shown)), [style.plain(s, 44) for s in shown])
    style.dress(ax, "Skills asked alone, % right", grid=None)
    more = f" The {len(skills) - top} rarer ones are in the csv." if len(skills) > top else ""
    text = (
        f"Accuracy in percent on the steps that call for each skill, asked alone, the most frequent skills first.{more}"
    )
    return drawn(fig, rows, text, chosen, "{model}, {skill}", mark="Starred")


def step_gains(a: RunData, b: RunData) -> list[Row]:
    """A - B for every step and for the whole, paired over the cases that both models were asked."""
    same = shared_cases(a, b)
    pairs = counting.paired(same.of(counted_rows(a)), same.of(counted_rows(b)))
    steps = about(a.protocol).two_steps
    asked = {r for x, _ in pairs for r in x.rows if steps and r.startswith("part:") and r.count(":") == 1}
    found = {role: counting.gain(pairs, role, {}, a.seed) for role in (*sorted(asked, key=role_order), "whole")}
    named = {role: "whole" if role == "whole" else f"step {int(role.split(':')[1]) + 1}" for role in found}
    return [{"asked": named[role], **{k: getattr(m, k) for k in _OF_A_GAIN}} for role, m in found.items() if m]


def matched(runs: Sequence[RunData]) -> list[tuple[Mapping[str, Any], RunData, RunData]]:
    """The matched pairs of the runs' studies, on each data set; without any, each run compared with the first.

    Runs of one model are compared only if they have the same protocol: they differ in how it was run or asked.
    """
    found: list[tuple[Mapping[str, Any], RunData, RunData]] = []
    for mine in _by_data(runs):
        studies: dict[Path, list[RunData]] = {}
        for r in mine:
            if r.study.get("pairs"):
                studies.setdefault(r.path.parent, []).append(r)
        for own in studies.values():
            by_label = {str(r.about.get("label") or r.model): r for r in reversed(own)}
            found += [(p, by_label[p["a"]], by_label[p["b"]]) for p in own[0].study["pairs"]
                      if p["a"] in by_label and p["b"] in by_label]  # fmt: skip
        found += [({"kind": "reference"}, run, mine[0]) for run in mine[1:]
                  if not studies and (run.model != mine[0].model or run.protocol == mine[0].protocol)]  # fmt: skip
    return found


def names_in_pairs(runs: Sequence[RunData]) -> dict[Path, str]:
    """Short names that are unique among the runs that ``matched`` may pair."""
    return {path: name for mine in _by_data(runs) for path, name in labels(mine).items()}


def _by_data(runs: Sequence[RunData]) -> list[list[RunData]]:
    """The runs of each benchmark; one that is alone on its file joins those on a file of that name with some of its
    cases, such as another version of it.
    """
    found: list[list[RunData]] = []
    of_benchmark = [[r for r in runs if r.benchmark == b] for b in dict.fromkeys(r.benchmark for r in runs)]
    for mine in of_benchmark:
        near = next((group for group in found if 1 in (len(mine), len(group)) and _versions(group[0], mine[0])), None)
        found.append(mine) if near is None else near.extend(mine)
    return found


def _versions(a: RunData, b: RunData) -> bool:
    return short_name(a.benchmark) == short_name(b.benchmark) and bool(shared_cases(a, b).same)


@figure("pair-gains", "Matched models, step by step", GAP + " (for two models)", "optional", 29)
def pair_gains(runs: Sequence[RunData]) -> Drawing:
    """Gain of one model of a matched pair over the other, on the steps and on the whole (Compositional GSM, Fig. 5)."""
    rows: list[Row] = []
    called = names_in_pairs(runs)
    for pair, a, b in matched(runs):
        said = f"{called[a.path]} − {called[b.path]}"
        about = {"run": f"{a.name}{VERSUS}{b.name}", "kind": str(pair["kind"]), "pair": said}
        rows += [{**about, "benchmark": a.benchmark, **row} for row in step_gains(a, b)]
    need(rows, "No two runs here share cases: give two models on one benchmark, or a study with pairs.")
    asked = list(dict.fromkeys(r["asked"] for r in rows))
    names = list(dict.fromkeys((r["kind"], r["pair"], r["benchmark"]) for r in rows))
    several = len({b for _, _, b in names}) > 1
    step = len(asked) + 1
    fig, ax = style.one_panel(6.4, 1.4 + 0.26 * len(names) * step)
    said = [style.lines(f"{p}\n({k}{', ' + b if several else ''})", 34) for k, p, b in names]
    style.dots(ax, rows, "asked", asked, names, said, lambda r: (r["kind"], r["pair"], r["benchmark"]))
    ax.axvline(0, color=style.MUTED, linewidth=1)
    style.signed_points(ax)
    style.dress(ax, "Matched pairs, A − B", "difference in accuracy, points", grid="x")
    style.legend(ax, loc="center left", bbox_to_anchor=(1.0, 0.5))
    text = "Difference in accuracy of two matched models over the same cases, on each step and on the whole: A − B."
    return drawn(fig, rows, text, runs, "{pair}, {benchmark}, {asked}" if several else "{pair}, {asked}")


STEPS = {"both": "both", "composition": "whole"}


@figure("step-bars", "Accuracy on steps and whole", GAP, "behavior", 11)
def step_bars(runs: Sequence[RunData], group_by: str | None = None) -> Drawing:
    """Accuracy on each step, on both and on the whole, per model, ordered by ``group_by`` (AgentCoMa, Fig. 3)."""
    order = grouped(having(runs, "step:0"), group_by)
    rows = _steps(order.runs, order.names)
    need(rows, "No run here has step accuracies; the protocol compositionality-gap measures them.")
    runs = order.runs
    models = list(dict.fromkeys(r["model"] for r in rows))
    steps = _in_order(rows)
    fig, ax = style.one_panel(6.4, 1.2 + 0.27 * len(models) * (len(steps) + 1))
    style.bars(ax, rows, "step", steps, models, [style.plain(m, 30) for m in models])
    style.percent(ax, "x", low=0.03)
    style.dress(ax, "Accuracy on the parts and on the whole", grid="x")
    text = f"Accuracy per step, on both steps and on the whole.{order.text}{_chance(runs)}"
    return drawn(fig, rows, text, runs, "{model}, {step}", mark="Starred")


@figure("gap-slopes", "From the steps to the whole", GAP, "first", 2)
def gap_slopes(runs: Sequence[RunData]) -> Drawing:
    """One line per model over step 1, step 2, both and the whole; one panel per benchmark (AgentCoMa, Fig. 4)."""
    runs = having(runs, "step:0")
    rows = _steps(runs, labels_by_benchmark(runs))
    need(rows, "No run here has step accuracies; the protocol compositionality-gap measures them.")
    benchmarks = list(dict.fromkeys(r["benchmark"] for r in rows))
    steps = _in_order(rows)
    fig, panels = style.grid_of(1, len(benchmarks), 5.2, 3.8, sharey=True)
    models = list(dict.fromkeys(r["model"] for r in rows))
    for ax, benchmark in zip(panels[0], benchmarks, strict=True):
        mine = [r for r in rows if r["benchmark"] == benchmark]
        style.abreast(ax, mine, lambda r: r["model"], style.looks(models), lambda r: steps.index(r["step"]), 0.05)
        ax.set_xticks(range(len(steps)), steps)
        style.percent(ax)
        style.dress(ax, benchmark, y="accuracy")
    text = f"Accuracy on the single steps, on both steps and on the whole.{_chance(runs)}{_gaps(runs)}"
    cell_name = "{model}, {step}" if len(benchmarks) == 1 else "{model}, {benchmark}, {step}"
    chart = curves("step", "model", panel="benchmark", xlabel="", ylabel="accuracy", percent=True, order=steps)
    return drawn(fig, rows, text, runs, cell_name, chart)


@figure("gap-scatter", "The whole against independent steps", GAP, "behavior", 10)
def gap_scatter(runs: Sequence[RunData]) -> Drawing:
    """The whole against the geometric mean of the steps, with y = x^2 (Compositional GSM, Fig. 1)."""
    chosen = [r for r in having(runs, "step:0", "composition") if len(steps_of(r)) == 2]
    names = labels(chosen)
    rows = []
    for run in chosen:
        if (whole := run.one("composition")) and (root := _root(run)).value is not None:
            about = {"root_s1_s2": root.value, "x": root.value, "x_low": root.low, "x_high": root.high, "n_x": root.n}
            rows.append({**point(run, names[run.path], whole), **about})
    need(rows, "No run here has accuracies on two steps and on the whole.")
    fig, ax = style.one_panel(4.4, 4.2)
    grid = [i / 50 for i in range(51)]
    ax.plot(grid, [g * g for g in grid], "--", color=style.MUTED, linewidth=1.2, label="independent steps: y = x²")
    marks(ax, rows, "The whole against independent steps", "√(S1 · S2)", "accuracy on the whole")
    text = (
        "Accuracy on the whole against the geometric mean of both steps. The curve shows independent steps; below it, "
        "the whole is harder than its steps taken independently."
    )
    return drawn(fig, rows, text, chosen, "{model}")


def _root(run: RunData) -> Metric:
    """sqrt(S1 S2) over the cases with both steps judged, with its bootstrap interval."""
    items = counting.items(counted_rows(run))
    steps = [(i, i.truth("part:0"), i.truth("part:1")) for i in items]
    known = [(i, bool(a), bool(b)) for i, a, b in steps if a is not None and b is not None]

    def root(sums: np.ndarray) -> np.ndarray:
        return np.sqrt(sums[..., 1] * sums[..., 2]) / sums[..., 0]

    seed, columns = run.seed, [(1, a, b) for _, a, b in known]
    return counting.statistic(
        "root", columns, root, {}, seed=seed, clusters=counting.clusters_of([i for i, _, _ in known])
    )


@figure("gaps", "Three gaps on the same answers", GAP, "behavior", 9)
def gaps(runs: Sequence[RunData], group_by: str | None = None) -> Drawing:
    """The published gaps side by side, one row of panels per benchmark: comp - both, comp - S1*S2, P(fail | both).

    ``group_by`` (``family``, ``size``, ``cost``, ``tuning``, ...) orders the models by this field of their study, with
    one color per group (Compositional GSM, Fig. 4-6).
    """
    order = grouped(having(runs, "gap"), group_by)
    metrics = {"gap": "whole − both", "independence_gap": "whole − S1·S2", "press_gap": "P(whole wrong | both right)"}
    rows = [
        point(r, order.names[r.path], m, benchmark=r.benchmark, gap=k)
        for k in metrics for r in order.runs if (m := r.one(k))
    ]  # fmt: skip
    need(rows, "No run here has a compositionality gap.")
    benchmarks = {b: list(dict.fromkeys(r["model"] for r in rows if r["benchmark"] == b))
                  for b in dict.fromkeys(r["benchmark"] for r in rows)}  # fmt: skip
    tall = [1.1 + 0.3 * len(models) for models in benchmarks.values()]
    fig, grid = style.grid_of(len(benchmarks), len(metrics), 2.9, sum(tall) / len(tall), sharex="col", sharey="row",
                              height_ratios=tall)  # fmt: skip
    for line, (benchmark, models) in zip(grid, benchmarks.items(), strict=True):
        for ax, (key, title) in zip(line, metrics.items(), strict=True):
            for row in (r for r in rows if (r["gap"], r["benchmark"]) == (key, benchmark)):
                shade = style.color(order.places[row["model"]])
                style.points(ax, [row], [models.index(row["model"])], shade, "", line=False, horizontal=True)
            ax.axvline(0, color=style.MUTED, linewidth=1)
            style.percent(ax, "x") if key == "press_gap" else style.signed_points(ax)
            last = line is grid[-1]
            style.dress(ax, title if line is grid[0] else "", ("share" if key == "press_gap" else "points") * last,
                        benchmark if ax is line[0] else "", grid="x")  # fmt: skip
        style.names(line[0], models, 28)
    text = f"Three published gaps on the same answers; each compares the whole with another baseline.{order.text}"
    return drawn(fig, rows, text, order.runs, "{model}, {gap}")


def _steps(runs: Sequence[RunData], names: Mapping[Path, str]) -> list[Row]:
    rows = []
    for run in runs:
        for metric in (*(f"step:{i}" for i in steps_of(run)), *STEPS):
            name = STEPS.get(metric) or f"step {int(metric.split(':')[1]) + 1}"
            if m := run.one(metric):
                rows.append(point(run, names[run.path], m, benchmark=run.benchmark, step=name))
    return rows


def _in_order(rows: Sequence[Row]) -> list[str]:
    """The names of all steps, then both and the whole, also if the first run has fewer steps than another."""
    found = {r["step"] for r in rows}
    steps = sorted(found - set(STEPS.values()), key=lambda name: int(name.removeprefix("step ")))
    return [*steps, *(name for name in STEPS.values() if name in found)]


def _chance(runs: Sequence[RunData]) -> str:
    levels = {(r.benchmark, c, chance_stated([r])) for r in runs if (c := r.chance) is not None}
    return "".join(f" Chance level of the whole on {b}: {100 * c:.3g} %{of}." for b, c, of in sorted(levels))


def _gaps(runs: Sequence[RunData]) -> str:
    chosen = having(runs, "gap")
    names = labels(chosen)
    found = [(names[r.path], m) for r in chosen if (m := r.one("gap")) and m.value is not None]
    shown = "{:+.1f}".format
    return "".join(
        f" Gap (whole − both) of {style.plain(n)}: {shown(100 * (m.value or 0))} points"
        f"{span(m.low, m.high, lambda end: shown(100 * end))}, n={m.n}."
        for n, m in found
    )
