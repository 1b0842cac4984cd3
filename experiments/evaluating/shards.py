"""``--shard i/n``: which cases are whose, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...errors import InputError
from ...evaluation.cases import Case
from ..config import Shard
from .benchmark import LoadedBenchmark

FILE = "shard.json"
"""In a shard's run folder: which part of what it is."""


def positions(cases: Sequence[Case], shard: Shard) -> list[int]:
    """Positions of a shard's cases: every n-th in the order of their ids, in the order of the benchmark.

    Shards differ by one case at most, share none and leave none out.
    """
    by_id = sorted(range(len(cases)), key=lambda i: cases[i].id)
    return sorted(by_id[shard.index - 1 :: shard.of])


def share(benchmark: LoadedBenchmark, shard: Shard) -> LoadedBenchmark:
    """The benchmark with the cases of a shard only. Raises ``InputError`` for more shards than cases."""
    if shard.of > len(benchmark.cases):
        raise InputError(f"--shard {shard}: {benchmark.name} has {len(benchmark.cases)} cases; use fewer shards")
    return replace(benchmark, cases=tuple(benchmark.cases[i] for i in positions(benchmark.cases, shard)))


def of(benchmark: LoadedBenchmark, text: str | None) -> LoadedBenchmark:
    """The benchmark, or with ``--shard`` its part. Raises ``InputError`` for a shard that is none."""
    return benchmark if text is None else share(benchmark, Shard.parse(text))


def about(benchmark: LoadedBenchmark, shard: Shard, limit: int | None) -> dict[str, Any]:
    """What merging needs to know: which part, of which cases, and where they stand among all."""
    where = positions(benchmark.cases, shard)
    return {"index": shard.index, "of": shard.of, "n_cases": len(benchmark.cases), "limit": limit, "positions": where}
