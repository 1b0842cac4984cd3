"""Figures of skill maps: how often skills are used, steps that no skill covers, and the skills by granularity.

The figures are drawn from folders of ``composcope build skills`` (all maps of its grid). Usage can also be drawn from
runs whose parts name skills.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from ..run import is_run, read_json, read_lines
from ..run.reader import Row, RunData, load
from . import style
from .drawing import SKILLS, Drawing, curves, encodable, figure, source
from .drawing import words as in_words
from .grouping import few_marks, panels_of
from .scatters import one_per_benchmark

OTHER = "other"


@dataclass(frozen=True)
class SkillUse:
    """One skill map, with the number of uses of each skill."""

    source: str
    clusters: int | None
    """M; None if the skills are a run's own."""
    n_skills: int | None
    """N, the number of skills asked for."""
    usage: Mapping[str, int]
    """Number of steps by skill, including ``other``."""

    @property
    def total(self) -> int:
        return sum(self.usage.values())

    @property
    def entropy(self) -> float:
        """Entropy of the usage in bits, without ``other``."""
        counts = [c for s, c in self.usage.items() if s != OTHER and c]
        whole = sum(counts)
        return sum(c / whole * math.log2(whole / c) for c in counts) if whole else 0.0


def read_maps(paths: Sequence[str | Path | RunData]) -> list[SkillUse | RunData]:
    """Read folders of ``build skills`` as skill maps, and runs (and studies) as runs.

    Raises ``InputError`` for any other folder.
    """
    maps: list[SkillUse] = []
    runs: list[str | Path | RunData] = []
    for path in paths:
        folder = path.path if isinstance(path, RunData) else Path(path)
        if (folder / "granularity.jsonl").is_file() and not is_run(folder):
            maps += _maps(folder)
        else:
            runs.append(path)
    if not maps and not runs:
        raise InputError("no folder given; give folders of `composcope build skills`, or runs whose parts name skills")
    return [*maps, *(load(runs) if runs else ())]


def _maps(folder: Path) -> list[SkillUse]:
    rows = read_lines(folder / "granularity.jsonl")
    known = [r for r in rows if isinstance(r.get("usage"), dict)]
    if not known:
        raise InputError(f"{folder / 'granularity.jsonl'}: field 'usage' is missing; build the skills again")
    name = str(read_json(folder / "build.json").get("out", folder.name)) if (folder / "build.json").is_file() else ""
    return [SkillUse(name or folder.name, r["n_clusters"], r["n_skills"], r["usage"]) for r in known]


def _drawn(sources: Sequence[SkillUse | RunData]) -> tuple[list[SkillUse], Sequence[SkillUse | RunData]]:
    """What is drawn and where it is from: the maps, else the skills of runs, once per benchmark."""
    if maps := [s for s in sources if isinstance(s, SkillUse)]:
        return maps, maps
    runs = {r.path: r for r in sources if isinstance(r, RunData)}
    used = {path: Counter(p.skill for c in r.cases.values() for p in c.parts if p.skill) for path, r in runs.items()}
    chosen = one_per_benchmark([r for path, r in runs.items() if used[path]])
    return [SkillUse(r.benchmark, None, None, dict(used[r.path].most_common())) for r in chosen], chosen


def _made_by(sources: Sequence[SkillUse | RunData]) -> str:
    runs = [s for s in sources if isinstance(s, RunData)]
    maps = list(dict.fromkeys(s.source for s in sources if isinstance(s, SkillUse)))
    said = [f"Skill maps: {', '.join(maps)} (composcope build skills)." if maps else "", source(runs) if runs else ""]
    return " ".join(s for s in said if s)


def _empty(reason: str, sources: Sequence[SkillUse | RunData]) -> Drawing:
    drawing = in_words(reason, [])
    return Drawing(drawing.figure, [], encodable(f"{reason} {_made_by(sources)}".strip()), empty=reason)


