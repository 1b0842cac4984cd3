"""Write material for a paper from runs: figures at column width, captions and tables in LaTeX, methods, claims.

``folder`` writes it all, ``claims`` the sentences with their numbers, ``latex`` escapes and lays out tables.
"""

from .folder import write

__all__ = ["write"]
