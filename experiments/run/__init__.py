"""A run folder: everything that one evaluation did. It is enough to repeat, resume, re-score, re-probe and re-plot it.

Files: ``folder`` reads and writes them under a lock, ``schema`` says what they contain, ``writer`` creates a run,
``reader`` gives a run as typed data, ``diagnosis`` keeps a run's causes, ``provenance`` records what made a run and its
peak memory, ``single_cases`` has the numbers and prompts of single cases.
Results: ``summary`` (headline metrics and failing cases as text), ``compare`` (two runs on the same cases), ``checks``
(unusable answers, second opinions, labels by people).
Not here: ``evaluating`` fills a run with answers, and grades (``evaluate``) and joins (``merge``) existing runs;
``probing`` adds probes.
"""

from .folder import (
    SCHEMA,
    check_no_run,
    command_line,
    differing,
    find_runs,
    is_run,
    locked,
    one_run,
    read_json,
    read_lines,
    short,
    write_json,
    write_lines,
    write_text,
)

__all__ = [
    "SCHEMA", "command_line", "differing", "find_runs", "is_run", "locked", "check_no_run", "one_run", "read_json",
    "read_lines", "short", "write_json", "write_lines", "write_text",
]  # fmt: skip
