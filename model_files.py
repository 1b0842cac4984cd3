"""Resolves a model's name: a folder of safetensors, a GGUF file, or a hub id.

``location("x.gguf")`` returns a name that transformers can load. A GGUF file (llama.cpp's format) is dequantized once
into an ordinary model folder with exact float32 safetensors. That folder is in a cache (``COMPOSCOPE_CACHE``, else
``~/.cache/composcope``) under the hash of the file. It is written in one step, and later runs reuse it.
"""

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from . import files
from .errors import ModelError
from .files import at_home, file_sha256, put_in_place
from .terminal import to_stderr

MAGIC = b"GGUF"
_TOKENS = "tokenizer.ggml.tokens"
_FLOAT32 = 4
_HUB_ID = re.compile(r"\w[\w.-]*(?:/[\w.-]+)?")


def location(name: str | Path, say: Callable[[str], None] | None = None) -> str:
    """What transformers can load for a name: a checked folder, the folder of a GGUF file, or the unchanged hub id.

    ``say`` reports one line before a GGUF file is dequantized. Raises ``ModelError`` for a path that is not a model.
    """
    packed = find_gguf(name)
    if packed is not None:
        return str(dequantized(packed, say))
    path = at_home(name)
    if path.is_dir():
        check_folder(path)
        return str(path)
    if path.is_file():
        raise ModelError(f"{name}: is a file; give the folder that holds config.json and the weights, or a .gguf file")
    if not _HUB_ID.fullmatch(str(name)):
        shipped = f"; a shipped model is opened as load_model(resolve_model({name!r}).location), with resolve_model of "
        more = f"{shipped}composcope.experiments.models.resolve" if str(name).startswith("organism:") else ""
        raise ModelError(f"{name}: no such folder; give a model folder, a .gguf file or a hub id{more}")
    if (why := closed_hub()) is not None and cached(str(name)) is None:
        raise ModelError(f"{name}: {not_cached(str(name), why)}")
    return str(name)


def closed_hub() -> str | None:
    """Why the hub cannot be asked; None if it can.

    If its host has no address here, the hub's own library would try for a minute.
    """
    from huggingface_hub import constants

    if offline():
        return "HF_HUB_OFFLINE is set"
    host = urlsplit(constants.ENDPOINT).hostname or ""
    if getproxies().keys() & {"https", "all"}:  # the proxy looks the host up
        return None
    try:
        socket.getaddrinfo(host, 443)
    except socket.gaierror:
        return f"{host} cannot be found from here (no network?)"
    return None


def offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")


