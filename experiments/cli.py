"""The command line. Each command imports what it needs when it runs, so that ``--help`` never waits for torch.

Data goes to stdout, progress and logs to stderr. Exit codes: 0 ok, 1 user error, 2 invalid results remain,
130 interrupted (see ``exits``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from . import commands, exits, run_commands
from .asking import Asking, with_asking
from .bench.cli import app as bench
from .flags import with_flags
from .help import Commands, example
from .options import (
    AsJson,
    BatchSize,
    BenchmarkName,
    CaseDetails,
    Device,
    DryRun,
    Dtype,
    FormatName,
    Limit,
    MaxAsks,
    Model,
    Out,
    PadToken,
    Position,
    ProbeCases,
    Probes,
    Prompting,
    ProtocolName,
    Quiet,
    Reuse,
    RunArg,
    Seed,
    Shard,
)  # fmt: skip
from .organism.cli import app as organism
from .plugins import with_plugins
from .printing import show
from .serving import Serving, probing_engine

app = typer.Typer(
    name="composcope",
    cls=Commands,
    help="Find out where, and why, a language model fails to compose what it knows.",
    epilog="Start with: composcope demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # the library that frames help takes longer to load than all else together
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def _command_line() -> str:
    from .run import command_line

    return command_line()


def main(args: Sequence[str] | None = None) -> int:
    """Entry point of the ``composcope`` command: runs it and returns the exit code."""
    exits.quiet_libraries()
    return exits.run_app(app, args, _command_line)


def _version(show: bool) -> None:
    if show:
        from .. import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of errors; may stand anywhere in the command.")
    ] = False,
) -> None:
    """Find out where, and why, a language model fails to compose what it knows."""


def _done(found: Any, json: bool) -> int:
    """Print what a run found; its exit code."""
    show(found.document() if json else found.summary(), json)
    return found.exit_code()


def with_serving(command: Any) -> Any:
    """Give a command the flags of ``Serving``."""
    return with_flags(command, "serving", Serving)


def _go_offline(model: str, benchmark: str = "") -> None:
    """A model that is a path needs no hub: say so before the hub's library is imported, unless the data are there."""
    if not benchmark.startswith("hub:") and (model.startswith("organism:") or Path(model).expanduser().exists()):
        os.environ.setdefault("HF_HUB_OFFLINE", "1")


