"""Write text and tables as LaTeX; text from a model or a file is escaped, so that it prints unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..figures.style import plain

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "–": "--", "×": r"$\times$", "✓": "yes",
    "✗": "no", "“": "``", "”": "''", "≥": r"$\geq$", "≤": r"$\leq$", "Δ": r"$\Delta$", "·": r"$\cdot$",
    "<": r"\textless{}", ">": r"\textgreater{}", "…": r"\ldots{}",
}  # fmt: skip


def escaped(text: Any) -> str:
    """One line of text for LaTeX."""
    said = "" if text is None else str(text).replace("\u00a0", " ")
    return "".join(_SPECIAL.get(c, c) for c in plain(said, 100_000))


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], caption: str, label: str) -> str:
    """A table that may span several pages (packages booktabs and longtable)."""
    broad = {"claim": "p{0.3\\linewidth}", "badge": "p{0.16\\linewidth}"}
    layout = "".join("r" if c in ("n", "value", "p") else broad.get(c, "l") for c in columns)
    head = " & ".join(f"\\textbf{{{escaped(c)}}}" for c in columns)
    body = "".join(" & ".join(escaped(row.get(c)) for c in columns) + " \\\\\n" for row in rows)
    return (
        f"\\begin{{longtable}}{{{layout}}}\n\\caption{{{escaped(caption)}}}\\label{{{label}}}\\\\\n\\toprule\n"
        f"{head} \\\\\n\\midrule\n\\endhead\n{body}\\bottomrule\n\\end{{longtable}}\n"
    )


def figure(name: str, caption: str, page: bool) -> str:
    """A figure as wide as its column, or as the page."""
    star = "*" if page else ""
    return (
        f"\\begin{{figure{star}}}\n\\centering\n\\includegraphics[width=\\{'textwidth' if page else 'columnwidth'}]"
        f"{{figures/{name}.pdf}}\n\\caption{{{escaped(caption)}}}\\label{{fig:{name}}}\n\\end{{figure{star}}}\n"
    )
