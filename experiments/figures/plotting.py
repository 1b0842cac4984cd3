"""``composcope plot``: one figure from one or more runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import InputError
from ..run import is_run


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
) -> list[Path]:
    """Draw a figure into ``out``; by default the run's own ``figures`` folder, or ``figures`` here for several runs.

    ``group_by`` orders a figure's rows by what the study says of the models (``family``, ``cost``, ``tuning``, ...);
    ``bands`` shades depths: ``trained`` for those that the study says were trained on, or numbers such as ``2,4``.
    Raises ``InputError`` for an unknown figure or option, without runs, and for runs that have nothing to draw: then
    with the command that makes it.
    """
    from . import catalog
    from .drawing import write

    if not runs:
        raise InputError(f"plot {figure}: no run given; give one or more run folders")
    single = len(runs) == 1 and is_run(runs[0])
    where = out or (runs[0] / "figures" if single else Path("figures"))
    drawing = catalog.draw(figure, runs, group_by=group_by, bands=_bands(bands))
    if drawing.empty is not None:
        reason, command = drawing.empty.rstrip("."), catalog.FIGURES[figure].command
        how = f"; this makes it: {command}" if command else ""
        raise InputError(f"plot {figure}: nothing to draw from {', '.join(map(str, runs))}: {reason}{how}")
    return write(drawing, figure, where)


def _bands(text: str | None) -> tuple[int, ...] | None:
    if text is None or text == "trained":
        return None if text is None else ()
    try:
        return tuple(int(word) for word in text.split(",") if word.strip())
    except ValueError as e:
        raise InputError(f"--bands {text}: give depths such as 2,4 or the word trained") from e
