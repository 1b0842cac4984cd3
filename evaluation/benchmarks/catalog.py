"""Every benchmark by the name that leads a spec (``name:path``), as the file of its reader describes it.

@benchmark("tot")
def read_tot(path: str) -> list[Case]: ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...registry import Registry
from ..cases import Case


@dataclass(frozen=True)
class Benchmark:
    """One benchmark. Calling it reads its cases."""

    name: str
    read: Callable[..., list[Case]]
    """Cases of what stands after the colon."""
    answer_alone: bool = False
    """Whether its questions are asked for the answer alone where the gold answers are short; the others are data of
    papers that ask in a way of their own."""
    ships: bool = False
    """Whether it needs no file: its name alone is a spec too."""
    examples: Path | None = None
    """File of worked examples that it ships, for cases that bear its name."""

    def __call__(self, *args: Any, **options: Any) -> list[Case]:
        return self.read(*args, **options)


def benchmark(
    name: str, *, answer_alone: bool = False, ships: bool = False, examples: Path | None = None
) -> Callable[[Callable[..., list[Case]]], Benchmark]:
    """Make a benchmark of the function that reads it."""
    return lambda read: Benchmark(name, read, answer_alone, ships, examples)


READERS: Registry[Benchmark] = Registry(
    "benchmarks", lambda value: isinstance(value, Benchmark), __package__, Benchmark
)
