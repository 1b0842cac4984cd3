"""Result files of other programs as graded rows: stored verdicts are kept, contradictions are reported."""

from __future__ import annotations

from .base import Imported, Options
from .detect import KINDS, detect, read

__all__ = ["KINDS", "Imported", "Options", "detect", "read"]
