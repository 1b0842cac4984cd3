"""Draw the figures of the four papers and of the probes: ``save("collapse-curve", ["runs/a", "runs/b"], "out")``.

How figures are made: ``figure`` (what one says about itself), ``catalog`` (all by name), ``drawing`` (a figure with its
rows and caption), ``style`` and ``heatmaps`` (how marks look), ``grouping`` (which runs, in which order), ``look``
(for print), ``plotting`` (``composcope plot``).
Figures of answers: ``depth_curves``, ``gates``, ``steps_and_whole``, ``accuracies``, ``scatters``, ``skills``,
``channels`` (matched models), ``magnitudes`` (size of numbers), ``training``, ``causes`` (of failures).
Figures of probes: ``mechanism`` (neurons, heads, Min-K%++), ``layers``, ``positions``, ``readouts``, ``working``
(faithfulness), ``doses`` (the validity study).
"""

from ..run.reader import RunData, load
from .catalog import FIGURES, draw, save
from .drawing import Drawing
from .figure import Figure

__all__ = ["FIGURES", "Drawing", "Figure", "RunData", "draw", "load", "save"]
