"""Several trainings of all doses in one folder: plans them, runs them, and continues where they stopped.

The doses of a seed branch from one base, so the seed is a block. The shipped seed is left out, since it was chosen.
"""

import json
from collections.abc import Callable
from itertools import count, islice
from pathlib import Path

from ...devices import available
from ...terminal import how_many
from .recipe import OrganismRecipe, Stage
from .train import Progress, train
from .weights import DOSES
from .weights import path as shipped_path

RECIPE = OrganismRecipe(base=Stage(1400, 4e-3, 0.3, 0.25), dose=Stage(560, 3e-3, 0.7, prompt_weight=0.05))
"""The recipe for studies of many trainings: a seed with all doses takes about 24 minutes of a core (2026-11-22)."""
MINUTES = 24


def seeds(n: int) -> list[int]:
    """The first ``n`` seeds that are not the shipped one."""
    shipped = json.loads((shipped_path(DOSES[0]) / "organism.json").read_text(encoding="utf-8"))["seed"]
    return list(islice((s for s in count() if s != shipped), n))


def conduct(
    n: int, folder: Path, said: Callable[[str], None], recipe: OrganismRecipe | None = None, device: str | None = None
) -> Path:
    """Train every dose of ``n`` seeds in ``folder``, except those already there; returns the folder.

    Raises ``InputError`` for a folder that was begun with another recipe.
    """
    import torch

    recipe, device = recipe or RECIPE, str(available(device))
    if device == "cpu":
        torch.set_num_threads(1)  # such a small model is slower on several threads, and one thread is deterministic
    wanted = [(seed, dose) for seed in seeds(n) for dose in DOSES]
    left = [(seed, dose) for seed, dose in wanted if not _done(folder / f"seed-{seed}" / dose / "model", recipe)]
    steps = f"{recipe.base.steps} steps of a shared base and {recipe.dose.steps} of each dose"
    more = f"; about {MINUTES} processor minutes a seed; the same command continues" if left else ""
    said(
        f"{how_many(n, 'training')} of {len(DOSES)} doses in {folder} (seeds {', '.join(map(str, seeds(n)))}; "
        f"{steps}): {len(wanted) - len(left)} of {len(wanted)} models are done{more}"
    )
    for i, (seed, dose) in enumerate(left, 1):
        train(dose, seed, folder, recipe, device, _progress(said, seed))
        said(f"seed {seed}, {dose}: trained ({i} of {len(left)})")
    return folder


def _done(model: Path, recipe: OrganismRecipe) -> bool:
    file = model / "organism.json"
    return file.is_file() and json.loads(file.read_text(encoding="utf-8"))["recipe"] == recipe.record()


def _progress(said: Callable[[str], None], seed: int) -> Progress:
    def step_done(stage: str, step: int, total: int, loss: float) -> None:
        if step % 250 == 0 or step == total:
            said(f"seed {seed}, {stage}: step {step} of {total}, loss {loss:.3f}")

    return step_done
