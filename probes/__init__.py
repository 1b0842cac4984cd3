"""Probes: what goes on inside a model on exactly the cases that it fails, against the ones it gets right.

Probes: ``neurons`` (which neurons carry an answer), ``lookback`` (attention to the prompt), ``patching`` (states of a
success put into a failure), ``readout`` (is a name held in a state?), ``faithfulness`` (does the answer come from the
written working?), ``trajectory`` (how states move), ``min_k`` (was the text in the training data?), ``steering`` (a
direction added to states). ``catalog`` has the probes by name; ``single_cases`` keeps what single cases look like.
What they measure on: ``examples`` (prompt, response and gold answer as tokens), ``matching`` (a similar success for
each failure), ``positions``, ``slots`` and ``answer_spans`` (where in a response the answer begins), ``spread``
(measures items one by one, also on workers).
What is concluded: ``contrast`` (groups and roles compared), ``effects`` (effect sizes and intervals), ``maps`` (whole
maps at once), ``tables`` (rows of a probe's table), ``result`` (what every probe returns), ``validity`` (does a probe
measure anything?), ``verdicts`` (tests corrected together, and verdicts over several trainings).
They are imported on first use, so that ``import composcope.probes`` does not load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import (
        contrast,
        effects,
        examples,
        faithfulness,
        lookback,
        matching,
        min_k,
        neurons,
        patching,
        readout,
        result,
        steering,
        tables,
        trajectory,
        validity,
        verdicts,
    )
    from .contrast import between, map_test, paired
    from .examples import Example, from_case_sets
    from .matching import Matched, match
    from .result import ProbeResult

_NAMES = {
    "Example": "examples",
    "from_case_sets": "examples",
    "ProbeResult": "result",
    "Matched": "matching",
    "match": "matching",
    "between": "contrast",
    "paired": "contrast",
    "map_test": "contrast",
}

__all__ = [
    "Example", "Matched", "ProbeResult", "between", "contrast", "effects", "examples", "faithfulness",
    "from_case_sets", "lookback", "map_test", "match", "matching", "min_k", "neurons", "paired", "patching", "readout",
    "result", "steering", "tables", "trajectory", "validity", "verdicts",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(f".{_NAMES[name]}", __name__), name)
    if name in __all__:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
