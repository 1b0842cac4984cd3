"""What reaches a terminal: text that is safe for it, and the progress of long computations; options of several words.

Text is made safe, so that output of models, servers and files cannot control the terminal.

    plain("\\x1b[2Jcleared")  # shows \\x1b[2J instead of clearing the screen

Escape sequences can clear the screen, set its title, write to the clipboard or hide what follows. Direction characters
change the order in which text is shown. Both are shown as ``\\x1b`` and ``\\u202e`` and have no effect.

For progress, the caller opens a stage with a bar, and the computation reports what is done.

    with stage(reporter.bar, "patching: continuations", total=len(items)):
        ...            # anywhere below, in this thread: tick(1), or tick(1 / 40) after a fortieth of an item

Without a stage ``tick`` does nothing, so functions need not know whether there is a bar.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

from .errors import InputError

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


# --- progress ------------------------------------------------------------------------------------------------------

Advance = Callable[[float], None]
Bar = Callable[[str, int], AbstractContextManager[Advance]]
"""Opens a progress bar with a title and a total; it yields a function that takes the number of newly done items."""


class _Stage:
    """The count of a stage, never more than its total: estimates of parts of items may overshoot."""

    def __init__(self, advance: Advance, total: float) -> None:
        self.advance, self.total, self.done = advance, total, 0.0

    def reach(self, done: float) -> None:
        more = min(done, self.total) - self.done
        if more > 0:
            self.done += more
            self.advance(more)


_current: ContextVar[_Stage | None] = ContextVar("progress", default=None)


def no_bar(title: str, total: int) -> AbstractContextManager[Advance]:
    """A ``Bar`` that shows nothing."""
    return nullcontext(lambda n: None)


@contextmanager
def stage(bar: Bar, title: str, total: int) -> Iterator[None]:
    """Inside, ``tick`` and ``reached`` move a bar of ``total`` items."""
    with bar(title, total) as advance:
        before = _current.set(_Stage(advance, total))
        try:
            yield
        finally:
            _current.reset(before)


def tick(n: float) -> None:
    """Report that ``n`` more items (or parts of one) are done."""
    if (current := _current.get()) is not None:
        current.reach(current.done + n)


def reached(n: float) -> None:
    """Report that at least ``n`` items are done in total."""
    if (current := _current.get()) is not None:
        current.reach(n)


def words(text: str | None) -> list[str]:
    """The words of an option that takes several, separated by commas."""
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def whole_numbers(text: str, option: str) -> list[int]:
    """``2,4`` -> [2, 4]. Raises ``InputError`` for anything else."""
    found = words(text)
    if not found or not all(word.isdecimal() for word in found):
        raise InputError(f"{option} {text}: give whole numbers, separated by commas")
    return [int(word) for word in found]
