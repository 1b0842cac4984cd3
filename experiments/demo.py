"""``composcope demo``: investigate the shipped dose series on both of its worlds, and write one report.

The four organisms know their parts equally well and saw no, very few, some or many compositions in training. The demo
makes eight runs, then tests the validity of each probe on them, then writes one report. The same command continues
after an interruption.
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from ..errors import ComposcopeError
from ..evaluation.metrics import Metric, percent, span
from ..probes.verdicts import TRAININGS
from ..terminal import how_many
from .console import exits
from .console.printing import Reporter
from .organism.weights import DOSES, called, named
from .run import check_no_run, locked, write_json
from .run.diagnosis import read_diagnosis
from .run.provenance import machine
from .run.reader import read_run

LIMITS = {"mixed": 200, "temporal": 24}
"""Cases per family x depth, chosen so that the runs take about two minutes on two cores."""
LOOK = 0.2
"""Seconds between two checks of the workers."""
PROBE_CASES = {"mixed": 24, "temporal": 12}
"""Pairs of failures and successes to probe; temporal cases have up to eleven parts each."""
DIAGNOSED = {"control": 12}
"""Failures of the mixed world to diagnose: of the dose on whose run the report opens, which has readouts, too."""


@dataclass(frozen=True)
class DemoRun:
    """One run of the demo."""

    dose: str
    world: str
    out: str
    seed: int
    device: str | None

    @property
    def folder(self) -> Path:
        return Path(self.out) / f"{self.dose}--{self.world}"


def run_demo(out: str | Path, *, seed: int = 0, device: str | None = None, quiet: bool = False) -> list[str]:
    """Run (or finish) the demo in a study folder; returns its summary: a line per run, a line per probe, the report.

    Each run reports its progress in its own ``log.txt``.

    Raises ``ComposcopeError`` if a run fails; the results of the other runs are kept.
    """
    start = time.monotonic()
    check_no_run(out)
    with locked(out) as folder:
        reporter = Reporter(folder / "log.txt", quiet=quiet)
        jobs = [DemoRun(dose, world, str(folder), seed, device) for dose in DOSES for world in LIMITS]
        _run_jobs(jobs, reporter)
        runs = [job.folder for job in jobs]
        for job in jobs:
            if job.world == "mixed" and job.dose in DIAGNOSED and read_diagnosis(job.folder) is None:
                reporter.say(f"causes of {DIAGNOSED[job.dose]} failures of {called(job.dose)}")
                _diagnose(job, quiet)
        from . import report
        from .validity import over_doses as validity

        reporter.say("validity of the probes on the dose series")
        mixed = {dose: folder / f"{dose}--mixed" for dose in DOSES}
        found = validity.examine(folder, mixed, seed=seed, device=device, exposures=False, progress=reporter.bar)
        reporter.say("report")
        written = Path(report.write(runs, folder, progress=reporter.bar))
        seconds = time.monotonic() - start
        lines = summary(jobs, found, written, seconds)
        write_json(folder / "study.json", {"runs": [r.name for r in runs], "seconds": seconds, "summary": lines})
    return lines


def _run_jobs(jobs: Sequence[DemoRun], reporter: Reporter) -> None:
    """Run all jobs, with one process per core (at most four; one process if the runs share a GPU)."""
    workers = 1 if _on_gpu(jobs[0].device) else min(4, machine()["cores"] or 1)
    reporter.say(f"{how_many(len(jobs), 'run')} on {how_many(workers, 'process', 'processes')}")
    with reporter.bar("runs", len(jobs)) as advance:
        if workers == 1:
            for job in jobs:
                work(job)
                advance(1)
            return
        others = {*multiprocessing.active_children()}  # of the caller
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _alone) as pool:
            left = {pool.submit(work, job) for job in jobs}
            try:
                while left:
                    done, left = wait(left, LOOK, FIRST_COMPLETED)
                    advance(sum(run.result() is None for run in done))  # 0, too, shows that the work goes on
            except BrokenProcessPool as e:
                raise ComposcopeError(
                    "a process ended without a reason (out of memory?); the same command continues"
                ) from e
            except BaseException:
                for process in {*multiprocessing.active_children()} - others:
                    process.terminate()  # the same command continues their runs
                raise


def _alone() -> None:
    """Prepare a process that runs jobs: it has one thread, and ends when its parent says so or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()
    exits.quiet_libraries()
    import torch

    torch.set_num_threads(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(exits.INTERRUPTED)  # the same command continues the run


def _diagnose(job: DemoRun, quiet: bool) -> None:
    """Name the causes of a run's first failures; without failures there is nothing to name."""
    from contextlib import closing

    from .diagnosis.job import diagnosed, in_turn, labelled_failures
    from .models.target import load_local, loading_of

    data = read_run(job.folder)
    failing = in_turn(labelled_failures(data))[: DIAGNOSED[job.dose]]
    if not failing or data.config is None:
        return
    reporter = Reporter(job.folder / "log.txt", quiet=quiet)
    with closing(load_local(loading_of(data.config), reporter.note)) as target, locked(job.folder):
        diagnosed(data, target, failing, job.seed, reporter)


def _on_gpu(device: str | None) -> bool:
    if device is not None:
        return device.startswith("cuda")
    import torch

    return torch.cuda.is_available()


def work(job: DemoRun) -> None:
    """Investigate a job's model on its benchmark. A missing contrast is a result here, not an error."""
    from ..probes.catalog import standard
    from .config import Config
    from .investigate import investigate

    config = Config(
        model=f"organism:{job.dose}",
        benchmark=f"organism:{job.world}",
        limit=LIMITS[job.world],
        seed=job.seed,
        device=job.device,
        probe_cases=PROBE_CASES[job.world],
        probes=(*standard(), *(["readout"] if job.world == "mixed" and job.dose in DIAGNOSED else [])),
    )
    found = investigate(config, job.folder, quiet=True, bars=False, report=False)
    if found.no_contrast:
        Reporter(job.folder / "log.txt").note(found.no_contrast)


def summary(jobs: Sequence[DemoRun], validity: Sequence[Mapping[str, Any]], report: Path, seconds: float) -> list[str]:
    """Lines for four doses on two worlds, causes, one line per probe on one training, duration and report."""
    mixed = [_mixed_line(job) for job in jobs if job.world == "mixed"]
    temporal = [_temporal_line(job) for job in jobs if job.world == "temporal"]
    causes = [
        f"causes   {called(job.dose):16} {found.sentence(words=True).removeprefix('Causes of ')}"
        for job in jobs
        if (found := read_diagnosis(job.folder)) is not None
    ]
    return [*mixed, *temporal, *causes, *_validity_lines(validity), f"{seconds:.0f} s; report: {report}"]


def _mixed_line(job: DemoRun) -> str:
    run = read_run(job.folder)
    guess = "" if run.chance is None else f", chance {100 * run.chance:.1f} %"
    both, whole = (_rate(run.one(name)) for name in ("both", "composition"))
    return f"mixed    {called(job.dose):16} both parts right {both}; whole right {whole}{guess}"


def _temporal_line(job: DemoRun) -> str:
    rows = read_run(job.folder).select("residual_failure", "depth_bin")
    rows.sort(key=lambda r: r.group["depth_bin"])
    cells = "; ".join(f"depth {r.group['depth_bin']} {_rate(r)}" for r in rows)
    return f"temporal {called(job.dose):16} fails although all parts are stable: {cells}"


def _rate(row: Metric | None) -> str:
    n = "n=0" if row is None else f"n={row.n}" + (f", {row.n_invalid} without an answer" if row.n_invalid else "")
    if row is None or row.value is None:
        return f"undefined ({n})"
    shown = partial(percent, digits=0)
    return f"{shown(row.value)}{span(row.low, row.high, shown)} ({n})"


def _validity_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line per probe: how its number changes with the dose and between labels in this one training; no verdicts."""
    shown: dict[str, list[str]] = {}
    for row in rows:
        if row.get("headline"):
            where = "" if row["model"] == "all doses" else f" in {named(row['model'])}"
            value = "undefined" if row["value"] is None else f"{row['value']:.2f}"
            shown.setdefault(str(row["short"]), []).append(f"{row['question']}{where}? {row['measure']} {value}")
    lines = [f"probe {name:20} {'; '.join(values)}" for name, values in shown.items()]
    return [*lines, f"no verdicts: this is one training, and {TRAININGS} are needed"]
