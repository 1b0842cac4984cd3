"""The behavioral half of a run: ask what the journal does not have yet, then grade and count.

``rescore`` grades and counts again later from the run's files, without a model. Both write ``asks.jsonl``,
``graded.jsonl``, ``metrics.json`` and ``casesets/*.jsonl``; the responses themselves are in ``journal/``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import ComposcopeError, InputError, NotAskedError
from ...evaluation import metrics as metric_rows
from ...evaluation import pipeline, protocols, sandbox, text_files
from ...evaluation.asks import Grade
from ...evaluation.case import Case, case_to_dict
from ...evaluation.cases import read_cases
from ...evaluation.engines.base import Engine, ReplayEngine
from ...evaluation.graded import read_graded
from ...evaluation.grading import grade
from ...evaluation.grading.extract import CODE
from ...evaluation.grading_error import with_grader_bounds
from ...evaluation.journal import Journal
from ...evaluation.metrics import Metric
from ...evaluation.protocols.base import Protocol, Reduction, check_needed
from ...terminal import Bar, how_many, no_bar, stage, tick
from ..config import Asking, Config
from ..console.printing import Reporter
from ..models.target import Target
from ..run import checks, single_cases, write_json, write_lines
from ..run.folder import locked, short, unfinished, write_text
from ..run.reader import RunData, missing, read_config
from ..run.schema import AGAIN, Answerer, Evaluated
from ..run.writer import OpenRun
from . import cost
from .ask_plan import SHARD_FILE, AskPlan, ask_options, make_protocol


def evaluate(
    run: OpenRun, plan: AskPlan, target: Target, judge: Engine | None, config: Config, reporter: Reporter
) -> Evaluated:
    """Ask what the journal does not have yet, grade everything, reduce, and write the results into the run.

    The engine ``judge`` gives a second opinion on answers in words.
    """
    before = run.manifest.n_cases
    if before not in (None, len(plan.cases)) and (run.path / "metrics.json").is_file():
        now = len(plan.cases)
        reporter.say(f"{run.name}: results of {before} cases are replaced by those of {now}; all answers are kept")
    _say_what_is_replaced(run.path, plan.options.asking.compat, None, reporter)
    # The judge is recorded so that the run can be scored without it.
    answering = {"engine": target.engine, **({} if judge is None else {"judge": judge})}
    run.record(
        model=target.facts(),
        **{who: {"identity": dict(e.identity), "provenance": dict(e.provenance)} for who, e in answering.items()},
        benchmark={"name": plan.benchmark.name, "sha256": plan.benchmark.sha256, "n_cases": len(plan.cases)},
        n_cases=len(plan.cases),
        numerics=target.numerics(),
        stopped=None,  # what stopped an earlier call does not stop this one, also if it is interrupted
    )
    if plan.shard is not None:
        write_json(run.path / SHARD_FILE, plan.shard)
    for line in cost.notices(plan, target.tokenizer, config.limit):
        reporter.say(f"{run.name}: {line}")
    if (run.path / "journal").is_dir() and not (run.path / "metrics.json").exists():
        reporter.say(f"{run.name}: the evaluation did not finish; the missing answers are asked first")
    found = ask_and_grade(run, plan, target.engine, judge, reporter, config.max_asks)
    for line in found.invalid_lines():
        reporter.say(f"{run.name}: {line}")
    if found.stopped:
        reporter.say(f"{run.name}: stopped by {found.stopped}; the same command continues")
    single_cases.save_rendered(run.path, target.tokenizer, found.asks, found.responses)
    run.record(n_invalid=found.n_invalid, stopped=found.stopped)
    return found


def _say_what_is_replaced(run: Path, compat: str | None, labels: str | Path | None, reporter: Reporter) -> None:
    """Name the options of ``composcope score`` that a run's results were counted with, and the next will not be."""
    try:
        before = RunData(run).counted
    except ComposcopeError:  # written again now
        return
    if before is None:
        return
    people = labels is None and any(m.metric.startswith("human_") for m in before.metrics)
    kinds = ((f"--compat {before.compat}", before.compat not in (None, compat)), ("--human-labels", people))
    if lost := " and ".join(option for option, used in kinds if used):
        reporter.say(
            f"{run.name}: results that were scored with {lost} are replaced by results without; composcope score with "
            "the same options counts so again"
        )


