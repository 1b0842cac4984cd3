"""Reports: a static folder that opens without a network, and a page that compares two runs."""

from .comparison import write_comparison
from .write import write

__all__ = ["write", "write_comparison"]
