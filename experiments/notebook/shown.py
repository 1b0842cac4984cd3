"""Display results in a notebook: tables as pandas frames, tensors as arrays with named axes, and figures.

The arrays are those of xarray: their axes can be selected, averaged and drawn by name (``maps["p"].sel(layer=3)``), and
they keep their coordinates and have a notebook display. A plain array with names would need code for each of these.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import InputError, did_you_mean
from ...evaluation.graded import Graded, role_order
from ...terminal import how_many
from ..run.reader import ProbeData, Row, RunData
from ..run.single_cases import read_single_cases

if TYPE_CHECKING:
    import pandas
    import xarray

    from ..figures.drawing import Drawing

MAIN = "composition"
"""The kind of question of maps that have no kind in their name."""
SHOWN_ROWS = 60
_DIFFERENCE = "failure - success"


@dataclass(frozen=True, repr=False)
class Table:
    """Rows with the same columns; ``to_df()`` makes a pandas frame of them."""

    title: str
    rows: Sequence[Row]

    def to_df(self) -> pandas.DataFrame:
        """One line per row, without the columns that are empty in every row."""
        import pandas

        return pandas.DataFrame(list(self.rows)).dropna(axis="columns", how="all")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __getitem__(self, i: int) -> Row:
        if isinstance(i, str):
            raise InputError(
                f"{self.title}: rows have numbers, not names; to_df() makes a frame whose columns have names"
            )
        return self.rows[i]

    def __repr__(self) -> str:
        return f"<{self.title}: {how_many(len(self.rows), 'row')}; .to_df()>"

    def _repr_html_(self) -> str:
        return heading(self.title, how_many(len(self.rows), "row")) + frame_html(self.to_df())


def heading(title: str, more: str = "") -> str:
    """A line above a table; both texts are escaped."""
    return f"<div><b>{escape(title)}</b> {escape(more)}</div>"


def frame_html(frame: pandas.DataFrame) -> str:
    """A frame as an HTML table, with all texts escaped and none shortened."""
    import pandas

    with pandas.option_context("display.max_colwidth", None, "display.float_format", "{:.4g}".format):
        return frame.to_html(index=False, escape=True, na_rep="", max_rows=SHOWN_ROWS, border=0, justify="left")


def place(row: Graded) -> tuple[bool, list[tuple[int, str]]]:
    """Where an answer stands in lists: those to the whole come first, and part 2 comes before part 10."""
    return not row.role.startswith("whole"), role_order(row.role)


class Maps(Mapping[str, "xarray.DataArray"]):
    """A probe's tensors by name, with named axes; the error for an unknown name lists the known ones."""

    def __init__(self, probe: ProbeData) -> None:
        self._probe = probe
        self._names = {readable(name, probe.tensors): name for name in probe.tensors}

    def __getitem__(self, name: str) -> xarray.DataArray:
        if name not in self._names:
            known = ", ".join(self._names) or "none"
            raise InputError(
                f"probe {self._probe.name}: no map {name!r}{did_you_mean(name, self._names)}; it has: {known}"
            )
        own = self._names[name]
        attrs = {"probe": self._probe.name, "tensor": own}
        return _named(self._probe.tensors[own], self._probe.axes.get(own), name, attrs)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"<maps of {self._probe.name}: {', '.join(self._names)}>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._names)


def _named(values: Any, axes: Sequence[str] | None, name: str, attrs: Mapping[str, Any]) -> xarray.DataArray:
    import xarray

    values = np.asarray(values)
    axes = _distinct(axes or [f"axis {i}" for i in range(values.ndim)])
    places = {axis: np.arange(n) for axis, n in zip(axes, values.shape, strict=True)}
    return xarray.DataArray(values, places, axes, name=name, attrs=dict(attrs))


def probed_now(run: RunData) -> RunData:
    """An open run as it was read, with the probes that are in its folder now: a run stays open for long."""
    now = copy(run)
    vars(now).pop("probe_names", None)
    vars(now)["_probes"] = {}
    return now


