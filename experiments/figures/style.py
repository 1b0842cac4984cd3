"""The common style of all figures: one palette, one rule for few cases, one form of caption.

The palette is that of Okabe and Ito, which works with every common form of color blindness. Nothing here changes
matplotlib's global state, so several threads can draw figures. A cell with fewer than 5 cases is hollow, without a line
or interval; one with fewer than 15 is a diamond. Undefined values are named in the caption and never drawn.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

HOLLOW_BELOW = 5
MARKED_BELOW = 15

INK, MUTED, GRID, PAPER = "#1f2328", "#656d76", "#d8dee4", "#ffffff"
ON_LIGHT, ON_DARK = "#101010", "#fdfdfd"
"""Text inside a colored cell; differs from INK and PAPER so that the dark variant leaves it unchanged."""
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A6A00", "#8C8C8C")
FAILURE, SUCCESS = "#D55E00", "#0072B2"
OUTCOME_COLORS = {"correct": "#0072B2", "incorrect": "#D55E00", "abstained": "#E69F00", "invalid": "#8C8C8C"}
GROUP_COLORS = {"failure": FAILURE, "success": SUCCESS}
SEQUENTIAL: Colormap = LinearSegmentedColormap.from_list("composcope", ["#f4f6f8", "#9cc5e3", "#2f7fb8", "#083a63"])
DIVERGING: Colormap = LinearSegmentedColormap.from_list(
    "composcope-diff", [SUCCESS, "#8fc0de", "#f4f4f4", "#f0a877", FAILURE]
)
"""Centered on zero: the failure color where failures are higher, the success color where successes are higher."""


def color(i: int) -> str:
    return PALETTE[i % len(PALETTE)]


def dash(i: int) -> str:
    """The line style of the i-th model; neighbors, and models of the same color, differ without color too."""
    return ("-", "--", "-.", ":")[(i + i // len(PALETTE)) % 4]


def shape(i: int) -> str:
    """The mark of the i-th series: those of the same color have different ones. Diamonds are left for few cases."""
    return "os^v"[i // len(PALETTE) % 4]


def figure(width: float, height: float) -> Figure:
    """An empty white figure, sized in inches, with a layout that keeps labels from overlapping."""
    return Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")


def grid_of(
    n_rows: int, n_columns: int, width: float, height: float, **options: Any
) -> tuple[Figure, list[list[Axes]]]:
    """A figure of panels, each ``width`` x ``height`` inches."""
    fig = figure(max(width * n_columns, 3.6), max(height * n_rows, 1.8))
    panels = fig.subplots(n_rows, n_columns, squeeze=False, **options)
    return fig, [list(row) for row in panels]


def one_panel(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of one panel."""
    fig, panels = grid_of(1, 1, width, height)
    return fig, panels[0][0]


