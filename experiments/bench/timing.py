"""Times several ways to do the same work in rounds, so that other load on the machine affects all of them.

Every round runs each way once; a ratio is the median over the rounds of (their time / the first way's time).
"""

import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import torch

from ...terminal import Bar, how_many, no_bar
from ..console.printing import aligned, markdown_table

HEAD = ("task", "way", "batch", "s of processor", "s", "time ratio [range]", "same answers", "note")


@dataclass(frozen=True)
class Took:
    """One run of a way."""

    wall: float
    """Seconds."""
    processor: float
    """Processor seconds of the whole process, all threads; the fairer number on a shared machine."""
    found: Mapping[Any, Any]
    """What it computed: answers by number of the ask, or tensors by name."""
    note: str = ""


def timed(run: Callable[[], Mapping[Any, Any]]) -> Took:
    _finish_gpu()
    wall, processor = time.perf_counter(), time.process_time()
    found = run()
    _finish_gpu()
    return Took(time.perf_counter() - wall, time.process_time() - processor, found)


@contextmanager
def on_threads(n: int) -> Iterator[None]:
    """Inside, torch runs on this many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _finish_gpu() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


@dataclass(frozen=True)
class Way:
    """One way to do a task; the first way of a task is ours."""

    name: str
    run: Callable[[], Took]
    batch: str = ""
    share: float = 1.0
    """The part of the work that ``run`` does; its time is divided by this."""
    note: str = ""


@dataclass(frozen=True)
class TaskTiming:
    """The measurements of one way."""

    task: str
    way: str
    batch: str
    seconds: float
    """Wall clock, median over rounds."""
    processor: float
    ratio: float | None
    """Its processor time relative to ours (wall clock on a GPU), median over rounds; None for ours."""
    low: float | None
    high: float | None
    rounds: int
    same: str
    """How many of its answers are ours."""
    note: str

    def cells(self) -> tuple[str, ...]:
        ratio = "" if self.ratio is None else f"{self.ratio:.2f} [{self.low:.2f}, {self.high:.2f}], n={self.rounds}"
        spent = f"{self.processor:.2f}", f"{self.seconds:.2f}"
        return self.task, self.way, self.batch, *spent, ratio, self.same, self.note


def same(texts: Mapping[int, str], others: Mapping[int, str]) -> int:
    """Number of equal answers, ignoring surrounding blanks and the stop string, which engines may keep or cut."""
    return sum(texts[i].strip() == others[i].strip() for i in texts.keys() & others.keys())


def in_rounds(
    ways: Sequence[Way], rounds: int, title: str = "", say: Callable[[str], None] = lambda line: None,
    progress: Bar = no_bar, partial_once: bool = True,
) -> list[list[Took]]:  # fmt: skip
    """What each way took, round by round; every other round runs in reverse order.

    A way that does only a part of the work runs in the first round only, if ``partial_once``.
    """
    took: list[list[Took]] = [[] for _ in ways]
    planned = [(n, i) for n in range(rounds) for i in range(len(ways))[:: 1 if n % 2 == 0 else -1]
               if n == 0 or not partial_once or ways[i].share == 1]  # fmt: skip
    with progress(title, len(planned)) as advance:
        for n, i in planned:
            say(f"{title}, round {n + 1} of {rounds}: {ways[i].name} {ways[i].batch}".rstrip())
            took[i].append(ways[i].run())
            advance(1)
    return took


def costs(way: Way, took: Sequence[Took], on_cpu: bool) -> list[float]:
    """The time of the whole work in each round: processor time, or wall clock on a GPU."""
    return [(t.processor if on_cpu else t.wall) / way.share for t in took]


def timings(task: str, ways: Sequence[Way], took: Sequence[Sequence[Took]], on_cpu: bool) -> list[TaskTiming]:
    """One row per way; ratios and equal answers relate to the first."""
    rows, mine = [], costs(ways[0], took[0], on_cpu)
    for i, (way, some) in enumerate(zip(ways, took, strict=True)):
        ratios = [c / m for c, m in zip(costs(way, some, on_cpu), mine, strict=False)] if i else []
        found = some[0].found
        agreed = f"{same(found, took[0][0].found)}/{len(found)}" if i and found else ""
        ends = (median(ratios), min(ratios), max(ratios)) if ratios else (None, None, None)
        spent = (median(t.wall for t in some) / way.share, median(t.processor for t in some) / way.share)
        note = "; ".join(filter(None, (way.note, some[0].note)))
        rows.append(TaskTiming(task, way.name, way.batch, *spent, *ends, len(some), agreed, note))
    return rows


@dataclass(frozen=True)
class TaskBench:
    """The measurements, and the setting that they belong to."""

    model: str
    machine: Mapping[str, Any]
    rows: Sequence[Any]
    """``TaskTiming``, or another dataclass with ``cells``."""
    lines: Sequence[str] = ()
    """What follows from the rows, in sentences."""
    head: Sequence[str] = HEAD

    def document(self) -> dict[str, Any]:
        about = {"schema": 1, "model": self.model, "machine": dict(self.machine)}
        return {**about, "rows": [asdict(r) for r in self.rows], "summary": list(self.lines)}

    def about(self) -> str:
        m = self.machine
        clock = "processor" if m["device"] == "cpu" else "wall-clock"
        return f"{setting(m, self.model)}. Time ratio: median of paired {clock} times, other / ours."

    def text(self) -> list[str]:
        return [self.about(), "", *aligned(self.head, [r.cells() for r in self.rows]), "", *self.lines]

    def markdown(self) -> str:
        rows = markdown_table(self.head, [r.cells() for r in self.rows])
        return "\n".join([self.about(), "", *rows, "", *(f"- {line}" for line in self.lines)])


def setting(machine: Mapping[str, Any], what: str) -> str:
    """When, what and on which machine was measured."""
    m = machine
    load = ", ".join(f"{x:.1f}" for x in m["load_average"])
    return (
        f"{m['date']}, {what}, {how_many(m['threads'], 'thread')} on {m['processor']} ({m['cores']} cores, "
        f"{m['system']}, load {load}), device {m['device']}, torch {m['torch']}, transformers {m['transformers']}"
    )


def machine(device: str, threads: int) -> dict[str, Any]:
    """The machine and versions that the numbers belong to."""
    import transformers

    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "threads": threads,
        "load_average": list(os.getloadavg()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
