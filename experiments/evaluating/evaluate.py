"""The behavioral half of a run: ask what the journal does not have yet, then grade and count.

Writes ``cases.jsonl`` and the results (see ``rescore``); the responses themselves are in ``journal/``.

In 16 bits a model's greedy answers depend on the batch in which they were generated: a near tie between two tokens can
go either way, and then everything after it differs. The share of such answers is the smallest difference between two
runs that means anything. So every such run measures and reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from ...evaluation import pipeline, sandbox
from ...evaluation.asks import Ask
from ...evaluation.case import Case, case_to_dict
from ...evaluation.grading.extract import CODE
from ...evaluation.protocols.base import Protocol
from ...evaluation.statistics import clopper_pearson
from ..console.progress import Reporter
from ..run import checks, write_lines
from ..run.schema import Evaluated
from ..run.writer import OpenRun
from .rescore import finish, grader

SAMPLE = 16
"""Number of asks that are answered once more, alone and in one batch."""


def evaluate(
    run: OpenRun,
    cases: Sequence[Case],
    protocol: Protocol,
    engine: Any,
    *,
    reporter: Reporter,
    max_asks: int | None = None,
    compat: str | None = None,
    judge: Any = None,
) -> Evaluated:
    """Ask what the journal does not have yet, grade everything, reduce, and write the results into the run.

    ``compat`` grades as a paper does (``agentcoma``, ``stad``, ``collapse``). The engine ``judge`` gives a second
    opinion on answers in words.
    """
    write_lines(run.path / "cases.jsonl", (case_to_dict(c) for c in cases))
    _record_sandbox(run, cases, protocol, reporter)
    with engine.open_journal(run.path / "journal", reuse=bool(run.config.get("reuse"))) as journal:
        for warning in journal.warnings:
            reporter.say(f"{run.name}: {warning}")
        with run.timed("ask"), bars(reporter) as progress:
            found = pipeline.evaluate(
                cases,
                protocol,
                engine,
                journal,
                grade=grader(compat),
                progress=progress,
                max_asks=max_asks,
                model=run.config["model"],
                run=run.name,
                judge=judge,
            )
    if agreement := checks.judge_agreement(found.judged):
        run.record(judge_agreement=agreement.to_dict())
    reporter.say(f"{run.name}: {found.n_asked} asks put to the model, {found.n_resumed} answered from the journal")
    _record_divergence(run, engine, list(found.asks.values()), reporter)
    signed_as = (run.config.get("serving") or {}).get("signed_as")
    signed = checks.signed_otherwise(found.responses.values(), engine.identity, signed_as)
    run.record(signed_otherwise=signed[2])
    for line in signed[1]:
        reporter.say(f"{run.name}: {line}")
    return finish(run.path, cases, protocol, found, compat, signed=signed[:2])


@contextmanager
def bars(reporter: Reporter) -> Iterator[Callable[[pipeline.Progress], None]]:
    """One progress bar per round, fed by the pipeline's reports."""
    with ExitStack() as bar:
        round = done = 0
        advance: Callable[[float], None] = lambda n: None  # noqa: E731

        def report(p: pipeline.Progress) -> None:
            nonlocal round, done, advance
            if p.round != round:
                bar.close()
                round, done = p.round, 0
                title = "asking" if p.round == 1 else f"asking, round {p.round}"
                advance = bar.enter_context(reporter.bar(title, p.total))
            advance(p.done - done)
            done = p.done

        yield report


def _record_sandbox(run: OpenRun, cases: Sequence[Case], protocol: Protocol, reporter: Reporter) -> None:
    """Record what will run the programs in the answers. Raises ``InputError`` before asking if nothing can run them."""
    if any(ask.format == CODE for case in cases[:1] for ask in protocol.asks(case, {})):
        run.record(sandbox=sandbox.describe())
        reporter.say(f"{run.name}: programs run in {sandbox.in_words()}")


def _record_divergence(run: OpenRun, engine: Any, asks: Sequence[Ask], reporter: Reporter) -> None:
    """Record in manifest and log, once per 16-bit run, how much the answers depend on the batch."""
    if "batch_divergence" in run.manifest.facts() or not depends_on_batch(engine):
        return
    with run.timed("divergence"):
        measured = measure_divergence(engine, divergence_sample(asks))
    if measured is not None:
        run.record(batch_divergence=measured)
        reporter.say(f"{run.name}: {divergence_line(measured)}")


def depends_on_batch(engine: Any) -> bool:
    """Whether an engine runs in this process in 16 bits."""
    made = engine.provenance
    return made.get("engine") == "transformers" and made.get("dtype") in ("bfloat16", "float16")


def divergence_sample(asks: Sequence[Ask], n: int = SAMPLE) -> list[Ask]:
    """``n`` different greedy asks, spread evenly over all of them."""
    greedy = [ask for ask in asks if ask.temperature == 0]
    return [greedy[i * len(greedy) // n] for i in range(n)] if len(greedy) > n else greedy


def measure_divergence(engine: Any, asks: Sequence[Ask]) -> dict[str, Any] | None:
    """The divergence of a sample, as stored in the manifest; None if there is no greedy ask.

    ``rate`` is the share of answers in which any token differs between one-by-one and batched generation, with its
    Clopper-Pearson interval. ``margins`` are the logit gaps between the two tokens at which such a pair diverges.
    """
    from ...evaluation.engines.divergence import batch_divergence

    if not asks:
        return None
    found = batch_divergence(engine, asks)
    if found.n == 0:
        return None
    interval = clopper_pearson(found.n_different, found.n)
    return {
        "dtype": found.dtype, "n": found.n, "n_different": found.n_different, "rate": found.rate,
        "interval": "clopper-pearson", "low": interval.low, "high": interval.high,
        "first_steps": list(found.first_steps), "margins": [round(m, 6) for m in found.margins],
    }  # fmt: skip


def divergence_line(measured: dict[str, Any]) -> str:
    """The measurement as one line of text."""
    m = measured
    line = (
        f"in {m['dtype']} {m['n_different']} of {m['n']} answers depend on the batch they were made in "
        f"({100 * m['rate']:.0f} % [{100 * m['low']:.0f} %, {100 * m['high']:.0f} %], clopper-pearson)"
    )
    if not m["margins"]:
        return f"{line}; a smaller difference between runs says nothing about the model"
    return (
        f"{line}; they diverge at near ties, {median(m['margins']):.2g} logits apart (median); --dtype float32 has no "
        "such differences"
    )
