"""The catalog of figures by name, for the command line and the report; each figure describes itself (``figure``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ...errors import InputError, did_you_mean
from ...registry import Registry
from ..run.reader import RunData
from .drawing import Drawing, Figure, of_function, write

FIGURES: Registry[Figure] = Registry("figures", lambda value: isinstance(value, Figure), __package__, of_function)


def draw(figure_id: str, runs: Iterable[str | Path | RunData], **options: object) -> Drawing:
    """Draw a figure with its rows and caption; in a notebook, show ``.figure``.

    ``options`` are the figure's own (``group_by``, ``bands``). Raises ``InputError`` for an unknown name or option and
    for a folder that is not a run. The figure says what was not measured.
    """
    found = FIGURES.find(figure_id)
    if found is None:
        meant = did_you_mean(figure_id, FIGURES)
        raise InputError(f"figure {figure_id!r}: no such figure; see `composcope plot --list`{meant}")
    given = {k: v for k, v in options.items() if v is not None}
    for option in given:
        if option not in found.options:
            raise InputError(f"--{option.replace('_', '-')}: the figure {figure_id} has no such option; leave it out")
    read = found.read(list(runs))
    return of_runs(found(read, **given), read)


def of_runs(drawing: Drawing, runs: Iterable[object]) -> Drawing:
    """The drawing with the provenance of its runs; the caption names the runs that it does not show."""
    known = [r for r in runs if isinstance(r, RunData)]
    absent = _not_shown(drawing, known)
    said = f" Runs with nothing to draw: {', '.join(absent)}." if absent else ""
    made_with = tuple(r.manifest.made_with() for r in known)
    return replace(drawing, caption=drawing.caption + said, made_with=made_with)


def _not_shown(drawing: Drawing, runs: Sequence[RunData]) -> list[str]:
    """Runs without a row whose protocol is drawn (runs of other protocols cannot have rows).

    Empty if rows do not belong to single runs, or if several folders have the same name.
    """
    names = [r.name for r in runs]
    shown = {str(row.get("run")) for row in drawing.rows}
    if drawing.empty is not None or not shown <= set(names) or len(set(names)) < len(names):
        return []
    protocols = {r.protocol for r in runs if r.name in shown}
    return [r.name for r in runs if r.name not in shown and r.protocol in protocols]


def save(figure_id: str, runs: Iterable[str | Path | RunData], out: str | Path, **options: object) -> list[Path]:
    """Draw a figure and write ``NAME.pdf``, ``.png``, ``.svg``, ``.csv`` and ``.txt`` (the caption) into ``out``."""
    return write(draw(figure_id, runs, **options), figure_id, out, pdf=True)
