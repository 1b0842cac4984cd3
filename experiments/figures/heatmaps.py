"""Draw grids of colored cells (layer by head, task by task, model by skill); cells with few cases are hatched."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PolyCollection
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure

from ..run.reader import Array, Row
from . import style


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
    _whole_ticks(ax, values.shape[1], values.shape[0])
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


def _whole_ticks(ax: Axes, width: int, height: int) -> None:
    ax.set_xticks(range(0, width, max(1, -(-width // 10))))
    ax.set_yticks(range(0, height, max(1, -(-height // 10))))


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
    return [
        {**keys, axes[0]: i, axes[1]: j, "value": number(v)}
        for (i, j), v in np.ndenumerate(np.asarray(matrix, dtype=float))
    ]


def few_marks(rows: list[Row]) -> list[Row]:
    """Set ``drawn`` in the rows of cells; unknown counts are not marked, and cells that are not drawn stay that way."""
    for r in rows:
        if r.get("n") is not None and r.get("drawn") != "no":
            r["drawn"] = "undefined" if r["value"] is None else style.weight(r["n"])
    return rows
