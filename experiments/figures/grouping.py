"""Which runs a figure shows, by what names, in what order (family, size, cost, tuning, recipe, specialization)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from ..run.reader import RunData


@dataclass(frozen=True)
class Grouped:
    """Runs ordered by group, those without one last."""

    runs: Sequence[RunData]
    names: Mapping[Path, str]
    """``group · model``; the model alone where there is no group."""
    places: Mapping[str, int]
    """By name, which group it is: the first, the second, ..."""
    text: str
    """The caption's sentence; empty without ``group_by``."""


def grouped(runs: Sequence[RunData], group_by: str | None) -> Grouped:
    """``runs`` ordered by a field of the study's models file; as they are without one.

    Raises ``InputError`` where the study says it of no model.
    """
    said = {r.path: r.about.get(group_by) if group_by else None for r in runs}
    if group_by and runs and all(g is None for g in said.values()):
        raise InputError(
            f"--group-by {group_by}: no model here has this field; give it in the models file of a study (family, "
            "size, cost, tuning, recipe, specialization)"
        )
    known = sorted({g for g in said.values() if g is not None}, key=lambda g: (isinstance(g, str), g))
    place = {p: len(known) if g is None else known.index(g) for p, g in said.items()}
    ordered = sorted(runs, key=lambda r: place[r.path])
    names = {p: n if said[p] is None else f"{said[p]} · {n}" for p, n in labels(ordered).items()}
    text = ""
    if group_by is not None:
        missing = [n for p, n in names.items() if said[p] is None]
        text = f" Ordered by {group_by}." + (f" Without {group_by}: {', '.join(missing)}." if missing else "")
    return Grouped(ordered, names, {names[p]: i for p, i in place.items()}, text)


def having(runs: Sequence[RunData], *metrics: str) -> list[RunData]:
    """The runs that have all of these metrics, so that only they are named and counted."""
    return [r for r in runs if set(metrics) <= {m.metric for m in r.metrics}]


def labels(runs: Sequence[RunData]) -> dict[Path, str]:
    """A short name per run: the model where that tells them apart, else with the benchmark, else the folder."""
    for make in (lambda r: r.model, lambda r: f"{r.model} · {r.benchmark}", lambda r: r.name):
        names = [make(r) for r in runs]
        if len(set(names)) == len(runs):
            return {r.path: n for r, n in zip(runs, names, strict=True)}
    return {r.path: f"{r.name} ({i})" for i, r in enumerate(runs, 1)}


def labels_by_benchmark(runs: Sequence[RunData]) -> dict[Path, str]:
    """Short names that tell the runs of each benchmark apart: for figures with one panel a benchmark."""
    found: dict[Path, str] = {}
    for benchmark in dict.fromkeys(r.benchmark for r in runs):
        found |= labels([r for r in runs if r.benchmark == benchmark])
    return found
