"""The doses of the organisms: the share of compositions in their last training stage, and the names of the doses.

On the command line and in files a dose has its short name (``organism:control``). Texts for people add the share:
``control (0.45 %)``. Importing this module does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass


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
"""Ordered from no compositions in training to many."""
ORGANISM = "organism:"
AXIS = "compositions in training, %"
"""Label of an axis of doses."""


def percent(name: str) -> str:
    """The share of compositions in a dose's last training stage, in percent: ``0.45``."""
    dose = DOSES[name]
    return f"{100 * (dose.mixed + dose.deep):.2g}"


def called(name: str) -> str:
    """A dose's name with its share, ``control (0.45 %)``; any other name unchanged."""
    return f"{name} ({percent(name)} %)" if name in DOSES else name


def named(text: str) -> str:
    """A list of names (``control, twin``) with the share of every dose."""
    return ", ".join(map(called, text.split(", ")))


def model_called(model: str, label: str, dose: str | None = None) -> str:
    """A model's name in texts: a dose has its share, unless the user gave the model another name (``label``).

    ``dose`` is the dose of a training in a folder; the label of such a model ends with the seed.
    """
    dose = dose or model.removeprefix(ORGANISM) if dose or model.startswith(ORGANISM) else ""
    stem, seed, number = label.partition("-seed-") if dose else (label, "", "")
    if stem not in (dose, f"{ORGANISM}{dose}"):
        return label
    return f"{called(dose)}, seed {number}" if seed else called(dose)
