"""Which runs a figure shows, their names, their order (family, size, cost, tuning, ...), and the grids of its panels.

Grids of colored cells (layer by head, task by task, model by skill), too; cells with few cases are hatched.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure

from ...errors import InputError
from ..run.reader import Array, Row, RunData
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
    said = {p: ", ".join(map(str, g)) if isinstance(g, list) else g for p, g in said.items()}
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


def steps_of(run: RunData) -> list[int]:
    """The numbers of the steps that a run has metrics of, from 0 and in order."""
    return sorted({int(m.metric.partition(":")[2]) for m in run.metrics if m.metric.startswith("step:")})


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
    runs: Sequence[RunData], width: float, height: float, x: str, y: str = "", forms: Sequence[str] = ("",)
) -> tuple[Figure, dict[tuple[Path, str], Axes]]:
    """One panel per run and form of what is measured, with the same x axis.

    A row of panels per benchmark and form has one y axis; a column is of one model.
    """
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


FAMILIES = 24
"""Families that a picture has room for: more take minutes to draw, and no page can show them."""


def of_largest_families(
    rows: Sequence[Row], family: Callable[[Row], str | None] = lambda row: row["family"], cases: str = "n"
) -> tuple[list[Row], str]:
    """The rows of the families with the most cases, and those without a family; the others are marked as not drawn.

    The sentence on the others begins with a space; it is empty if there are none.
    """
    sizes = Counter[str]()
    for row in rows:
        if (name := family(row)) is not None:
            sizes[name] += row[cases]
    left = set(sorted(sizes, key=lambda name: (-sizes[name], name))[FAMILIES:])
    for row in rows:
        if family(row) in left:
            row["drawn"] = "no"
    said = (
        f" The picture has the {FAMILIES} families with the most cases; the csv has {len(left)} more." if left else ""
    )
    return [row for row in rows if family(row) not in left], said


def panels_of(n: int, width: float, height: float, across: int = 4) -> tuple[Figure, list[Axes]]:
    columns = min(n, across)
    fig, grid = style.grid_of(-(-n // columns), columns, width, height)
    axes = [ax for row in grid for ax in row]
    for ax in axes[n:]:
        ax.set_axis_off()
    return fig, axes


def heat(ax: Axes, matrix: Array, cmap: Colormap, low: float, high: float, *,
         say: Callable[[float], str] | None = None, counts: Any = None) -> Any:  # fmt: skip
    """A grid of colored cells, first row on top; cells that are NaN stay empty.

    ``counts`` gives the number of cases behind each cell (one number, or an array that broadcasts to the cells; NaN if
    unknown); a cell with fewer than 5 is hatched. ``say`` makes the text in each cell.
    """
    values = np.ma.masked_invalid(np.asarray(matrix, dtype=float))
    known = np.full(values.shape, np.nan) if counts is None else np.broadcast_to(counts, values.shape)
    known = np.asarray(known, dtype=float)
    image = ax.imshow(values, cmap=cmap, vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    few = [(i, j) for i, j in np.argwhere(known < style.HOLLOW_BELOW) if not np.ma.is_masked(values[i, j])]
    corners = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
    if few:
        ax.add_collection(PolyCollection([[(j + x, i + y) for x, y in corners] for i, j in few], hatch="////",
                                         facecolors="none", edgecolors=style.MUTED, linewidths=0))  # fmt: skip
    for (i, j), v in np.ndenumerate(np.asarray(matrix, dtype=float)) if say else ():
        drawn, hatched = np.isfinite(v), (i, j) in few
        ink = style.INK if hatched else style.legible(v, low, high, cmap) if drawn else style.MUTED
        star = "*" if drawn and style.HOLLOW_BELOW <= known[i, j] < style.MARKED_BELOW else ""
        box = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.2} if hatched else None
        said = f"{say(v)}{star}" if drawn and say else "–"
        ax.text(j, i, said, ha="center", va="center", fontsize=8, color=ink, bbox=box)
    for axis, n in ((ax.yaxis, values.shape[0]), (ax.xaxis, values.shape[1])):
        axis.set_ticks(range(0, n, max(1, -(-n // 10))))
    return image


def table(ax: Axes, rows: Sequence[Row], lines: Sequence[Any], columns: Sequence[Any],
          place: Callable[[Row], tuple[Any, Any]]) -> None:  # fmt: skip
    """Rates as a table of colored cells with percentages; ``place`` gives the line and column of a row."""
    values, counts = (np.full((len(lines), len(columns)), np.nan) for _ in range(2))
    for row in few_marks(list(rows)):
        line, column = place(row)
        if line in lines and row["value"] is not None:
            values[lines.index(line), columns.index(column)] = row["value"]
            counts[lines.index(line), columns.index(column)] = row["n"]
    heat(ax, values, style.SEQUENTIAL, 0, 1, say=lambda v: f"{100 * v:.0f}", counts=counts)


def color_bar(fig: Figure, panels: Sequence[Axes], cmap: Colormap, low: float, high: float, name: str) -> None:
    """One color scale for several panels, with the name of what the colors show."""
    scale = ScalarMappable(Normalize(low, high), cmap)
    # A bar over one column has room for both ends and the middle only.
    few = [low, (low + high) / 2, high] if len({round(ax.get_position().x0, 3) for ax in panels}) == 1 else None
    options: dict[str, Any] = {"ticks": few, "format": "%.2g"} if few else {}
    bar = fig.colorbar(scale, ax=panels, location="top", shrink=0.8 if few else 0.5, aspect=40, pad=0.01, **options)
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    bar.ax.tick_params(labelsize=7, colors=style.MUTED, length=2)
    bar.set_label(name, fontsize=8, color=style.MUTED)


def number(value: Any) -> float | None:
    value = float(value)
    return round(value, 6) if np.isfinite(value) else None


def cells(matrix: Array, axes: tuple[str, str], **keys: Any) -> list[Row]:
    found = np.ndenumerate(np.asarray(matrix, dtype=float))
    return [{**keys, axes[0]: i, axes[1]: j, "value": number(v)} for (i, j), v in found]


def few_marks(rows: list[Row]) -> list[Row]:
    """Set ``drawn`` in the rows of cells; unknown counts are not marked, and cells that are not drawn stay that way."""
    for r in rows:
        if r.get("n") is not None and r.get("drawn") != "no":
            r["drawn"] = "undefined" if r["value"] is None else style.weight(r["n"])
    return rows
