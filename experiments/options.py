"""The options that several commands share, with the help text of each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[
    str, typer.Option("--model", "-m", help="organism:none|control|low|twin, a model folder, a hub id, or MODEL@URL.")
]
BenchmarkName = Annotated[
    str,
    typer.Option("--benchmark", "-b", help="world, organism:temporal, organism:mixed, organism:pairs or a case file."),
]
ProtocolName = Annotated[
    str | None, typer.Option("--protocol", "-p", help="How to ask and count; the benchmark's own by default.")
]
FormatName = Annotated[str | None, typer.Option("--format", help="Prompt format: plain, xml, xml-answer, cot, ...")]
Prompting = Annotated[str | None, typer.Option(help="chat or raw; chat where the tokenizer has a template.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first N cases of each family x depth, in file order.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; runs/MODEL--BENCHMARK by default.")]
MaxAsks = Annotated[int | None, typer.Option(min=1, help="Stop after this many new asks; the same command continues.")]
BatchSize = Annotated[
    int | None, typer.Option(min=1, help="Asks per batch; chosen from the memory at hand by default.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice.")]
Dtype = Annotated[str | None, typer.Option(help="float32, bfloat16 or float16; float32 on a CPU by default.")]
Device = Annotated[
    str | None, typer.Option(help="cpu, cuda, cuda:1, ..., auto (over all GPUs); a GPU when there is one by default.")
]
PadToken = Annotated[
    str | None, typer.Option(help="Pads batches where the tokenizer names no pad token, for example its EOS token.")
]
Probes = Annotated[
    str, typer.Option(help="Comma-separated: neurons, lookback, patching, trajectory, min-k; or all, none.")
]
ProbeCases = Annotated[int, typer.Option(min=1, help="Cases per group that the probes run on.")]
Position = Annotated[
    str | None,
    typer.Option(help="Where neurons, patching and trajectory read: answer-slot (the default) or prompt-end."),
]
CaseDetails = Annotated[
    int, typer.Option(min=0, help="Cases per group whose own tokens, maps and sweeps are kept for the report; 0: none.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say how many asks, tokens and forwards it takes; do nothing.")]
Shard = Annotated[str | None, typer.Option(help="i/n: only the i-th of n parts, for job arrays; see merge.")]
Reuse = Annotated[
    bool, typer.Option("--reuse", help="Continue with answers made under other versions, dtype or device.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Machine-readable output on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress on stderr; the log file still has it.")]
RunArg = Annotated[Path, typer.Argument(help="A run folder.")]
RunArgs = Annotated[list[Path], typer.Argument(help="Run folders, or folders that hold several.")]
Compat = Annotated[str | None, typer.Option(help="Grade and count as a paper does: agentcoma, stad or collapse.")]
