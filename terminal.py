"""Makes text safe for a terminal, so that output of models, servers and files cannot control it.

    plain("\\x1b[2Jcleared")  # shows \\x1b[2J instead of clearing the screen

Escape sequences can clear the screen, set its title, write to the clipboard or hide what follows. Direction characters
change the order in which text is shown. Both are shown as ``\\x1b`` and ``\\u202e`` and have no effect.
"""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """The text with all control characters written out; line ends and tabs stay."""
    return _STEERING.sub(lambda m: _name(m.group()), text)


def in_json(text: str) -> str:
    """A JSON document with the same characters as JSON escapes; it reads back unchanged."""
    return _STEERING.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


def how_many(n: int, what: str, many: str = "") -> str:
    """A number with its noun: ``how_many(1, "case")`` is "1 case", ``how_many(2, "case")`` "2 cases"."""
    return f"{n} {what if n == 1 else many or what + 's'}"


def _name(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


_quiet: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def quietly(quiet: bool) -> Iterator[None]:
    """Inside, if ``quiet``, no library draws a bar while a model is loaded."""
    before = _quiet.set(quiet or _quiet.get())
    try:
        yield
    finally:
        _quiet.reset(before)


def silent() -> bool:
    """Whether bars of libraries are not wanted now."""
    return _quiet.get()


def to_stderr(line: str) -> None:
    """Print one of the program's messages on stderr."""
    print(f"composcope: {plain(line)}", file=sys.stderr, flush=True)
