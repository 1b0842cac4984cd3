"""The doses of the organisms: which share of their last training stage were compositions, and how a dose is called.

On the command line and in files a dose has its short name (``organism:control``); what people read also says what it
is: ``control (0.45 %)``. Importing this module imports no torch.
"""

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
