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

from . import commands, exits
from .asking import Asking, with_asking
from .flags import with_flags
from .run import command_line
from .serving import Serving

app = typer.Typer(
    name="composcope",
    help="Find out where, and why, a language model fails to compose what it knows.",
    epilog="Start with: composcope demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(args: Sequence[str] | None = None) -> int:
    """Entry point of the ``composcope`` command: runs it and returns the exit code."""
    exits.quiet_libraries()
    return exits.run_app(app, args, command_line)


Model = Annotated[
    str, typer.Option("--model", "-m", help="organism:none|control|low|twin, a model folder, a hub id, or MODEL@URL.")
]
BenchmarkName = Annotated[
    str, typer.Option("--benchmark", "-b", help="organism:temporal, organism:mixed, organism:pairs or a case file.")
]
ProtocolName = Annotated[
    str | None, typer.Option("--protocol", "-p", help="How to ask and count; the benchmark's own by default.")
]
FormatName = Annotated[str | None, typer.Option("--format", help="Prompt format: plain, xml, xml-answer, cot, ...")]
Prompting = Annotated[str | None, typer.Option(help="chat or raw; chat where the tokenizer has a template.")]
Limit = Annotated[int | None, typer.Option(help="Only the first N cases of each family x depth, in file order.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; runs/MODEL--BENCHMARK by default.")]
MaxAsks = Annotated[int | None, typer.Option(help="Stop after this many new asks; the same command continues.")]
BatchSize = Annotated[int | None, typer.Option(help="Asks per batch; chosen from the memory at hand by default.")]
Seed = Annotated[int, typer.Option(help="Seed of every random choice.")]
Dtype = Annotated[str | None, typer.Option(help="float32, bfloat16 or float16; float32 on a CPU by default.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, ...; a GPU when there is one by default.")]
PadToken = Annotated[
    str | None, typer.Option(help="Pads batches where the tokenizer names no pad token, for example its EOS token.")
]
Probes = Annotated[
    str, typer.Option(help="Comma-separated: neurons, lookback, patching, trajectory, min-k; or all, none.")
]
ProbeCases = Annotated[int, typer.Option(help="Cases per group that the probes run on.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say how many asks, tokens and forwards it takes; do nothing.")]
Reuse = Annotated[
    bool, typer.Option("--reuse", help="Continue with answers made under other versions, dtype or device.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr; the log file still has it.")]
RunArg = Annotated[Path, typer.Argument(help="A run folder.")]
RunArgs = Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold several.")]


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
) -> None:
    """Find out where, and why, a language model fails to compose what it knows."""


def with_serving(command: Any) -> Any:
    """Give a command the flags of ``Serving``."""
    return with_flags(command, "serving", Serving)


def _go_offline(model: str) -> None:
    """A model that is a path needs no hub: say so before the hub's library is imported."""
    if model.startswith("organism:") or Path(model).expanduser().exists():
        os.environ.setdefault("HF_HUB_OFFLINE", "1")


@app.command(epilog="Example: composcope investigate --model organism:control --benchmark organism:mixed --limit 40")
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
    dry_run: DryRun = False,
    reuse: Reuse = False,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """The main job: evaluate, keep the failures where every part is right, probe them, write the report."""
    _go_offline(model)
    from . import investigate as job
    from .settings import Settings, parse_probes

    settings = Settings(
        model, benchmark, protocol, format, prompting, limit, max_asks, batch_size, seed, dtype, device,
        parse_probes(probes), probe_cases, reuse, pad_token=pad_token, asking=asking, serving=serving,
    )  # fmt: skip
    if dry_run:
        return _print(job.plan(settings), json)
    found = job.investigate(settings, out, quiet=quiet)
    _print(found.summary(), json)
    return found.exit_code()


