"""``composcope diagnose``: name the cause of each failure of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from ..console import exits
from ..console.printing import show
from .flags import AsJson, Quiet, RunArg, Seed, with_plugins
from .help import Command, example


def register(app: typer.Typer) -> None:
    """Add ``diagnose`` to the command line."""
    app.command(cls=Command, epilog=example("diagnose runs/demo/control--mixed --cases 10"))(diagnose)


@with_plugins
def diagnose(
    run: RunArg,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Where the weights are (default: as in the run).")
    ] = None,
    cases: Annotated[
        int | None, typer.Option(min=1, help="Diagnose this many failures, from each family in turn (default: all).")
    ] = None,
    case: Annotated[list[str] | None, typer.Option(help="Diagnose this case; repeatable.")] = None,
    seed: Seed = 0,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Name the cause of each failure with every part right and the whole wrong; writes RUN/diagnosis."""
    from ..diagnosis.job import diagnose as job

    found = job(run, model, cases=cases, ids=case or (), seed=seed, quiet=quiet)
    show({**found.document(), "cases": [v.row() for v in found.verdicts]} if json else found.lines(), json)
    return exits.OK
