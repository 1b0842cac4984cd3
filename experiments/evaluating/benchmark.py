"""Loads benchmarks by name, with the protocol that asks them: organisms' worlds, case files, READER:FILE."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError
from ...evaluation.benchmarks.catalog import READERS, load
from ...evaluation.case import Case
from ...evaluation.cases import check_cases, hash_cases
from ...evaluation.protocols.asking import default_format, default_protocol, recommended_format

ORGANISM_BENCHMARKS = {
    "temporal": ("double-gate", 60),
    "mixed": ("compositionality-gap", 400),
    "pairs": ("reasoning-gap", 200),
    "ladders": ("scaffolding", 200),
    "choices": ("compositionality-gap", 200),
}
"""For each benchmark, its protocol and its number of cases per family x depth."""


@dataclass(frozen=True)
class LoadedBenchmark:
    """Cases with their default protocol."""

    name: str
    cases: tuple[Case, ...]
    protocol: str
    format: str | None
    """Default prompt format; None: the protocol's own."""
    sha256: str
    """Hash of the cases before any limit."""
    own: bool = False
    """True for a file of the user's own cases, and for questions for which no implemented paper fixes a prompt."""

    def format_for(self, protocol: str) -> str | None:
        """The default prompt format for these cases under a protocol; None: the protocol's own."""
        return self.format or (default_format(self.cases, protocol) if self.own else None)


def load_benchmark(name: str, *, seed: int = 0, limit: int | None = None) -> LoadedBenchmark:
    """Load a benchmark: ``world``, ``organism:mixed``, ..., a case file, or ``reader:file`` (see ``load``).

    ``limit`` keeps that many cases per family x depth, the first ones in the benchmark's order. An organism's benchmark
    is drawn from ``seed``, with as many cases as the limit says.
    Raises ``InputError`` naming file, line and field for a benchmark that cannot be used.
    """
    if name.startswith("organism:"):
        return _organism_benchmark(name, seed, limit)
    found, reader = load(name), READERS.get(name.partition(":")[0])
    kept, format = tuple(limit_cases(found, limit)), recommended_format(found)
    own = Path(name).expanduser().is_file() or (reader is not None and reader.answer_alone)
    return LoadedBenchmark(name, kept, default_protocol(found), format, hash_cases(found), own)


def _organism_benchmark(name: str, seed: int, limit: int | None) -> LoadedBenchmark:
    world = name.removeprefix("organism:")
    if world not in ORGANISM_BENCHMARKS:
        known = ", ".join("organism:" + w for w in ORGANISM_BENCHMARKS)
        raise InputError(f"--benchmark {name}: no such benchmark; use {known} or the path of a case file")
    from ..organism import benchmarks

    protocol, default = ORGANISM_BENCHMARKS[world]
    draw = benchmarks.BENCHMARKS[world]
    # Drawing more cases only appends to each family x depth, so a few cases identify the benchmark at any size.
    found, sha256 = check_cases(draw(limit or default, seed), name), hash_cases(draw(8, seed))
    return LoadedBenchmark(name, tuple(found), protocol, "plain", sha256)


def limit_cases(cases: Sequence[Case], limit: int | None) -> list[Case]:
    """The first ``limit`` cases of each family x depth, in the benchmark's order: the same for every model."""
    if limit is None:
        return list(cases)
    seen: dict[tuple[str | None, int | None], int] = defaultdict(int)
    kept = []
    for case in cases:
        key = (case.family, case.depth)
        seen[key] += 1
        if seen[key] <= limit:
            kept.append(case)
    return kept
