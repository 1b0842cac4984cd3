"""A figure of the catalog (``Figure``), what it draws (``Drawing``: picture, rows and caption), and how it is written.

@figure("outcomes", "How every answer was graded", EVALUATE, "behavior", 12)
def outcomes(runs: Sequence[RunData]) -> Drawing: ...
"""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure as Sheet

from ...evaluation.metrics import Metric
from ...files import to_csv
from ...terminal import how_many
from ..run import write_text
from ..run.provenance import write_beside
from ..run.reader import Row, RunData, load
from . import style
from .look import Look

DPI, DPI_OF_MANY, MANY = 160, 110, 8
"""Large sheets of many panels are legible at a lower resolution, which takes half the time."""
_DARK = {style.INK: "#e6edf3", style.MUTED: "#9198a1", style.GRID: "#3d444d", style.PAPER: "#151b23"}


@dataclass(frozen=True, repr=False)
class Drawing:
    """The result of a figure function."""

    figure: Sheet
    rows: Sequence[Row]
    """Everything that is drawn, one row per mark; written as the csv."""
    caption: str
    chart: dict[str, Any] | None = None
    """How an interactive view reads the rows: its kind and the meaning of the columns."""
    made_with: Sequence[Mapping[str, Any]] = ()
    """Model, data and code of each run in the figure; written next to the csv."""
    empty: str | None = None
    """The reason why there is nothing to draw; None if something is drawn."""

    def __repr__(self) -> str:
        return f"<drawing of {how_many(len(self.rows), 'row')}: {self.caption.partition('. ')[0].rstrip('.')}>"

    def _repr_png_(self) -> bytes:
        """The picture that a notebook shows, with any matplotlib backend."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=DPI_OF_MANY)
        return buffer.getvalue()


class NothingToDraw(Exception):
    """Raised for runs without the data that a figure shows; the message says what is missing."""


def need(found: object, reason: str) -> None:
    """Stop drawing if nothing was found; the picture then shows the reason."""
    if not found:
        raise NothingToDraw(reason)


def words(reason: str, runs: Sequence[RunData]) -> Drawing:
    """A drawing that says why there is no picture."""
    return Drawing(style.notice(reason), [], f"{reason} {source(runs)}", empty=reason)


def source(runs: Sequence[RunData]) -> str:
    """The last sentence of the caption: the runs and the commands that made them."""
    commands = list(dict.fromkeys(c for r in runs for c in r.commands))
    made = f" Made by: {' ; '.join(commands)}." if commands else ""
    return f"Runs: {', '.join(r.name for r in runs)}.{made}"


VERSUS = " − "
"""Between the names of two runs whose difference is a row."""


def with_rows(runs: Sequence[RunData], rows: Sequence[Row]) -> list[RunData]:
    """The runs that have a row, alone or in a pair; none if the rows name no run."""
    named = {str(row.get("run")) for row in rows}
    named |= {one for name in named for one in name.split(VERSUS)}
    return [r for r in runs if r.name in named]


def caption(
    text: str,
    rows: Sequence[Row],
    runs: Sequence[RunData],
    cell: str = "",
    *,
    intervals: str | None = None,
    mark: str = "Diamonds",
) -> str:
    """Text, counts, few-case list (``cell`` names a row), interval method and source in one paragraph.

    The source is the runs that have a row, or all if the rows name no run.
    """
    few = style.few_cases(rows, cell, mark) if cell else ""
    made_by = source(with_rows(runs, rows) or runs)
    parts = [text, style.counts(rows), few, intervals or style.interval_methods(rows), made_by]
    return " ".join(p for p in parts if p)


def point(run: RunData, label: str, metric: Metric, **keys: Any) -> Row:
    """One row of a figure from one metric."""
    fields = ("n", "n_invalid", "count", "value", "interval", "low", "high", "bound_low", "bound_high")
    return {"run": run.name, "model": label, **keys, **{k: getattr(metric, k) for k in fields}}


def curves(x: str, series: str, **more: Any) -> dict[str, Any]:
    """The ``chart`` of lines: the meaning of the columns and the names of the axes."""
    return {"kind": "lines", "x": x, "series": series, **more}


def drawn(
    fig: Sheet, rows: Sequence[Row], text: str, runs: Sequence[RunData], cell: str = "",
    chart: dict[str, Any] | None = None, **options: Any,
) -> Drawing:  # fmt: skip
    """The drawing of a figure, with a legend for all panels and the caption that ``caption`` makes of text and rows."""
    style.shared_legend(fig)
    return Drawing(style.finished(fig), rows, caption(text, rows, runs, cell, **options), chart)


def write(
    drawing: Drawing, name: str, out: str | Path, *, dark: bool = False, pdf: bool = False, look: Look | None = None
) -> list[Path]:
    """Write ``name.png``, ``.svg``, ``.csv`` and ``.txt``; returns the paths.

    ``dark`` adds ``name-dark.svg``, ``pdf`` adds ``name.pdf``, and ``look`` changes the figure for print.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    if look is not None:
        look.apply(drawing.figure)
    png, svg = folder / f"{name}.png", folder / f"{name}.svg"
    dpi = DPI if len(drawing.figure.axes) <= MANY else DPI_OF_MANY
    # Solve the layout only once. With a layout engine, matplotlib draws everything twice for each file.
    drawing.figure.set_dpi(dpi)
    if layout := drawing.figure.get_layout_engine():
        layout.execute(drawing.figure)
        drawing.figure.set_layout_engine(None)
    drawing.figure.savefig(png, dpi=dpi, metadata={"Software": "composcope"})
    text = vector(drawing)
    paths = [png, write_text(svg, text)]
    if pdf:
        drawing.figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None, "Creator": "composcope"})
        paths.append(folder / f"{name}.pdf")
    if dark:
        paths.append(write_text(folder / f"{name}-dark.svg", darkened(text)))
    paths.append(write_text(folder / f"{name}.csv", encodable(to_csv(drawing.rows))))
    if drawing.made_with:
        write_beside(paths[-1], drawing.made_with)
    paths.append(write_text(folder / f"{name}.txt", encodable(drawing.caption + "\n")))
    return paths


