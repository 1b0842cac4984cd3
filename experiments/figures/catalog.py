"""The catalog of figures by name, and ``composcope plot``; each figure describes itself (``drawing.figure``)."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import InputError, did_you_mean
from ...registry import Registry
from ...terminal import Bar, words
from ..config import flag
from ..run.folder import find_runs, is_run, runs_in, unfinished
from ..run.reader import RunData
from .drawing import Drawing, Figure, Sheet, of_function, write
from .look import WIDTHS, Look

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
            named = flag(option) if option in ("group_by", "bands") else option  # the others come from Python
            raise InputError(f"{named}: the figure {figure_id} has no such option; leave it out")
    read = found.read(list(runs))
    if not isinstance(drawing := found(read, **given), Drawing):
        kind = f"{Drawing.__module__}.{Drawing.__name__}"
        raise InputError(f"figure {figure_id}: returned {type(drawing).__name__}; a figure returns a {kind}")
    rows = isinstance(drawing.rows, Sequence) and all(isinstance(row, Mapping) for row in drawing.rows)
    for part, fits, needed in (
        ("figure", isinstance(drawing.figure, Sheet), "a figure of matplotlib"),
        ("rows", rows, "a list with one dictionary per mark"),
        ("caption", isinstance(drawing.caption, str), "a text"),
    ):
        if not fits:
            found = type(getattr(drawing, part)).__name__
            raise InputError(f"figure {figure_id}: {part} of its Drawing is of type {found}; give {needed}")
    return of_runs(drawing, read)


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


def put(drawing: Drawing, name: str, out: str | Path, **options: Any) -> list[Path]:
    """Write a drawing (``drawing.write``). Raises ``InputError`` for the figure of a plugin that cannot be written."""
    try:
        return write(drawing, name, out, **options)
    except OSError:
        raise
    except Exception as e:  # matplotlib reads some texts, such as formulas, only when it writes the picture
        if name in FIGURES.own:
            raise
        why = " ".join(f"{type(e).__name__}: {e}".split())
        raise InputError(f"figure {name}: cannot be written ({why}); fix the plugin that draws it") from e


def save(figure_id: str, runs: Iterable[str | Path | RunData], out: str | Path, **options: object) -> list[Path]:
    """Draw a figure and write ``NAME.pdf``, ``.png``, ``.svg``, ``.csv`` and ``.txt`` (the caption) into ``out``."""
    return put(draw(figure_id, runs, **options), figure_id, out, pdf=True)


def plot(
    figure: str, runs: Sequence[Path], out: Path | None, *, group_by: str | None = None, bands: str | None = None,
    only: str | None = None, look: Look | None = None, progress: Bar | None = None,
) -> list[Path]:  # fmt: skip
    """Draw a figure into ``out`` (default: the run's own ``figures`` folder, or ``figures`` here for several runs).

    ``group_by`` orders a figure's rows by a field of the study's models file (``family``, ``cost``, ``tuning``, ...).
    ``bands`` shades depths: ``trained`` for the depths that the study gives as trained, or numbers such as ``2,4``.
    ``only`` names the runs of a study to draw, separated by commas; ``look`` changes the figure for print.
    Raises ``InputError`` for an unknown figure or option, without runs, and for runs with nothing to draw; the message
    then gives the command that makes the data.
    """
    if not runs:
        raise InputError(f"plot {figure}: no run given; give one or more run folders")
    single = len(runs) == 1 and is_run(runs[0])
    where = out or (runs[0] / "figures" if single else Path("figures"))
    chosen = runs if only is None else _named(runs, only)
    with progress(f"drawing {figure}", 2) if progress is not None else nullcontext(lambda _: None) as advance:
        drawing = draw(figure, chosen, group_by=group_by, bands=_bands(bands))
        advance(1)
        if drawing.empty is not None:
            reason, command = drawing.empty.rstrip("."), FIGURES[figure].command
            how = f"; to make the data, run: {command}" if command else ""
            inside = [path for folder in chosen for path in runs_in(folder)]
            how = "".join(f"; {p}: {why}" for p in inside if (why := unfinished(p)) is not None) or how
            raise InputError(f"plot {figure}: nothing to draw from {', '.join(map(str, runs))}: {reason}{how}")
        files = put(drawing, figure, where, pdf=True, look=look)
        advance(1)
    return files


def _named(runs: Sequence[Path], only: str) -> list[Path]:
    """The run folders with these names among ``runs`` or inside them, in the order of the names; all of one name."""
    found, names = find_runs(runs), words(only)
    known = list(dict.fromkeys(path.name for path in found))
    if missing := [name for name in names if name not in known]:
        meant = did_you_mean(missing[0], known)
        raise InputError(f"--runs {missing[0]}: no such run here{meant}; use one of {', '.join(known)}")
    return [path for name in names for path in found if path.name == name]


def _bands(text: str | None) -> tuple[int, ...] | None:
    if text is None or text == "trained":
        return None if text is None else ()
    try:
        return tuple(int(word) for word in words(text))
    except ValueError as e:
        raise InputError(f"--bands {text}: give depths such as 2,4 or the word trained") from e


def look(width: str | None, title: bool, shades: str) -> Look:
    """The look for print. Raises ``InputError`` for an unknown width or style."""
    if width is not None and width not in WIDTHS:
        raise InputError(f"--width {width}: use {' or '.join(WIDTHS)}")
    if shades not in ("color", "gray"):
        raise InputError(f"--style {shades}: use color or gray")
    return Look(width, title, shades == "gray")  # pyright: ignore[reportArgumentType]
