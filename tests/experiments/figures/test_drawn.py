"""What every figure draws is what its csv says: read back from the artists, figure by figure, and matched to the rows.

A figure enters by being in the catalog. The rules that it is held to: a mark, a bar or a cell stands for one row and
has its value, interval, place and series; lines join marks; a row that is not drawn says so (``drawn``: ``undefined``
or ``no``); lines that stand for no row are muted; numbers in the picture are numbers of the rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgba
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment

from composcope.experiments import figures
from composcope.experiments.figures import style
from composcope.experiments.run.reader import load

Row = dict[str, Any]
Ends = tuple[float, float]
MUTED = {to_hex(c) for c in (style.MUTED, style.GRID)}
NOT_DRAWN = ("undefined", "no")
NO_PLACE = {"value", "low", "high", "bound_low", "bound_high", "n", "n_invalid", "count", "seed"}


@dataclass
class Mark:
    """One mark with its place (x, y) and its intervals along both axes; a bar's ``size`` is its length."""

    panel: Axes
    place: tuple[float, float]
    shade: str = ""
    size: float | None = None
    kind: str = "point"
    ends: dict[int, Ends] = field(default_factory=dict)


def marks_of(fig: Figure) -> list[Mark]:
    """Everything in a figure that stands for a number."""
    return [m for ax in _panels(fig) for m in (*_with_intervals(_points(ax), _bars(ax)), *_cells(ax))]


def _with_intervals(points: Sequence[Mark], bars: Sequence[Mark]) -> list[Mark]:
    """Points and bars; lines in ink that begin and end beside the end of a bar are its interval."""
    ink = to_hex(style.INK)
    ends = [m for m in points if m.shade == ink]
    for bar in sorted(bars, key=lambda b: not b.size):  # those of no length stand for names, too
        axis = 0 if bar.kind == "bar x" else 1
        mine = [m for m in ends if abs(m.place[1 - axis] - bar.place[1 - axis]) < 1e-9]
        if len(mine) == 2:
            low, high = sorted(m.place[axis] for m in mine)
            bar.ends[axis] = (low, high)
            ends = [m for m in ends if m not in mine]
    return [*(m for m in points if m.shade != ink), *ends, *(b for b in bars if b.size)]


def _panels(fig: Figure) -> list[Axes]:
    return [ax for ax in fig.axes if ax.get_label() != "<colorbar>"]


def _points(ax: Axes) -> list[Mark]:
    found: list[Mark] = []
    bare = []
    for line in ax.lines:
        shade, at = to_hex(line.get_color()), np.column_stack([np.ravel(line.get_xdata()), np.ravel(line.get_ydata())])
        if line.get_marker() not in ("None", None, ""):
            found += [Mark(ax, (float(x), float(y)), shade) for x, y in at]
        elif shade not in MUTED:
            bare.append((shade, [(float(x), float(y)) for x, y in at]))
    own = list(found)
    for shade, at in bare:
        if all(any(m.place == p and m.shade == shade for m in own) for p in at):
            continue  # joins marks
        along = [i for i in (0, 1) if len(at) == 2 and at[0][1 - i] == at[1][1 - i]]
        mine = [m for m in own if along and m.shade == shade and m.place[1 - along[0]] == at[0][1 - along[0]]
                and along[0] not in m.ends and _between(m.place[along[0]], at, along[0])]  # fmt: skip
        if mine:
            mine[0].ends[along[0]] = (at[0][along[0]], at[1][along[0]])
        else:
            found += [Mark(ax, p, shade) for p in at]
    return found


def _between(value: float, at: Sequence[tuple[float, float]], axis: int) -> bool:
    return min(p[axis] for p in at) - 1e-9 <= value <= max(p[axis] for p in at) + 1e-9


