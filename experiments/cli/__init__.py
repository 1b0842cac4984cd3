"""The command line: one file per group of commands, assembled in ``root``.

``root`` (investigate, evaluate, probe, demo), ``runs`` (commands on existing runs), ``studies``, ``build`` (also
import), ``interventions``, ``organism``, ``start`` (init, fetch, docs, bench), ``doctor``.
``flags`` makes options, with the headings of ``--help``, from the fields of ``config``, which have the defaults,
and lays out ``--help``.

Each module is imported only when it is used.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name in ("app", "main"):
        return getattr(import_module(".root", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
