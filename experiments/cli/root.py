"""The command line. Each command imports what it needs when it runs, so that ``--help`` never waits for torch.

Data goes to stdout, progress and logs to stderr. Exit codes: 0 ok, 1 user error or nothing to compare, 2 invalid
results remain, 130 interrupted, 141 output not read to its end (see ``exits``).
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer
from typer import Option

from ...errors import InputError
from ...terminal import to_stderr
from ..config import FROM_FLAGS, RAY, Asking, Config, Probing, Serving
from ..console import exits
from ..console.printing import show
from . import build, interventions, start, studies
from . import runs as run_commands
from .flags import (
    AsJson,
    Command,
    Commands,
    ConfigFile,
    Device,
    DryRun,
    Out,
    Quiet,
    RunArg,
    Seed,
    example,
    go_offline,
    with_config,
    with_file,
    with_plugins,
)
from .organism import app as organism


class Root(Commands):
    """All commands, as ``composcope --help`` lists them."""

    groups: ClassVar = {
        "Ask": ("investigate", "evaluate", "score", "verify", "merge"),
        "Probe and diagnose": ("probe", "diagnose", "intervene"),
        "Look and compare": ("ls", "report", "view", "compare", "plot", "paper"),
        "Studies": ("study",),
        "Build data": ("build", "import"),
        "Organisms": ("demo", "organism"),
        "Set up": ("init", "docs", "doctor", "fetch", "bench"),
    }
    renamed: ClassVar = {
        "metrics": "score", "analyze": "study", "human-study": "study human", "intervene-study": "study interventions"
    }  # fmt: skip


app = typer.Typer(
    name="composcope",
    cls=Root,
    help="Find out where, and why, a language model fails to compose what it knows.",
    epilog="Start with: composcope demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich, which would frame the help, takes longer to load than everything else together
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def command(line: str) -> Any:
    """Register a command with a line to copy as its example."""
    return app.command(cls=Command, epilog=example(line))


def _command_line() -> str:
    from ..run import command_line

    return command_line()


def main(args: Sequence[str] | None = None) -> int:
    """Entry point of the ``composcope`` command: runs it and returns the exit code."""
    exits.quiet_libraries()
    return exits.run_app(app, args, _command_line)


def run_study(name: str) -> int:
    """Run one study as a script: ``python -m composcope.experiments.agentcoma --model M``."""
    return main(["study", name, *sys.argv[1:]])


def _version(show: bool) -> None:
    if show:
        from ... import __version__

        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
    debug: Annotated[
        bool, Option("--debug", help="Show the traceback of errors; can be anywhere in the command.")
    ] = False,
) -> None:
    """Find out where, and why, a language model fails to compose what it knows."""


def _done(found: Any, json: bool) -> int:
    """Print the result of a run, and return its exit code."""
    show(found.document() if json else found.summary(), json)
    if (closing := found.closing()) is not None:
        to_stderr(closing)
    return found.exit_code()


@command("investigate --model organism:control --benchmark organism:mixed --limit 40")
@with_plugins
@with_config(Config, Asking, Serving, Probing, leave_out=("rows_dtype",))
def investigate(
    given: dict[str, Any],
    config: ConfigFile = None,
    out: Out = None,
    diagnose: Annotated[
        bool | None,
        Option("--diagnose/--no-diagnose", help="Name each failure's cause (default: if it takes under two minutes)."),
    ] = None,
    dry_run: DryRun = False,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Evaluate, keep the failures where every part is right, probe them, and write the report: the main command."""
    return _run(with_file(config, given), out, dry_run, json, quiet, True, diagnose)


@command("evaluate --model organism:twin --benchmark organism:temporal --limit 20")
@with_plugins
@with_config(Config, Asking, Serving)
def evaluate(
    given: dict[str, Any],
    config: ConfigFile = None,
    out: Out = None,
    dry_run: DryRun = False,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Only ask, grade and count: writes metrics and case sets, and runs no probes."""
    return _run({**with_file(config, given), "probes": ()}, out, dry_run, json, quiet, False)


def _run(
    given: dict[str, Any], out: Path | None, dry_run: bool, json: bool, quiet: bool, contrast: bool,
    diagnose: bool | None = False,
) -> int:  # fmt: skip
    """Run the investigation, or with ``--dry-run`` only print its cost."""
    config = Config.model_validate(given, context=FROM_FLAGS)
    go_offline(config.model, config.asking.judge, config.serving.probe_model, data=[config.benchmark])
    from ..evaluating.ask_plan import load_benchmark

    # Read before the next import, which loads PyTorch: an error in a case file is said at once.
    benchmark = load_benchmark(config.benchmark, seed=config.seed, limit=config.limit)
    if dry_run:
        from ..evaluating.cost import plan_lines

        plan = plan_lines(config, benchmark)
        show({"schema": 1, "plan": plan} if json else plan, json)
        return exits.OK
    from .. import investigate as job

    found = job.investigate(config, out, quiet=quiet, contrast=contrast, diagnose=diagnose, benchmark=benchmark)
    return _done(found, json)


@command("probe runs/demo/control--mixed --probes lookback,min-k")
@with_plugins
@with_config(
    Config, Serving, Probing, defaults=False,
    only=("model", "device", "engine", "probe_model", *RAY, *Probing.model_fields),
)  # fmt: skip
def probe(
    run: RunArg,
    given: dict[str, Any],
    shard: Annotated[
        str | None, Option(help="i/n: measure only shard i of n; then run once without --shard to combine them.")
    ] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Run probes on the case sets of an evaluated run; all other options come from the run."""
    from ..run import find_runs
    from ..run.reader import RunData, read_config

    raw = read_config(run)
    find_runs([run])  # raises for a folder without a manifest, which would become a new run
    served = given.pop("serving", {})
    serving = Serving.read(raw.get("serving")).for_probing(served)
    config = Config.read(raw, **{"probes": "all", **given, "serving": serving})
    if "probe_model" in served and config.served is None and serving.engine == "transformers":
        raise InputError(
            f"--probe-model {served['probe_model']}: is for a run that a server answered; leave it out, or say with "
            "--model where the model is now"
        )
    go_offline(config.model, config.asking.judge, config.serving.probe_model)
    from .. import investigate as job

    if shard is not None:
        lines = job.probe_shard(config, run, shard, quiet=quiet)
        show({"schema": 1, "shard": shard, "probes": lines} if json else lines, json)
        return exits.OK
    own = job.own_benchmark(RunData(run), config)
    return _done(job.investigate(config, run, quiet=quiet, ask=False, report=None, benchmark=own), json)


@command("demo --out runs/demo")
def demo(
    out: Annotated[Path, Option("--out", "-o", help="Study folder.")] = Path("runs/demo"),
    seed: Seed = 0,
    device: Device = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Investigate the shipped dose series of organisms and write one report; about four minutes on two cores."""
    go_offline("organism:control")
    from ..demo import run_demo

    lines = run_demo(out, seed=seed, device=device, quiet=quiet)
    if json:
        from ..run import read_json

        show({**read_json(out / "study.json"), "report": out / "report.html"}, True)
    else:
        show(lines, False)


def _organisms_are_here() -> None:
    """Train, list and check the shipped organisms."""
    go_offline("organism:control")


app.add_typer(organism, name="organism", callback=_organisms_are_here)
for commands in (start, run_commands, interventions, studies, build):
    commands.register(app)
