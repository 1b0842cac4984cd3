"""The main job: evaluate a model, keep the failures where every part is right, and probe the model on them.

Each step writes into the run folder before the next one begins. After any interruption the same command continues:
answers come from the journal, and probes with unchanged inputs are kept.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ComposcopeError, InputError
from ..evaluation.protocols.presenting import REASONING
from ..evaluation.shards import Shard
from ..files import as_path, file_sha256, text_hash
from ..terminal import how_many, quietly
from .config import Config
from .console import exits
from .console.printing import Reporter
from .distributed.engine import load_target
from .evaluating.ask_plan import LoadedBenchmark, ask_options, load_benchmark, plan_asks
from .evaluating.evaluate import evaluate
from .models.target import Target, loading_of, open_judge
from .run import summary
from .run.folder import MEASURED, check_own, check_place, unfinished
from .run.provenance import plugin_files, source_hash
from .run.reader import RunData, read_run
from .run.schema import Evaluated
from .run.writer import OpenRun, begin_run


@dataclass(frozen=True)
class Investigation:
    """The results of a run."""

    path: Path
    evaluated: Evaluated = field(repr=False)
    no_contrast: str | None = None
    """Why failures and successes could not be compared; None if they were, or if no comparison was requested."""
    report: Path | None = None
    seconds: float = 0.0
    """Duration in seconds; answers left by a crashed run take no time again."""

    def summary(self) -> list[str]:
        """The headline as text, one line per probe in words, and the report with the duration."""
        written = [f"report: {self.report} ({self.seconds:.0f} s)"] if self.report else []
        return [*summary.lines(self.path), *_findings_in_words(self.path), *written]

    def document(self) -> dict[str, Any]:
        """The same as a document for machines."""
        report = str(self.report) if self.report else None
        return {
            **summary.document(self.path), "no_contrast": self.no_contrast, "report": report, "seconds": self.seconds
        }  # fmt: skip

    def diagnose(self, **options: Any) -> Any:
        """The causes of the run's failures (``diagnosis.job.diagnose``)."""
        from .diagnosis.job import diagnose

        return diagnose(self.path, **options)

    def closing(self) -> str | None:
        """The last line of a command that could not compare what it was to compare; the counts were said before."""
        absent = _absent(self.evaluated)
        if self.no_contrast is None or absent is None or not self.evaluated.reduction.case_sets:
            return self.no_contrast
        unjudged = summary.none_decided(self.evaluated.graded, self.evaluated.protocol)
        fix = "in every case an answer could not be judged" if unjudged else _fix(absent)
        return f"{self.path}: no contrast possible: {absent}{summary.of_known_parts(self.evaluated.protocol)}; {fix}"

    def exit_code(self) -> int:
        """1 if there was nothing to compare, since the comparison was requested; 2 if answers without a judgement
        remain; else 0.
        """
        if self.no_contrast is not None:
            return exits.USER_ERROR
        return exits.INVALID_REMAINS if self.evaluated.n_invalid else exits.OK


def _findings_in_words(path: Path) -> list[str]:
    """One line per probe, and one for the causes of the failures."""
    from ..probes.verdicts import FEWEST_PAIRS
    from .report.landing import in_words, lacking

    run = read_run(path)
    enough = min(map(len, run.groups)) >= FEWEST_PAIRS
    how = f"run composcope probe {shlex.quote(str(path))}" if enough else f"there is nothing to compare: {lacking(run)}"
    lines = in_words(run) if run.probe_names else [f"probes: none ran; {how}"]
    causes = summary.causes_now(run)
    return [f"  {line}" for line in (*lines, *([causes] if causes else []))]


ProbeStep = Callable[[OpenRun, Config, Target, Evaluated, Reporter], str | None]
"""Runs probes on an evaluated run; returns the reason if there is no contrast, else None."""


