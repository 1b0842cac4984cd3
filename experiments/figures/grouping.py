"""Choose the runs that a figure shows, their names, their order (family, size, cost, tuning, ...) and their panels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...errors import InputError
from ..run.reader import RunData
from . import style

ACROSS = 4
"""Panels side by side."""


@dataclass(frozen=True)
class Grouped:
    """Runs ordered by group, those without one last."""

    runs: Sequence[RunData]
    names: Mapping[Path, str]
    """``group · model``, or only the model if it has no group."""
    places: Mapping[str, int]
    """The number of each group, by name: the first, the second, ..."""
    text: str
    """The caption's sentence; empty without ``group_by``."""


def grouped(runs: Sequence[RunData], group_by: str | None) -> Grouped:
    """``runs`` ordered by a field of the study's models file, or unchanged without ``group_by``.

    Raises ``InputError`` if the study gives this field for no model.
    """
    said = {r.path: r.about.get(group_by) if group_by else None for r in runs}
    if group_by and runs and all(g is None for g in said.values()):
        raise InputError(
            f"--group-by {group_by}: no model here has this field; give it in the models file of a study (family, "
            "size, cost, tuning, recipe, specialization)"
        )
    known = sorted({g for g in said.values() if g is not None}, key=lambda g: (isinstance(g, str), g))
    place = {p: len(known) if g is None else known.index(g) for p, g in said.items()}
    ordered = sorted(runs, key=lambda r: place[r.path])
    names = {p: n if said[p] is None else f"{said[p]} · {n}" for p, n in labels(ordered).items()}
    text = ""
    if group_by is not None:
        missing = [n for p, n in names.items() if said[p] is None]
        text = f" Ordered by {group_by}." + (f" Without {group_by}: {', '.join(missing)}." if missing else "")
    return Grouped(ordered, names, {names[p]: i for p, i in place.items()}, text)


def having(runs: Sequence[RunData], *metrics: str) -> list[RunData]:
    """The runs that have all of these metrics; figures name and count only these."""
    return [r for r in runs if set(metrics) <= {m.metric for m in r.metrics}]


def labels(runs: Sequence[RunData]) -> dict[Path, str]:
    """A short unique name per run: the model if that is enough, else with the benchmark, else the folder."""
    for make in (lambda r: r.model, lambda r: f"{r.model} · {r.benchmark}", lambda r: r.name):
        names = [make(r) for r in runs]
        if len(set(names)) == len(runs):
            return {r.path: n for r, n in zip(runs, names, strict=True)}
    return {r.path: f"{r.name} ({i})" for i, r in enumerate(runs, 1)}


def labels_by_benchmark(runs: Sequence[RunData]) -> dict[Path, str]:
    """Short names that are unique within each benchmark, for figures with one panel per benchmark."""
    found: dict[Path, str] = {}
    for benchmark in dict.fromkeys(r.benchmark for r in runs):
        found |= labels([r for r in runs if r.benchmark == benchmark])
    return found


def small_multiples(
    runs: Sequence[RunData], width: float, height: float, x: str, y: str = ""
) -> tuple[Figure, dict[Path, Axes]]:
    """One panel per run, all with the same axes: one row of panels per benchmark, one column per model."""
    fig, panels = small_multiples_by(runs, ("",), width, height, x, y)
    return fig, {path: ax for (path, _), ax in panels.items()}


def small_multiples_by(
    runs: Sequence[RunData], forms: Sequence[str], width: float, height: float, x: str, y: str = ""
) -> tuple[Figure, dict[tuple[Path, str], Axes]]:
    """One panel per run and form of what is measured: one row of panels per benchmark and form, with one y axis."""
    within = labels_by_benchmark(runs)
    columns = list(dict.fromkeys(within.values()))
    lines = [(b, form) for b in dict.fromkeys(r.benchmark for r in runs) for form in forms]
    across = min(len(columns), ACROSS)
    deep = -(-len(columns) // across)
    wide = max(width, 4.4 / across)
    fig, grid = style.grid_of(deep * len(lines), across, wide, height, sharex=True, sharey="row")
    places = {
        (r.path, form): (deep * lines.index((r.benchmark, form)) + columns.index(within[r.path]) // across,
                         columns.index(within[r.path]) % across) for r in runs for form in forms
    }  # fmt: skip
    taken = set(places.values())
    for line, axes in enumerate(grid):
        for column, ax in enumerate(axes):
            ax.set_axis_off()
            below = any((lower, column) in taken for lower in range(line + 1, len(grid)))
            left = any((line, nearer) in taken for nearer in range(column))
            ax.tick_params(labelbottom=not below, labelleft=not left)
    panels = {key: grid[line][column] for key, (line, column) in places.items()}
    several, shown = len(lines) > 1, {r.path: r.benchmark for r in runs}
    named = len(set(shown.values())) > 1
    for (path, form), ax in panels.items():
        ax.set_axis_on()
        style.dress(ax, within[path])
        if places[path, form][1] == 0:
            said = ", ".join(filter(None, (style.plain(shown[path], 24) if named else "", form))) if several else y
            ax.set_ylabel(said, fontsize=8.5, color=style.INK if several else style.MUTED)
    fig.supxlabel(x, fontsize=8.5, color=style.MUTED)
    if several:
        fig.supylabel(y, fontsize=8.5, color=style.MUTED)
    return fig, panels