@app.command(epilog=example("investigate --model organism:control --benchmark organism:mixed --limit 40"))
@with_plugins
@with_serving
@with_asking
def investigate(
    model: Model,
    benchmark: BenchmarkName,
    asking: Asking,
    serving: Serving,
    protocol: ProtocolName = None,
    format: FormatName = None,
    prompting: Prompting = None,
    limit: Limit = None,
    out: Out = None,
    max_asks: MaxAsks = None,
    batch_size: BatchSize = None,
    seed: Seed = 0,
    dtype: Dtype = None,
    device: Device = None,
    pad_token: PadToken = None,
    probes: Probes = "all",
    probe_cases: ProbeCases = 32,
    case_details: CaseDetails = 4,
    position: Position = None,
    dry_run: DryRun = False,
    reuse: Reuse = False,
    shard: Shard = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """The main job: evaluate, keep the failures where every part is right, probe them, write the report."""
    _go_offline(model, benchmark)
    from . import investigate as job
    from .settings import Settings, parse_probes

    where: dict[str, Any] = {} if position is None else {"position": position}
    settings = Settings(
        model, benchmark, protocol, format, prompting, limit, max_asks, batch_size, seed, dtype, device,
        parse_probes(probes), probe_cases, reuse=reuse, pad_token=pad_token, asking=asking, serving=serving,
        shard=shard, case_details=case_details, **where,
    )  # fmt: skip
    if dry_run:
        plan = job.plan(settings)
        show({"schema": 1, "plan": plan} if json else plan, json)
        return exits.OK
    found = job.investigate(settings, out, quiet=quiet)
    return _done(found, json)


@app.command(epilog=example("evaluate --model organism:twin --benchmark organism:temporal --limit 20"))
@with_plugins
@with_serving
@with_asking
def evaluate(
    model: Model,
    benchmark: BenchmarkName,
    asking: Asking,
    serving: Serving,
    protocol: ProtocolName = None,
    format: FormatName = None,
    prompting: Prompting = None,
    limit: Limit = None,
    out: Out = None,
    max_asks: MaxAsks = None,
    batch_size: BatchSize = None,
    seed: Seed = 0,
    dtype: Dtype = None,
    device: Device = None,
    pad_token: PadToken = None,
    dry_run: DryRun = False,
    reuse: Reuse = False,
    shard: Shard = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Ask, grade and count only: metrics and case sets, no probes."""
    _go_offline(model, benchmark)
    from . import investigate as job
    from .settings import Settings

    settings = Settings(
        model, benchmark, protocol, format, prompting, limit, max_asks, batch_size, seed, dtype, device,
        probes=(), reuse=reuse, pad_token=pad_token, asking=asking, serving=serving, shard=shard,
    )  # fmt: skip
    if dry_run:
        plan = job.plan(settings)
        show({"schema": 1, "plan": plan} if json else plan, json)
        return exits.OK
    found = job.investigate(settings, out, quiet=quiet, contrast=False)
    return _done(found, json)


@app.command(epilog=example("probe runs/demo/control--mixed --probes lookback,min-k"))
@with_plugins
def probe(
    run: RunArg,
    probes: Probes = "all",
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Where the run's model is now, if it moved.")
    ] = None,
    probe_model: Annotated[
        str | None, typer.Option(help="Of a run whose model was behind a server: its weights on this machine.")
    ] = None,
    probe_cases: Annotated[int | None, typer.Option(min=1, help="Cases per group; the run's own by default.")] = None,
    case_details: Annotated[
        int | None, typer.Option(min=0, help="Cases per group kept in detail for the report; the run's own by default.")
    ] = None,
    position: Position = None,
    device: Device = None,
    rows_dtype: Annotated[
        str | None, typer.Option(help="float32: neurons and patching in float32 on weights in half precision.")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="transformers (here) or ray (workers); as the run says.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="ray: how many workers, each with the model.")] = None,
    gpus_per_worker: Annotated[float | None, typer.Option(min=0, help="ray: GPUs of each worker.")] = None,
    ray_address: Annotated[str | None, typer.Option(help="ray: a cluster that is running (HOST:PORT or auto).")] = None,
    shard: Annotated[
        str | None, typer.Option(help="i/n: only measure that part; when all parts are there, run without it.")
    ] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run probes on the case sets of a run that was evaluated before."""
    from .run import find_runs
    from .run.reader import read_config
    from .settings import from_config, parse_probes

    changes: dict[str, Any] = {
        "probes": parse_probes(probes),
        "model": model,
        "device": device,
        "probe_cases": probe_cases,
        "case_details": case_details,
        "rows_dtype": rows_dtype,
        "position": position,
    }
    config = read_config(run)
    find_runs([run])  # a folder without a manifest would become another run
    changes["serving"] = probing_engine(
        config.get("serving") or {},
        {"workers": workers, "gpus_per_worker": gpus_per_worker, "ray_address": ray_address},
        engine,
        probe_model,
    )
    settings = from_config(config, **{k: v for k, v in changes.items() if v is not None})
    _go_offline(settings.model)
    from . import investigate as job

    if shard is not None:
        lines = job.probe_part(settings, run, shard, quiet=quiet)
        show({"schema": 1, "shard": shard, "probes": lines} if json else lines, json)
        return exits.OK
    found = job.investigate(settings, run, quiet=quiet)
    return _done(found, json)


@app.command(epilog=example("demo --out runs/demo"))
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Study folder.")] = Path("runs/demo"),
    seed: Seed = 0,
    device: Device = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Investigate the shipped dose series of organisms and write one report; about three minutes on two cores."""
    _go_offline("organism:control")
    from .demo import run_demo

    lines = run_demo(out, seed=seed, device=device, quiet=quiet)
    if json:
        from .run import read_json

        show({**read_json(out / "study.json"), "report": out / "report.html"}, True)
    else:
        show(lines, False)
    return exits.OK


def _organisms_are_here() -> None:
    """Train, list and check the shipped organisms."""
    _go_offline("organism:control")


app.add_typer(organism, name="organism", callback=_organisms_are_here)
app.add_typer(bench, name="bench")
run_commands.register(app)
commands.register(app)


if __name__ == "__main__":
    sys.exit(main())
