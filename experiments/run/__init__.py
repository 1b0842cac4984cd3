"""A run folder: everything that one evaluation did. It is enough to repeat, resume, re-score, re-probe and re-plot it.

``folder`` reads and writes files, ``schema`` defines what they contain, ``reader`` reads a run, and ``writer`` creates
one. ``rescore``, ``compare``, ``merge`` and ``summary`` work on existing runs.
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