@app.command(epilog="Example: composcope evaluate --model organism:twin --benchmark organism:temporal --limit 20")
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
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Ask, grade and count only: metrics and case sets, no probes."""
    _go_offline(model)
    from . import investigate as job
    from .settings import Settings

    settings = Settings(
        model, benchmark, protocol, format, prompting, limit, max_asks, batch_size, seed, dtype, device,
        probes=(), reuse=reuse, pad_token=pad_token, asking=asking, serving=serving,
    )  # fmt: skip
    if dry_run:
        return _print(job.plan(settings), json)
    found = job.investigate(settings, out, quiet=quiet, contrast=False)
    _print(found.summary(), json)
    return found.exit_code()


@app.command(epilog="Example: composcope probe runs/control--mixed --probes lookback,min-k")
def probe(
    run: RunArg,
    probes: Probes = "all",
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Where the run's model is now, if it moved.")
    ] = None,
    probe_model: Annotated[
        str | None, typer.Option(help="Of a run whose model was behind a server: its weights on this machine.")
    ] = None,
    probe_cases: Annotated[int | None, typer.Option(help="Cases per group; the run's own by default.")] = None,
    device: Device = None,
    quiet: Quiet = False,
) -> int:
    """Run probes on the case sets of a run that was evaluated before."""
    from .run import read_config
    from .settings import from_config, parse_probes

    changes: dict[str, Any] = {
        "probes": parse_probes(probes),
        "model": model,
        "device": device,
        "probe_cases": probe_cases,
    }
    config = read_config(run)
    if probe_model is not None:
        changes["serving"] = {**(config.get("serving") or {}), "probe_model": probe_model}
    settings = from_config(config, **{k: v for k, v in changes.items() if v is not None})
    _go_offline(settings.model)
    from . import investigate as job

    found = job.investigate(settings, run, quiet=quiet)
    _print(found.summary(), False)
    return found.exit_code()


@app.command(epilog="Example: composcope score runs/control--mixed")
def score(
    run: RunArg,
    compat: Annotated[str | None, typer.Option(help="Count as a paper does: agentcoma, stad or collapse.")] = None,
    labels: Annotated[
        Path | None, typer.Option("--human-labels", help="JSON lines with case, role and label (correct, incorrect).")
    ] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Grade and count a run again from its journal, without a model."""
    from .evaluate import rescore
    from .progress import Reporter
    from .summary import lines

    found = rescore(run, Reporter(run / "log.txt" if run.is_dir() else None, quiet=quiet), compat, labels)
    _print(lines(run), json)
    return exits.INVALID_REMAINS if found.n_invalid else exits.OK


@app.command(
    epilog="Example: composcope metrics runs/control--mixed/graded.jsonl --protocol compositionality-gap --json"
)
def metrics(
    graded: Annotated[Path, typer.Argument(help="graded.jsonl, ours or anyone's.")],
    protocol: Annotated[str, typer.Option("--protocol", "-p", help="Whose metrics to compute.")],
    cases: Annotated[Path | None, typer.Option(help="The case file, where the rows do not say everything.")] = None,
    compat: Annotated[str | None, typer.Option(help="Count as a paper does: stad, collapse or agentcoma.")] = None,
    json: AsJson = False,
) -> int:
    """Compute a protocol's metrics from graded rows, without any model."""
    from .evaluate import metrics_from_file
    from .summary import metric_line

    document, rows = metrics_from_file(graded, protocol, cases, compat)
    if json:
        sys.stdout.write(document)
        return exits.OK
    for row in rows:
        print(metric_line(row))
    return exits.OK


@app.command(epilog="Example: composcope report runs/demo --out runs/demo")
def report(runs: RunArgs, out: Out = None) -> int:
    """Write one static report over one or more runs."""
    from .run import find_runs

    folders = find_runs(runs)
    from .report import write

    print(write(folders, out or (folders[0] if len(folders) == 1 else runs[0])))
    return exits.OK


