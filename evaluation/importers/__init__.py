"""Other people's result files as graded rows: what they stored is kept, and what cannot be true is reported."""

from __future__ import annotations

from .base import Imported, Options
from .detect import KINDS, detect, read

__all__ = ["KINDS", "Imported", "Options", "detect", "read"]