def ask_and_grade(
    run: OpenRun, plan: AskPlan, engine: Engine, judge: Engine | None, reporter: Reporter, max_asks: int | None
) -> Evaluated:
    """The answers of a plan, graded, counted and written."""
    cases, protocol, compat = plan.cases, plan.protocol, plan.options.asking.compat
    if any(ask.format == CODE for case in cases[:1] for ask in protocol.asks(case, {})):
        run.record(sandbox=sandbox.describe())  # raises before anything is asked if nothing here can run programs
        reporter.say(f"{run.name}: programs run in {sandbox.in_words()}")
    write_lines(run.path / "cases.jsonl", (case_to_dict(c) for c in cases))
    with engine.open_journal(run.path / "journal", reuse=bool(run.config.get("reuse"))) as journal:
        for warning in journal.warnings:
            reporter.say(f"{run.name}: {warning}")
        with run.timed("ask"), bars(reporter) as progress:
            found = pipeline.evaluate(
                cases,
                protocol,
                engine,
                journal,
                model=run.config["model"],
                run=run.name,
                judge=judge,
                progress=progress,
                max_asks=max_asks,
                grade=partial(grade, compat=compat),
            )
    reporter.say(
        f"{run.name}: {how_many(found.n_asked, 'ask')} put to the model, {found.n_resumed} answered from the journal"
    )
    for check in CHECKS:
        for line in check(run, engine, found):
            reporter.say(f"{run.name}: {line}")
    return finish(run.path, cases, protocol, found, compat)


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


def _judge_agreement(run: OpenRun, engine: Any, found: pipeline.Evaluation) -> list[str]:
    """How often the judge agrees with the rules, for the manifest."""
    if agreement := checks.judge_agreement(found.judged, found.graded):
        run.record(judge_agreement=agreement.to_dict())
    return []


def _batch_divergence(run: OpenRun, engine: Any, found: pipeline.Evaluation) -> list[str]:
    """How much the answers depend on the batch, measured once per 16-bit run."""
    if "batch_divergence" in run.manifest.facts() or not depends_on_batch(engine):
        return []
    from ...evaluation.engines import divergence

    with run.timed("divergence"):
        measured = divergence.measure(engine, divergence.sample(list(found.asks.values())))
    if measured is None:
        return []
    run.record(batch_divergence=measured)
    return [divergence.in_words(measured)]


def depends_on_batch(engine: Any) -> bool:
    """Whether an engine runs in this process in 16 bits."""
    made = engine.provenance
    return made.get("engine") == "transformers" and made.get("dtype") in ("bfloat16", "float16")


def _signatures(run: OpenRun, engine: Any, found: pipeline.Evaluation) -> list[str]:
    """Answers that their server signed with another model's name."""
    signed_as = (run.config.get("serving") or {}).get("signed_as")
    _, warnings, names = checks.signed_otherwise(found.responses.values(), engine.identity, signed_as)
    run.record(signed_otherwise=names)
    return warnings


CHECKS = (_judge_agreement, _batch_divergence, _signatures)
"""What is recorded about the answers of an engine; each returns lines for the log."""


