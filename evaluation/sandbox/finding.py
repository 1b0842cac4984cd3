"""Finds the program in a model's answer: fenced blocks, or a text that holds functions without any fence."""

from __future__ import annotations

import re
import textwrap

_FENCE = re.compile(r"(```+|~~~+)[ \t]*([\w+.-]*)[^\n]*\n(.*?)(?:\1|\Z)", re.DOTALL)
_START = re.compile(r"^([ \t]*)(?:def|import|from)[ \t]+\w", re.MULTILINE)
_CODE = re.compile(r"^[ \t]*(?:(?:def|import|from)[ \t]|\w+[ \t]*=[^=])", re.MULTILINE)
_TOP_LEVEL = re.compile(
    r"(?:def|import|from|if|elif|for|while|class|with|assert|global|return|del)\s|(?:else|try|except|finally)\b"
    r"|[@#)\]}\"']|[\w.]+\(|\w[\w.\[\]\"']*(?:\s*,\s*\w+)*\s*(?::\s*\w+\s*)?(?:[-+*/%]|//|\*\*)?=[^=]"
)


def extract_code(text: str) -> str | None:
    """The program in an answer: its fenced blocks of Python, else everything from the first ``def`` on.

    Several blocks are joined in order, as answers often define ``solve_q1`` and ``solution`` apart; blocks in other
    languages and blocks that show an output are left out. Without fences the program ends where prose begins again.
    None where there is no program at all.
    """
    text = text.replace("\r\n", "\n")
    blocks = [(language.lower(), textwrap.dedent(b)) for _, language, b in _FENCE.findall(text) if b.strip()]
    if blocks:
        chosen = [b for language, b in blocks if language.startswith("py") or (not language and _CODE.search(b))]
        return "\n".join(chosen or [b for language, b in blocks if not language or _CODE.search(b)]) or None
    start = _START.search(text)
    return _without_prose(text[start.start() :], len(start[1])) if start and "def " in text else None


def _without_prose(text: str, indent: int) -> str:
    """The lines up to the first one at the outermost level that cannot be a statement, with ``indent`` taken off."""
    kept: list[str] = []
    quoted = False
    for line in text.split("\n"):
        own = line[indent:]
        outermost = bool(line.strip()) and (bool(line[:indent].strip()) or not own[:1].isspace())
        if outermost and not quoted and (line[:indent].strip() or not _TOP_LEVEL.match(own)):
            break
        kept.append(own)
        if line.count('"""') % 2 or line.count("'''") % 2:
            quoted = not quoted
    return "\n".join(kept)
