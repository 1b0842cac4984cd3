"""Print data on stdout: lines for people, tables, or one JSON document."""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ...files import finite
from ...terminal import in_json, plain


def show(value: Any, as_json: bool) -> None:
    """Print a document as strict JSON (null instead of NaN), or text line by line.

    Characters that the terminal's encoding cannot write are escaped, including half characters in a model's answer.
    """
    encoding = sys.stdout.encoding or "utf-8"
    if as_json:
        dumps = partial(json.dumps, finite(value), indent=1, allow_nan=False, default=str)
        text = dumps(ensure_ascii=False)
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            text = dumps()
        print(in_json(text))
        return
    for line in [value] if isinstance(value, str) else value:
        print(plain(str(line)).encode(encoding, "backslashreplace").decode(encoding))


def table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] | None = None) -> list[str]:
    """Rows as aligned text; by default, the columns are those of the rows in order of appearance."""
    names = list(columns or dict.fromkeys(k for row in rows for k in row))
    return aligned(names, [[cell(row.get(n)) for n in names] for row in rows])


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of text with their cells below each other."""
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines]


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    first, *others = (f"| {' | '.join(line)} |" for line in (head, *rows))
    return [first, f"|{'---|' * len(head)}", *others]


def cell(value: Any) -> str:
    """One value in a table: 3 decimals, ``-`` for nothing."""
    if value is None or value == "":
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, Mapping):
        return " ".join(f"{k}={cell(v)}" for k, v in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(cell(v) for v in value) or "-"
    return str(value)