def dress(ax: Axes, title: str = "", x: str = "", y: str = "", *, grid: str | None = "y") -> None:
    """Apply plain axes: two spines, small gray ticks, a title on the left."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GRID)
    ax.tick_params(colors=MUTED, labelsize=8, length=3, width=0.8)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, color=GRID, linewidth=0.7)  # pyright: ignore[reportArgumentType]
    if title:
        ax.set_title("\n".join(map(plain, title.split("\n"))), loc="left", fontsize=9.5, color=INK, fontweight="bold")
    ax.set_xlabel(plain(x), fontsize=8.5, color=MUTED)
    ax.set_ylabel(plain(y), fontsize=8.5, color=MUTED)


def name_row(line: Sequence[Axes], name: str, y: str) -> None:
    """Name a row of panels, and their y axis, beside the first one: no title has room for a long name."""
    if not line[0].axison:  # words stand in place of the picture, without a frame around them
        line[0].set_axis_on()
        line[0].set_frame_on(False)
        line[0].tick_params(left=False, bottom=False, labelleft=False, labelbottom=False)
    line[0].set_ylabel(f"{broken(name, 24)}\n{plain(y)}", fontsize=8.5, color=INK)


def percent(ax: Axes, axis: str = "y", low: float = 0.0) -> None:
    """A rate axis from 0 to 100 %, with a small margin so that intervals at the ends are visible."""
    ticks = [0, 0.25, 0.5, 0.75, 1]
    names = [f"{round(100 * t)} %" for t in ticks]
    set_ends, set_ticks = (ax.set_xlim, ax.set_xticks) if axis == "x" else (ax.set_ylim, ax.set_yticks)
    set_ends(low - 0.03, 1.03)
    set_ticks(ticks, names)


def signed_percent(ax: Axes) -> None:
    """Show a relative change with its sign on the x axis."""
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter(lambda v, _: f"{signed(100 * v, '.0f')} %" if abs(v) > 1e-9 else "0 %")


def signed_points(ax: Axes) -> None:
    """Show a difference of rates with its sign on the x axis, in percentage points."""
    ax.xaxis.set_major_locator(MaxNLocator(6))
    ax.xaxis.set_major_formatter(lambda v, _: signed(100 * v, ".3g") if abs(v) > 1e-9 else "0")


def signed(value: float, form: str = ".1f") -> str:
    """A signed number with a true minus sign."""
    return f"{value:+{form}}".replace("-", "−")


def whole_numbers(ax: Axes, values: Iterable[float]) -> None:
    """Put ticks only at whole numbers on the x axis (such as layers and steps); thin them out if there are many."""
    known = sorted({int(v) for v in values})
    ax.set_xticks(known[:: max(1, -(-len(known) // 10))])


def percent_up_to(ax: Axes, top: float) -> None:
    """Show a share on the y axis, from 0 to a little above the largest value."""
    ax.set_ylim(0, min(1.03, max(1.15 * top, 0.05)))
    ax.yaxis.set_major_formatter(lambda v, _: f"{100 * v:.0f} %")


def lines(text: str, width: int) -> str:
    """Text from outside, broken into lines of about ``width``, each safe for a label."""
    return "\n".join(plain(part) for line in str(text).split("\n") for part in _wrapped(line, width).split("\n"))


def broken(name: str, width: int) -> str:
    """A name broken at its separators into lines of about ``width``, for a label under a narrow column."""
    pieces = re.findall(r"[^\s_.:/-]*[\s_.:/-]?", plain(name))
    found = [""]
    for piece in pieces:
        if found[-1] and len(found[-1]) + len(piece.rstrip()) > width:
            found.append("")
        found[-1] += piece
    return "\n".join(plain(line.strip(), width + 6) for line in found)


def legend(ax: Axes, **options: Any) -> None:
    """The legend of one panel; give a location, since searching for the best one takes longer than drawing."""
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, fontsize=8, labelcolor=INK, **options)


def shared_legend(fig: Figure) -> None:
    """One legend for all panels, above them so that it covers no mark, in as many columns as fit the width.

    Panels that have legends of their own keep them instead.
    """
    found: dict[str, Any] = {}
    for ax in fig.axes if all(ax.get_legend() is None for ax in fig.axes) else ():
        found |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    if found:
        column = 0.075 * max(map(len, found)) + 0.6  # width in inches of the longest name at this size, with its mark
        columns = min(max(int(fig.get_figwidth() / column), 1), 6)
        lines = -(-len(found) // columns)
        if lines > 1:
            fig.set_figheight(fig.get_figheight() + 0.17 * (lines - 1))
        fig.legend(
            found.values(), found.keys(), loc="outside upper left", ncols=columns, frameon=False, fontsize=8,
            handlelength=2.8, labelcolor=INK,
        )  # fmt: skip


def note(ax: Axes, text: str) -> None:
    """Write text in place of a picture."""
    ax.set_axis_off()
    ax.text(
        0.5, 0.5, _wrapped(plain(text, 400)), ha="center", va="center", fontsize=9, color=MUTED, transform=ax.transAxes
    )


def notice(text: str) -> Figure:
    """A small figure that holds nothing but text."""
    fig = Figure(figsize=(5.5, 1.8), facecolor=PAPER)
    fig.text(0.5, 0.5, _wrapped(plain(text, 400)), ha="center", va="center", fontsize=9, color=MUTED)
    return finished(fig)


def finished(fig: Figure) -> Figure:
    """Turn off math markup in all texts, since they may come from a model or a file."""
    for text in fig.findobj(Text):
        text.set_parse_math(False)  # pyright: ignore[reportAttributeAccessIssue]
    return fig


def plain(text: Any, limit: int = 90) -> str:
    """Make text from outside safe for a label: one line, no control or direction characters, cut with an ellipsis."""
    kept = "".join(c for c in str(text).replace("\n", " ") if c.isprintable() and c not in _DIRECTION)
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


_DIRECTION = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def weight(n: int | float | None) -> str:
    """How a cell of n cases is drawn: ``hollow`` (n < 5), ``marked`` (n < 15) or ``solid``."""
    if n is None or n < HOLLOW_BELOW:
        return "hollow"
    return "marked" if n < MARKED_BELOW else "solid"


def bar(n: int | float | None, shade: str) -> dict[str, Any]:
    """The style of a bar with ``n`` cases: with fewer than 5, hatched in a dashed outline."""
    if weight(n) == "hollow":
        return {"edgecolor": shade, "facecolor": "none", "hatch": "////", "linestyle": "--"}
    return {"edgecolor": shade, "facecolor": shade}


def counted(n: int | float | None) -> str:
    """``n=12*``: the star marks fewer than 15 cases in figures without another mark."""
    return f"n={n or 0}{'*' if weight(n) == 'marked' else ''}"


def points(ax: Axes, rows: Sequence[dict[str, Any]], x: Sequence[float], shade: str, label: str, *, line: bool = True,
           style: str = "-", horizontal: bool = False, size: float = 5.5, marker: str = "o") -> None:  # fmt: skip
    """Draw values with intervals, joined by a line that skips hollow and undefined values.

    Each row has ``value`` (None if undefined), ``low``, ``high`` and ``n``; this sets its ``drawn``.
    """
    shown = _in_legend(label)
    joined: list[tuple[float, float]] = []
    for place, row in zip(x, rows, strict=True):
        row["drawn"] = "undefined" if row.get("value") is None else weight(row.get("n"))
        if row["drawn"] == "undefined":
            continue
        spot = (row["value"], place) if horizontal else (place, row["value"])
        hollow = row["drawn"] == "hollow"
        if not hollow:
            joined.append(spot)
            _interval(ax, row, place, shade, horizontal)
        own = "D" if row["drawn"] == "marked" else marker
        # A single point has no line, but the legend shows the line style of the series.
        ax.plot(*spot, marker=own, linestyle=style if line else "none", color=shade, linewidth=1.6,
                markerfacecolor=PAPER if hollow else shade, markersize=size, markeredgewidth=1.3, zorder=3,
                label=shown)  # fmt: skip
        shown = "_nolegend_"
    if line and len(joined) > 1:
        ax.plot(*zip(*joined, strict=True), style, color=shade, linewidth=1.6, alpha=0.9, zorder=2)


def abreast(ax: Axes, rows: Sequence[dict[str, Any]], of: Callable[[dict[str, Any]], str],
            series: Mapping[str, tuple[str, str]], place: Callable[[dict[str, Any]], float], apart: float,
            **options: Any) -> None:  # fmt: skip
    """``points`` for each series (of a color and a dash), a little ``apart`` so that equal values stay visible."""
    for i, (name, (shade, dashes)) in enumerate(series.items()):
        mine = [r for r in rows if of(r) == name]
        nudge = (i - (len(series) - 1) / 2) * apart
        points(ax, mine, [place(r) + nudge for r in mine], shade, name, style=dashes, **options)


def looks(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """A color and a dash for each name."""
    return {name: (color(i), dash(i)) for i, name in enumerate(names)}


def _in_legend(name: str) -> str:
    """A name for the legend, which leaves out those that begin with an underscore."""
    said = plain(name, 60)
    return f" {said}" if said.startswith("_") else said


def dots(ax: Axes, rows: Sequence[dict[str, Any]], column: str, series: Sequence[str], blocks: Sequence[Any],
         names: Sequence[str], block: Callable[[dict[str, Any]], Any] = lambda row: row["model"]) -> None:  # fmt: skip
    """Draw values with intervals along the x axis: one block per model, with a line and color per value of a column.

    ``blocks`` are the models (or what ``block`` returns for a row) from top to bottom; ``names`` are their labels.
    """
    height = len(series) + 1
    for i, name in enumerate(series):
        mine = [r for r in rows if r[column] == name]
        places = [blocks.index(block(r)) * height + i for r in mine]
        points(ax, mine, places, color(i), name, line=False, horizontal=True, marker=shape(i))
    ax.set_yticks([b * height + (len(series) - 1) / 2 for b in range(len(blocks))], names)
    ax.set_ylim(len(blocks) * height - 0.5, -1)


def bars(ax: Axes, rows: Sequence[dict[str, Any]], column: str, series: Sequence[str], blocks: Sequence[Any],
         names: Sequence[str]) -> None:  # fmt: skip
    """Values along the x axis as ``dots``, each a bar from zero with its interval; few cases say how many they are.

    A bar of fewer than 5 cases is hatched and has no interval; each row's ``drawn`` is filled in.
    """
    height = len(series) + 1
    for i, name in enumerate(series):
        ax.barh(0, 0, color=color(i), label=_in_legend(name))  # also if the first bar is hollow
        for row in (r for r in rows if r[column] == name):
            row["drawn"] = "undefined" if row.get("value") is None else weight(row.get("n"))
            if row["drawn"] == "undefined":
                continue
            place, end = blocks.index(row["model"]) * height + i, row["value"]
            ax.barh(place, row["value"], height=0.8, linewidth=1, **bar(row.get("n"), color(i)))
            if row["drawn"] != "hollow":
                _interval(ax, row, place, INK, True)
                end = max(end, row.get("high") or 0)
            if row["drawn"] != "solid":
                ax.text(end + 0.015, place, counted(row.get("n")), va="center", fontsize=7.5, color=MUTED)
    ax.set_yticks([b * height + (len(series) - 1) / 2 for b in range(len(blocks))], names)
    ax.set_ylim(len(blocks) * height - 0.5, -1)


def names(ax: Axes, said: Sequence[Any], limit: int, below: float = 0.5, above: float = 0.5) -> None:
    """Label the lines of the y axis with names, the first on top."""
    ax.set_yticks(range(len(said)), [plain(s, limit) for s in said])
    ax.set_ylim(max(len(said), 1) - below, -above)


def _interval(ax: Axes, row: dict[str, Any], place: float, shade: str, horizontal: bool) -> None:
    low, high = row.get("low"), row.get("high")
    if low is None or high is None:
        return
    ends = ([low, high], [place, place]) if horizontal else ([place, place], [low, high])
    ax.plot(*ends, color=shade, linewidth=1.3, alpha=0.65, solid_capstyle="butt", zorder=2)


def legible(value: float, low: float, high: float, cmap: Colormap) -> str:
    """Black or white, whichever is legible on the cell's color."""
    share = 0.5 if high <= low else (value - low) / (high - low)
    r, g, b, _ = cmap(min(max(share, 0.0), 1.0))
    return ON_LIGHT if 0.299 * r + 0.587 * g + 0.114 * b > 0.55 else ON_DARK


