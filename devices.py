"""Devices: which are available, how much memory is free, and smaller batches when memory runs out.

yield from halving(attempt, 64, lambda size: size or 64, print)  # attempt(64), then attempt(32), ...
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import torch

from .errors import ModelError

T = TypeVar("T")
_CGROUP = Path("/sys/fs/cgroup")


def available(asked: str | torch.device | None) -> torch.device:
    """The requested device; by default a GPU if there is one. Raises ``ModelError`` if it is not available."""
    try:
        device = torch.device(asked or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as e:
        reason = str(e).splitlines()[0]
        raise ModelError(f"device {asked}: not available here ({reason}); use cpu, or cuda on a machine with it") from e
    return device


def free_bytes(device: torch.device) -> int | None:
    """Free bytes on a device, with those that can be had again at once; None if the system does not report it."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)  # by PyTorch, of freed tensors
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    if device.type != "cpu":
        return None
    known = [n for n in (_system(), _container()) if n is not None]
    return min(known) if known else None


def _system() -> int | None:
    info = Path("/proc/meminfo")
    if info.is_file():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def _container() -> int | None:
    """The bytes left under a container's memory limit; what the system keeps of files that were read counts as left."""
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        used = int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(0, int(limit) - used + _of_files())


def _of_files() -> int:
    """The bytes that the system keeps of files in a container; 0 where it does not say, so that the limit counts."""
    try:
        kinds = dict(line.split() for line in (_CGROUP / "memory.stat").read_text().splitlines())
        return int(kinds["inactive_file"]) + int(kinds["active_file"])
    except (OSError, ValueError, KeyError):
        return 0


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that memory ran out, on a GPU or in the CPU allocator."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)


def halving(
    attempt: Callable[[int | None], Iterable[T]], size: int | None, tried: Callable[[int | None], int],
    say: Callable[[str], object],
) -> Iterator[T]:  # fmt: skip
    """Yield what ``attempt(size)`` yields; when memory runs out, try again with half the size.

    When it is called again, ``attempt`` has to continue after the results that it has already yielded. ``tried(size)``
    is the number of items that were in memory together. ``say`` reports every halving. Raises the error if a single
    item does not fit.
    """
    while True:
        try:
            yield from attempt(size)
            return
        except (RuntimeError, MemoryError) as e:
            n = tried(size)
            if not is_out_of_memory(e) or n <= 1:
                raise
        # Outside the except clause, so that the failed frames have released their tensors.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        size = n // 2
        say(f"out of memory with {n} at once; continuing with {size}")