def _bars(ax: Axes) -> list[Mark]:
    found = []
    for bars in (c for c in ax.containers if isinstance(c, BarContainer)):
        for bar in bars.patches:
            box, flat = bar.get_bbox(), bars.orientation == "horizontal"
            size = box.width if flat else box.height
            center = ((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
            shade = to_hex(bar.get_facecolor() if to_rgba(bar.get_facecolor())[3] else bar.get_edgecolor())
            found.append(Mark(ax, center, shade, size, "bar x" if flat else "bar y"))
    return found


def _cells(ax: Axes) -> list[Mark]:
    return [
        Mark(ax, (float(x), float(y)), "", float(v), "cell")
        for image in ax.images
        for (y, x), v in np.ndenumerate(np.ma.asarray(image.get_array(), dtype=float).filled(np.nan))
        if not math.isnan(v)
    ]


def _told(row: Row) -> list[str]:
    return [_bare(v) for v in row.values() if isinstance(v, str) and v]


def _bare(text: object) -> str:
    return re.sub(r"\s+", "", style.plain(text, 400)).replace("−", "-")


def _said(row: Row, text: str) -> bool:
    """Whether a name in the picture is one of the row: of its texts, or a number of it."""
    name = _bare(text)
    numbers = [f"{v:g}" for v in row.values() if isinstance(v, int | float) and not isinstance(v, bool)]
    return any(t in name or (name.endswith("…") and t.startswith(name[:-1])) for t in _told(row)) or any(
        n in re.findall(r"-?[\d.]+", name) for n in numbers
    )


@cache
def _ticks(ax: Axes, axis: int) -> list[tuple[float, str]]:
    own = ax.xaxis if axis == 0 else ax.yaxis
    named = [(float(at), t.get_text()) for at, t in zip(own.get_ticklocs(), own.get_ticklabels(), strict=False)]
    return [(at, text) for at, text in named if text]


def _at_place(row: Row, mark: Mark, axis: int) -> bool:
    """Whether the mark stands where a number of the row says, or beside a name of the row."""
    place = mark.place[axis]
    if any(abs(v - place) < 0.5 for k, v in row.items() if isinstance(v, int | float) and k not in NO_PLACE):
        return True
    tick = min(_ticks(mark.panel, axis), key=lambda t: abs(t[0] - place), default=None)
    if tick is None or (mark.kind == "cell" and abs(tick[0] - place) > 0.01):
        return True  # not every cell is named
    return _said(row, tick[1])


def _pieces(text: object) -> set[str]:
    """A name, and what it is put together from: ``control · mixed``; a long one stands on several lines."""
    return {_bare(piece) for piece in (text, *re.split(r", | · ", str(text)))}


def _names(ax: Axes) -> set[str]:
    """What a panel is called, in its title and beside its row of panels: there, the last line may name the axis."""
    place = ax.get_subplotspec()
    row = [
        other for other in ax.figure.axes if place and (at := other.get_subplotspec()) and at.rowspan == place.rowspan
    ]
    said = [
        ax.get_title(loc="left"),
        *(text for o in row for text in (o.get_ylabel(), o.get_ylabel().rpartition("\n")[0])),
    ]
    return {piece for text in said for piece in _pieces(text)}


def _in_its_panel(row: Row, names: set[str], columns: dict[str, set[str]]) -> bool:
    """Whether the row has every name of the panel that is one of its column."""
    return all(names & known <= _pieces(row.get(column)) for column, known in columns.items())


def _fits(row: Row, mark: Mark, value: int, legend: dict[str, str], *, intervals: bool) -> bool:
    """Whether a mark whose value lies along axis ``value`` can be the row's."""
    if mark.shade in legend and not _said(row, legend[mark.shade]):
        return False
    if mark.kind == "cell":
        return _at_place(row, mark, 0) and _at_place(row, mark, 1)
    along, across = mark.ends.get(value), mark.ends.get(1 - value)
    wanted = (row.get("low"), row.get("high"))
    bare = row.get("drawn") == "hollow" or None in wanted
    if mark.kind in ("point", "bar x", "bar y") and (along is not None or (intervals and not bare)):
        if along is None or bare or along != pytest.approx(wanted, abs=1e-9):
            return False
    if row.get("x") is not None and mark.kind == "point":
        return mark.place[1 - value] == pytest.approx(row["x"]) and (
            across is None or across == pytest.approx((row["x_low"], row["x_high"]))
        )
    return across is None and _at_place(row, mark, 1 - value)


def unmatched(fig: Figure, rows: Sequence[Row], column: str, value: int) -> tuple[list[Row], list[Mark]]:
    """Rows without a mark and marks without a row, where values are in ``column`` and lie along axis ``value``."""
    marks = [m for m in marks_of(fig) if not m.kind.startswith("bar") or m.kind == f"bar {'xy'[value]}"]
    legends = {ax: _legend(ax) for ax in _panels(fig)}
    named = {ax: _names(ax) for ax in legends}
    texts = {
        c: {p for r in rows if isinstance(r.get(c), str) for p in _pieces(r[c])} for c in {c for r in rows for c in r}
    }
    wanted = [r for r in rows if r.get(column) is not None and r.get("drawn") not in NOT_DRAWN]
    if any(m.kind.startswith("bar") for m in marks):
        wanted = [r for r in wanted if r[column]]  # a bar of no length is not seen
    lost, over = set(range(len(wanted))), []
    for kind in {m.kind for m in marks}:  # a cell's row may also be a point of a curve beside the map
        mine = [m for m in marks if m.kind == kind]
        has = np.array([float(r[column]) for r in wanted])
        shown = np.array([m.place[value] if m.size is None else m.size for m in mine])
        near = np.isclose(has[:, None], shown[None], rtol=1e-5, atol=2e-6)
        intervals = any(m.ends.get(value) for m in mine)
        cost = np.ones(near.shape)
        for i, j in np.argwhere(near):
            at = mine[j].panel
            fits = _fits(wanted[i], mine[j], value, legends[at], intervals=intervals)
            cost[i, j] = not (fits and _in_its_panel(wanted[i], named[at], texts))
        pairs = [(i, j) for i, j in zip(*linear_sum_assignment(cost), strict=True) if not cost[i, j]]
        lost -= {i for i, _ in pairs}
        over += [m for j, m in enumerate(mine) if j not in {j for _, j in pairs}]
    return [wanted[i] for i in sorted(lost)], over


def _legend(ax: Axes) -> dict[str, str]:
    found: dict[str, str] = {}
    handle: Any
    for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
        handle = handle.patches[0] if isinstance(handle, BarContainer) else handle
        shade = to_hex(handle.get_color() if hasattr(handle, "get_color") else handle.get_facecolor())
        found[shade] = found[shade] + name if shade in found else name
    return {shade: name for shade, name in found.items() if shade not in MUTED}


def _numbers_not_of_rows(fig: Figure, rows: Sequence[Row]) -> list[str]:
    known = {v for r in rows for k, v in r.items() if isinstance(v, int | float) and not isinstance(v, bool)}
    wrong = []
    for text in (t.get_text() for ax in _panels(fig) for t in ax.texts):
        found = re.fullmatch(r"(?:n=)?([-−+]?\d+(?:\.(\d+))?)\*?(?: %)?", text)
        if found is None:
            continue
        shown, digits = float(found[1].replace("−", "-")), len(found[2] or "")
        if not any(abs(scale * v - shown) <= 0.5 * 10.0**-digits + 1e-9 for v in known for scale in (1, 100)):
            wrong.append(text)
    return wrong


@cache
def _drawn(name: str, everything: Path) -> figures.Drawing:
    figure = figures.FIGURES[name]
    drawing = figures.draw(name, [everything / "runs" if figure.read is load else everything])
    assert drawing.empty is None, f"the runs of the fixture `everything` hold nothing for {name}: add it there"
    drawing.figure.draw_without_rendering()
    return drawing


COUNTED = {"gate-funnel", "k-histogram", "bottlenecks", "skill-granularity"}
"""Figures that draw numbers of cases; all others draw values."""


@pytest.mark.parametrize("name", list(figures.FIGURES))
def test_a_figure_draws_the_rows_of_its_csv_and_nothing_else(name: str, everything: Path) -> None:
    drawing = _drawn(name, everything)
    rows = drawing.rows
    along = [unmatched(drawing.figure, rows, "count" if name in COUNTED else "value", axis) for axis in (0, 1)]
    lost, extra = min(along, key=lambda found: len(found[0]) + len(found[1]))
    assert not lost, f"{len(lost)} rows that are not drawn, first {lost[0]}"
    assert not extra, f"{len(extra)} marks that the csv lacks, first {extra[0]}"
    assert any(r.get("drawn") not in NOT_DRAWN for r in rows)
    assert _numbers_not_of_rows(drawing.figure, rows) == []


@pytest.mark.parametrize("name", [n for n, f in figures.FIGURES.items() if f.read is load and n != "dose-response"])
def test_the_runs_that_a_caption_names_are_those_that_are_drawn(name: str, everything: Path) -> None:
    drawing = _drawn(name, everything)
    said = re.findall(r"Runs: ([^.]+)\.", drawing.caption)
    assert len(said) == 1
    named = said[0].split(", ")
    if name == "magnitudes":  # models share the cases, so a run of each benchmark is drawn
        assert len(named) == len({r["benchmark"] for r in drawing.rows})
        return
    assert set(named) == {run for r in drawing.rows for run in r["run"].split(" − ")}


@pytest.mark.parametrize("name", list(figures.FIGURES))
def test_no_title_label_or_tick_of_a_figure_covers_another_or_is_cut_off(name: str, everything: Path) -> None:
    fig = _drawn(name, everything).figure
    texts = [t for ax in fig.axes if ax.axison for t in _labels(ax)]
    texts += [t for legend in fig.legends for t in legend.get_texts()]
    boxes = [(t.get_text(), t.get_window_extent()) for t in texts if t.get_text() and t.get_visible()]
    whole = fig.bbox.padded(2)
    cut = [said for said, box in boxes if not (whole.contains(*box.min) and whole.contains(*box.max))]
    assert not cut
    covered = [(a, b) for i, (a, box) in enumerate(boxes) for b, other in boxes[:i] if box.padded(-1.5).overlaps(other)]
    assert not covered


def _labels(ax: Axes) -> list[Any]:
    """Titles, names of axes and ticks within their ends; a slanted tick's box is larger than the tick."""
    texts: list[Any] = [ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label]  # type: ignore[attr-defined]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        ticks = [t for t in axis.get_major_ticks() if low <= t.get_loc() <= high]
        texts += [t.label1 for t in ticks if t.label1.get_rotation() % 90 == 0]
    return texts


def _change(rows: list[Row], how: str) -> None:
    if how == "value":
        rows[0]["value"] += 0.01
    elif how == "interval":
        rows[0]["low"] -= 0.01
    elif how == "lost":
        del rows[0]
    elif how == "series":
        a, b = (next(r for r in rows if r["model"] == m) for m in ("control (0.45 %)", "twin (50 %)"))
        a["model"], b["model"] = b["model"], a["model"]
    elif how == "place":
        rows[0]["depth"] += 2
    elif how == "more":
        rows.append({**rows[0], "value": 0.123})


@pytest.mark.parametrize("how", ["value", "interval", "lost", "series", "place", "more"])
def test_a_csv_that_differs_from_the_picture_is_noticed(how: str, everything: Path) -> None:
    drawing = figures.draw("collapse-curve", [everything / "runs"])
    drawing.figure.draw_without_rendering()
    rows = [dict(r) for r in drawing.rows]
    assert unmatched(drawing.figure, rows, "value", 1) == ([], [])
    _change(rows, how)
    assert unmatched(drawing.figure, rows, "value", 1) != ([], [])


def test_numbers_written_in_a_picture_are_numbers_of_its_rows(everything: Path) -> None:
    drawing = figures.draw("gate-funnel", [everything / "runs"])
    assert _numbers_not_of_rows(drawing.figure, [{**r, "count": 0, "n": 0} for r in drawing.rows])


@pytest.mark.parametrize("name", list(figures.FIGURES))
def test_an_interactive_chart_is_in_percent_where_its_picture_is(name: str, everything: Path) -> None:
    drawing = _drawn(name, everything)
    if drawing.chart is None or drawing.chart["kind"] != "lines":
        return
    labels = [t.get_text() for ax in drawing.figure.axes for t in ax.get_yticklabels()]
    assert bool(drawing.chart.get("percent")) == any("%" in said for said in labels), labels


@pytest.mark.parametrize("name", list(figures.FIGURES))
def test_every_place_of_an_interactive_chart_has_one_row(name: str, everything: Path) -> None:
    drawing = _drawn(name, everything)
    chart = drawing.chart or {}
    shown = [r for r in drawing.rows if all(r[k] == v for k, v in chart.get("only", {}).items())]
    columns = np.ravel([chart[k] for k in ("x", "y", "series", "panel", "facet") if k in chart])
    columns = [*columns, *np.ravel(chart.get("switch", []))]
    places = [[str(r.get(c)) for c in columns] for r in shown if "y" not in chart or r.get(chart["x"]) is not None]
    assert not chart or len(set(map(tuple, places))) == len(places)


Keys = tuple[str, dict[str, Any]]
STEPS = {"step 1": "step:0", "step 2": "step:1", "both": "both", "whole": "composition"}
SAME: dict[str, Any] = {
    "collapse-curve": lambda r: ("residual_failure", {"depth_bin": r["depth"]}),
    "family-curves": lambda r: ("residual_failure", {"depth_bin": r["depth"], "family": r["family"]}),
    "family-heatmap": lambda r: ("residual_failure", {"depth_bin": r["depth"], "family": r["family"]}),
    "stability-scatter": lambda r: ("residual_failure", {"depth_bin": 4}),
    "step-bars": lambda r: (STEPS[r["step"]], {}),
    "gap-slopes": lambda r: (STEPS[r["step"]], {}),
    "gap-scatter": lambda r: ("composition", {}),
    "gaps": lambda r: (r["gap"], {}),
    "scaffold-gain": lambda r: ({"original": "composition", "with any scaffold": "any_scaffold"}[r["asked"]], {}),
    "context-control": lambda r: {"first step": ("step:0", {}), "whole": ("composition", {}),
                                  "first step, extra context": ("step:0", {"prompt": "extra-context"})}[r["asked"]],
    "skill-heatmap": lambda r: ("skill_accuracy", {"skill": r["skill"]}),
    "failure-quadrants": lambda r: ("quadrant", {"quadrant": r["quadrant"]}),
    "bottlenecks": lambda r: ("bottleneck", {"skill": r["skill"]}),
}  # fmt: skip
"""The metric that a figure's row shows, by figure."""


@pytest.mark.parametrize("name", SAME)
def test_a_row_of_a_figure_has_every_number_of_the_metric_that_it_names(name: str, everything: Path) -> None:
    runs = {run.name: run for run in load([everything / "runs"])}
    rows = _drawn(name, everything).rows
    assert rows
    for row in rows:
        metric, group = SAME[name](row)
        (own,) = [m for m in runs[row["run"]].metrics if m.metric == metric and m.group == group]
        fields = ("n", "n_invalid", "count", "value", "interval", "low", "high")
        assert [row[k] for k in fields] == [getattr(own, k) for k in fields], row


@pytest.mark.parametrize("name", list(figures.FIGURES))
def test_a_tick_in_percent_is_a_hundred_times_its_place(name: str, everything: Path) -> None:
    for ax in _panels(_drawn(name, everything).figure):
        for at, text in (*_ticks(ax, 0), *_ticks(ax, 1)):
            if found := re.fullmatch(r"([-−+]?[\d.]+) %", text):
                assert float(found[1].replace("−", "-")) == pytest.approx(100 * at, abs=0.51), (name, text)