HATCHED = "Hatched, bars in a dashed outline"
NAMED = 4
"""The largest number of marks with few cases that a caption names one by one."""


def fewest(row: Mapping[str, Any]) -> int:
    """The number of cases behind a mark; of a mark with a number on each axis, the smaller one."""
    return min((row[k] or 0 for k in ("n", "n_x") if k in row), default=0)


def few_cases(rows: Iterable[dict[str, Any]], name: str, mark: str = "Diamonds") -> str:
    """The caption's list of hollow, marked and undefined values; ``name`` is a format string filled from a row.

    ``mark`` is the name of the figure's mark for fewer than 15 cases.
    """
    lists: dict[str, list[str]] = {"hollow": [], "marked": [], "undefined": []}
    for row in rows:
        if row.get("drawn") in lists:
            lists[row["drawn"]].append(f"{name.format(**row)} (n={fewest(row)})")
    words = {
        "hollow": f"{'Hollow, without line or interval' if mark == 'Diamonds' else HATCHED} (n < {HOLLOW_BELOW})",
        "marked": f"{mark} (n < {MARKED_BELOW})",
        "undefined": "Undefined, not drawn",
    }
    return " ".join(f"{words[k]}: {_listed(list(dict.fromkeys(v)))}." for k, v in lists.items() if v)


