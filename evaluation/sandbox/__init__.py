"""Runs code-form answers of a model where they can reach nothing: see ``running`` for the backends.

A program that does not run ends with a reason, which graders count as *invalid*, never as wrong.
"""

from .results import NOT_RUN, REASONS, CodeResult, Limits
from .running import describe, extract_code, in_words, run_answer, run_code

__all__ = [
    "NOT_RUN",
    "REASONS",
    "CodeResult",
    "Limits",
    "describe",
    "extract_code",
    "in_words",
    "run_answer",
    "run_code",
]
