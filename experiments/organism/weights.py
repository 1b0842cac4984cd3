"""Finds the shipped organisms. Importing this module does not import torch."""

from pathlib import Path

from ...errors import InputError, did_you_mean
from . import doses

FOLDER = Path(__file__).parent / "weights"
DOSES = tuple(doses.DOSES)
"""Ordered from no compositions in training to many."""
CROSSED = tuple(doses.CROSSED)
"""The second series: mixed and deep compositions, crossed."""
CROSSED_FOLDER = Path(__file__).parent / "weights_crossed"
SHAPED_FOLDER = Path(__file__).parent / "weights_shaped"
"""Doses of the second series in other architectures, a folder for each."""

PLANTS = Path(__file__).parent / "plants" / "weights"
PLANTED = "plant-"
WRITTEN = Path(__file__).parent / "plants" / "weights_written"
WRITERS = ("follower", "decorator")
"""Plants that write their working: one reads its answer off it, one decorates with it."""
LISTERS = ("order-error", "item-missing")
"""Plants that answer the temporal world's lists in the wrong order, or without an item."""


def path(name: str) -> Path:
    """The model folder of a shipped dose of either series, or of a shipped plant (``plant-NAME``).

    Raises ``InputError`` for an unknown name, or if the installation lacks the weights.
    """
    if (unknown := misnamed(name)) is not None:
        raise InputError(f"organism {name!r}: {unknown}")
    bare = name.removeprefix(PLANTED)
    again = "plant --shipped" if name.startswith(PLANTED) else f"train --dose {name}"
    if bare in (*WRITERS, *LISTERS):
        again = f"plant --cause {bare} --seed 3"
    if name.startswith(PLANTED):
        folder = (WRITTEN if bare in WRITERS else PLANTS) / bare
    elif dose := doses.SHAPED.get(name):
        shape = name.removesuffix(f"-{dose}")
        folder, again = SHAPED_FOLDER / shape / dose, f"train --dose {dose} --architecture {shape}"
    else:
        folder = (CROSSED_FOLDER if name in CROSSED else FOLDER) / name
    if not (folder / "model.safetensors").is_file():
        raise InputError(f"{folder}: no weights here; reinstall composcope or run: composcope organism {again}")
    return folder


def misnamed(name: str) -> str | None:
    """What is said of a name that no shipped organism has; None for a known name."""
    if name in (known := names()):
        return None
    return f"no such organism{did_you_mean(name, known, 'organism:') or ';'} `composcope organism list` lists all"


def names() -> tuple[str, ...]:
    """Names that can follow ``organism:``: the doses of both series, those in other architectures, and the plants."""
    from .plants.recipes import SHIPPED

    return (*doses.ALL, *doses.SHAPED, *(f"{PLANTED}{name}" for name in (*SHIPPED, *LISTERS, *WRITERS)))
