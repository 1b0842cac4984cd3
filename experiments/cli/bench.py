"""``composcope bench``: measure the cost of asking, compared with plain generate and lm-evaluation-harness."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import InputError
from ...files import write_between
from ..console.printing import show
from .flags import AsJson, Quiet
from .help import Command, Commands, example

app = typer.Typer(cls=Commands, help="Measure what asking costs on this machine.", no_args_is_help=True)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    preset: Annotated[
        str | None, typer.Option(help="real: ask a real pretrained model, and compare with other tools.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="With --preset real: a chat model (default: the one of `make real`)."),
    ] = None,
    asks: Annotated[int, typer.Option(min=1, help="With --preset real: questions per task, at most 96.")] = 96,
    rounds: Annotated[
        int, typer.Option(min=1, help="With --preset real: paired rounds; ratios are medians of them.")
    ] = 5,
    threads: Annotated[int, typer.Option(min=1, help="With --preset real: threads of each tool.")] = 1,
    only: Annotated[
        str, typer.Option(help="With --preset real: run tasks whose names contain these words (comma-separated).")
    ] = "",
    lm_eval_python: Annotated[
        str | None, typer.Option(help="With --preset real: Python with lm-eval[hf]; without it, its rows are left out.")
    ] = None,
    docs: Annotated[
        Path | None, typer.Option(help="With --preset real: Markdown file whose table is replaced.")
    ] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Measure what asking costs on this machine."""
    if ctx.invoked_subcommand is not None:
        return 0
    if preset != "real":
        raise InputError(f"bench --preset {preset}: unknown; use real, or run composcope bench evaluation")
    from ..bench.real import BEGIN, END, bench_real
    from ..console.progress import Reporter

    reporter = Reporter(quiet=quiet)
    words = tuple(n.strip() for n in only.split(",") if n.strip())
    found = bench_real(
        model, asks=asks, rounds=rounds, threads=threads, only=words, lm_eval_python=lm_eval_python, say=reporter.say,
        progress=reporter.still_bar,
    )  # fmt: skip
    if docs is not None:
        write_between(docs, BEGIN, END, found.markdown())
    show(found.document() if json else found.text(), json)
    return 0


@app.command(cls=Command, epilog=example("bench evaluation --asks 64"))
def evaluation(
    model: Annotated[str, typer.Option("--model", "-m", help="A model folder, a hub id or organism:DOSE.")] = (
        "organism:control"
    ),
    benchmark: Annotated[str, typer.Option("--benchmark", "-b", help="Benchmark to ask.")] = "organism:mixed",
    asks: Annotated[int, typer.Option(min=1, help="Number of asks.")] = 512,
    batch_size: Annotated[int, typer.Option(min=1, help="Asks per batch for all tools.")] = 64,
    repeats: Annotated[int, typer.Option(min=1, help="Passes; the table shows medians.")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each tool.")] = 1,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ... (default: a GPU if there is one).")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    lm_eval_python: Annotated[
        str | None, typer.Option(help="Python with lm-eval[hf]; without it, that row is skipped.")
    ] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Compare asks per second with plain generate and lm-evaluation-harness; measure journal and grading costs."""
    from ..bench.evaluation import bench_evaluation
    from ..console.progress import Reporter

    reporter = Reporter(quiet=quiet)
    found = bench_evaluation(
        model, benchmark, asks=asks, batch_size=batch_size, repeats=repeats, threads=threads, device=device,
        dtype=dtype, lm_eval_python=lm_eval_python, say=reporter.say, progress=reporter.still_bar,
    )  # fmt: skip
    show(found.document() if json else found.text(), json)
    return 0
