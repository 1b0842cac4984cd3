"""Where the shipped organisms are. Importing this module imports no torch."""

from __future__ import annotations

from pathlib import Path

from ...errors import InputError

FOLDER = Path(__file__).parent / "weights"
DOSES = ("none", "control", "low", "twin")
"""From no compositions in training to many."""


def path(dose: str) -> Path:
    """The model folder of a shipped dose.

    Raises ``InputError`` for an unknown dose and for an installation without its weights.
    """
    if dose not in DOSES:
        raise InputError(f"organism {dose!r}: unknown dose; use one of {', '.join(DOSES)}")
    folder = FOLDER / dose
    if not (folder / "model.safetensors").is_file():
        raise InputError(
            f"{folder}: no weights here; reinstall composcope or run: composcope organism train --dose {dose}"
        )
    return folder
