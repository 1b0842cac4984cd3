"""Run a study as a script: ``python -m composcope.experiments.agentcoma --model M``."""

from __future__ import annotations

import sys

from .root import main as composcope


def main(name: str) -> int:
    """Run one study with the arguments of this process."""
    return composcope(["study", name, *sys.argv[1:]])
