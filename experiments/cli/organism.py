"""``composcope organism``: train organisms, measure them, write their benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...errors import InputError
from ..console.printing import show
from ..organism.weights import DOSES
from .flags import AsJson, Quiet
from .help import Command, Commands, example
from .plants import plant

if TYPE_CHECKING:
    from ..organism.train import OrganismRecipe

app = typer.Typer(
    cls=Commands,
    help="The organisms that composcope ships: small models that know the parts and fail the whole.",
    no_args_is_help=True,
)
app.command(cls=Command, epilog=example("organism plant --cause lost --block 2 --seed 5 --out plants/lost"))(plant)


def _recipe(steps: int | None, dose_steps: int | None) -> OrganismRecipe:
    from dataclasses import replace

    from ..organism.train import OrganismRecipe

    recipe = OrganismRecipe()
    base = replace(recipe.base, steps=steps) if steps is not None else recipe.base
    dose = replace(recipe.dose, steps=dose_steps) if dose_steps is not None else recipe.dose
    return replace(recipe, base=base, dose=dose)


@app.command(cls=Command, epilog=example("organism train --dose control --seed 0 --out organisms"))
def train(
    out: Annotated[Path, typer.Option(help="Folder for checkpoints and models; the same command continues it.")],
    dose: Annotated[str | None, typer.Option(help=f"One of {', '.join(DOSES)}.")] = None,
    all_doses: Annotated[bool, typer.Option("--all", help="All four doses from one shared base.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of weights and documents.")] = 0,
    device: Annotated[str | None, typer.Option(help="Default: cuda if there is one, else cpu.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Steps of the shared base (default: the recipe's).")] = None,
    dose_steps: Annotated[int | None, typer.Option(min=1, help="Steps of each dose (default: the recipe's).")] = None,
    json: AsJson = False,
) -> None:
    """Train organisms from scratch: a shared base, then one dose or all."""
    if all_doses == (dose is not None):
        raise InputError("organism train: give either --dose or --all")
    import torch
    from rich.console import Console
    from rich.progress import Progress

    from ..organism.train import best_device
    from ..organism.train import train as train_dose

    if (device or best_device()) == "cpu":
        torch.set_num_threads(1)  # a model this small is slower on several threads, and one thread is deterministic
    made = []
    with Progress(console=Console(stderr=True)) as bar:
        tasks = {}

        def step_done(stage: str, step: int, total: int, loss: float) -> None:
            task = tasks.setdefault(stage, bar.add_task(stage, total=total))
            bar.update(task, completed=step, description=f"{stage} (loss {loss:.3f})")

        for name in DOSES if all_doses else (dose or "",):
            made.append(str(train_dose(name, seed, out, _recipe(steps, dose_steps), device, step_done)))
            if not json:
                typer.echo(made[-1])
    if json:
        show({"schema": 1, "models": made}, True)


@app.command(cls=Command, epilog=example("organism measure organisms/seed-0/control/model --n 20"))
def measure(
    models: Annotated[list[Path], typer.Argument(help="Model folders (default: the shipped doses).")] = [],  # noqa: B006
    n: Annotated[
        int, typer.Option(min=1, help="Cases per cell of the temporal families; mixed cases are four times as many.")
    ] = 100,
    out: Annotated[Path | None, typer.Option(help="Also write the rows as JSON here.")] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure what models know and where they fail, by greedy generation on held-out cases."""
    from json import dumps

    import torch

    from ..console.progress import Reporter
    from ..organism import weights
    from ..organism.card import measure_folder, print_rows

    torch.set_num_threads(1)
    report = {}
    folders = models or [weights.path(d) for d in DOSES]
    with Reporter(quiet=quiet).patient_bar("measuring models", len(folders)) as advance:
        for folder in folders:
            rows = measure_folder(folder, n)
            advance(1)
            if not json:
                print_rows(str(folder), rows)
            report[str(folder)] = [row.to_dict() for row in rows]
    if out:
        out.write_text(dumps(report, indent=1) + "\n", encoding="utf-8")
    if json:
        show({"schema": 1, "models": report}, True)


@app.command(cls=Command, epilog=example("organism card organisms --out weights"))
def card(
    trained: Annotated[Path, typer.Argument(help="Folder that `organism train` wrote (its seed-N folders).")],
    out: Annotated[Path, typer.Option(help="Folder for the models and the card.")],
    seed: Annotated[int, typer.Option(min=0, help="The seed whose models are shipped.")] = 0,
    n: Annotated[int, typer.Option(min=1, help="Cases per cell of the temporal families.")] = 100,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure trained organisms of all seeds, and write one seed's models with the card."""
    import torch

    from ..console.progress import Reporter
    from ..organism.card import ship

    homes = {int(p.name.removeprefix("seed-")): p for p in sorted(trained.glob("seed-*"))}
    missing = [d for d in DOSES if not (trained / f"seed-{seed}" / d / "model").is_dir()]
    if missing:
        raise InputError(
            f"{trained}/seed-{seed}: no model of {', '.join(missing)}; run organism train --all --seed {seed}"
        )
    torch.set_num_threads(1)
    ship(homes, DOSES, seed, out, n, Reporter(quiet=quiet).patient_bar)
    show({"schema": 1, "card": out / "CARD.md"} if json else str(out / "CARD.md"), json)


@app.command(cls=Command, epilog=example("organism generate mixed --n 40 --out mixed.jsonl"))
def generate(
    benchmark: Annotated[str, typer.Argument(help="temporal, mixed, pairs, ladders, choices or unknowable.")],
    out: Annotated[Path, typer.Option(help="File to write (JSON lines).")],
    n: Annotated[int, typer.Option(min=1, help="Number of cases (temporal: per family and depth).")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the cases.")] = 0,
    json: AsJson = False,
) -> None:
    """Write held-out cases about the organisms' world as a benchmark file."""
    from ...evaluation.cases import write_cases
    from ..organism.benchmarks import BENCHMARKS

    if benchmark not in BENCHMARKS:
        raise InputError(f"benchmark {benchmark!r}: unknown; use one of {', '.join(BENCHMARKS)}")
    if n < 1:
        raise InputError(f"--n {n}: give a whole number of at least 1")
    cases = BENCHMARKS[benchmark](n, seed)
    write_cases(cases, out)
    show({"schema": 1, "cases": len(cases), "file": out} if json else f"{len(cases)} cases: {out}", json)