@app.command(epilog="Example: composcope plot collapse-curve runs/control--temporal --out figures")
def plot(
    figure: Annotated[str | None, typer.Argument(help="Figure id; see --list.")] = None,
    runs: Annotated[list[Path] | None, typer.Argument(help="Run folders, or folders that hold several.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for png, svg and csv.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name the figures.")] = False,
) -> int:
    """Draw one figure (png, svg and the csv behind it) from one or more runs."""
    from .plotting import draw, figure_names

    if list_ or figure is None:
        print("\n".join(figure_names()))
        return exits.OK
    for path in draw(figure, runs or [], out):
        print(path)
    return exits.OK


@app.command(epilog="Example: composcope compare runs/demo/control--mixed runs/demo/twin--mixed")
def compare(
    a: Annotated[Path, typer.Argument(help="Run A.")],
    b: Annotated[Path, typer.Argument(help="Run B.")],
    json: AsJson = False,
) -> int:
    """Compare two runs case by case: differences (A - B) with intervals, McNemar, discordant cases first."""
    from .compare import compare_runs, comparison_lines

    found = compare_runs(a, b)
    return _print(found if json else comparison_lines(found), json)


@app.command("ls", epilog="Example: composcope ls runs")
def list_runs(
    folder: Annotated[Path, typer.Argument(help="Folder that holds runs.")] = Path("runs"), json: AsJson = False
) -> int:
    """List runs: model, benchmark, protocol, status, cases, headline."""
    from .listing import list_folder, listing_lines

    rows = list_folder(folder)
    return _print(rows if json else listing_lines(rows), json)


@app.command(epilog="Example: composcope doctor --json")
def doctor(json: AsJson = False) -> int:
    """Check this machine: versions, device, offline flags, disk, shipped organisms; say what to fix."""
    from .doctor import check_lines, examine

    found = examine()
    _print(found if json else check_lines(found), json)
    return exits.OK if all(c["ok"] for c in found if c["required"]) else exits.USER_ERROR


@app.command(epilog="Example: composcope merge runs/shard-1 runs/shard-2 --out runs/all")
def merge(
    runs: RunArgs,
    out: Annotated[Path, typer.Option("--out", "-o", help="New run folder.")],
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Merge runs of one model, benchmark and protocol (shards, machines) into a new one and score it."""
    from .merge import merge_runs
    from .progress import Reporter
    from .summary import lines

    found = merge_runs(runs, out, Reporter(quiet=quiet))
    _print(lines(out), json)
    return exits.INVALID_REMAINS if found.n_invalid else exits.OK


@app.command(epilog="Example: composcope demo --out runs/demo")
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Study folder.")] = Path("runs/demo"),
    seed: Seed = 0,
    device: Device = None,
    quiet: Quiet = False,
) -> int:
    """Investigate the shipped dose series of organisms and write one report; about three minutes on two cores."""
    _go_offline("organism:control")
    from .demo import run_demo

    for line in run_demo(out, seed=seed, device=device, quiet=quiet):
        print(line)
    return exits.OK


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    epilog="Example: composcope organism train --dose control --seed 0 --out organisms",
)
def organism(context: typer.Context) -> Any:
    """Train, list and check the shipped organisms (composcope organism --help)."""
    _go_offline("organism:control")
    from .organism.cli import app as organisms

    return organisms(context.args or ["--help"], prog_name="composcope organism", standalone_mode=False)


@app.command(
    add_help_option=False,
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    epilog="Example: composcope bench probes --quick",
)
def bench(context: typer.Context) -> Any:
    """Measure time, memory and exactness on this machine (composcope bench --help)."""
    from .bench.cli import app as benchmarks

    return benchmarks(context.args or ["--help"], prog_name="composcope bench", standalone_mode=False)


commands.register(app)


def _print(value: Any, as_json: bool) -> int:
    """Data to stdout: lines for people, or one JSON document."""
    if as_json:
        import json

        print(json.dumps(value, indent=1, ensure_ascii=False, default=str))
    else:
        for line in [value] if isinstance(value, str) else value:
            print(line)
    return exits.OK


if __name__ == "__main__":
    sys.exit(main())
