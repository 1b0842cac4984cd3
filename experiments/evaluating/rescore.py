"""Grades and counts a run: once when its answers are complete, and again later from its files, without a model.

Writes ``asks.jsonl``, ``graded.jsonl``, ``metrics.json`` and ``casesets/*.jsonl``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation import metrics as metric_rows
from ...evaluation import pipeline, protocols, sandbox, validators
from ...evaluation.asks import Grade
from ...evaluation.case import Case
from ...evaluation.cases import read_cases
from ...evaluation.doubts import with_grader_bounds
from ...evaluation.engines.base import ReplayEngine
from ...evaluation.grading import grade
from ...evaluation.grading.extract import CODE
from ...evaluation.journal import Journal
from ...evaluation.metrics import Metric
from ...evaluation.protocols.base import Protocol, Reduction
from ...hooks.progress import Bar, no_bar, stage, tick
from ..config import Asking, Config
from ..console.progress import Reporter
from ..run import checks
from ..run.folder import locked, short, write_lines, write_text
from ..run.reader import RunData, read_config
from ..run.schema import AGAIN, Answerer, Evaluated
from .ask_plan import ask_options, make_protocol


def grader(compat: str | None) -> Callable[..., Grade]:
    """The function that grades as a paper does; None: by our own rules."""
    return partial(grade, compat=compat)


def finish(
    path: Path,
    cases: Sequence[Case],
    protocol: Protocol,
    found: pipeline.Evaluation,
    compat: str | None,
    labels: str | Path | None = None,
    signed: tuple[list[Metric], list[str]] = ([], []),
) -> Evaluated:
    """Reduce graded answers to metrics and case sets, check them, and write everything into the run's folder."""
    by_id = {c.id: c for c in cases}
    counted = protocol.reduce(found.graded, by_id)
    if compat is None:
        bounded = with_grader_bounds(
            counted.metrics, found.graded, found.asks, lambda rows: protocol.reduce(rows, by_id).metrics
        )
        counted = replace(counted, metrics=tuple(bounded))
    metrics, said = checks.second_opinion(found.graded, found.asks)
    metrics += [row] if (row := checks.judge_agreement(found.judged)) else []
    metrics += signed[0]
    said += checks.unseen(found.judged) + signed[1]
    if labels is not None:
        metrics += checks.agreement(found.graded, checks.read_labels(labels))
    coded = any(ask.format == CODE for ask in found.asks.values())
    how = [f"programs were run in {sandbox.in_words()}"] if coded else []
    how += [f"graded and counted as {compat} does (--compat {compat})"] if compat else []
    unusable = checks.asking_warnings(found.graded, found.asks, found.responses)
    warnings = (*how, *counted.warnings, *said, *unusable)
    reduction = Reduction((*counted.metrics, *metrics), counted.case_sets, warnings)
    write_lines(path / "asks.jsonl", ({"ask": key, **asdict(ask)} for key, ask in found.asks.items()))
    write_lines(path / "graded.jsonl", (row.to_dict() for row in found.graded))
    write_text(path / "metrics.json", metric_rows.dumps(protocol.name, reduction.metrics, warnings))
    for case_set in reduction.case_sets:
        write_lines(path / "casesets" / f"{case_set.name}.jsonl", case_set.to_dicts())
    return Evaluated(by_id, found.asks, found.responses, found.graded, reduction, found.stopped)


def rescore(
    folder: str | Path, reporter: Reporter, compat: str | None = None, labels: str | Path | None = None,
    progress: Bar | None = None,
) -> Evaluated:  # fmt: skip
    """Grade and count a run again from its own files: no model is loaded, nothing is asked.

    ``compat`` grades as a paper does; None: as the run did. ``labels`` is a file of human labels (see
    ``checks.read_labels``); the grades, including the judge's verdicts, are compared with them. ``progress`` opens the
    progress bar, by default the reporter's.
    Raises ``JournalError`` if the protocol needs asks that the journal does not have.
    """
    _ = RunData(Path(folder)).manifest  # a folder that is not a run is refused before it is locked
    with locked(folder) as path:
        run = RunData(path)
        config = own_config(run)
        how = config.asking if compat is None else config.asking.replace(compat=compat)
        cases = list(run.cases.values())
        protocol, found = _graded_again(run, cases, how, progress or reporter.bar)
        for warning in found.warnings:
            reporter.say(f"{path.name}: {warning}")
        reporter.say(f"{path.name}: {len(found.graded)} answers graded again")
        identity = run.manifest.engine.identity if run.manifest.engine else {}
        signed = checks.signed_otherwise(found.responses.values(), identity, config.serving.signed_as)
        return finish(path, cases, protocol, found, how.compat, labels, signed[:2])


def recount(folder: str | Path, compat: str) -> Sequence[Metric]:
    """A run's metrics under another way of grading and counting; nothing is asked and nothing is written.

    Raises ``NotAskedError`` if that needs an ask that the run did not put, ``JournalError`` for a damaged journal.
    """
    run = RunData(Path(folder))
    how = own_config(run).asking.replace(compat=compat, judge=None)
    protocol, found = _graded_again(run, list(run.cases.values()), how)
    return protocol.reduce(found.graded, run.cases).metrics


def _graded_again(
    run: RunData, cases: Sequence[Case], how: Asking, bar: Bar = no_bar
) -> tuple[Protocol, pipeline.Evaluation]:
    config, manifest = own_config(run), run.manifest
    protocol = make_protocol(replace(ask_options(config), asking=how))
    with (
        Journal(run.path / "journal", reuse=True) as journal,
        stage(bar, "grading again", len(journal.contents.responses)),
    ):

        def recorded(who: Answerer) -> ReplayEngine:
            return ReplayEngine(who.identity, who.provenance, journal.contents.failures)

        found = pipeline.evaluate(
            cases,
            protocol,
            recorded(manifest.engine or Answerer(identity={}, provenance={})),
            journal,
            grade=_counted(grader(how.compat)),
            model=config.model,
            run=run.name,
            judge=recorded(manifest.judge) if manifest.judge and how.judge else None,
        )
    return protocol, found


def _counted(grade: Callable[..., Grade]) -> Callable[..., Grade]:
    """The same grades; each moves the bar of the stage that it is given in."""

    def ticking(*args: Any, **options: Any) -> Grade:
        found = grade(*args, **options)
        tick(1)
        return found

    return ticking


def own_config(run: RunData) -> Config:
    """A run's options. Raises ``InputError`` if they differ from those in its manifest."""
    config, identity = run.config, run.manifest.identity
    if config is None:
        config = Config.read(read_config(run.path))  # raises the error for a missing file
    for key in ("protocol", "format", "prompting"):
        if key in identity and getattr(config, key) != identity[key]:
            raise InputError(
                f"{run.path / 'config.yaml'}: field {key!r} is {short(getattr(config, key))}, and "
                f"{short(identity[key])} in manifest.json; {AGAIN}"
            )
    return config


def metrics_from_file(
    graded: str | Path, protocol: str, cases: str | Path | None = None, compat: str | None = None
) -> Reduction:
    """A protocol's metrics from a ``graded.jsonl`` of any origin.

    ``compat`` counts as a paper does (``stad``, ``collapse``, ``agentcoma``).

    Raises ``InputError`` naming file, line and field.
    """
    rows = validators.read_graded(graded)
    by_id = None if cases is None else {c.id: c for c in read_cases(cases)}
    return protocols.metrics_from_rows(rows, protocol, compat, cases=by_id)
