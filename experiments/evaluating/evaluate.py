"""The behavioral half of a run: ask, grade, count, and keep the cases where every part is right and the whole is not.

Writes ``cases.jsonl``, ``asks.jsonl``, ``graded.jsonl``, ``metrics.json`` and ``casesets/*.jsonl``; the responses
themselves are in ``journal/``. ``rescore`` does the second half again from the files alone, without a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...errors import InputError, JournalError
from ...evaluation import metrics as metric_rows
from ...evaluation import pipeline, protocols, validators
from ...evaluation.asks import Ask, Grade, Response
from ...evaluation.cases import Case, case_from_dict, case_to_dict, read_cases
from ...evaluation.doubts import with_grader_bounds
from ...evaluation.engines.base import Recorded
from ...evaluation.grading import grade
from ...evaluation.journal import Journal, read_journal
from ...evaluation.protocols.base import CaseSet, Entry, Evidence, Graded, Protocol, Reduction
from .. import asking
from ..progress import Advance, Reporter
from ..run import checks, locked, read_json, read_lines, short, write_lines, write_text
from ..run.reader import read_cases_lines, read_config, read_filled, read_graded_lines
from ..run.writer import Run
from . import divergence


@dataclass(frozen=True)
class Evaluated:
    """Everything the behavioral half found, as objects."""

    cases: Mapping[str, Case]
    asks: Mapping[str, Ask]
    responses: Mapping[str, Response]
    graded: Sequence[Graded]
    reduction: Reduction
    stopped: str | None = None
    """The limit that stopped it early; None when it is complete."""

    @property
    def n_invalid(self) -> int:
        return sum(row.outcome == "invalid" for row in self.graded)

    def per_case(self) -> tuple[dict[str, Ask], dict[str, Response]]:
        """Asks and responses with one entry per case and role: an ask that several cases share stands for each."""
        asks, responses = {}, {}
        for row in self.graded:
            if row.ask is not None and row.ask in self.responses:
                key = f"{row.ask}/{row.case}/{row.role}"
                asks[key] = replace(self.asks[row.ask], case=row.case, role=row.role)
                responses[key] = self.responses[row.ask]
        return asks, responses

    def invalid_reasons(self) -> Counter[str]:
        """How often each reason for an invalid grade occurs."""
        return Counter(row.reason or "unknown" for row in self.graded if row.outcome == "invalid")


def evaluate(
    run: Run,
    cases: Sequence[Case],
    protocol: Protocol,
    engine: Any,
    *,
    reporter: Reporter,
    max_asks: int | None = None,
    compat: str | None = None,
    judge: Any = None,
) -> Evaluated:
    """Ask what the journal does not hold yet, grade everything, reduce, and write the results into the run.

    ``compat`` grades as a paper does (``agentcoma``, ``stad``, ``collapse``), the engine ``judge`` has the second word
    on answers in words.
    """
    write_lines(run.path / "cases.jsonl", (case_to_dict(c) for c in cases))
    # An engine whose workers write segments of their own opens the journal for them and the driver.
    opening = getattr(engine, "open_journal", Journal)
    with opening(run.path / "journal", reuse=bool(run.config.get("reuse"))) as journal:
        for warning in journal.warnings:
            reporter.say(f"{run.name}: {warning}")
        with run.timed("ask"), _asking(reporter) as progress:
            found = pipeline.evaluate(
                cases,
                protocol,
                engine,
                journal,
                grade=_grader(compat),
                progress=progress,
                max_asks=max_asks,
                model=run.config["model"],
                run=run.name,
                judge=judge,
            )
    if agreement := checks.judge_agreement(found.judged):
        run.record(judge_agreement=agreement.to_dict())
    reporter.say(f"{run.name}: {found.n_asked} asks put to the model, {found.n_resumed} answered from the journal")
    _measure_divergence(run, engine, list(found.asks.values()), reporter)
    signed = checks.signed_otherwise(found.responses.values(), engine.identity, run.config)
    run.record(signed_otherwise=signed[2])
    for line in signed[1]:
        reporter.say(f"{run.name}: {line}")
    return _finish(run.path, cases, protocol, found, compat, signed=signed[:2])


def _measure_divergence(run: Run, engine: Any, asks: Sequence[Ask], reporter: Reporter) -> None:
    """Once per run, in 16 bits: how much the answers depend on the batch, into manifest and log."""
    if "batch_divergence" in run.manifest or not divergence.depends_on_batch(engine):
        return
    with run.timed("divergence"):
        measured = divergence.measure(engine, divergence.sample(asks))
    if measured is not None:
        run.record(batch_divergence=measured)
        reporter.say(f"{run.name}: {divergence.describe(measured)}")


def _grader(compat: str | None) -> Callable[..., Grade]:
    return partial(grade, compat=compat)


class _asking:
    """One progress bar per round, fed by the pipeline's reports."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter, self.round, self.done = reporter, 0, 0
        self.bar: Any = None
        self.advance: Advance | None = None

    def __enter__(self) -> Any:
        return self.report

    def report(self, p: pipeline.Progress) -> None:
        if p.round != self.round:
            self.close()
            self.round, self.done = p.round, 0
            self.bar = self.reporter.bar("asking" if p.round == 1 else f"asking, round {p.round}", p.total)
            self.advance = self.bar.__enter__()
        if self.advance is not None:
            self.advance(p.done - self.done)
        self.done = p.done

    def close(self) -> None:
        if self.bar is not None:
            self.bar.__exit__(None, None, None)
            self.bar = None

    def __exit__(self, *error: Any) -> None:
        self.close()


