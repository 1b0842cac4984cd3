"""Result files of other programs as graded rows: stored verdicts are kept, contradictions are reported.

``detect`` tells what kind a file is, and reads it: ``lm_eval`` (lm-evaluation-harness), ``inspect_logs`` (inspect_ai),
``papers`` (STaD, Bamboogle), ``plain`` (any rows with answer and gold). ``regrading`` grades the responses
again and lists what differs; ``base`` has the types.
"""

from __future__ import annotations

from .base import Imported, Options
from .detect import KINDS, detect, read

__all__ = ["KINDS", "Imported", "Options", "detect", "read"]
