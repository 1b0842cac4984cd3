"""Runs code-form answers of a model on the best backend that this machine has."""

import ast
import atexit
import functools
import os
import re
import textwrap
import threading
import warnings
from typing import Any

from ...errors import InputError
from .cpython import LockedPython, Unavailable, self_test
from .monty import Monty
from .results import CodeResult, Limits

_choosing = threading.Lock()


@functools.cache
def _backend(process: int) -> LockedPython | Monty:
    python, missing = LockedPython(), []
    atexit.register(python.close)
    try:
        python.start()
        self_test(python)
        return python
    except (Unavailable, OSError) as e:
        python.close()
        missing.append(f"locked CPython: {e}")
    try:
        monty = Monty()
        atexit.register(monty.close)
        return monty
    except Unavailable as e:
        missing.append(f"Monty: {e}")
    raise InputError(f"this machine has no sandbox for programs of a model ({'; '.join(missing)})")


def backend() -> LockedPython | Monty:
    """The backend of this process, chosen once: locked CPython where it holds, else Monty.

    Raises ``InputError`` with the reasons where there is neither. A forked process chooses its own.
    """
    with _choosing:
        return _backend(os.getpid())


def describe() -> dict[str, Any]:
    """What runs programs here, as a manifest says it."""
    chosen = backend()
    return {"backend": chosen.name, "version": chosen.version, "walls": list(chosen.walls)}


def in_words() -> str:
    """One line of ``describe``."""
    told = describe()
    return f"{told['backend']} {told['version']} ({', '.join(told['walls'])})"


def run_code(code: str, limits: Limits | None = None, *, variables: bool = False) -> CodeResult:
    """Run ``code`` and call its function ``solution``.

    Where there is no such function, it returns nothing, or the program has called it with arguments of its own, the
    last line printed is the answer.

    The result's ``reason`` is ``no-answer`` where nothing came back, ``refused`` where the program wanted what the
    sandbox does not have, ``time``, ``memory``, ``recursion`` or ``output`` where a limit was hit. ``variables`` also
    returns what the function had assigned in the end.
    """
    return backend().run(code, limits or Limits(), variables)


def run_answer(text: str) -> CodeResult:
    """Find the program in a model's answer and run it; ``no-code`` where there is none."""
    code = extract_code(text)
    return CodeResult(reason="no-code") if code is None else run_code(code)


_FENCE = re.compile(r"(```+|~~~+)[ \t]*([\w+.-]*)[^\n]*\n(.*?)(?:\1|\Z)", re.DOTALL)
_START = re.compile(r"^([ \t]*)(?:(?:def|import)[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b)", re.MULTILINE)
_FUNCTION = re.compile(r"^[ \t]*def[ \t]+\w+[ \t]*\(", re.MULTILINE)
_CODE = re.compile(r"^[ \t]*(?:(?:def|import|from)[ \t]|\w+[ \t]*=[^=])", re.MULTILINE)
_TOP_LEVEL = re.compile(
    r"(?:def|import|from|if|elif|for|while|class|with|assert|global|return|del)\s|(?:else|try|except|finally)\b"
    r"|[@#)\]}\"']|[\w.]+\(|\w[\w.\[\]\"']*(?:\s*,\s*\w+)*\s*(?::\s*\w+\s*)?(?:[-+*/%]|//|\*\*)?=[^=]"
)


def extract_code(text: str) -> str | None:
    """The program in an answer: its fenced blocks of Python, else everything from the first ``def`` on.

    Several blocks are joined in order, as answers often define ``solve_q1`` and ``solution`` apart; blocks in other
    languages and blocks that show an output are left out. Outside of fences the program ends where prose begins again.
    None where there is no program at all.
    """
    text = text.replace("\r\n", "\n")
    blocks = [(language.lower(), textwrap.dedent(b)) for _, language, b in _FENCE.findall(text) if b.strip()]
    if blocks:
        named = any(language.startswith("py") for language, _ in blocks)
        chosen = [
            b for language, b in blocks
            if language.startswith("py") or (not language and _CODE.search(b) and (not named or _reads(b)))
        ]  # fmt: skip
        if chosen:
            return "\n".join(chosen)
    outside = _FENCE.sub("\n", text) if blocks else text
    start = _START.search(outside)
    if start and (_FUNCTION.search(outside) if blocks else "def " in text):
        return _without_prose(outside[start.start() :], len(start[1]))
    return "\n".join(b for language, b in blocks if not language or _CODE.search(b)) or None


def _reads(block: str) -> bool:
    """Whether a block without a language reads as Python; "X = 3 eggs" is what a program printed."""
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            ast.parse(block)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


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
