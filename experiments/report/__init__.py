"""The report: one static folder that opens from a file, with the network off."""

from .write import write

__all__ = ["write"]
