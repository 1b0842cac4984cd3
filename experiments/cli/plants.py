"""``composcope organism plant``: train a model that fails whole questions for one known reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from ...errors import InputError
from ..console.printing import show
from ..organism.plants import recipes
from ..organism.weights import LISTERS, WRITERS
from .flags import AsJson

_CAUSES = (
    f"One of {', '.join(recipes.CAUSES)}; give it twice for a mixture. {' or '.join(WRITERS)}: a model that writes "
    f"its working, and reads its answer from it or does not. {' or '.join(LISTERS)}: a model whose lists are wrong in "
    "this way."
)


def plant(
    out: Annotated[Path | None, typer.Option(help="Folder of the model (with --shipped: a folder for each).")] = None,
    cause: Annotated[list[str], typer.Option(help=_CAUSES)] = [],  # noqa: B006
    variant: Annotated[list[str], typer.Option(help="Variant of the cause (one for each --cause).")] = [],  # noqa: B006
    block: Annotated[list[int], typer.Option(help="Block to train (one for each --cause).")] = [],  # noqa: B006
    base: Annotated[str, typer.Option(help="Organism to start from.")] = "twin",
    appended: Annotated[int, typer.Option(min=0, help="Blocks without effect, added after the base's own.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the training texts.")] = 0,
    steps: Annotated[int, typer.Option(min=1, help="Training steps for each cause.")] = 800,
    n: Annotated[int, typer.Option(min=8, help="Cases for the check.")] = 200,
    shipped: Annotated[bool, typer.Option("--shipped", help="Make all shipped plants again.")] = False,
    list_causes: Annotated[bool, typer.Option("--list", help="Show causes, variants and blocks.")] = False,
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
    import torch

    torch.set_num_threads(1)  # a model this small is slower on several threads, and one thread is deterministic
    if cause and cause[0] in (*WRITERS, *LISTERS):
        if cause[1:] or variant or block or appended or base != "twin":
            raise InputError(
                f"--cause {cause[0]}: only --seed, --n and --out go with this cause; leave the other options out"
            )
        row = _make_by_text(cause[0], out, seed, n, json)
        if json:
            show({"schema": 1, "plants": [row]}, True)
        return
    plants = {out / p.name: p for p in recipes.SHIPPED.values()} if shipped else {}
    if not shipped:
        plants = {out: recipes.Plant(out.name, _grafts(cause, variant, block), seed, steps, base, appended)}
    made = [_make(p, folder, n, json) for folder, p in plants.items()]
    if json:
        show({"schema": 1, "plants": made}, True)


def _grafts(causes: list[str], variants: list[str], blocks: list[int]) -> tuple[recipes.Graft, ...]:
    if len(causes) not in (1, 2):
        raise InputError("organism plant: give --cause once, or twice for a mixture")
    for option, given in (("--variant", variants), ("--block", blocks)):
        if given and len(given) != len(causes):
            raise InputError(f"organism plant: give {option} once for each --cause, or not at all")
    none = [None] * len(causes)
    grafts = [recipes.graft(c, v, b) for c, v, b in zip(causes, variants or none, blocks or none, strict=True)]
    return (grafts[0],) if len(grafts) == 1 else recipes.mixture(grafts[0], grafts[1])


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
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console) as bar:
        tasks = {}

        def step_done(label: str, step: int, total: int, loss: float) -> None:
            task = tasks.setdefault(label, bar.add_task(label, total=total))
            bar.update(task, completed=step, description=f"{label} (loss {loss:.3f})")

        yield step_done, console.print


def _told(folder: Path, name: str, found: Sequence[Any], json: bool) -> dict[str, object]:
    from ..organism.plants import making

    if not json:
        typer.echo(folder)
        for finding in found:
            typer.echo(f"  {making.line(finding)}")
    return {"model": folder, "plant": name, "checks": [f.to_dict() for f in found]}


def _known(json: bool) -> object:
    rows = [
        {"cause": name, "variants": ", ".join(c.variants), "blocks": ", ".join(map(str, (c.block, *c.may))),
         "meaning": c.meaning}
        for name, c in recipes.CAUSES.items()
    ]  # fmt: skip
    shipped = (*recipes.SHIPPED, *LISTERS, *WRITERS)
    if json:
        return {"schema": 1, "causes": rows, "shipped": [f"organism:plant-{name}" for name in shipped]}
    lines = [line for r in rows for line in (
        f"{r['cause']}: {r['meaning']}", f"    --variant {r['variants']}   --block {r['blocks']}")]  # fmt: skip
    return [*lines, "", "Shipped:", *(f"    organism:plant-{name}" for name in shipped)]
