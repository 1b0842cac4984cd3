"""A study as a script: ``python -m composcope.experiments.agentcoma --model M``."""

from __future__ import annotations

import sys

from .root import main as composcope


def main(name: str) -> int:
    """The command line of one study, with the rest of this process's arguments."""
    return composcope(["study", name, *sys.argv[1:]])
