"""Runs programs that a model wrote, where they can reach nothing.

``running`` finds the program in an answer and runs it on the best backend of this machine: ``cpython`` (a process
locked by the kernel; ``worker`` starts one per program, ``program`` runs inside it) or ``monty`` (a Python of its own,
where the kernel cannot lock). ``results`` says what a program may use, and what it gave.
A program that does not run ends with a reason, which graders count as *invalid*, never as wrong.
"""

from .results import NOT_RUN, REASONS, CodeResult, Limits
from .running import describe, extract_code, in_words, run_answer, run_code

__all__ = [
    "NOT_RUN", "REASONS", "CodeResult", "Limits", "describe", "extract_code", "in_words", "run_answer", "run_code",
]  # fmt: skip