def investigate(
    config: Config,
    out: str | Path | None = None,
    *,
    quiet: bool = False,
    bars: bool = True,
    contrast: bool = True,
    ask: bool = True,
    report: bool | None = True,
    probe: ProbeStep | None = None,
    diagnose: bool | None = False,
    benchmark: LoadedBenchmark | None = None,
    target: Target | None = None,
) -> Investigation:
    """Evaluate a model on a benchmark and probe its composition failures against matched successes.

    ``contrast=False`` stops after the evaluation, ``report=False`` before the report (None: it is drawn only if
    something that it shows has changed); ``ask=False`` takes a run that a limit stopped as it is; ``bars=False`` leaves
    out progress bars; ``probe`` replaces the usual probes; ``diagnose`` also names the cause of each failure (None: if
    that takes less than two minutes). ``benchmark`` and ``target`` can be passed if they are loaded already; such a
    target is left open. Raises ``ComposcopeError`` for any error that the user can fix.
    """
    start = time.monotonic()
    if not isinstance(config, Config):
        raise InputError(
            f"config: {type(config).__name__}; give a composcope.Config(model=..., benchmark=...), or call "
            "composcope.evaluate(model, cases)"
        )
    folder = as_path(out, "out") if out is not None else config.default_folder()
    check_place(folder)
    check_own(folder)
    benchmark = benchmark or load_benchmark(config.benchmark, seed=config.seed, limit=config.limit)
    shard = config.parsed_shard
    # All checks come before the run's folder is made: first those that need no model, then those that do.
    plan = plan_asks(ask_options(config), benchmark, shard, config.limit)
    loading = loading_of(config)
    reporter = Reporter(quiet=quiet, bars=bars)
    with quietly(quiet):
        loaded = closing(load_target(loading, folder, reporter.say)) if target is None else nullcontext(target)
    with loaded as target:
        plan = plan.for_model(target.prompting, target.tokenizer, target.engine)
        config = plan.settled(config)
        judge = open_judge(config)
        partly = None if ask else _stopped(folder)
        begun = begin_run(folder, config.as_config(), identity=plan.identity(target), asks=partly is None)
        with begun as run, reporter.logging_warnings(run.path / "log.txt"):
            if partly is None:
                evaluated = evaluate(run, plan, target, judge, config, reporter)
            else:
                evaluated = read_run(run.path).evaluated()
                reporter.say(f"{run.name}: {partly}")
            run.record(**target.record())
            if not contrast:
                return Investigation(run.path, evaluated)
            missing = (probe or run_the_probes)(run, config, target, evaluated, reporter)
            run.record(**target.record())
            if diagnose is not False:
                _diagnose(run, target, reporter, wanted=diagnose)
            written = None if report is False else _show(run, reporter, again=report is True)
            return Investigation(run.path, evaluated, missing, written, time.monotonic() - start)


def _stopped(folder: Path) -> str | None:
    """What a user is told of a run that a limit stopped, with the number of asks without an answer; else None."""
    run = read_run(folder)
    if not run.manifest.stopped:
        return None
    missing = how_many(len(run.asks.keys() - run.journal.responses.keys()), "ask")
    return f"{unfinished(folder)}; {missing} of {len(run.asks)} so far without an answer: only the others are probed"


def own_benchmark(run: RunData, config: Config) -> LoadedBenchmark | None:
    """The cases that a run keeps, as its benchmark: the file that they came from may be gone, or be called otherwise.

    None for a shard, which does not have all of them, and for a run that keeps none.
    """
    if config.shard is not None or not run.cases:
        return None
    data = str(run.manifest.identity.get("data"))
    return LoadedBenchmark(config.benchmark, tuple(run.cases.values()), str(config.protocol), config.format, data)


def run_the_probes(run: OpenRun, config: Config, target: Target, found: Evaluated, reporter: Reporter) -> str | None:
    """Run the probes; returns the reason if there is no contrast, else None."""
    missing = no_contrast(found, run.path)
    if missing is not None:
        reporter.say(missing)
    if not config.probes or not any(found.ids(label) for label in ("failure", "success")):
        return missing
    from . import probing

    chosen = probing.choose(found.examples(target.tokenizer), config.probe_cases)
    reporter.note(f"{run.name}: {chosen.note}")
    if not chosen.contrast:
        left_out = "probes that need failures and successes are left out, the others measure the cases there are"
        unmatched = "failures and successes are too few or too different to be matched; probes compare them unmatched"
        reporter.say(f"{run.name}: {unmatched if missing is None else left_out}")
    probing.save_chosen(run, chosen)
    with probing.measuring(run.path, target, keep=config.shard is not None) as lm:
        probing.run_probes(run, lm, chosen, config, reporter)
    return missing


def probe_shard(config: Config, folder: str | Path, shard: str, *, quiet: bool = False) -> list[str]:
    """Measure one shard (``i/n``) of what the probes of an evaluated run need, and keep it in the run's store.

    Several shards may be measured at the same time; nothing else of the run is written. When all are done, the same
    command without a shard combines them. Returns one line per probe. Raises ``InputError`` for a run that is
    probed on Ray workers, which divide the work themselves.
    """
    from . import probing

    mine, path = Shard.parse(shard), Path(folder)
    if config.serving.engine == "ray":
        raise InputError(
            f"--shard {shard}: works only in this process, and the engine is ray; add --engine transformers, or leave "
            "out --shard, since workers divide the work themselves"
        )
    reporter = Reporter(None, quiet=quiet)
    found = read_run(path).evaluated()
    if (partly := _stopped(path)) is not None:
        reporter.say(f"{path.name}: {partly}")
    with quietly(quiet):
        loaded = load_target(loading_of(config), path, reporter.say)
    with closing(loaded) as target:
        chosen = probing.choose(found.examples(target.tokenizer), config.probe_cases)
        return probing.measure_shard(path, target, chosen, config, mine)


