"""What a paper takes from runs: figures at column width, captions and tables in LaTeX, methods, a table of claims."""

from .folder import write

__all__ = ["write"]