def _finish(
    path: Path,
    cases: Sequence[Case],
    protocol: Protocol,
    found: pipeline.Evaluation,
    compat: str | None,
    labels: str | Path | None = None,
    signed: tuple[list[metric_rows.Metric], list[str]] = ([], []),
) -> Evaluated:
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
    how = [f"graded and counted as {compat} does (--compat {compat})"] if compat else []
    unusable = checks.asking_warnings(found.graded, found.asks, found.responses)
    warnings = (*how, *counted.warnings, *said, *unusable)
    reduction = Reduction((*counted.metrics, *metrics), counted.case_sets, warnings)
    evaluated = Evaluated(by_id, found.asks, found.responses, found.graded, reduction, found.stopped)
    _write_results(path, protocol.name, evaluated)
    return evaluated


def _write_results(path: Path, protocol: str, found: Evaluated) -> None:
    write_lines(path / "asks.jsonl", ({"ask": key, **asdict(ask)} for key, ask in found.asks.items()))
    write_lines(path / "graded.jsonl", (row.to_dict() for row in found.graded))
    write_text(path / "metrics.json", metric_rows.dumps(protocol, found.reduction.metrics, found.reduction.warnings))
    for case_set in found.reduction.case_sets:
        write_lines(path / "casesets" / f"{case_set.name}.jsonl", case_set.to_dicts())


def rescore(
    folder: str | Path, reporter: Reporter, compat: str | None = None, labels: str | Path | None = None
) -> Evaluated:
    """Grade and count a run again from its own files: no model is loaded, nothing is asked.

    ``compat`` grades as a paper does; None: as the run did. ``labels`` is a file of human labels (see
    ``checks.read_labels``) that the grades, and the judge's verdicts among them, are compared with.
    Raises ``JournalError`` when the protocol wants asks that the journal does not hold.
    """
    read_json(Path(folder) / "manifest.json")
    with locked(folder) as path:
        config = own_config(path)
        cases = [case_from_dict(raw, f"{path / 'cases.jsonl'}") for raw in read_cases_lines(path)]
        with Journal(path / "journal", reuse=True) as journal:
            for warning in journal.warnings:
                reporter.say(f"{path.name}: {warning}")
            found = _regrade(path, cases, config, journal, compat, labels)
        reporter.say(f"{path.name}: {len(found.graded)} answers graded again")
        return found


def own_config(folder: Path) -> dict[str, Any]:
    """A run's options. Raises ``InputError`` where they are not those of the run that the manifest tells of."""
    config, identity = read_config(folder), read_json(folder / "manifest.json")["identity"]
    for key in ("protocol", "format", "prompting"):
        if key in identity and config.get(key) != identity[key]:
            raise InputError(
                f"{folder / 'config.yaml'}: field {key!r} is {short(config.get(key))}, and {short(identity[key])} in "
                "manifest.json; restore the file, or make the run again"
            )
    return config


def _regrade(
    path: Path,
    cases: Sequence[Case],
    config: Mapping[str, Any],
    journal: Journal,
    compat: str | None,
    labels: str | Path | None,
) -> Evaluated:
    manifest = read_json(path / "manifest.json")
    engine = manifest.get("engine", {})
    how = asking.from_config(config.get("asking"))
    how = how if compat is None else replace(how, compat=compat)
    prompting = config.get("prompting") or "chat"
    protocol = asking.protocol(config["protocol"], config.get("format"), prompting, how, config.get("seed") or 0)
    failures = journal.contents.failures
    recorded = Recorded(engine.get("identity", {}), engine.get("provenance", {}), failures)
    judged = manifest.get("judge")
    judge = Recorded(judged["identity"], judged["provenance"], failures) if judged and how.judge else None
    found = pipeline.evaluate(
        cases,
        protocol,
        recorded,
        journal,
        grade=_grader(how.compat),
        model=config["model"],
        run=path.name,
        judge=judge,
    )
    signed = checks.signed_otherwise(found.responses.values(), recorded.identity, config)
    return _finish(path, cases, protocol, found, how.compat, labels, signed[:2])