def _diagnose(run: OpenRun, target: Target, reporter: Reporter, wanted: bool | None) -> None:
    """Name the causes of the failures: if requested, or else if it is quick."""
    from .diagnosis import job as diagnosis

    data = read_run(run.path)
    failing = diagnosis.labelled_failures(data)
    if not failing or data.config is None:
        return
    if (reason := diagnosis.cannot(run.path, target)) is not None:
        reporter.say(f"{run.name}: not diagnosed: {reason}")
        return
    seconds = diagnosis.estimate(target, failing)
    if wanted is None and seconds > diagnosis.QUICK:
        reporter.say(
            f"{run.name}: not diagnosed, because it would take about {seconds / 60:.0f} minutes; --diagnose does it"
        )
        return
    try:
        with run.timed("diagnose"):
            found = diagnosis.diagnosed(data, target, failing, data.config.seed, reporter)
    except ComposcopeError as e:  # the rest of the run is kept
        reporter.say(f"{run.name}: not diagnosed: {e}")
    else:
        reporter.note(f"{run.name}: {found.sentence()}")  # the last lines of the command say it in words


def no_contrast(found: Evaluated, path: Path) -> str | None:
    """One line with the counts if fewer than two failures or successes are there, else None."""
    absent = _absent(found)
    if absent is None:
        return None
    if not found.reduction.case_sets:
        from .report.landing import NO_SETS

        return f"{path}: no contrast possible: {NO_SETS}"
    sets = ", ".join(f"{s.name} {len(s.entries)}" for s in found.reduction.case_sets)
    budget = "--cot-tokens" if any(ask.format in REASONING for ask in found.asks.values()) else "--answer-tokens"
    judged = f"see why answers are invalid (`{budget}`, `--format`, `--no-thinking`)" if found.n_invalid else ""
    unjudged = summary.none_decided(found.graded, found.protocol)
    fix = "; ".join(filter(None, ("" if unjudged else _fix(absent), judged)))
    known = summary.of_known_parts(found.protocol)
    return (
        f"{path}: no contrast possible: {absent}{known} among {len(found.cases)} cases "
        f"({sets}; {found.n_invalid} answers invalid); the evaluation and report are kept; {fix}"
    )


def _absent(found: Evaluated) -> str | None:
    """What is missing for a comparison: failures, successes, or both; None if there are two of each."""
    from ..probes.verdicts import FEWEST_PAIRS

    failures, successes = (len(found.ids(label)) for label in ("failure", "success"))
    if min(failures, successes) >= FEWEST_PAIRS:
        return None
    if not failures and not successes:
        return "no case" if summary.of_known_parts(found.protocol) else "no failure and no success"
    if failures == successes:
        return "only 1 failure and 1 success"
    fewer, n = ("failure", failures) if failures < successes else ("success", successes)
    return f"only {n} {fewer}" if n else f"no {fewer}"


def _fix(absent: str) -> str:
    return f"use more or {'harder' if absent.endswith(' failure') else 'easier'} cases"


def _show(run: OpenRun, reporter: Reporter, again: bool) -> Path:
    """Write the figures and the report of this run; without ``again``, keep a report that shows the same results."""
    from . import report

    page, shows = run.path / "report.html", report_inputs(run.path)
    if not again and page.is_file() and run.manifest.facts().get("report_inputs") == shows:
        reporter.say(f"report: unchanged, kept: {page}")
        return page
    run.record(report_inputs=None)  # until it is whole
    with run.timed("report"):
        run.record(status="complete")  # shown on the page; reset if the report fails
        written = Path(report.write([run.path], run.path, progress=reporter.bar))
    run.record(report_inputs=shows)
    reporter.say(f"report: {written}")
    return written


def report_inputs(run: Path) -> str:
    """Hash of the results that a run's report shows, and of the code that draws them."""
    files = [p for p in run.glob("*.jsonl") if p.is_file()]
    files += [
        run / "metrics.json",
        run / "rendered.json",
        *(run.parent / name for name in ("study.json", "validity.json")),
    ]
    for folder in ("casesets", "probes", "diagnosis"):
        files += [p for p in (run / folder).rglob("*") if MEASURED not in p.parts]
    found = [f"{os.path.relpath(p, run)} {file_sha256(p)}" for p in sorted(files) if p.is_file()]
    return text_hash([*found, source_hash(), json.dumps(plugin_files())])
