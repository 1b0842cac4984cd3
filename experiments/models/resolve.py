"""Resolves model names (shipped organisms, local folders, GGUF files, hub ids) without loading the models."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ... import model_files
from ...errors import InputError, ModelError, did_you_mean


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from."""

    name: str
    """The name as the user wrote it."""
    location: str
    """A folder, or a hub id."""
    is_folder: bool


def resolve_model(name: str, say: Callable[[str], None] | None = None) -> ModelSource:
    """Find a model by ``organism:DOSE``, folder, GGUF file or hub id, without loading it.

    A GGUF file is dequantized on first use, which is reported to ``say``. Raises ``InputError`` for an unknown name and
    ``ModelError`` for a folder or file that does not contain a model.
    """
    if name.startswith("organism:"):
        return _organism(name)
    path = Path(name).expanduser()
    if path.exists() or path.suffix.lower() == ".gguf":
        folder = Path(model_files.location(name, say))
        _check_tokenizer(folder)
        return ModelSource(name, str(folder), True)
    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise InputError(
            f"--model {name}: no such folder{_beside(name) or ';'} give a model folder, a hub id (owner/name) or "
            "organism:DOSE"
        )
    if offline():
        found = _cached(name)
        if found is None:
            raise ModelError(
                f"--model {name}: no such folder{_beside(name) or ';'} HF_HUB_OFFLINE is set and the hub's cache does "
                "not have it"
            )
        return ModelSource(name, str(found), True)
    return ModelSource(name, name, False)


def _beside(name: str) -> str:
    """``; did you mean ...?`` with the folder or GGUF file beside a missing one whose name is nearest to its name."""
    missing = Path(name)
    folder = missing.expanduser().parent
    try:
        there = [p.name for p in folder.iterdir() if p.is_dir() or p.suffix.lower() == ".gguf"]
    except OSError:  # the folder above is missing, too, or closed to us
        return ""
    above = name.rstrip("/").removesuffix(missing.name)
    return did_you_mean(missing.name, there, above)


def offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")


def weights_folder(source: ModelSource) -> Path | None:
    """The folder of the files that a model was loaded from; None if the hub's cache has no weights for it.

    A model is identified by its files, so it is the same online and offline, in any dtype, quantized and offloaded.
    """
    folder = Path(source.location) if source.is_folder else _cached(source.location)
    return folder if folder is not None and any(folder.glob("*.safetensors")) else None


def _cached(hub_id: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(hub_id, "config.json")
    return Path(found).parent if isinstance(found, str) else None


def _organism(name: str) -> ModelSource:
    dose = name.removeprefix("organism:")
    from ..organism import weights

    if dose not in (known := weights.names()):
        meant = did_you_mean(dose, known, "organism:") or ";"
        raise InputError(
            f"--model {name}: no such organism{meant} use one of {', '.join('organism:' + d for d in known)}"
        )
    folder = Path(weights.path(dose))
    if not folder.is_dir():
        raise ModelError(
            f"--model {name}: its weights are not at {folder}; train them with `composcope organism train`"
        )
    model_files.check_folder(folder)
    _check_tokenizer(folder)
    return ModelSource(name, str(folder), True)


def _check_tokenizer(folder: Path) -> None:
    if not any(
        (folder / f).is_file() for f in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
    ):
        raise ModelError(f"{folder}: no tokenizer (tokenizer.json); save it there with tokenizer.save_pretrained")
