"""Draw the figures of the four papers and of the probes: ``save("collapse-curve", ["runs/a", "runs/b"], "out")``.

How figures are made: ``drawing`` (a figure, its rows and caption), ``catalog`` (all by name, ``composcope plot``),
``style`` (marks, legends), ``grouping`` (which runs, in which order), ``look`` (for print).
Figures of answers: ``depth_curves`` (also matched models), ``gates`` (also causes), ``accuracies``,
``scatters`` (also the size of numbers), ``skills``, ``training`` (also doses: the validity study).
Figures of probes: ``mechanism`` (neurons, heads, Min-K%++, faithfulness), ``layers`` (patching, cosines, ``readout``).
"""

from ..run.reader import RunData, load
from .catalog import FIGURES, draw, save
from .drawing import Drawing, Figure

__all__ = ["FIGURES", "Drawing", "Figure", "RunData", "draw", "load", "save"]