def finish(
    path: Path,
    cases: Sequence[Case],
    protocol: Protocol,
    found: pipeline.Evaluation,
    compat: str | None,
    labels: str | Path | None = None,
) -> Evaluated:
    """Reduce graded answers to metrics and case sets, check them, and write everything into the run's folder."""
    by_id, run = {c.id: c for c in cases}, RunData(path)
    config, answering = run.config, run.manifest.engine
    counted = protocol.reduce(found.graded, by_id)
    if compat is None:
        bounded = with_grader_bounds(
            counted.metrics, found.graded, found.asks, lambda rows: protocol.reduce(rows, by_id).metrics
        )
        counted = replace(counted, metrics=tuple(bounded))
    metrics, said = checks.second_opinion(found.graded, found.asks)
    metrics += [row] if (row := checks.judge_agreement(found.judged, found.graded)) else []
    said += checks.unseen(found.judged)
    human = [] if labels is None else checks.agreement(found.graded, checks.read_labels(labels))
    coded = any(ask.format == CODE for ask in found.asks.values())
    how = [f"programs were run in {sandbox.in_words()}"] if coded else []
    how += [f"graded and counted as {compat} does (--compat {compat})"] if compat else []
    shown = config is not None and config.asking.few_shot is not None
    unusable = checks.asking_warnings(found.graded, found.asks, found.responses, few_shot=shown)
    unusable = [*cost.parts_notice(cases, protocol.name), *unusable]
    signed_as = None if config is None else config.serving.signed_as
    identity = {} if answering is None else answering.identity
    signed, signed_said, _ = checks.signed_otherwise(found.responses.values(), identity, signed_as)
    warnings = (*how, *counted.warnings, *said, *signed_said, *unusable)
    reduction = Reduction((*counted.metrics, *metrics, *signed, *human), counted.case_sets, warnings)
    write_lines(path / "asks.jsonl", ({"ask": key, **asdict(ask)} for key, ask in found.asks.items()))
    write_lines(path / "graded.jsonl", (row.to_dict() for row in found.graded))
    write_text(path / "metrics.json", metric_rows.dumps(protocol.name, reduction.metrics, warnings))
    for case_set in reduction.case_sets:
        write_lines(path / "casesets" / f"{case_set.name}.jsonl", case_set.to_dicts())
    return Evaluated(by_id, found.asks, found.responses, found.graded, reduction, found.stopped, protocol.name)


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
        cases = _cases(run)
        try:
            protocol, found = _graded_again(run, cases, how, progress or reporter.bar)
        except NotAskedError as e:
            if (why := unfinished(path)) is None:
                raise
            raise NotAskedError(f"{path}: {why}") from e
        for warning in found.warnings:
            reporter.say(f"{path.name}: {warning}")
        reporter.say(f"{path.name}: {how_many(len(found.graded), 'answer')} graded again")
        _say_what_is_replaced(path, how.compat, labels, reporter)
        counted = finish(path, cases, protocol, found, how.compat, labels)
        write_json(path / "manifest.json", {**run.manifest.facts(), "n_invalid": counted.n_invalid})
        return counted


def recount(folder: str | Path, compat: str) -> Sequence[Metric]:
    """A run's metrics under another way of grading and counting; nothing is asked and nothing is written.

    Raises ``NotAskedError`` if that needs an ask that the run did not put, ``JournalError`` for a damaged journal.
    """
    run = RunData(Path(folder))
    how = own_config(run).asking.replace(compat=compat, judge=None)
    protocol, found = _graded_again(run, _cases(run), how)
    return protocol.reduce(found.graded, run.cases).metrics


def _cases(run: RunData) -> list[Case]:
    """The cases of a run. Raises ``InputError`` without their file, since then nothing would be left of the results."""
    file = run.path / "cases.jsonl"
    text_files.existing(file, missing(file))
    return list(run.cases.values())


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
            grade=_counted(partial(grade, compat=how.compat)),
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
) -> tuple[Reduction, int]:
    """A protocol's metrics from a ``graded.jsonl`` of any origin, and how many of its answers are invalid.

    ``compat`` counts as a paper does (``stad``, ``collapse``, ``agentcoma``).

    Raises ``InputError`` naming file, line and field, and for rows of which none has a role that the protocol needs.
    """
    rows = read_graded(graded)
    by_id = None if cases is None else {c.id: c for c in read_cases(cases)}
    invalid = sum(row.outcome == "invalid" for row in rows)
    found = protocols.metrics_from_rows(rows, protocol, compat, cases=by_id)
    check_needed(rows, protocol, str(graded))
    if by_id is not None:
        asked = {row.case: None for row in rows}
        for ids, said in (
            ([c for c in asked if c not in by_id], f"of {graded} are not in {cases}"),
            ([c for c in by_id if c not in asked], f"of {cases} have no row in {graded}"),
        ):
            if ids:
                found = replace(found, warnings=(*found.warnings, f"{len(ids)} cases {said} (first: {ids[0]!r})"))
    return found, invalid
