"""Sections for probes from outside composcope (from a plugin or an installed package), one for each that ran.

The page does not know what such a probe measures. It shows the table with intervals, names the tensors, repeats the
settings and warnings, and shows the figures of the same plugin.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ...probes.catalog import described
from ..figures.catalog import FIGURES
from ..figures.grouping import labels
from ..run.reader import ProbeData, Row, RunData
from .sections import SPANS, cell, probe_notes, title

ROWS = 200
_FIRST = ("quantity", "kind", "group", "layer", "head", "token", "case", "role")
_LAST = ("effect", "p_adjusted", "note")
_TESTS = frozenset("sd n_first n_second effect_size test p smallest_detectable cliffs_delta family n_dropped".split())
"""Columns that ``probes.tables`` adds to a comparison: the page only names them, and the csv has them."""


@dataclass(frozen=True)
class OtherProbe:
    """The section of one such probe."""

    id: str
    name: str
    models: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: int
    left_out: tuple[str, ...]
    """Columns of the table that the page does not show."""
    tensors: tuple[tuple[str, str, str], ...]
    """Model, name and axes with their lengths."""
    notes: tuple[str, ...]


def collect(runs: Sequence[RunData]) -> list[OtherProbe]:
    """One section for each probe in the runs that is not composcope's own, ordered by name."""
    own = {_plain(p.name) for p in described()}
    names = dict.fromkeys(n for r in runs for n in r.probe_names if _plain(n) not in own and not n.startswith("."))
    taken: set[str] = set()
    return [found for name in sorted(names) if (found := _section(runs, name, taken)) is not None]


def figures_of(probe: str) -> list[str]:
    """Figures of a plugin that belong to its probe: they declare the probe, or their names begin with its name."""
    mine, brought = _plain(probe), [f for f in FIGURES.values() if f.name not in FIGURES.own]
    named = [f.name for f in brought if _plain(f.name) == mine or _plain(f.name).startswith(f"{mine}-")]
    return list(dict.fromkeys([*(f.name for f in brought if _plain(f.section) == mine), *named]))


def _section(runs: Sequence[RunData], name: str, taken: set[str]) -> OtherProbe | None:
    names = labels(runs)
    found = [(names[run.path], data) for run in runs if (data := run.probe(name)) is not None]
    if not found:
        return None
    rows = [(model, row) for model, data in found for row in data.table]
    columns, left_out = _columns([row for _, row in rows])
    several = len(runs) > 1
    shown = [(*((model,) if several else ()), *(cell(c, row) for c in columns)) for model, row in rows[:ROWS]]
    return OtherProbe(
        id=_anchor(name, taken),
        name=name,
        models=tuple(model for model, _ in found),
        columns=(*(["model"] if several else []), *(title(c) for c in columns)),
        rows=tuple(shown),
        total=len(rows),
        left_out=tuple(left_out),
        tensors=tuple(t for model, data in found for t in _tensors(model, data)),
        notes=tuple(probe_notes(runs, name)),
    )


def _columns(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Columns in reading order (what, of whom, n, value with interval, the rest), and the columns only in the csv."""
    present = list(dict.fromkeys(k for row in rows for k, v in row.items() if v is not None))
    inside = {bound for column in SPANS for bound in SPANS[column] if column in present}
    counted = ("n", "value", "interval")
    of_its_own = [c for c in present if c not in {*_FIRST, *counted, *_LAST, *inside, *_TESTS}]
    order = [*_FIRST, *of_its_own, *counted, *_LAST]
    return [c for c in order if c in present], [c for c in present if c in _TESTS]


def _tensors(model: str, data: ProbeData) -> list[tuple[str, str, str]]:
    out = []
    for name, array in data.tensors.items():
        axes = list(data.axes.get(name, ()))
        sizes = [str(n) for n in array.shape]
        if len(axes) == len(sizes):
            sizes = [f"{axis} {size}" for axis, size in zip(axes, sizes, strict=True)]
        out.append((model, name, " × ".join(sizes) or "one number"))
    return out


def _anchor(name: str, taken: set[str]) -> str:
    """An anchor on the page: letters and digits only, and different from every other section's."""
    base = "probe-" + (re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "other")
    found, i = base, 2
    while found in taken:
        found, i = f"{base}-{i}", i + 1
    taken.add(found)
    return found


def _plain(name: str) -> str:
    return name.replace("_", "-")