def _listed(names: list[str]) -> str:
    """All names if there are few; else the first names, the number of the others, and where to find them."""
    if len(names) <= NAMED:
        return "; ".join(names)
    sizes = sorted({int(name.rsplit("(n=", 1)[1].rstrip(")")) for name in names[NAMED:]})
    of = ", ".join(f"n={n}" for n in sizes)
    return f"{'; '.join(names[:NAMED])}; and {len(names) - NAMED} more ({of}; column “drawn” of the csv)"


def counts(rows: Iterable[dict[str, Any]]) -> str:
    """The caption's sentence about the number of cases per mark; empty if the rows have no n."""
    known = [int(r["n"]) for r in rows if isinstance(r.get("n"), int | float)]
    if not known:
        return ""
    low, high = min(known), max(known)
    return f"n = {low} per mark." if low == high else f"n = {low} to {high} per mark."


def interval_methods(rows: Iterable[dict[str, Any]]) -> str:
    """The caption's sentence about intervals."""
    methods = sorted({str(r["interval"]) for r in rows if r.get("interval") and r.get("low") is not None})
    return f"Intervals: 95 %, {', '.join(methods)}." if methods else "No intervals."


def _wrapped(text: str, width: int = 62) -> str:
    return fill(" ".join(text.split()), width, break_long_words=False, break_on_hyphens=False)
