"""The toolkit for notebooks: evaluate, look at cases, probe failures, draw. Every result has a notebook display.

run = composcope.evaluate("path/or/object", composcope.read_cases("cases.jsonl"))
run.failures.probe("lookback").maps["failure - success"]

``opening`` (evaluate, or open a run), ``results`` (a run, its cases and groups of cases), ``probing`` (probes on them),
``shown`` (tables and maps as a notebook shows them), ``plot`` (figures).
"""

from . import plot
from .opening import evaluate, open_run
from .results import CaseGroup, CaseResult, RunResults
from .shown import ProbeResults, Table

__all__ = ["CaseGroup", "CaseResult", "ProbeResults", "RunResults", "Table", "evaluate", "open_run", "plot"]
