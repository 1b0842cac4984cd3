"""Reports: a static folder that opens without a network, and a page that compares two runs.

    write(load(["runs/a"]), "runs/a")  # runs/a/report.html

Pages: ``write`` (the report), ``comparison`` (two runs), ``view`` (the report in the browser, live), ``paper`` (LaTeX).
Their parts, from the top: ``landing`` (the first screen), ``causes`` and ``origins`` (why cases failed, and where a
wrong answer came from), ``headline`` (results of the protocols), ``sections`` (one for each probe, with its checks),
``cases`` (the case browser), ``pictures`` (single cases, token by token; data for a page that opens from disk).
"""

from .comparison import write_comparison
from .write import write

__all__ = ["write", "write_comparison"]
