"""A figure of the catalog: its name, the command that makes its data, its place in the report, and how it is drawn.

@figure("outcomes", "How every answer was graded", EVALUATE, "behavior", 12)
def outcomes(runs: Sequence[RunData]) -> Drawing: ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from ..run.reader import RunData, load
from .drawing import Drawing, NothingToDraw, words

EVALUATE = "composcope evaluate -m MODEL -b CASES"
GATE, GAP, PAIRS, SCAFFOLDS = (
    f"{EVALUATE} -p {name}" for name in ("double-gate", "compositionality-gap", "reasoning-gap", "scaffolding")
)
NEURONS, LOOKBACK, PATCHING, TRAJECTORY, MIN_K, READOUT, FAITHFULNESS = (
    f"composcope probe RUN --probes {name}"
    for name in ("neurons", "lookback", "patching", "trajectory", "min-k", "readout", "faithfulness")
)
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
