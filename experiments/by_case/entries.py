"""What one case gave one probe: the words of an index and the tensors beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ...probes.examples import Example


@dataclass(frozen=True)
class Entry:
    """One prompt of one case."""

    about: Mapping[str, Any]
    """Case, role, kind, group, tokens and spans, and the settings of this entry; JSON values only."""
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Axis names of each tensor, outermost first."""


@dataclass(frozen=True)
class Found:
    """The entries of a probe and what had to be left out, a sentence each."""

    entries: list[Entry]
    left_out: list[str] = field(default_factory=list)


def named(example: Example) -> dict[str, Any]:
    """Which prompt an entry is about."""
    return {"case": example.case, "role": example.role, "kind": example.kind, "group": example.group}
