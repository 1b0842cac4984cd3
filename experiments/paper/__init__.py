"""Write material for a paper from runs: figures at column width, captions and tables in LaTeX, methods, claims."""

from .folder import write

__all__ = ["write"]
