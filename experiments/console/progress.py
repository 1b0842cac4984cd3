"""Report progress on stderr and in the run's log: bars on a terminal, one line per 10 % everywhere else."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TextIO

from ...terminal import plain

Advance = Callable[[float], None]
PATIENCE = 3.0
"""Seconds before a ``patient_bar`` prints its first line without a terminal; each further wait is twice as long."""


class Reporter:
    """Reports progress. Data never goes through here, so that stdout stays free for it."""

    def __init__(
        self,
        log: Path | None = None,
        *,
        quiet: bool = False,
        bars: bool = True,
        waits: bool = False,
        patience: float | None = None,
        stream: TextIO | None = None,
    ) -> None:
        """``bars=False`` reports only finished work, for several processes that share one stderr.

        ``patience`` is that of every bar without its own, for work that is one step of a longer command.
        ``waits`` makes no folder for the log: lines are held until the log's run has begun.
        """
        self.log = log
        self.waits = waits
        self._held: list[str] = []
        self.quiet = quiet
        self.bars = bars
        self.patience = patience
        self._stream = stream
        self._live: Callable[[str], None] | None = None

    @property
    def stream(self) -> TextIO:
        return self._stream or sys.stderr

    def say(self, line: str) -> None:
        """Write one line to stderr and, with a time, to the log."""
        line = plain(line)
        if self.log is not None:
            self._write(line)
        if self.quiet:
            return
        if self._live is not None:
            self._live(line)
        else:
            print(line, file=self.stream, flush=True)

    def note(self, line: str) -> None:
        """Write a detail to the log only."""
        if self.log is not None:
            self._write(line)

    def _write(self, line: str) -> None:
        assert self.log is not None
        self._held.append(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {plain(line)}\n")
        if self.waits and not self.log.parent.is_dir():
            return  # a model may report something before its run begins, and the run may still be refused
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("a", encoding="utf-8") as f:
            f.writelines(self._held)
        self._held.clear()

    @contextmanager
    def bar(self, title: str, total: int, *, patience: float | None = None, still: bool = False) -> Iterator[Advance]:
        """A progress bar; the yielded function takes the number of items done since its last call.

        Without a terminal, it prints a line per 10 %. With ``patience``, it prints the first line after that many
        seconds, the next after twice as many, and no line for work that ends sooner. With ``still``, it draws nothing
        between two counts, so that it does not disturb timed work.
        """
        if not self.bars:
            yield lambda n: None
            return
        patience = self.patience if patience is None else patience
        if self.quiet or total <= 0 or not self.stream.isatty():
            yield _tenths(title, total, self.say) if patience is None else _paced(title, total, self.say, patience)
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        console = Console(file=self.stream)
        with Progress(*columns, console=console, transient=True, auto_refresh=not still) as progress:
            task = progress.add_task(title, total=total)
            self._live = lambda line: console.print(line, markup=False, highlight=False)
            try:
                yield (
                    (lambda n: progress.update(task, advance=n, refresh=True))
                    if still
                    else (lambda n: progress.advance(task, n))
                )
            finally:
                self._live = None
        if patience is None:
            self.say(f"{title}: done ({total})")

    def still_bar(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """A ``patient_bar`` for timed work: it uses no time between two counts."""
        return self.bar(title, total, patience=PATIENCE, still=True)

    def patient_bar(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """A ``bar`` that prints nothing for work that takes only a few seconds."""
        return self.bar(title, total, patience=PATIENCE)

    @contextmanager
    def logging_warnings(self) -> Iterator[None]:
        """Write warnings of libraries to the log, each once, instead of between the lines that people read."""
        seen: set[str] = set()
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
            text = f"{category.__name__}: {' '.join(str(message).split())} ({Path(filename).name}:{lineno})"
            if text not in seen and self.log is not None:
                seen.add(text)
                self._write(text)

        warnings.showwarning = show
        try:
            yield
        finally:
            warnings.showwarning = before


def _tenths(title: str, total: int, say: Callable[[str], None]) -> Advance:
    done, said = 0.0, 0

    def advance(n: float) -> None:
        nonlocal done, said
        done += n
        tenth = int(10 * (done + 1e-9) / total) if total > 0 else 10
        if tenth > said:
            said = tenth
            say(f"{title}: {min(10 * tenth, 100)} % ({int(done + 1e-9)}/{total})")

    return advance


def _paced(title: str, total: int, say: Callable[[str], None], patience: float) -> Advance:
    done, last, wait = 0.0, time.monotonic(), patience

    def advance(n: float) -> None:
        nonlocal done, last, wait
        done += n
        if time.monotonic() - last >= wait:
            last, wait = time.monotonic(), 2 * wait
            say(f"{title}: {100 * done / total:.0f} % ({int(done + 1e-9)}/{total})")

    return advance
