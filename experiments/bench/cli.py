"""``composcope bench``: what things cost here, against naive and published ways of computing the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...errors import InputError
from ..help import Commands, example
from ..printing import show

app = typer.Typer(cls=Commands, help="Measure time, memory and exactness on this machine.", no_args_is_help=True)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    preset: Annotated[
        str | None, typer.Option(help="real: the work on a real pretrained model, against its peers.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="For real: a chat model; by default the one of make real.")
    ] = None,
    asks: Annotated[int, typer.Option(min=1, help="For real: questions of each task, at most 96.")] = 96,
    rounds: Annotated[int, typer.Option(min=1, help="For real: paired rounds; ratios are their median.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="For real: threads of every way.")] = 1,
    only: Annotated[str, typer.Option(help="For real: comma-separated words of the tasks' names.")] = "",
    lm_eval_python: Annotated[
        str | None, typer.Option(help="For real: interpreter with lm-eval[hf]; without one its rows are left out.")
    ] = None,
    docs: Annotated[Path | None, typer.Option(help="For real: Markdown file whose table to replace.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")] = False,
) -> int:
    """Measure time, memory and exactness on this machine."""
    if ctx.invoked_subcommand is not None:
        return 0
    if preset != "real":
        raise InputError(f"bench --preset {preset}: use real, or one of the commands probes, evaluation and scale")
    from .real import bench_real

    words = tuple(n.strip() for n in only.split(",") if n.strip())
    found = bench_real(model, asks=asks, rounds=rounds, threads=threads, only=words, lm_eval_python=lm_eval_python)
    if docs is not None:
        found.write_docs(docs)
    show(found.document() if json else found.text(), json)
    return 0


@app.command(epilog=example("bench probes --quick"))
def probes(
    preset: Annotated[str, typer.Option(help="quick, llama12 (12 layers, d=768) or gpu (Llama-3-8B shape).")] = "quick",
    quick: Annotated[bool, typer.Option("--quick", help="The same as --preset quick: small model, seconds.")] = False,
    only: Annotated[str, typer.Option(help="Comma-separated benchmark names; all of the preset by default.")] = "",
    repeats: Annotated[int, typer.Option(min=1, help="Paired runs; the ratio is their median.")] = 5,
    memory: Annotated[
        bool | None,
        typer.Option(
            "--memory/--no-memory", help="Peak memory, each way in a process of its own; by default not for quick."
        ),
    ] = None,
    cost: Annotated[bool, typer.Option(help="Also draw cost against prompt length, layers and batch.")] = True,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for bench.json, csv, md and png.")] = None,
    docs: Annotated[Path | None, typer.Option(help="Markdown file whose probes section to replace.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")] = False,
) -> int:
    """Time ratio, absolute error and peak memory of the probes against naive and published algorithms."""
    from .probes import bench_probes

    names = tuple(n.strip() for n in only.split(",") if n.strip())
    chosen = "quick" if quick else preset
    measured = chosen != "quick" if memory is None else memory
    found = bench_probes(chosen, names, repeats=repeats, memory=measured, cost=cost, out=out)
    if docs is not None:
        found.write_docs(docs)
    print(found.to_json() if json else found.to_text())
    return 0


@app.command(epilog=example("bench evaluation --asks 64"))
def evaluation(
    model: Annotated[str, typer.Option("--model", "-m", help="A model folder, a hub id or organism:DOSE.")] = (
        "organism:control"
    ),
    benchmark: Annotated[str, typer.Option("--benchmark", "-b", help="Whose asks are put.")] = "organism:mixed",
    asks: Annotated[int, typer.Option(min=1, help="How many of them.")] = 512,
    batch_size: Annotated[int, typer.Option(min=1, help="Asks per batch where all have the same.")] = 64,
    repeats: Annotated[int, typer.Option(min=1, help="Passes; the table has their medians.")] = 3,
    threads: Annotated[int, typer.Option(min=1, help="Threads of every way.")] = 1,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...; a GPU when there is one by default.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16 or float16.")] = None,
    lm_eval_python: Annotated[
        str | None, typer.Option(help="Interpreter with lm-eval[hf]; without one that row is skipped.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")] = False,
) -> int:
    """Asks per second against plain generate and lm-evaluation-harness; cost of journal and grading."""
    from .evaluation import bench_evaluation

    found = bench_evaluation(
        model, benchmark, asks=asks, batch_size=batch_size, repeats=repeats, threads=threads, device=device,
        dtype=dtype, lm_eval_python=lm_eval_python,
    )  # fmt: skip
    print(found.to_json() if json else "\n".join(found.lines()))
    return 0


@app.command(epilog=example("bench scale --prompt 1000 --asks 50000"))
def scale(
    prompt: Annotated[int | None, typer.Option(min=1, help="Tokens of a prompt.")] = None,
    response: Annotated[int | None, typer.Option(min=1, help="Tokens of an answer.")] = None,
    asks: Annotated[int | None, typer.Option(min=1, help="Asks of the evaluation.")] = None,
    examples: Annotated[int | None, typer.Option(min=1, help="Prompts that the probes run on.")] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Instead time one item of each step here, on a random 12-layer Llama.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")] = False,
) -> int:
    """What studies of 8B and 70B models cost on 1, 8 and 64 GPUs, by arithmetic (docs/scale.md)."""
    from .scale import lines, load_of
    from .scale_studies import study_lines

    if measure:
        from .scale_measured import measured_lines

        found = measured_lines()
    else:
        found = [*lines(load_of(prompt=prompt, response=response, asks=asks, examples=examples)), "", *study_lines()]
    show({"schema": 1, "lines": list(found)} if json else found, json)
    return 0
