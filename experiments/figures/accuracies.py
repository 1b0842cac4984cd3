"""Figures that compare accuracies: with scaffolds, with extra context, by way of asking, by skill and by model."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...evaluation.protocols import counting
from ...evaluation.protocols.base import about
from ...evaluation.protocols.counting import Item
from ...evaluation.protocols.reasoning_gap import code_gain
from ..run.compare import shared_cases
from ..run.reader import Row, RunData
from ..run.summary import counted_rows
from . import style
from .drawing import GAP, SCAFFOLDS, Drawing, drawn, figure, need, point
from .grouping import having, labels, labels_by_benchmark, table


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


@figure(
    "context-control",
    "First steps with the whole's numbers added",
    GAP + " (with cases whose parts have extra_context)",
    "optional",
    23,
)
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


def _way(role: str) -> str | None:
    """The way of asking of a role; None for the usual whole and for parts."""
    if role in ("code", "self-ask"):
        return role
    return role.removeprefix("whole:") if role.startswith("whole:") and role != "whole:reversed" else None


def _gains(run: RunData, label: str) -> list[Row]:
    items = counting.items(counted_rows(run))
    roles = sorted({r for item in items for r in item.rows if _way(r)})
    rows: list[Row] = []
    for role in roles:
        found = _gain([item for item in items if role in item.rows], role, run.seed)
        rows.append({"run": run.name, "model": label, "way": _way(role), **found})
    return rows


def _gain(items: Sequence[Item], role: str, seed: int) -> dict[str, Any]:
    known = [pair for i in items if None not in (pair := (i.truth(role), i.truth("whole")))]
    found = code_gain(items, {}, seed, role).to_dict()
    kept = ("n", "n_invalid", "value", "interval", "low", "high")
    counts = {name: sum(pair[i] is True for pair in known) for i, name in enumerate(("count", "usual"))}
    return {**counts, **{k: found[k] for k in kept}}


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
    roles = sorted({r for x, _ in pairs for r in x.rows if steps and r.startswith("part:") and r.count(":") == 1})
    found = {role: counting.gain(pairs, role, {}, a.seed) for role in (*roles[:2], "whole")}
    kept = ("n", "n_invalid", "value", "interval", "low", "high")
    named = {role: "whole" if role == "whole" else f"step {int(role.split(':')[1]) + 1}" for role in found}
    return [{"asked": named[role], **{k: getattr(m, k) for k in kept}} for role, m in found.items() if m]


def matched(runs: Sequence[RunData]) -> list[tuple[Mapping[str, Any], RunData, RunData]]:
    """The matched pairs of the runs' study, on each data set; without a study, each run compared with the first.

    Runs of one model are compared only if they have the same protocol: they differ in how it was run or asked.
    """
    found: list[tuple[Mapping[str, Any], RunData, RunData]] = []
    for benchmark in dict.fromkeys(r.benchmark for r in runs):
        mine = [r for r in runs if r.benchmark == benchmark]
        by_label = {str(r.about.get("label") or r.model): r for r in mine}
        pairs = [p for r in mine[:1] for p in r.study.get("pairs", [])]
        found += [(p, by_label[p["a"]], by_label[p["b"]]) for p in pairs if p["a"] in by_label and p["b"] in by_label]
        found += [({"kind": "reference"}, run, mine[0]) for run in mine[1:]
                  if not pairs and (run.model != mine[0].model or run.protocol == mine[0].protocol)]  # fmt: skip
    return found


@figure("pair-gains", "Matched models, step by step", GAP + " (for two models)", "optional", 29)
def pair_gains(runs: Sequence[RunData]) -> Drawing:
    """Gain of one model of a matched pair over the other, on the steps and on the whole (Compositional GSM, Fig. 5)."""
    rows: list[Row] = []
    called = labels_by_benchmark(runs)
    for pair, a, b in matched(runs):
        said = f"{called[a.path]} − {called[b.path]}"
        about = {"run": f"{a.name} − {b.name}", "kind": str(pair["kind"]), "pair": said}
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