def vector(drawing: Drawing) -> str:
    """The picture as svg; the same drawing always gives the same text."""
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "composcope"}):
        drawing.figure.savefig(text, format="svg", metadata={"Date": None, "Creator": "composcope"})
    return text.getvalue()


def encodable(text: str) -> str:
    """Text without halves of surrogate pairs, which cannot be written to a file."""
    return text.encode("utf-8", "replace").decode("utf-8")


def darkened(svg: str) -> str:
    """The same picture for a dark page: ink, grid and paper swapped, data colors kept."""
    for light, dark in _DARK.items():
        svg = svg.replace(light, dark)
    return svg


EVALUATE = "composcope evaluate -m MODEL -b CASES"
GATE, GAP, PAIRS, SCAFFOLDS = (
    f"{EVALUATE} -p {name}" for name in ("double-gate", "compositionality-gap", "reasoning-gap", "scaffolding")
)
NEURONS, LOOKBACK, PATCHING, TRAJECTORY, MIN_K, READOUT, FAITHFULNESS = (
    f"composcope probe RUN --probes {name}"
    for name in ("neurons", "lookback", "patching", "trajectory", "min-k", "readout", "faithfulness")
)
CONTEXT = f"{GAP} (with cases whose parts have extra_context)"
CURVE = "composcope intervene -m MODEL --recipe grpo --curve -o DIR"
SKILLS = "composcope build skills RECORDS --teacher TEACHER --out DIR"
"""Commands that make the data of figures."""


@dataclass(frozen=True)
class Figure:
    """One figure. Calling it draws; ``figures.draw`` also reads the folders and completes the caption."""

    name: str
    title: str
    command: str
    """The command that makes the figure's data, shown if a run has none."""
    draw: Callable[..., Drawing]
    """The function that draws: it takes a sequence of what ``read`` returns and, for some figures, named options."""
    section: str = ""
    """Part of the report: ``first``, ``behavior``, ``optional`` (only if there is something to draw), a probe's name,
    or empty for none."""
    order: int = 100
    """The figure's position in lists and in its section."""
    read: Callable[..., Sequence[Any]] = load
    """Reads the figure's input; by default, run folders."""

    @property
    def options(self) -> frozenset[str]:
        """Names of the figure's options."""
        return frozenset(list(signature(self.draw).parameters)[1:])

    def __call__(self, runs: Sequence[Any], **options: Any) -> Drawing:
        try:
            return self.draw(runs, **options)
        except NothingToDraw as e:
            return words(str(e), [r for r in runs if isinstance(r, RunData)])


def figure(
    name: str, title: str, command: str, section: str = "", order: int = 100, *,
    read: Callable[..., Sequence[Any]] = load,
) -> Callable[[Callable[..., Drawing]], Figure]:  # fmt: skip
    """Make a figure from the function that draws it."""
    return lambda draw: Figure(name, title, command, draw, section, order, read)


def of_function(name: str, draw: Callable[..., Drawing]) -> Figure:
    """A figure from a plugin's function; the first line of its docstring is the title."""
    return Figure(name, (draw.__doc__ or name).strip().splitlines()[0].rstrip("."), "", draw, "optional")
