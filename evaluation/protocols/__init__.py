"""Protocols: published ways to ask and to count, by command-line name."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from ...errors import InputError
from .base import CaseSet, Entry, Evidence, Graded, Protocol, Reduction
from .compositionality_gap import CompositionalityGap
from .double_gate import DoubleGate

__all__ = ["CaseSet", "Entry", "Evidence", "Graded", "Protocol", "Reduction", "PROTOCOLS", "get"]

PROTOCOLS: dict[str, Callable[..., Protocol]] = {
    "compositionality-gap": CompositionalityGap,
    "double-gate": DoubleGate,
}
"""Protocol classes by command-line name; ``get(name, **options)`` makes one."""


def get(name: str, **options: Any) -> Protocol:
    """The protocol of a command-line name, with its options.

    Other packages add protocols through the entry-point group ``composcope.protocols``.
    Raises ``InputError`` for an unknown name or option.
    """
    found = PROTOCOLS.get(name)
    if found is None:
        for point in entry_points(group="composcope.protocols", name=name):
            found = point.load()
    if found is None:
        raise InputError(f"--protocol {name!r} is not known; use one of {', '.join(sorted(PROTOCOLS))}")
    try:
        return found(**options)
    except TypeError as e:
        raise InputError(f"--protocol {name}: option not known or wrong ({e})") from e
