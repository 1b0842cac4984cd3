"""Peak memory of a step: of this process, its children (a server, Ray workers), CUDA allocations and devices."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_MB = 2**20


def reset() -> None:
    """Restart the peaks from the current use, if the system supports that (Linux; CUDA once it is in use)."""
    try:
        (_PROC / "self" / "clear_refs").write_text("5")
    except OSError:
        pass
    if (cuda := _cuda()) is not None:
        for i in range(cuda.device_count()):
            cuda.reset_peak_memory_stats(i)


def peaks() -> dict[str, Any]:
    """Peak megabytes since ``reset``.

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


def larger(a: dict[str, Any] | None, b: dict[str, Any]) -> dict[str, Any]:
    """The larger of two peaks, entry by entry, so that a step done in several goes has one peak."""
    out = dict(a or {})
    for name, value in b.items():
        if isinstance(value, dict):
            out[name] = larger(out.get(name), value)
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