@figure("skill-distribution", "How often each skill is called for", SKILLS, "optional", 22, read=read_maps)
def skill_distribution(sources: Sequence[SkillUse | RunData]) -> Drawing:
    """Share of steps per skill, one panel per map (M, N), with the entropy of the usage (STaD, Fig. 4)."""
    maps, made = _drawn(sources)
    if not maps:
        return _empty("No skill map and no run with skills here; `composcope build skills` makes them.", sources)
    if not any(one.usage for one in maps):
        return _empty("No step of these skill maps calls for a skill.", sources)
    rows: list[Row] = []
    fig, axes = panels_of(len(maps), 3.5, 2.6)
    for ax, one, name in zip(axes, maps, _names(maps), strict=False):
        order = sorted((s for s in one.usage if s != OTHER), key=lambda s: -one.usage[s])
        order += [OTHER] if OTHER in one.usage else []
        mine: list[Row] = [
            {"map": name, "clusters": one.clusters, "skills": one.n_skills, "skill": s, "id": i + 1,
             "count": one.usage[s], "n": one.total, "value": one.usage[s] / one.total if one.total else None,
             "entropy_bits": one.entropy}
            for i, s in enumerate(order)
        ]  # fmt: skip
        few_marks(mine)
        for r in mine:
            shade = style.OUTCOME_COLORS["invalid"] if r["skill"] == OTHER else style.SUCCESS
            ax.bar(r["id"], r["value"] or 0, width=0.75, **style.bar(r["n"], shade))
        ax.set_xticks(range(1, len(mine) + 1, max(1, -(-len(mine) // 10))))
        style.percent_up_to(ax, max((r["value"] or 0 for r in mine), default=1))
        ax.set_xlim(0.3, max(len(mine), 4) + 0.7)
        title = f"{name}, {style.counted(one.total)}\nH = {one.entropy:.2f} bits"
        style.dress(ax, title, "skill", "share of steps")
        rows += mine
    named = "; ".join(f"{r['map']}: {r['id']} {r['skill']}" for r in rows if r["id"] <= 5 and len(maps) <= 3)
    text = (
        "Share of all steps that call for each skill, most frequent first (gray: other). H is the entropy of the usage "
        f"without other; higher is more even.{' Skills: ' + named + '.' if named else ''} n per panel: "
        f"{', '.join(str(m.total) for m in maps)}. {style.few_cases(rows, '{map}', 'Starred')} Counts, no intervals."
    )
    return Drawing(style.finished(fig), rows, _tidy(f"{text} {_made_by(made)}"))


@figure("skill-coverage", "Steps that no skill fits", SKILLS, "", 39, read=read_maps)
def skill_coverage(sources: Sequence[SkillUse | RunData]) -> Drawing:
    """Share of steps that no skill fits, over N, one line per M (STaD, Fig. 5)."""
    maps = [s for s in sources if isinstance(s, SkillUse)]
    if not maps:
        return _empty("No skill maps here; give folders of `composcope build skills`.", sources)
    from ...evaluation.statistics import share

    rows: list[Row] = []
    for one in maps:
        count, n = one.usage.get(OTHER, 0), one.total
        rows.append({"map": one.source, "clusters": one.clusters, "skills": one.n_skills, "count": count,
                     **share(count, n)})  # fmt: skip
    names = _sources(maps)
    fig, panels = style.grid_of(1, len(names), 4.2, 3.2, sharey=True)
    for ax, (name, called) in zip(panels[0], names.items(), strict=True):
        mine = [r for r in rows if r["map"] == name]
        places = sorted({r["skills"] for r in mine})
        for i, m in enumerate(sorted({r["clusters"] for r in mine})):
            line = sorted((r for r in mine if r["clusters"] == m), key=lambda r: r["skills"])
            spots = [places.index(r["skills"]) + (i - 1) * 0.05 for r in line]
            style.points(ax, line, spots, style.color(i), f"M = {m}")
        ax.set_xticks(range(len(places)), [str(p) for p in places])
        style.percent_up_to(ax, max(r["high"] or 0 for r in rows))
        style.dress(ax, called, "N, skills asked for", "steps that no skill fits")
        style.legend(ax, loc="upper right")
    text = (
        "Share of steps assigned to “other”, over the number of skills asked for (N), each from M questions. The "
        "intervals take the steps of one question as independent."
    )
    low, high = min(r["n"] for r in rows), max(r["n"] for r in rows)
    few = style.few_cases(rows, "M {clusters}, N {skills}" if len(names) == 1 else "{map}, M {clusters}, N {skills}")
    chart = curves("skills", "clusters", panel="map", xlabel="N", ylabel="other", percent=True)
    said = f"{text} n = {low} to {high} steps. {few} {style.interval_methods(rows)} {_made_by(maps)}"
    return Drawing(style.finished(fig), rows, _tidy(said), chart)


@figure("skill-granularity", "The skills, by how many were asked for", SKILLS, "", 39, read=read_maps)
def skill_granularity(sources: Sequence[SkillUse | RunData], top: int = 12) -> Drawing:
    """The skills of each map, one list per number of skills N, with the uses of each (STaD, Fig. 6-8)."""
    maps, made = _drawn(sources)
    if not maps:
        return _empty("No skill map and no run with skills here; `composcope build skills` makes them.", sources)
    widest = max((m.clusters or 0) for m in maps)
    shown = sorted((m for m in maps if (m.clusters or 0) == widest), key=lambda m: m.n_skills or 0)
    rows: list[Row] = []
    longest = min(top, max(len(m.usage) for m in shown))
    fig, panels = style.grid_of(1, len(shown), 4.0, 1.3 + 0.24 * longest)
    for ax, one, name in zip(panels[0], shown, _names(shown), strict=True):
        order = sorted(one.usage, key=lambda s: (s == OTHER, -one.usage[s]))
        for i, s in enumerate(order):
            seen = style.weight(one.total) if i < top else "no"
            rows.append({"map": name, "clusters": one.clusters, "skills": one.n_skills, "skill": s, "id": i + 1,
                         "count": one.usage[s], "n": one.total, "drawn": seen})  # fmt: skip
        mine = order[:top]
        for y, s in enumerate(mine):
            ax.barh(y, one.usage[s], height=0.62, **style.bar(one.total, style.SUCCESS))
        ax.set_yticks(range(len(mine)), [style.plain(s, 34) for s in mine])
        ax.set_ylim(longest - 0.4, -0.6)
        style.dress(ax, f"{name}, {style.counted(one.total)}", "steps", grid="x")
    more = f" Skills after the first {top} are in the csv." if any(len(m.usage) > top for m in shown) else ""
    text = (
        "Skills of each map by the number of steps that call for them, for each number of skills asked for. With few "
        f"skills, different steps share one; with many, one step is split.{more} n per panel: "
        f"{', '.join(str(m.total) for m in shown)}. "
        f"{style.few_cases(rows, '{map}', 'Starred')} Counts, no intervals."
    )
    return Drawing(style.finished(fig), rows, _tidy(f"{text} {_made_by(made)}"))


def _tidy(text: str) -> str:
    return encodable(" ".join(text.split()))


def _sources(maps: Sequence[SkillUse]) -> dict[str, str]:
    """A short name for each source: the last part of its path if that tells them apart."""
    short = {one.source: Path(one.source).name for one in maps}
    return short if len(set(short.values())) == len(short) else {source: source for source in short}


def _names(maps: Sequence[SkillUse]) -> list[str]:
    """The name of each map: M and N, with the source if there are several, or the source alone without M."""
    called = _sources(maps)
    sizes = [f"M={one.clusters}, N={one.n_skills}" for one in maps]
    return [
        called[one.source] if one.clusters is None else size if len(called) == 1 else f"{called[one.source]}: {size}"
        for one, size in zip(maps, sizes, strict=True)
    ]