def load_run(folder: str | Path) -> Evaluated:
    """What an evaluated run holds, read from its files; nothing is graded, counted or written.

    Raises ``InputError`` for a folder that is no evaluated run, ``JournalError`` for a journal that lost answers.
    """
    path = Path(folder)
    cases = [case_from_dict(raw, str(path / "cases.jsonl")) for raw in read_cases_lines(path)]
    asks = {raw["ask"]: _ask_from(raw) for raw in read_filled(path / "asks.jsonl")}
    graded = [Graded.from_dict(raw, f"{path / 'graded.jsonl'}:{n}") for n, raw in enumerate(read_graded_lines(path), 1)]
    metrics = tuple(metric_rows.from_document(read_json(path / "metrics.json"), str(path / "metrics.json")))
    sets = tuple(_case_set(p) for p in sorted((path / "casesets").glob("*.jsonl")))
    contents = read_journal(path / "journal")
    responses, answered = contents.responses, {**contents.failures, **contents.responses}
    lost = [row.ask for row in graded if row.ask is not None and row.ask not in answered]
    if answered and lost:
        raise JournalError(
            f"{path / 'journal'}: the answers of {len(lost)} of {len(graded)} graded asks are missing "
            f"(first: {lost[0]}{''.join(f'; {w}' for w in contents.warnings[:1])}); "
            "restore the folder, or run the evaluation again with the model"
        )
    return Evaluated({c.id: c for c in cases}, asks, responses, graded, Reduction(metrics, sets))


def _ask_from(raw: Mapping[str, Any]) -> Ask:
    known: dict[str, Any] = {f.name: raw[f.name] for f in fields(Ask) if f.name in raw}
    for name in ("aliases", "stop"):
        known[name] = tuple(known.get(name, ()))
    known["options"] = tuple((letter, text) for letter, text in known.get("options", ()))
    return Ask(**known)


def _case_set(path: Path) -> CaseSet:
    rows = read_lines(path)
    label = rows[0]["label"] if rows else "other"
    other = next((row["label"] for row in rows if row["label"] != label), None)
    if other is not None:
        raise InputError(f"{path}: field 'label' is {label!r} and {other!r}; count it again with `composcope score`")
    return CaseSet(path.stem, label, tuple(Entry(row["case"], tuple(map(_evidence, row["evidence"]))) for row in rows))


def _evidence(raw: Mapping[str, Any]) -> Evidence:
    return Evidence(raw["role"], raw["outcome"], raw.get("answer"), raw.get("gold"), raw.get("ask"))


def metrics_from_file(
    graded: str | Path, protocol: str, cases: str | Path | None = None, compat: str | None = None
) -> tuple[str, list[dict[str, Any]]]:
    """A protocol's metrics from a ``graded.jsonl`` of any origin: the text of ``metrics.json``, and its rows.

    ``compat`` counts as a paper does (``stad``, ``collapse``, ``agentcoma``).

    Raises ``InputError`` naming file, line and field.
    """
    rows = validators.read_graded(graded)
    by_id = None if cases is None else {c.id: c for c in read_cases(cases)}
    reduction = protocols.metrics_from_rows(rows, protocol, compat, cases=by_id)
    return metric_rows.dumps(protocol, reduction.metrics, reduction.warnings), to_rows(reduction)


def to_rows(reduction: Reduction) -> list[dict[str, Any]]:
    """The metrics of a reduction as the JSON objects of ``metrics.json``."""
    return [m.to_dict() for m in reduction.metrics]


def ids(reduction: Reduction, label: str) -> set[str]:
    """Case ids that carry a label."""
    return {case for s in reduction.case_sets if s.label == label for case in s.ids}


def describe_invalid(found: Evaluated, limit: int = 3) -> Iterable[str]:
    """One line per reason for invalid grades, the most frequent first, with an example."""
    for reason, n in found.invalid_reasons().most_common(limit):
        first = next(row for row in found.graded if row.outcome == "invalid" and (row.reason or "unknown") == reason)
        where = f"first: case {first.case!r}, role {first.role!r}"
        yield f"{n} of {len(found.graded)} answers are invalid: {reason} ({where})"
