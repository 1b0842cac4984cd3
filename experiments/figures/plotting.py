"""``composcope plot``: draw one figure from one or more runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import InputError, did_you_mean
from ..run import find_runs, is_run

if TYPE_CHECKING:
    from ...hooks.progress import Bar  # loads torch, which figures do not need
    from .look import Look


def figure_names() -> dict[str, str]:
    """Every figure id with its title."""
    from .catalog import FIGURES

    return {name: figure.title for name, figure in FIGURES.items()}


def draw(
    figure: str,
    runs: Sequence[Path],
    out: Path | None,
    *,
    group_by: str | None = None,
    bands: str | None = None,
    only: str | None = None,
    look: Look | None = None,
    progress: Bar | None = None,
) -> list[Path]:
    """Draw a figure into ``out`` (default: the run's own ``figures`` folder, or ``figures`` here for several runs).

    ``group_by`` orders a figure's rows by a field of the study's models file (``family``, ``cost``, ``tuning``, ...).
    ``bands`` shades depths: ``trained`` for the depths that the study gives as trained, or numbers such as ``2,4``.
    ``only`` names the runs of a study to draw, separated by commas; ``look`` changes the figure for print.
    Raises ``InputError`` for an unknown figure or option, without runs, and for runs with nothing to draw; the message
    then gives the command that makes the data.
    """
    from . import catalog
    from .drawing import write

    if not runs:
        raise InputError(f"plot {figure}: no run given; give one or more run folders")
    single = len(runs) == 1 and is_run(runs[0])
    where = out or (runs[0] / "figures" if single else Path("figures"))
    chosen = runs if only is None else _named(runs, only)
    with progress(f"drawing {figure}", 2) if progress is not None else nullcontext(lambda _: None) as advance:
        drawing = catalog.draw(figure, chosen, group_by=group_by, bands=_bands(bands))
        advance(1)
        if drawing.empty is not None:
            reason, command = drawing.empty.rstrip("."), catalog.FIGURES[figure].command
            how = f"; to make the data, run: {command}" if command else ""
            raise InputError(f"plot {figure}: nothing to draw from {', '.join(map(str, runs))}: {reason}{how}")
        files = write(drawing, figure, where, pdf=True, look=look)
        advance(1)
    return files


def _named(runs: Sequence[Path], only: str) -> list[Path]:
    """The run folders with these names among ``runs`` or inside them, in the order of the names."""
    found = {path.name: path for path in find_runs(runs)}
    names = [name.strip() for name in only.split(",") if name.strip()]
    if missing := [name for name in names if name not in found]:
        meant = did_you_mean(missing[0], found)
        raise InputError(f"--runs {missing[0]}: no such run here{meant}; use one of {', '.join(found)}")
    return [found[name] for name in names]


def _bands(text: str | None) -> tuple[int, ...] | None:
    if text is None or text == "trained":
        return None if text is None else ()
    try:
        return tuple(int(word) for word in text.split(",") if word.strip())
    except ValueError as e:
        raise InputError(f"--bands {text}: give depths such as 2,4 or the word trained") from e


def look(width: str | None, title: bool, shades: str) -> Look:
    """The look for print. Raises ``InputError`` for an unknown width or style."""
    from .look import WIDTHS, Look

    if width is not None and width not in WIDTHS:
        raise InputError(f"--width {width}: use {' or '.join(WIDTHS)}")
    if shades not in ("color", "gray"):
        raise InputError(f"--style {shades}: use color or gray")
    return Look(width, title, shades == "gray")  # pyright: ignore[reportArgumentType]
