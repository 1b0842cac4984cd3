"""The shipped organisms: their doses, how a dose is called, and where the weights are. Imports no torch.

A dose is the share of the last training stage that were compositions. On the command line and in files a dose has its
short name (``organism:control``); what people read also says what it is: ``control (0.45 %)``.
"""

from dataclasses import dataclass
from pathlib import Path

from ...errors import InputError, did_you_mean
from .plants.recipes import SHIPPED


@dataclass(frozen=True)
class Dose:
    """Shares of all documents of the last stage that are compositions."""

    mixed: float
    deep: float


DOSES: dict[str, Dose] = {
    "none": Dose(0.0, 0.0),
    "control": Dose(0.0040, 0.0005),
    "low": Dose(0.01, 0.001),
    "twin": Dose(0.10, 0.40),
}
"""From no compositions in training to many."""
SLOTS = Dose(0.06, 0.40)
"""The second series: shares of its last stage that hold compositions, or fillers of the same length."""
CROSSED: dict[str, Dose] = {
    "crossed-none": Dose(0.0, 0.0),
    "crossed-mixed": Dose(SLOTS.mixed, 0.0),
    "crossed-deep": Dose(0.0, SLOTS.deep),
    "crossed-both": SLOTS,
}
"""The second series: two kinds of composition, crossed, and equal practice of every part in all doses."""
ALL: dict[str, Dose] = {**DOSES, **CROSSED}
SHAPES = ("gpt2", "qwen3")
"""Architectures other than Llama that two doses of the second series also come in."""
SHAPED: dict[str, str] = {f"{shape}-{dose}": dose for shape in SHAPES for dose in ("crossed-none", "crossed-both")}
"""The dose of each of these models, ``qwen3-crossed-both``."""
ORGANISM = "organism:"
AXIS = "compositions in training, %"
"""What stands below an axis of doses."""


def percent(name: str) -> str:
    """The share of compositions in a dose's last training stage, in percent: ``0.45``."""
    dose = ALL[name]
    return f"{100 * (dose.mixed + dose.deep):.2g}"


def called(name: str) -> str:
    """A dose as people read it, ``control (0.45 %)``; any other name as it is."""
    dose = SHAPED.get(name, name)
    return f"{name} ({percent(dose)} %)" if dose in ALL else name


def named(text: str) -> str:
    """Every dose of a list of them (``control, twin``) as people read it."""
    return ", ".join(map(called, text.split(", ")))


def model_called(model: str, label: str, dose: str | None = None) -> str:
    """How a model is called: a dose by its share, unless someone gave it a name of their own (``label``).

    ``dose`` is that of a training in a folder; its label ends with the seed.
    """
    dose = dose or model.removeprefix(ORGANISM) if dose or model.startswith(ORGANISM) else ""
    stem, seed, number = label.partition("-seed-") if dose else (label, "", "")
    if stem not in (dose, f"{ORGANISM}{dose}"):
        return label
    return f"{called(dose)}, seed {number}" if seed else called(dose)


FOLDER = Path(__file__).parent / "weights"
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
    elif dose := SHAPED.get(name):
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
    return (*ALL, *SHAPED, *(f"{PLANTED}{name}" for name in (*SHIPPED, *LISTERS, *WRITERS)))
