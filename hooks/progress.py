"""How far a long computation is: whoever waits for it opens a stage with a bar, whoever computes says what is done.

    with stage(reporter.bar, "patching: continuations", total=len(items)):
        ...            # anywhere below, in this thread: tick(1), or tick(1 / 40) after a fortieth of an item

Without a stage ``tick`` does nothing, so functions need not know whether somebody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

Advance = Callable[[float], None]
Bar = Callable[[str, int], AbstractContextManager[Advance]]
"""Opens a progress bar with a title and a total; what it yields takes how many items were done since the last call."""


class _Stage:
    """What a stage has counted. Never more than its total: estimates of parts of items may overshoot."""

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
    """Inside, what is said with ``tick`` and ``reached`` moves a bar of ``total`` items."""
    with bar(title, total) as advance:
        before = _current.set(_Stage(advance, total))
        try:
            yield
        finally:
            _current.reset(before)


def tick(n: float) -> None:
    """That many more items (or parts of one) are done."""
    if (current := _current.get()) is not None:
        current.reach(current.done + n)


def reached(n: float) -> None:
    """At least that many items are done in all."""
    if (current := _current.get()) is not None:
        current.reach(n)
