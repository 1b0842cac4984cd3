"""Commands around the main job: make benchmarks, import results, analyze runs. Registered by ``cli``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import build_cli, exits
from .printing import show

AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to the command line."""
    app.command(
        "import", epilog="Example: composcope import results/text-davinci-003.json --out runs/imported/graded.jsonl"
    )(import_)
    app.add_typer(build_cli.app, name="build")


def import_(
    files: Annotated[list[Path], typer.Argument(help="Result files of one kind each.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="graded.jsonl to write.")] = Path("graded.jsonl"),
    kind: Annotated[
        str | None, typer.Option("--from", help="lm-eval, inspect, bamboogle or stad; found out by default.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Name of the model, where the file does not say it.")] = None,
    scorer: Annotated[str | None, typer.Option(help="Which stored verdict counts, where there are several.")] = None,
    filter: Annotated[str | None, typer.Option(help="lm-eval: which extracted answer counts.")] = None,
    whole: Annotated[str | None, typer.Option(help="bamboogle: the prompt style that becomes the whole.")] = None,
    role: Annotated[str | None, typer.Option(help="Role of every row: whole, part:0, ...")] = None,
    case_field: Annotated[str | None, typer.Option(help="Field of the document that holds the case's id.")] = None,
    role_field: Annotated[str | None, typer.Option(help="Field of the document that holds the role.")] = None,
    json: AsJson = False,
) -> int:
    """Turn lm-evaluation-harness samples, inspect_ai logs, Bamboogle or STaD results into graded.jsonl."""
    from ..evaluation.importers import Options
    from .importing import import_files

    options = Options(model, scorer, filter, whole, role, case_field, role_field)
    found = import_files(files, out, kind, options)
    show(found.to_dict() if json else found.lines(), json)
    return exits.INVALID_REMAINS if found.n_invalid else exits.OK
