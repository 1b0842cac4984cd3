"""``composcope plot``: one figure from one or more runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import InputError
from .run import find_runs, is_run


def figure_names() -> list[str]:
    """Every figure id with its title, one a line."""
    from .figures.catalog import TITLES

    return [f"{name}: {title}" for name, title in TITLES.items()]


def draw(figure: str, runs: Sequence[Path], out: Path | None) -> list[Path]:
    """Draw a figure into ``out``; by default the run's own ``figures`` folder, or ``figures`` here for several runs.

    Raises ``InputError`` for an unknown figure or no run.
    """
    from .figures.catalog import save

    if not runs:
        raise InputError(f"plot {figure}: no run given; give one or more run folders")
    folders = find_runs(runs)
    single = len(runs) == 1 and is_run(runs[0])
    return save(figure, folders, out or (runs[0] / "figures" if single else Path("figures")))
