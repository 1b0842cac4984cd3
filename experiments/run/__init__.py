"""A run folder: everything one evaluation did, enough to repeat, resume, re-score, re-probe and re-plot it.

``folder`` reads and writes files, ``schema`` says what they hold, ``reader`` reads a run, ``writer`` makes one;
``rescore``, ``compare``, ``merge`` and ``summary`` work on runs that are there.
"""

from .folder import (
    SCHEMA,
    command_line,
    differing,
    find_runs,
    is_run,
    locked,
    read_json,
    read_lines,
    short,
    write_json,
    write_lines,
    write_text,
)

__all__ = [
    "SCHEMA",
    "command_line",
    "differing",
    "find_runs",
    "is_run",
    "locked",
    "read_json",
    "read_lines",
    "short",
    "write_json",
    "write_lines",
    "write_text",
]
