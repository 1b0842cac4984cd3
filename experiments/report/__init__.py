"""The report: one static folder that opens from a file, with the network off; and two runs on one page."""

from .comparison import write_comparison
from .write import write

__all__ = ["write", "write_comparison"]
