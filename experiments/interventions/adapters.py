"""Turns a trained adapter into a model folder: every other command takes the merged model as ``--model``.

The adapter is kept next to it, with a manifest that names its base weights. It is never applied to other weights.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from ...errors import InputError
from ..models.resolve import resolve_model
from ..run import read_json, write_text


def export(model: Any, tokenizer: Any, folder: Path, base: str) -> None:
    """Write ``adapter/`` and the merged ``model/`` of a peft model; each appears only when it is complete."""
    adapter, merged = folder / ".adapter.tmp", folder / ".model.tmp"
    for path in (adapter, merged):
        shutil.rmtree(path, ignore_errors=True)
    model.save_pretrained(adapter, safe_serialization=True)
    _name_base(adapter, base)
    (adapter / "README.md").unlink(missing_ok=True)
    plain = model.merge_and_unload()
    plain.save_pretrained(merged)
    tokenizer.save_pretrained(merged)
    for path, name in ((adapter, "adapter"), (merged, "model")):
        shutil.rmtree(folder / name, ignore_errors=True)
        path.rename(folder / name)


def _name_base(adapter: Path, base: str) -> None:
    """Record the base under the name that the user gave, since a temporary path means nothing on another machine."""
    path = adapter / "adapter_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["base_model_name_or_path"] = base
    write_text(path, json.dumps(config, indent=1, sort_keys=True) + "\n")


def merge(model: str, training: str | Path, out: str | Path) -> Path:
    """Apply a training's adapter to its base again and write the merged model folder to ``out``.

    ``training`` is a folder that ``composcope intervene`` wrote. Raises ``InputError`` if ``model`` is not the base
    that the adapter was trained on.
    """
    from ...model_loading import load

    source, folder, target = resolve_model(model), Path(training), Path(out)
    check_base(source.location, read_manifest(folder), str(folder))
    if target.exists():
        raise InputError(f"--out {target}: already exists; give a new folder")
    base, tokenizer = load(source.location)
    merged = with_adapter(base, folder / "adapter").merge_and_unload()
    merged.save_pretrained(target)
    tokenizer.save_pretrained(target)
    return target


def check_base(location: str, manifest: dict[str, Any], where: str) -> None:
    """Raise ``InputError`` unless ``location`` has the weights that an adapter was trained on."""
    wanted, found = manifest["identity"]["base_weights"], base_hash(location)
    if wanted != found:
        raise InputError(
            f"{where}: adapter of other weights ({wanted[:12]}; --model has {found[:12]}); give the base it was "
            f"trained on ({manifest.get('base')})"
        )


def with_adapter(base: Any, adapter: str | Path) -> Any:
    """A base model in memory with an adapter from a folder of safetensors."""
    from peft import PeftModel

    path = Path(adapter)
    if not (path / "adapter_model.safetensors").is_file():
        raise InputError(f"{path}: no adapter_model.safetensors; give the adapter folder of a training")
    return PeftModel.from_pretrained(base, str(path))


def base_hash(location: str) -> str:
    """Hash of a base model's weights: of its files, or of its name for a model on the hub."""
    from ...evaluation.identity import folder_weights

    return folder_weights(location) if Path(location).is_dir() else location


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """The manifest of a training. Raises ``InputError`` for a folder that is not a training."""
    path = Path(folder) / "manifest.json"
    found = read_json(path) if path.is_file() else {}
    if "base_weights" not in found.get("identity", {}):
        raise InputError(f"{folder}: no training here; give a folder that `composcope intervene` wrote")
    return found


WEIGHTS = "adapter_model.safetensors"
_KEPT = (WEIGHTS, "adapter_config.json", "trainer_state.json")


def kept_steps(folder: Path) -> list[tuple[int, Path]]:
    """(step, folder) of the adapters that were kept during a training, in order."""
    found = [(int(p.name.rpartition("-")[2]), p) for p in folder.glob("checkpoint-*") if (p / WEIGHTS).is_file()]
    return sorted(found)


def last_step(folder: Path) -> Path | None:
    """The newest checkpoint that is complete and can be continued: its state is written last."""
    whole = [path for _, path in kept_steps(folder) if _can_continue(path)]
    return whole[-1] if whole else None


def _can_continue(path: Path) -> bool:
    if not all((path / name).is_file() for name in ("optimizer.pt", "scheduler.pt")):
        return False
    try:
        json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # missing, or the process was killed while writing it
        return False
    return True


def prune(folder: Path, keep_last: bool) -> None:
    """Leave only the adapters: optimizer states are large and are needed only for continuing."""
    spared = last_step(folder) if keep_last else None
    for _, path in kept_steps(folder):
        if path != spared:
            for file in path.iterdir():
                if file.name not in _KEPT:
                    shutil.rmtree(file) if file.is_dir() else file.unlink()
    (folder / "README.md").unlink(missing_ok=True)
