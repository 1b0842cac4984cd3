"""``composcope organism``: train organisms, measure them, plant causes of failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ...errors import InputError, did_you_mean
from ...files import write_text
from ..console.printing import Reporter, show
from ..organism.plants import recipes
from ..organism.weights import CROSSED, DOSES, LISTERS, WRITERS, names
from .flags import AsJson, Command, Commands, Quiet, example

if TYPE_CHECKING:
    from ..organism.recipe import OrganismRecipe

app = typer.Typer(
    cls=Commands,
    help="The organisms that composcope ships: small models that know the parts and fail the whole.",
    no_args_is_help=True,
)


def _recipe(name: str, architecture: str, size: str, steps: int | None, dose_steps: int | None) -> OrganismRecipe:
    from dataclasses import replace

    from ..organism.recipe import recipe_of

    recipe = recipe_of(name, size, architecture)
    base = replace(recipe.base, steps=steps) if steps is not None else recipe.base
    dose = replace(recipe.dose, steps=dose_steps) if dose_steps is not None else recipe.dose
    return replace(recipe, base=base, dose=dose)


@app.command("list", cls=Command, epilog=example("organism list"))
def list_names(json: AsJson = False) -> None:
    """List the shipped organisms by the names that --model takes."""
    found = [f"organism:{name}" for name in names()]
    show({"schema": 1, "organisms": found} if json else found, json)


@app.command(cls=Command, epilog=example("organism train --dose control --seed 0 --out organisms"))
def train(
    out: Annotated[Path, Option(help="Folder for checkpoints and models; the same command continues it.")],
    dose: Annotated[str | None, Option(help=f"One of {', '.join((*DOSES, *CROSSED))}.")] = None,
    all_doses: Annotated[bool, Option("--all", help="All four doses from one shared base.")] = False,
    crossed: Annotated[bool, Option("--crossed", help="With --all: the second series.")] = False,
    architecture: Annotated[str, Option(help="llama, gpt2 or qwen3.")] = "llama",
    size: Annotated[str, Option(help="About how many parameters: 1M, or on a GPU 8M or 30M.")] = "1M",
    seed: Annotated[int, Option(min=0, help="Seed of weights and documents.")] = 0,
    device: Annotated[str | None, Option(help="Default: cuda if there is one, else cpu.")] = None,
    steps: Annotated[int | None, Option(min=1, help="Steps of the shared base (default: the recipe's).")] = None,
    dose_steps: Annotated[int | None, Option(min=1, help="Steps of each dose (default: the recipe's).")] = None,
    json: AsJson = False,
) -> None:
    """Train organisms from scratch: a shared base, then one dose or all."""
    if all_doses == (dose is not None):
        raise InputError("organism train: give either --dose or --all")
    if crossed and not all_doses:
        raise InputError("organism train: --crossed goes with --all; --dose names a dose of either series")
    import torch

    from ...devices import available
    from ..organism.train import train as train_dose

    if available(device).type == "cpu":
        torch.set_num_threads(1)  # a model this small is slower on several threads, and one thread is deterministic
    made = []
    with _progress() as (step_done, _):
        for name in (CROSSED if crossed else DOSES) if all_doses else (dose or "",):
            recipe = _recipe(name, architecture, size, steps, dose_steps)
            made.append(str(train_dose(name, seed, out, recipe, device, step_done)))
            if not json:
                typer.echo(made[-1])
    if json:
        show({"schema": 1, "models": made}, True)


@app.command(cls=Command, epilog=example("organism measure organisms/seed-0/control/model --n 20"))
def measure(
    models: Annotated[list[Path], Argument(help="Model folders (default: the shipped doses).")] = [],  # noqa: B006
    n: Annotated[
        int, Option(min=1, help="Cases per cell of the temporal families; mixed cases are four times as many.")
    ] = 100,
    device: Annotated[str, Option(help="For example cuda.")] = "cpu",
    out: Annotated[Path | None, Option(help="Also write the rows as JSON here.")] = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure what models know and where they fail, by greedy generation on held-out cases."""
    from json import dumps

    import torch

    from ..models.resolve import resolve_model
    from ..organism import weights
    from ..organism.card import measure_folder, print_rows

    torch.set_num_threads(1)
    report = {}
    folders = models or [weights.path(d) for d in DOSES]
    with Reporter(quiet=quiet).bar("measuring models", len(folders)) as advance:
        for folder in folders:
            rows = measure_folder(Path(resolve_model(str(folder)).location), n, device)
            advance(1)
            if not json:
                print_rows(str(folder), rows)
            report[str(folder)] = [row.to_dict() for row in rows]
    if out:
        write_text(out, dumps(report, indent=1) + "\n")
    if json:
        show({"schema": 1, "models": report}, True)


