"""Draw the figures of the four papers and of the probes: ``save("collapse-curve", ["runs/a", "runs/b"], "out")``."""

from ..run.reader import RunData, load
from .catalog import FIGURES, draw, save
from .drawing import Drawing
from .figure import Figure

__all__ = ["FIGURES", "Drawing", "Figure", "RunData", "draw", "load", "save"]
