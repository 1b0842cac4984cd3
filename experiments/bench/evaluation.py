"""The cost of asking: the transformers engine against plain ``generate`` and lm-evaluation-harness on the same asks.

All ways answer the same asks of one protocol with the same model in the same dtype; loading is not timed. The time
that journal and grading add per 10,000 asks is also measured.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import torch

from ...errors import InputError
from ...evaluation.asks import Ask, Response
from ...evaluation.case import Case
from ...evaluation.engines.base import BaseEngine
from ...evaluation.engines.local import LocalEngine
from ...evaluation.graded import Graded
from ...evaluation.journal import Journal, ask_identity
from ...evaluation.pipeline import evaluate
from ...evaluation.protocols.base import Reduction
from ...hooks.progress import Bar, no_bar
from ...model_loading import load
from ..console.printing import aligned
from ..evaluating.ask_plan import AskOptions, make_protocol
from ..evaluating.benchmark import load_benchmark
from ..evaluating.cost import all_asks
from ..models.resolve import resolve_model
from ..models.target import choose_prompting
from . import peers

OVERHEAD_ASKS = 10_000


@dataclass(frozen=True)
class EngineTiming:
    """One way of answering the asks."""

    way: str
    batch: str
    """``default``, or the number of asks in a batch."""
    asks: int
    seconds: float
    """Wall clock, median of the passes; NaN if skipped."""
    processor_seconds: float
    """Processor time of the whole process, all threads; the fairer number on a shared machine."""
    same_answers: int | None
    """Answers identical to ours (for ours: one by one against batches); None if skipped."""
    note: str = ""

    @property
    def rate(self) -> float:
        """Asks per second of wall clock."""
        return self.asks / self.seconds


@dataclass(frozen=True)
class Overhead:
    """The cost of everything except the model, for ``asks`` asks."""

    asks: int
    first: float
    """Processor seconds for asking, journal and grading, with an engine that answers immediately."""
    resumed: float
    """Processor seconds if everything is already in the journal."""
    first_wall: float
    resumed_wall: float
    journal_mb: float


@dataclass(frozen=True)
class EngineBench:
    """The measurements, and the setting that they belong to."""

    model: str
    benchmark: str
    machine: Mapping[str, Any]
    rows: Sequence[EngineTiming]
    overhead: Overhead

    def ratios(self) -> dict[str, float]:
        """How many times as fast we are, by processor time (wall clock on a GPU), at defaults and equal batch size."""
        found = {}
        for name, mine in (("defaults", "default"), ("equal batch", None)):
            rows = [r for r in self.rows if (r.batch == "default") == (mine == "default") and r.seconds == r.seconds]
            ours = next(r for r in rows if r.way == "composcope")
            others = [self._cost(r) for r in rows if r.way != "composcope"]
            if others:
                found[name] = min(others) / self._cost(ours)
        return found

    def _cost(self, row: EngineTiming) -> float:
        return row.processor_seconds if self.machine["device"] == "cpu" else row.seconds

    def to_json(self) -> str:
        document = {
            "schema": 1, "model": self.model, "benchmark": self.benchmark, "machine": dict(self.machine),
            "rows": [{k: None if v != v else v for k, v in asdict(r).items()} for r in self.rows],
            "ratios": self.ratios(), "overhead": asdict(self.overhead),
        }  # fmt: skip
        return json.dumps(document, indent=1)

    def lines(self) -> list[str]:
        """The table in columns, then the ratios and the overhead."""
        head = ("way", "batch", "asks/s", "s", "processor s", "same answers", "note")
        m, o = self.machine, self.overhead
        how = "processor time" if m["device"] == "cpu" else "wall clock"
        return [
            f"{m['date']}, {self.model} on {self.benchmark}, {m['threads']} thread on {m['processor']} (load "
            f"{m['load_average'][0]:.1f}), {m['device']}, torch {m['torch']}, transformers {m['transformers']}",
            *aligned(head, [*map(_cells, self.rows)]),
            *(f"against the better of the others, {name}: {x:.2f} times as fast ({how})" for name, x in
              self.ratios().items()),
            f"journal and grading of {o.asks} asks: {o.first:.2f} s of processor ({o.first_wall:.2f} s of wall clock), "
            f"again from the journal {o.resumed:.2f} s ({o.resumed_wall:.2f} s); {o.journal_mb:.1f} MB",
        ]  # fmt: skip


def _cells(row: EngineTiming) -> tuple[str, ...]:
    if row.seconds != row.seconds:
        return row.way, row.batch, "–", "–", "–", "–", f"skipped: {row.note}"
    same = "" if row.same_answers is None else f"{row.same_answers}/{row.asks}"
    return (
        row.way, row.batch, f"{row.rate:.1f}", f"{row.seconds:.2f}", f"{row.processor_seconds:.2f}", same, row.note
    )  # fmt: skip


@dataclass(frozen=True)
class _Setup:
    engine: LocalEngine
    asks: list[Ask]
    location: str
    repeats: int
    threads: int


def bench_evaluation(
    model: str = "organism:control",
    benchmark: str = "organism:mixed",
    *,
    asks: int = 512,
    batch_size: int = 64,
    repeats: int = 3,
    threads: int = 1,
    device: str | None = None,
    dtype: str | None = None,
    seed: int = 0,
    lm_eval_python: str | None = None,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
    progress: Bar = no_bar,
) -> EngineBench:
    """Measure every way on the same ``asks`` asks of a benchmark, at its defaults and with batches of ``batch_size``.

    Raises ``InputError`` for numbers below 1 and for names that cannot be used.
    """
    for flag, value in (("--asks", asks), ("--batch-size", batch_size), ("--repeats", repeats)):
        if value < 1:
            raise InputError(f"{flag} {value}: give a whole number of at least 1")
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        setup = _prepare(model, benchmark, asks, repeats, threads, device, dtype, seed)
        about = peers.machine(setup.engine.model.device.type, threads)
        rows = _rows(setup, batch_size, lm_eval_python, say, progress)
        say("journal and grading")
        overhead = measure_overhead(setup.asks, setup.engine)
    finally:
        torch.set_num_threads(before)
    return EngineBench(model, f"{benchmark} ({len(setup.asks)} asks)", about, rows, overhead)


def _prepare(
    model: str, benchmark: str, n: int, repeats: int, threads: int, device: str | None, dtype: str | None, seed: int
) -> _Setup:
    source = resolve_model(model)
    loaded, tokenizer = load(source.location, device=device, dtype=dtype)
    engine = LocalEngine(loaded, tokenizer, folder=source.location if source.is_folder else None)
    found = load_benchmark(benchmark, seed=seed)
    protocol = make_protocol(AskOptions(found.protocol, found.format, choose_prompting(None, tokenizer)))
    wanted = all_asks(found.cases, protocol, "incorrect")
    # Cases with the same prompt are one ask; the benchmark's own order would put the short ones together.
    unique = list({(a.prompt, a.prompting): a for a in wanted}.values())
    random.Random(seed).shuffle(unique)
    return _Setup(engine, unique[:n], source.location, repeats, threads)


def _rows(
    setup: _Setup, batch_size: int, lm_eval_python: str | None, say: Callable[[str], None], progress: Bar
) -> list[EngineTiming]:
    engine, asks = setup.engine, setup.asks
    fixed = LocalEngine(engine.model, engine.tokenizer, batch_size=batch_size, folder=engine.folder)
    for each in (engine, fixed):
        assert each.identity and each.trust, "hashed and tried once, before the clock runs"
    sizes = {"default": None, str(batch_size): batch_size}
    with peers.harness(lm_eval_python, engine, setup.location, setup.threads) as harness:
        ways: list[tuple[str, str, Callable[[], peers.Took]]] = []
        for batch, size in sizes.items():
            mine = engine if size is None else fixed
            ways.append(("composcope", batch, partial(peers.timed, partial(peers.ours, mine, asks))))
            ways.append(
                ("model.generate", batch, partial(peers.timed, partial(peers.generate, engine, asks, size or 1)))
            )
            if harness is not None:
                ways.append(("lm-evaluation-harness", batch, partial(harness, asks, size)))
        found: dict[tuple[str, str], list[peers.Took]] = {(way, batch): [] for way, batch, _ in ways}
        with progress("passes", setup.repeats * len(ways)) as advance:
            for n, (way, batch, run) in product(range(setup.repeats), ways):
                say(f"pass {n + 1} of {setup.repeats}: {way}, batch {batch}")
                found[way, batch].append(run())
                advance(1)
    mine = found["composcope", "default"][-1].texts
    rows = []
    for way, batch, _ in ways:
        took = found[way, batch]
        wall, processor = median(t.wall for t in took), median(t.processor for t in took)
        note = "one by one" if (way, batch) == ("model.generate", "default") else took[-1].note
        rows.append(EngineTiming(way, batch, len(asks), wall, processor, peers.same(took[-1].texts, mine), note))
    if lm_eval_python is None:
        nothing = float("nan")
        why = "give --lm-eval-python, an interpreter that has lm-eval[hf]"
        rows.append(EngineTiming("lm-evaluation-harness", "default", len(asks), nothing, nothing, None, why))
    return rows


class _Replay(BaseEngine):
    """An engine that has all answers ready."""

    def __init__(self, engine: LocalEngine, answers: Sequence[Response]) -> None:
        self.identity = dict(engine.identity)
        self.provenance = dict(engine.provenance)
        self.answers = answers

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        for i, ask in enumerate(asks):
            response = self.answers[i % len(self.answers)]
            yield ask, replace(response, ask=ask_identity(ask, self.identity))


@dataclass(frozen=True)
class _Wholes:
    """A protocol with one ask per case."""

    by_case: Mapping[str, Ask]
    name: str = "wholes"

    def asks(self, case: Case, graded: Mapping[str, Any]) -> list[Ask]:
        return [] if graded else [self.by_case[case.id]]

    def reduce(self, rows: Sequence[Graded], cases: Mapping[str, Case] | None = None) -> Reduction:
        return Reduction(())


def measure_overhead(asks: Sequence[Ask], engine: LocalEngine, n: int = OVERHEAD_ASKS) -> Overhead:
    """Time the evaluation loop over ``n`` different asks, with the model's own answers at hand."""
    some = list(asks[:256])
    given = dict(engine.answer(some))
    chosen = [replace(some[i % len(some)], case=str(i), role="whole", repeat=i // len(some)) for i in range(n)]
    cases = [Case(a.case, a.prompt, a.gold or "0", answer_type=a.answer_type) for a in chosen]
    protocol = _Wholes({a.case: a for a in chosen})
    replay = _Replay(engine, [given[a] for a in some])
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            wall, processor = time.perf_counter(), time.process_time()
            with Journal(folder) as journal:
                found = evaluate(cases, protocol, replay, journal)
            seconds.append((time.process_time() - processor, time.perf_counter() - wall))
            if len(found.graded) != n:
                raise RuntimeError(f"{len(found.graded)} of {n} asks graded")
        size = sum(p.stat().st_size for p in Path(folder).iterdir()) / 1e6
    (first, first_wall), (resumed, resumed_wall) = seconds
    return Overhead(n, first, resumed, first_wall, resumed_wall, size)
