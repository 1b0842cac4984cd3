"""Change how a figure looks in print: as wide as a column or a page, without its title, in shades of gray.

    write(drawing, "gap-slopes", "figures", look=Look("column", title=False, gray=True))

In gray, dashes, marks and hatching distinguish the series, and shades of gray the fields. At another width a legend
that panels share is drawn again.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgb, to_rgba
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

from . import style

WIDTHS = {"column": 3.35, "page": 6.9}
"""Inches."""
SMALLEST = 0.72
"""Letters and heights shrink with the width, but not below this share."""
_TONES = ("#000000", "#707070", "#3a3a3a", "#9a9a9a", "#555555", "#b4b4b4", "#222222", "#858585")
_DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 4)))
_SHAPES = ("o", "s", "^", "v", "<", ">", "p", "h")
"""Shapes with room inside, so that very few cases look hollow; diamonds are left for few cases."""
_HATCHES = ("", "///", "...", "xx", "\\\\\\", "++", "oo", "--")


_SERIES = {shade.lower(): i for i, shade in enumerate(style.PALETTE)}
"""The number of a color of the palette: all lists above are as long as it."""


@dataclass(frozen=True)
class Look:
    """How a figure is to look in print."""

    width: Literal["column", "page"] | None = None
    title: bool = True
    """False: leave out the title of a figure with one panel; several panels keep the titles that name them."""
    gray: bool = False

    def apply(self, fig: Figure) -> None:
        """Change a figure in place."""
        if self.gray:
            _gray(fig)
        if not self.title and len([ax for ax in fig.axes if ax.get_title(loc="left")]) == 1:
            for ax in fig.axes:
                ax.set_title("", loc="left")
        if self.width is not None:
            _resize(fig, WIDTHS[self.width])


def _resize(fig: Figure, width: float) -> None:
    own, height = fig.get_size_inches()
    share = min(1.0, max(width / own, SMALLEST))
    fig.set_size_inches(width, height * share)
    if fig.legends:  # the columns of the legend follow the width
        for legend in list(fig.legends):
            legend.remove()
        style.shared_legend(fig)
    axes = [axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis)]
    ticks = [axis.get_ticklabels()[0].get_fontsize() if axis.get_ticklabels() else 8.0 for axis in axes]
    for text in fig.findobj(Text):
        if isinstance(text, Text):
            text.set_fontsize(float(text.get_fontsize()) * share)
    for axis, size in zip(axes, ticks, strict=True):  # also for ticks that are made later
        axis.set_tick_params(labelsize=float(size) * share)
    for line in fig.findobj(Line2D):
        if isinstance(line, Line2D):
            line.set_markersize(line.get_markersize() * share)
            line.set_linewidth(line.get_linewidth() * share)
    fig.draw_without_rendering()
    for ax in fig.axes:
        _fit(ax)


def _fit(ax: Axes) -> None:
    """Break a title that is wider than its panel, and leave out numbers on the x axis that would overlap."""
    room, said = ax.get_window_extent().width, ax.get_title(loc="left")
    title = next(t for t in ax.findobj(Text) if isinstance(t, Text) and t.get_text() == said)
    wide = title.get_window_extent().width
    if said and wide > room:
        longest = max(map(len, said.split("\n")))
        title.set_text("\n".join(style.lines(t, max(6, int(longest * room / wide))) for t in said.split("\n")))
    named = [(at, t) for at, t in zip(ax.get_xticks(), ax.get_xticklabels(), strict=False) if t.get_visible()]
    shown = [(at, t.get_text(), t.get_window_extent()) for at, t in named if t.get_text()]
    numbers = all(re.fullmatch(r"[-−+]?[\d.]+( %)?", text) for _, text, _ in shown)
    while numbers and len(shown) > 2 and any(a.x1 + 2 > b.x0 for (_, _, a), (_, _, b) in pairwise(shown)):
        shown = shown[::2]
        ax.set_xticks([at for at, _, _ in shown], [text for _, text, _ in shown])


def _gray(fig: Figure) -> None:
    for kind, paint in _PAINTS.items():
        for artist in fig.findobj(kind):
            paint(artist)
    for ax in fig.axes:
        if any(patch.get_hatch() for patch in ax.patches):
            for text in ax.texts:
                text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})


def _tone(color: Any) -> str:
    shade = to_hex(color)
    if shade in _SERIES:
        return _TONES[_SERIES[shade]]
    r, g, b = to_rgb(color)
    light = 0.299 * r + 0.587 * g + 0.114 * b
    return to_hex((light, light, light))


def _line(line: Any) -> None:
    shade, filled = to_hex(line.get_color()), line.get_markerfacecolor()
    if shade in _SERIES and line.get_linestyle() == "-" and len(line.get_xdata()) > 2:
        line.set_linestyle(_DASHES[_SERIES[shade]])
    if shade in _SERIES and line.get_marker() == "o":
        line.set_marker(_SHAPES[_SERIES[shade]])
    line.set_color(_tone(shade))
    line.set_markeredgecolor(_tone(shade))
    if filled not in ("none", "None"):
        line.set_markerfacecolor(_tone(filled))


def _patch(patch: Any) -> None:
    face, edge = to_rgba(patch.get_facecolor()), to_rgba(patch.get_edgecolor())
    series = _SERIES.get(to_hex(face)) if face[3] else None
    if series is not None:
        patch.set_hatch(_HATCHES[series])
        patch.set_facecolor((*to_rgb("#ffffff" if series else "#8a8a8a"), face[3]))
        patch.set_edgecolor("#202020")
        return
    patch.set_facecolor((*to_rgb(_tone(face)), face[3]))
    if edge[3]:
        # few cases: keep the hatching of the series, in a dashed outline
        if patch.get_hatch() and to_hex(edge) in _SERIES:
            patch.set_hatch(_HATCHES[_SERIES[to_hex(edge)]])
        patch.set_edgecolor(_tone(edge))


def _collection(cells: Any) -> None:
    cells.set_edgecolor([_tone(c) for c in cells.get_edgecolor()])
    if cells.get_array() is not None:  # the cells of a color bar
        cells.set_cmap("Greys")
    else:
        cells.set_facecolor([(*to_rgb(_tone(c)), c[3]) for c in cells.get_facecolor()])


_PAINTS: dict[Any, Callable[[Any], None]] = {
    Line2D: _line,
    Patch: _patch,
    Collection: _collection,
    AxesImage: lambda image: image.set_cmap("Greys"),
    Text: lambda text: text.set_color(_tone(text.get_color())),
}
