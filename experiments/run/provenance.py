"""What a run was made with: code, libraries, machine and numerics. Every manifest records it."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import __version__
from ...files import file_sha256, write_text
from ...registry import PLUGIN_PREFIX

PACKAGE = Path(__file__).resolve().parents[2]
LIBRARIES = ("torch", "transformers", "numpy", "scipy", "einops", "safetensors", "tokenizers", "matplotlib")
_SOURCE_FOLDERS = ("evaluation", "hooks", "probes", "experiments")


def source_hash(folders: Iterable[str] = _SOURCE_FOLDERS) -> str:
    """sha256 of the package's own Python source; a clone and an installed wheel of the same code have the same hash."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\x00" + path.read_bytes() + b"\x00")
    return digest.hexdigest()


def git_commit() -> str | None:
    """Commit of the checkout that contains the package, with ``+changes`` if it is not clean; None if there is none."""
    if not (PACKAGE / ".git").exists():
        return None
    try:
        return _git("rev-parse", "HEAD") + ("+changes" if _git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(*args: str) -> str:
    done = subprocess.run(["git", *args], cwd=PACKAGE, capture_output=True, text=True, timeout=10, check=True)
    return done.stdout.strip()


def code() -> dict[str, Any]:
    """Version, commit and source hash of composcope itself."""
    return {"version": __version__, "commit": git_commit(), "source": source_hash()}


def plugin_files() -> list[dict[str, str]]:
    """The plugin files of this process with the hash of their content."""
    files = [Path(str(m.__file__)) for name, m in sorted(sys.modules.items()) if name.startswith(PLUGIN_PREFIX)]
    return [{"file": f.name, "sha256": file_sha256(f)} for f in files]


def libraries(names: Iterable[str] = LIBRARIES) -> dict[str, str | None]:
    """Installed versions, read from package metadata without importing anything; None for a library that is absent."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def machine() -> dict[str, Any]:
    """Operating system, processor architecture and number of usable cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"system": platform.platform(), "machine": platform.machine(), "cores": cores}


def beside(table: str | Path) -> Path:
    """The file that says how a csv file was made. Its name follows CSV on the Web: metadata next to the table."""
    table = Path(table)
    return table.with_name(f"{table.name}-metadata.json")


def write_beside(table: str | Path, made_with: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Path:
    """Write a file next to a csv file that says what it was made with (one run, or several)."""
    runs = [made_with] if isinstance(made_with, Mapping) else list(made_with)
    document = {"@context": "http://www.w3.org/ns/csvw", "url": Path(table).name, "composcope:runs": runs}
    # ASCII: names from outside may contain halves of surrogate pairs, which UTF-8 cannot encode.
    return write_text(beside(table), json.dumps(document, indent=1, default=str) + "\n")
