"""Ctrl-C that never falls between taking something in hand and putting it back.

What changes a model for a while (hooks, another attention function, wider weights) undoes it in a ``finally``, which an
interrupt in the wrong line would skip. So inside ``held`` the first Ctrl-C is only noted while such lines run. It is
raised at once where a module of a model runs, from where every ``finally`` is reached, else when all is put back.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from torch import nn

P = ParamSpec("P")
T = TypeVar("T")
IMPATIENT = 1.0
"""Seconds after which a second Ctrl-C is not held any more."""
_FORWARD = {f.__code__ for f in (nn.Module._call_impl, nn.Module._wrapped_call_impl)}


class _Held:
    """One for the process: Python runs signal handlers in the main thread only."""

    def __init__(self) -> None:
        self.frames: list[FrameType | None] = []
        """Who holds, from the outermost on."""
        self.closed = 0
        """How many of them hold also while a module runs."""
        self.before: Any = None
        self.noted: float | None = None
        """When Ctrl-C came."""

    def enter(self, frame: FrameType | None) -> None:
        if not self.frames:
            self.before = signal.getsignal(signal.SIGINT)
            if callable(self.before):
                signal.signal(signal.SIGINT, self.handle)
        self.frames.append(frame)

    def leave(self) -> None:
        self.frames.pop()
        if self.frames or not callable(self.before):
            return
        signal.signal(signal.SIGINT, self.before)
        if self.noted is not None:
            self.noted = None
            self.before(signal.SIGINT, sys._getframe())

    def handle(self, number: int, frame: FrameType | None) -> None:
        first = self.noted is None
        if first and not self._in_a_forward_pass(frame):
            self.noted = time.monotonic()
        elif first or time.monotonic() - (self.noted or 0) > IMPATIENT:
            self.noted = None
            self.before(number, frame)

    def _in_a_forward_pass(self, frame: FrameType | None) -> bool:
        """Whether a module's forward is running, and in it nobody who holds."""
        while frame is not None and not self.closed:
            if frame.f_code in _FORWARD:
                return True
            if frame in self.frames:
                return False
            frame = frame.f_back
        return False


_HELD = _Held()


class held:
    """Inside, Ctrl-C waits until the lines that change a model and put it back are done; ``closed``: until the end."""

    def __init__(self, frame: FrameType | None = None, *, closed: bool = False):
        self.frame, self.closed = frame, closed

    def __enter__(self) -> None:
        self.mine = threading.current_thread() is threading.main_thread()
        if self.mine:
            _HELD.enter(self.frame or sys._getframe(1))
            _HELD.closed += self.closed

    def __exit__(self, *_: object) -> None:
        if self.mine:
            _HELD.closed -= self.closed
            _HELD.leave()


class _Whole(AbstractContextManager[T]):
    def __init__(self, inner: AbstractContextManager[T]):
        self.inner = inner

    def __enter__(self) -> T:
        self.hold = held(sys._getframe(1))
        self.hold.__enter__()
        try:
            return self.inner.__enter__()
        except BaseException:
            self.hold.__exit__()
            raise

    def __exit__(self, *error: Any) -> bool | None:
        try:
            return self.inner.__exit__(*error)
        finally:
            self.hold.__exit__()


def whole(function: Callable[P, Iterator[T]]) -> Callable[P, AbstractContextManager[T]]:
    """``contextmanager``, whose lines before and after the ``yield`` Ctrl-C does not interrupt."""
    make = contextmanager(function)

    @wraps(function)
    def opened(*args: P.args, **kwargs: P.kwargs) -> AbstractContextManager[T]:
        return _Whole(make(*args, **kwargs))

    return opened
