"""The adapters kept along a training: where they are, which one continues, and what of them may go."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

WEIGHTS = "adapter_model.safetensors"
_KEPT = (WEIGHTS, "adapter_config.json", "trainer_state.json")


def kept(folder: Path) -> list[tuple[int, Path]]:
    """(step, folder) of the adapters kept along a training, in order."""
    found = [(int(p.name.rpartition("-")[2]), p) for p in folder.glob("checkpoint-*") if (p / WEIGHTS).is_file()]
    return sorted(found)


def last(folder: Path) -> Path | None:
    """The newest checkpoint that was written to its end and can be continued: its state is written last."""
    whole = [path for _, path in kept(folder) if _can_continue(path)]
    return whole[-1] if whole else None


def _can_continue(path: Path) -> bool:
    if not all((path / name).is_file() for name in ("optimizer.pt", "scheduler.pt")):
        return False
    try:
        json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # not there, or the process was killed in the middle of it
        return False
    return True


def prune(folder: Path, keep_last: bool) -> None:
    """Leave adapters only: optimizer states are large and needed for nothing but continuing."""
    spared = last(folder) if keep_last else None
    for _, path in kept(folder):
        if path != spared:
            for file in path.iterdir():
                if file.name not in _KEPT:
                    shutil.rmtree(file) if file.is_dir() else file.unlink()
    (folder / "README.md").unlink(missing_ok=True)