def cached(hub_id: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(hub_id, "config.json")
    return Path(found).parent if isinstance(found, str) else None


def not_cached(name: str, why: str) -> str:
    return f"no such folder{beside(name) or ';'} {why} and the hub's cache does not have it"


def beside(name: str) -> str:
    """``; did you mean ...?`` with the folder or GGUF file beside a missing one whose name is nearest to its name."""
    return files.beside(name, lambda p: p.is_dir() or p.suffix.lower() == ".gguf")


def check_folder(folder: Path) -> None:
    """Raises ``ModelError`` for a folder without configuration or safetensors."""
    if not (folder / "config.json").is_file():
        inside = [p for p in sorted(folder.iterdir()) if p.is_dir() and any(_weights(p))]
        here = f", such as {' or '.join(map(str, inside[:3]))}" if inside else ""
        raise ModelError(f"{folder}: no config.json; give a model folder as save_pretrained writes it{here}")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(f"{folder}: no weights (*.safetensors); give a model folder as save_pretrained writes it")


def _weights(folder: Path) -> Iterator[Path]:
    return (p for p in folder.glob("*") if p.suffix.lower() in (".safetensors", ".gguf"))  # none if it may not be read


def find_gguf(name: str | Path) -> Path | None:
    """The GGUF file for a name: a ``.gguf`` file, or the only one in a folder that is not itself a model folder.

    Raises ``ModelError`` for a folder with several.
    """
    path = at_home(name)
    if path.suffix.lower() == ".gguf" and not path.is_dir():
        if not path.is_file():
            raise ModelError(f"{name}: no such file; give the path of a .gguf file")
        return path
    if not path.is_dir() or (path / "config.json").is_file():
        return None
    found = sorted(p for p in path.iterdir() if p.suffix.lower() == ".gguf")
    if len(found) > 1:
        names = ", ".join(p.name for p in found)
        raise ModelError(f"{name}: holds {len(found)} GGUF files ({names}); name one of them")
    return found[0] if found else None


def dequantized(path: str | Path, say: Callable[[str], None] | None = None) -> Path:
    """The model folder of a GGUF file, made on first use.

    ``say`` reports one line before the conversion (default: standard error). Raises ``ModelError`` for a file that
    cannot be read: another format, a damaged or split file, an unknown architecture or quantization, no tokenizer, no
    room.
    """
    path = Path(path)
    folder = _cache() / f"{path.stem[:60]}-{_digest(path)[:16]}"
    if (folder / "config.json").is_file():
        return folder
    size = _check(path)
    folder.parent.mkdir(parents=True, exist_ok=True)
    room = shutil.disk_usage(folder.parent).free
    if room < size * 1.1:
        raise ModelError(
            f"{path}: needs {size / 1e9:.1f} GB in {folder.parent}, where {room / 1e9:.1f} GB are free; free some "
            "space or set COMPOSCOPE_CACHE to another folder"
        )
    (say or to_stderr)(f"{path.name}: dequantizing once into {folder} ({size / 1e9:.1f} GB)")
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        _convert(path, made)
        made.chmod(0o755)
        try:
            put_in_place(made, folder)
        except OSError:
            if not (folder / "config.json").is_file():  # otherwise another process was faster
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def _cache() -> Path:
    given = os.environ.get("COMPOSCOPE_CACHE")
    if given:
        return at_home(given) / "gguf"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "composcope" / "gguf"


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            start = file.read(4)
            if start != MAGIC:
                raise ModelError(f"{path}: is not a GGUF file (begins with {start!r}); give a .gguf file or a folder")
        return file_sha256(path)
    except OSError as e:
        raise ModelError(f"{path}: cannot be read ({e.strerror}); check the file") from e


def _check(path: Path) -> int:
    """Refuse a file that transformers would misread or reject with a long trace; returns its size in float32 bytes."""
    try:
        import gguf
    except ImportError as e:
        raise ModelError(f"{path}: GGUF files need the package gguf; pip install 'composcope[gguf]'") from e
    try:
        reader = gguf.GGUFReader(path)
    except Exception as e:  # the reader raises errors of any kind for a damaged file
        kind = "names a quantization that this version of gguf does not know" if "QuantizationType" in str(e) else ""
        what = kind or "is damaged or cut off"
        raise ModelError(f"{path}: {what} ({_one_line(e)}); download it again, or take another quantization") from e
    count = reader.get_field("split.count")
    if count is not None and int(count.contents()) > 1:
        raise ModelError(
            f"{path}: is one of {int(count.contents())} parts of a split model; join them first "
            "(llama-gguf-split --merge FIRST_PART WHOLE.gguf)"
        )
    if not reader.tensors:
        raise ModelError(f"{path}: holds no weights; is it a vocabulary file?")
    last = max(reader.tensors, key=lambda t: t.data_offset + t.n_bytes)
    if last.data_offset + last.n_bytes > path.stat().st_size:
        raise ModelError(f"{path}: is cut off (tensor {last.name!r} ends after the file); download it again")
    if reader.get_field(_TOKENS) is None:
        raise ModelError(f"{path}: holds no tokenizer (no {_TOKENS}); convert the model again with it")
    return _FLOAT32 * sum(int(t.n_elements) for t in reader.tensors)


def _convert(path: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # transformers reads a GGUF file by its name from a folder whose name is not a hub id.
    where: dict[str, Any] = {
        "pretrained_model_name_or_path": str(path.resolve().parent),
        "gguf_file": path.name,
        "trust_remote_code": False,
    }
    try:
        tokenizer = AutoTokenizer.from_pretrained(**where)
        packed = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
        config = packed.config
        # This entry says "packed" and keeps the model from being saved, although its tensors are plain by now.
        vars(config).pop("quantization_config", None)
        plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        plain.load_state_dict(packed.state_dict())
        plain.tie_weights()
        if packed.generation_config is not None:
            plain.generation_config = packed.generation_config
        plain.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    except Exception as e:
        raise ModelError(
            f"{path}: transformers cannot read this GGUF file ({_one_line(e)}); use the model's safetensors folder, or "
            "another quantization"
        ) from e


def _one_line(e: Exception) -> str:
    return " ".join(str(e).split())[:200] or type(e).__name__
