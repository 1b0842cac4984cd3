"""The options that several commands share, with the help text of each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Run folder (default: runs/MODEL--BENCHMARK).")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print the number of asks, tokens and forward passes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr; the log file still has it.")]
RunArg = Annotated[Path, typer.Argument(help="A run folder.")]
RunArgs = Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold several.")]
Compat = Annotated[str | None, typer.Option(help="Grade and count as in a paper: agentcoma, stad or collapse.")]
