"""Figures of the four papers and of the probes, by id: ``save("collapse-curve", ["runs/a", "runs/b"], "out")``."""

from .catalog import FIGURES, TITLES, draw, save
from .drawing import Drawing
from .io import RunData, load

__all__ = ["FIGURES", "TITLES", "Drawing", "RunData", "draw", "load", "save"]
