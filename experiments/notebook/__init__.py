"""The toolkit for notebooks: evaluate, look at cases, probe failures, draw. Every result has a notebook display.

run = composcope.evaluate("path/or/object", composcope.read_cases("cases.jsonl"))
run.failures.probe("lookback").maps["failure - success"]
"""

from . import plot
from .opening import evaluate, open_run
from .results import CaseGroup, CaseResult, RunResults
from .shown import ProbeResults, Table

__all__ = ["CaseGroup", "CaseResult", "ProbeResults", "RunResults", "Table", "evaluate", "open_run", "plot"]
