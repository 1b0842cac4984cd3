"""What a run was made with: code, libraries, machine and numerics. Every manifest records it.

Also the peak memory of a step: of this process, its children (a server, Ray workers), CUDA allocations and devices.
"""

import hashlib
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import __version__
from ...files import write_text
from ...registry import PLUGIN_HASH, PLUGIN_PREFIX

PACKAGE = Path(__file__).resolve().parents[2]
LIBRARIES = ("torch", "transformers", "numpy", "scipy", "einops", "safetensors", "tokenizers", "matplotlib")
_SOURCE_FOLDERS = ("evaluation", "hooks", "probes", "experiments")


def source_hash(folders: Iterable[str] | None = None) -> str:
    """sha256 of the package's own Python source; a clone and an installed wheel of the same code have the same hash.

    By default it is that of the four packages and of the modules beside them; else that of some folders.
    """
    digest = hashlib.sha256()
    beside = [sorted(PACKAGE.glob("*.py"))] if folders is None else []
    for files in (*beside, *(sorted((PACKAGE / f).rglob("*.py")) for f in folders or _SOURCE_FOLDERS)):
        for path in files:
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
    """The plugin files of this process with the hash of the content that was loaded: they may change afterwards."""
    loaded = [module for name, module in sorted(sys.modules.items()) if name.startswith(PLUGIN_PREFIX)]
    return [{"file": Path(str(m.__file__)).name, "sha256": getattr(m, PLUGIN_HASH)} for m in loaded]


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


def n_runs(table: str | Path) -> int:
    """The number of runs that the file next to a csv file names; 0 if there is none, or none that can be read."""
    try:
        return len(json.loads(beside(table).read_text(encoding="utf-8"))["composcope:runs"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


_PROC = Path("/proc")
_MB = 2**20


def reset_peaks() -> None:
    """Restart the peaks from the current use, if the system supports that (Linux; CUDA once it is in use)."""
    try:
        (_PROC / "self" / "clear_refs").write_text("5")
    except OSError:
        pass
    if (cuda := _cuda()) is not None:
        for i in range(cuda.device_count()):
            cuda.reset_peak_memory_stats(i)


def memory_peaks() -> dict[str, Any]:
    """Peak megabytes since ``reset_peaks``.

    ``rss``: this process's resident memory. ``children``: the sum of the peaks of its living children, an upper bound.
    ``cuda``: tensors of this process, by device. ``devices``: the memory that all processes hold on each GPU *now*,
    which shows a server's share. An entry that cannot be measured is left out.
    """
    found: dict[str, Any] = {"rss": round(_peak_rss())}
    if children := _descendants(os.getpid()):
        found["children"] = round(sum(_high_water(pid) for pid in children))
    if (cuda := _cuda()) is not None:
        found["cuda"] = {f"cuda:{i}": round(cuda.max_memory_allocated(i) / _MB) for i in range(cuda.device_count())}
    if used := _devices():
        found["devices"] = used
    return found


def larger_peaks(a: dict[str, Any] | None, b: dict[str, Any]) -> dict[str, Any]:
    """The larger of two peaks, entry by entry, so that a step done in several goes has one peak."""
    out = dict(a or {})
    for name, value in b.items():
        if isinstance(value, dict):
            out[name] = larger_peaks(out.get(name), value)
        else:
            out[name] = max(value, out.get(name, value))
    return out


def _cuda() -> Any:
    """``torch.cuda`` if this process already uses it: a mere look must not take memory on a device."""
    torch = sys.modules.get("torch")
    return torch.cuda if torch is not None and torch.cuda.is_initialized() else None


def _peak_rss() -> float:
    own = _high_water(os.getpid())
    if own:
        return own
    unit = _MB if sys.platform == "darwin" else 2**10  # bytes on macOS, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _high_water(pid: int) -> float:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(x.split()[1]) / 1024 for x in lines if x.startswith("VmHWM:")), 0.0)


def _descendants(pid: int) -> list[int]:
    parents: dict[int, int] = {}
    for folder in _PROC.glob("[0-9]*"):
        try:
            # The command's name is in parentheses and may contain anything; the parent is the second field after it.
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
    found, new = [], [pid]
    while new:
        new = [p for p, parent in parents.items() if parent in new]
        found += new
    return found


def _devices() -> dict[str, int]:
    if shutil.which("nvidia-smi") is None:
        return {}
    query = ["nvidia-smi", "--query-gpu=index,memory.used", "--format=csv,noheader,nounits"]
    try:
        out = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
        return {f"gpu:{i.strip()}": int(used) for i, _, used in (x.partition(",") for x in out.splitlines())}
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