def signals(run: RunData, case: str) -> dict[str, xarray.DataArray]:
    """What the probes of a run kept of one case, by probe, role and array: ``"lookback whole attention"``.

    The tokens of the axes, and what else is known of an array, are in its ``attrs``. Empty if nothing was kept.
    """
    found = {}
    for probe in probed_now(run).probe_names:
        saved = read_single_cases(run.path, probe)
        for entry in saved.entries if saved else ():
            if entry.about["case"] != case:
                continue
            attrs = {"probe": probe, **{k: v for k, v in entry.about.items() if k != "axes"}}
            for what, values in entry.arrays.items():
                name = _free(f"{probe} {entry.about['role']} {what}", found)
                found[name] = _named(values, entry.about.get("axes", {}).get(what), name, attrs)
    return found


def _free(name: str, taken: Container[str]) -> str:
    """The name, with a number behind it if it is taken: a case can have several donors."""
    return next(n for n in chain([name], (f"{name} {i}" for i in count(2))) if n not in taken)


def readable(name: str, tensors: Mapping[str, Any]) -> str:
    """A tensor's name in words if the probe contrasts maps: ``difference.math`` -> ``math: failure - success``.

    The kind is left out for the composition; tensors of other probes keep their names.
    """
    what, _, rest = name.partition(".")
    kind, _, group = rest.partition(".")
    if f"difference.{kind}" not in tensors and f"p.{kind}" not in tensors:
        return name
    said = {"difference": _DIFFERENCE, "p": "p"}.get(what, group)
    return said if kind == MAIN else f"{kind}: {said}"


def _distinct(axes: Sequence[str]) -> list[str]:
    """Axis names, with a number added to a repeated name (task by task)."""
    return [axis if axis not in axes[:i] else f"{axis} {axes[:i].count(axis) + 1}" for i, axis in enumerate(axes)]


@dataclass(frozen=True, repr=False)
class ProbeResults:
    """The results of a probe on a group of cases of a run."""

    name: str
    """The name of the probe."""
    run: RunData
    data: ProbeData
    note: str
    """The cases of the probe: pairs, dropped strata, or why there is no contrast."""
    case_ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The cases of the probe by group (``failure``, ``success``)."""

    @property
    def table(self) -> Table:
        """The rows of the probe, each with n and interval."""
        return Table(f"{self.name} on {self.run.name}", self.data.table)

    def to_df(self) -> pandas.DataFrame:
        """The table as a pandas frame."""
        return self.table.to_df()

    @cached_property
    def maps(self) -> Maps:
        """The tensors as xarray arrays with named axes; ``maps["failure - success"]`` if the probe contrasts maps."""
        return Maps(self.data)

    @property
    def warnings(self) -> Sequence[str]:
        return self.data.warnings

    def plot(self, figure: str | None = None, **options: Any) -> Drawing:
        """Draw the probe's first figure, or the named one; ``.figure`` of the result is the matplotlib figure.

        Raises ``InputError`` for an unknown figure.
        """
        from ..figures import draw
        from ..figures.catalog import FIGURES

        mine = self.name.replace("_", "-")
        own = [f.name for f in FIGURES.values() if mine in (f.section.replace("_", "-"), f.name)]
        if figure is None and not own:
            raise InputError(
                f"probe {self.name}: has no figure of its own; give the name of one (see dir(composcope.plot))"
            )
        return draw(figure or own[0], [self.as_run()], **options)

    def as_run(self) -> RunData:
        """The run with this result in place of the one in its folder, as input for figures."""
        run = RunData(self.run.path)
        run._probes[self.name] = self.data
        return run

    def __repr__(self) -> str:
        groups = ", ".join(f"{len(ids)} {group}" for group, ids in self.case_ids.items())
        holds = f"{how_many(len(self.data.table), 'row')}, {how_many(len(self.maps), 'map')}"
        return f"<{self.name} on {self.run.name} ({groups}): {holds}>"

    def _repr_html_(self) -> str:
        said = "".join(f"<li>{escape(w)}</li>" for w in self.warnings)
        maps = f"<p>maps: {escape(', '.join(self.maps) or 'none')}</p>"
        note = f"<p>{escape(self.note)}</p>" + (f"<ul>{said}</ul>" if said else "")
        return heading(f"{self.name} on {self.run.name}") + note + frame_html(self.to_df()) + maps
