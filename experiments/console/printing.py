"""Print data on stdout (lines for people, tables, or one JSON document), and report progress on stderr and in the log.

Progress is bars on a terminal, and a few lines everywhere else.
"""

import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, TextIO

from ...files import finite
from ...terminal import Advance, how_many, in_json, plain


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


PATIENCE = 10.0
"""Seconds that work takes at least for a line at its end."""
EVERY = 60.0
"""Seconds of silence after which work that goes on says how far it is, without a terminal."""
ENOUGH = 0.03
"""Share of the work behind its first count from which the time that is left is estimated."""


@contextmanager
def _repeating(action: Callable[[], None]) -> Iterator[None]:
    """Inside, do something every ``EVERY`` seconds, from a thread of its own."""
    ended = Event()

    def repeat() -> None:
        while not ended.wait(EVERY):
            action()

    Thread(target=repeat, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


class Reporter:
    """Reports progress. Data never goes through here, so that stdout stays free for it."""

    def __init__(
        self, log: Path | None = None, *, quiet: bool = False, bars: bool = True, stream: TextIO | None = None
    ) -> None:
        """``bars=False`` reports only finished work, for several processes that share one stderr.

        Without ``log``, lines are held until there is one (see ``logging_warnings``).
        """
        self.log = log
        self._held: list[str] = []
        self._writing = Lock()
        self.quiet = quiet
        self.bars = bars
        self._said = time.monotonic()
        self._stream = stream
        self._live: Callable[[str], None] | None = None

    @property
    def stream(self) -> TextIO:
        return self._stream or sys.stderr

    def say(self, line: str) -> None:
        """Write one line to stderr and, with a time, to the log."""
        line = plain(line)
        self._said = time.monotonic()
        self._write(line)
        if self.quiet:
            return
        if self._live is not None:
            self._live(line)
        else:
            print(line, file=self.stream, flush=True)

    def note(self, line: str) -> None:
        """Write a detail to the log only."""
        self._write(line)

    def _write(self, line: str) -> None:
        with self._writing:
            self._held.append(f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {plain(line)}\n")
            if self.log is None:
                return  # a model may report something before its run begins, and the run may still be refused
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("a", encoding="utf-8") as f:
                f.writelines(self._held)
            self._held.clear()

    @contextmanager
    def bar(self, title: str, total: int, *, still: bool = False) -> Iterator[Advance]:
        """A progress bar; the yielded function takes the number of items done since its last call.

        Work of some seconds has a line at its end. Without a terminal, longer work also has one whenever nothing was
        said for a minute, so a script's log stays short. The line has the time that is left if the work goes on as
        after its first count, once enough is done to tell. With ``still``, nothing is drawn between two counts, so that
        it does not disturb timed work.
        """
        if not self.bars:
            yield lambda n: None
            return
        start, done, told = time.monotonic(), 0.0, 0.0
        first: tuple[float, float] | None = None  # the first count, which may have waited for a model to be loaded

        def tell() -> None:
            nonlocal told
            told = done
            at, had = first or (start, 0.0)
            enough = done - had >= ENOUGH * total  # a batch of answers comes at once, and the first one after minutes
            rest = (time.monotonic() - at) * (total - done) / (done - had) if enough and done > had else 0.0
            left = f", about {how_many(math.ceil(rest / 60), 'minute')} left" if rest > 1 else ""
            self.say(f"{title}: {100 * done / total if total > 0 else 100:.0f} % ({int(done + 1e-9)}/{total}){left}")

        with self._drawn(title, total, still) as draw:

            def advance(n: float) -> None:
                nonlocal done, first
                done += n
                first = first or (time.monotonic(), done)
                if draw is not None:
                    draw(n)
                else:
                    after_silence()

            def after_silence() -> None:
                if time.monotonic() - self._said >= EVERY:
                    tell()

            with nullcontext() if draw is not None else _repeating(after_silence):  # the first count may come late
                yield advance
        if time.monotonic() - start >= PATIENCE and done > told:
            tell()

    @contextmanager
    def _drawn(self, title: str, total: int, still: bool) -> Iterator[Advance | None]:
        """What moves a bar on the terminal; None without one."""
        if self.quiet or total <= 0 or not self.stream.isatty():
            yield None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        named = TextColumn("{task.description}", markup=False)
        columns = (named, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        console = Console(file=self.stream)
        with Progress(*columns, console=console, transient=True, auto_refresh=not still) as progress:
            task = progress.add_task(title, total=total)
            self._live = lambda line: console.print(line, markup=False, highlight=False)
            try:
                yield lambda n: progress.update(task, advance=n, refresh=still)
            finally:
                self._live = None

    def still_bar(self, title: str, total: int) -> AbstractContextManager[Advance]:
        """A bar for timed work: it uses no time between two counts."""
        return self.bar(title, total, still=True)

    @contextmanager
    def logging_warnings(self, log: Path | None = None) -> Iterator[None]:
        """Write warnings of libraries to the log, each once, instead of between the lines that people read.

        ``log`` is the log from here on; lines of before are written to it, too.
        """
        self.log = log or self.log
        seen: set[str] = set()
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
            text = f"{category.__name__}: {' '.join(str(message).split())} ({Path(filename).name}:{lineno})"
            if text not in seen:
                seen.add(text)
                self._write(text)

        warnings.showwarning = show
        try:
            yield
        finally:
            warnings.showwarning = before