@app.command(cls=Command, epilog=example("organism card organisms --out weights"))
def card(
    trained: Annotated[Path, Argument(help="Folder that `organism train` wrote (its seed-N folders).")],
    out: Annotated[Path, Option(help="Folder for the models and the card.")],
    seed: Annotated[int, Option(min=0, help="The seed whose models are shipped.")] = 0,
    crossed: Annotated[bool, Option("--crossed", help="The second series.")] = False,
    n: Annotated[int, Option(min=1, help="Cases per cell of the temporal families.")] = 100,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure trained organisms of all seeds, and write one seed's models with the card."""
    import torch

    from ..organism.card import ship

    doses = CROSSED if crossed else DOSES
    numbered = ((p.name.removeprefix("seed-"), p) for p in sorted(trained.glob("seed-*")))
    homes = {int(number): p for number, p in numbered if number.isdecimal()}
    there = [d for d in doses if (trained / f"seed-{seed}" / d / "model").is_dir()]
    if not there:
        raise InputError(
            f"{trained}/seed-{seed}: no model of {', '.join(doses)}; "
            f"run organism train --all {'--crossed ' * crossed}--seed {seed}"
        )
    reporter = Reporter(quiet=quiet)
    if left_out := [d for d in doses if d not in there]:
        reporter.say(f"{trained}/seed-{seed}: no model of {', '.join(left_out)}; the card has the others")
    torch.set_num_threads(1)
    ship(homes, there, seed, out, n, reporter.bar)
    show({"schema": 1, "card": out / "CARD.md"} if json else str(out / "CARD.md"), json)


_BY_TEXT = {
    " or ".join(WRITERS): "a model that writes its working, and reads its answer from it or does not",
    " or ".join(LISTERS): "a model that lists events from latest to earliest, or without the latest one",
}
"""What is planted by training on altered documents, in all blocks."""
_CAUSES = f"One of {', '.join(recipes.CAUSES)}; give it twice for a mixture. " + " ".join(
    f"{names}: {meaning}." for names, meaning in _BY_TEXT.items()
)


@app.command(cls=Command, epilog=example("organism plant --cause lost --block 2 --seed 5 --out plants/lost"))
def plant(
    out: Annotated[Path | None, Option(help="Folder of the model (with --shipped: a folder for each).")] = None,
    cause: Annotated[list[str], Option(help=_CAUSES)] = [],  # noqa: B006
    variant: Annotated[list[str], Option(help="Variant of the cause (one for each --cause).")] = [],  # noqa: B006
    block: Annotated[list[int], Option(help="Block to train (one for each --cause).")] = [],  # noqa: B006
    base: Annotated[str, Option(help=f"Organism to start from: {', '.join(recipes.SELECTS)}.")] = "twin",
    appended: Annotated[int, Option(min=0, help="Blocks without effect, added after the base's own.")] = 0,
    seed: Annotated[int, Option(min=0, help="Seed of the training texts.")] = 0,
    steps: Annotated[int | None, Option(min=1, help="Training steps for each cause; else its own.")] = None,
    n: Annotated[int, Option(min=8, help="Cases for the check.")] = 200,
    shipped: Annotated[bool, Option("--shipped", help="Make all shipped plants again.")] = False,
    list_causes: Annotated[bool, Option("--list", help="Show causes, variants and blocks.")] = False,
    json: AsJson = False,
) -> None:
    """Plant a cause of failure in an organism, check it, and write the model; about a minute per model."""
    if list_causes:
        show(_known(json), json)
        return
    if out is None:
        raise InputError("organism plant: give --out DIR, or --list")
    if shipped and cause:
        raise InputError("organism plant: give either --shipped or --cause")
    if shipped and (variant or block or appended or base != "twin" or seed or steps is not None):
        raise InputError("organism plant: only --n and --out go with --shipped; leave the other options out")
    import torch

    torch.set_num_threads(1)  # a model this small is slower on several threads, and one thread is deterministic
    known = (*recipes.CAUSES, *WRITERS, *LISTERS)
    if unknown := [c for c in cause if c not in known]:
        raise InputError(
            f"--cause {unknown[0]}: unknown; use one of {', '.join(known)}{did_you_mean(unknown[0], known)}"
        )
    if by_text := [c for c in cause if c in (*WRITERS, *LISTERS)]:
        if cause[1:] or variant or block or appended or base != "twin" or steps is not None:
            raise InputError(
                f"--cause {by_text[0]}: only --seed, --n and --out go with this cause; leave the other options out"
            )
        row = _make_by_text(by_text[0], out, seed, n, json)
        if json:
            show({"schema": 1, "plants": [row]}, True)
        return
    plants = {out / p.name: p for p in recipes.SHIPPED.values()} if shipped else {}
    if not shipped:
        grafts = _grafts(cause, variant, block, base)
        appended = max(appended, int(grafts[-1].cause == "too-late"))  # the item is selected in an appended block
        plants = {out: recipes.Plant(out.name, grafts, seed, steps or recipes.steps_of(grafts, base), base, appended)}
    made = [_make(p, folder, n, json) for folder, p in plants.items()]
    if json:
        show({"schema": 1, "plants": made}, True)


def _grafts(causes: list[str], variants: list[str], blocks: list[int], base: str) -> tuple[recipes.Graft, ...]:
    if len(causes) not in (1, 2):
        raise InputError("organism plant: give --cause once, or twice for a mixture")
    for option, given in (("--variant", variants), ("--block", blocks)):
        if given and len(given) != len(causes):
            raise InputError(f"organism plant: give {option} once for each --cause, or not at all")
    none = [None] * len(causes)
    grafts = [recipes.graft(c, v, b, base) for c, v, b in zip(causes, variants or none, blocks or none, strict=True)]
    if len(grafts) == 2:
        return recipes.mixture(grafts[0], grafts[1])
    return recipes.late(grafts[0]) if grafts[0].cause == "too-late" else (grafts[0],)


def _make(plant: recipes.Plant, folder: Path, n: int, json: bool) -> dict[str, object]:
    from ..organism.plants import making

    with _progress() as (step_done, say):
        found = making.make(plant, folder, n, step_done, say)
    return _told(folder, plant.name, found, json)


def _make_by_text(kind: str, folder: Path, seed: int, n: int, json: bool) -> dict[str, object]:
    from ..organism.plants import lists, written

    with _progress() as (step_done, _):
        one: Any = kind
        ship: Any = lists.ship if kind in LISTERS else written.ship
        found = ship(one, folder, seed, n, lambda step, total, loss: step_done(kind, step, total, loss))
    return _told(folder, kind, found, json)


@contextmanager
def _progress() -> Iterator[tuple[Any, Any]]:
    """A progress bar for each training, and a function that prints a line next to it."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console) as bar:
        tasks = {}

        def say(line: str) -> None:
            console.print(line, markup=False, highlight=False)

        def step_done(label: str, step: int, total: int, loss: float) -> None:
            if label not in tasks:
                tasks[label] = bar.add_task(escape(label), total=total)
            bar.update(tasks[label], completed=step, description=f"{escape(label)} (loss {loss:.3f})")

        yield step_done, say


def _told(folder: Path, name: str, found: Sequence[Any], json: bool) -> dict[str, object]:
    from ..organism.plants import making

    if not json:
        typer.echo(folder)
        for finding in found:
            typer.echo(f"  {making.line(finding)}")
    # nothing was counted again for a plant that was there
    checks = [f.to_dict() for f in found] or making.about(folder).get("checks", [])
    return {"model": folder, "plant": name, "checks": checks}


def _known(json: bool) -> object:
    rows = [
        {"cause": name, "variants": ", ".join(c.variants), "blocks": ", ".join(map(str, recipes.blocks_of(name))),
         "meaning": c.meaning}
        for name, c in recipes.CAUSES.items()
    ]  # fmt: skip
    shipped = (*recipes.SHIPPED, *LISTERS, *WRITERS)
    if json:
        return {
            "schema": 1,
            "causes": rows,
            "by_text": [{"cause": names, "meaning": meaning} for names, meaning in _BY_TEXT.items()],
            "bases": recipes.SELECTS,
            "shipped": [f"organism:plant-{name}" for name in shipped],
        }
    lines = [line for r in rows for line in (
        f"{r['cause']}: {r['meaning']}", f"    --variant {r['variants']}   --block {r['blocks']}")]  # fmt: skip
    bases = [f"    --base {name}: block {block} selects the items" for name, block in recipes.SELECTS.items()]
    return [
        *lines,
        *(f"{names}: {meaning}" for names, meaning in _BY_TEXT.items()),
        "",
        "Bases (other blocks than twin's where another one selects):",
        *bases,
        "",
        "Shipped:",
        *(f"    organism:plant-{name}" for name in shipped),
    ]
