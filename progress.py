"""Progress of a long computation: the caller opens a stage with a bar, and the computation reports what is done.

    with stage(reporter.bar, "patching: continuations", total=len(items)):
        ...            # anywhere below, in this thread: tick(1), or tick(1 / 40) after a fortieth of an item

Without a stage ``tick`` does nothing, so functions need not know whether there is a bar.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

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
