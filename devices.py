"""Devices: whether one is available, how much memory is free, and smaller batches when memory runs out.

yield from halving(attempt, 64, lambda size: size or 64, print)  # attempt(64), then attempt(32), ...
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import torch

from .errors import ModelError

T = TypeVar("T")
_CGROUP = Path("/sys/fs/cgroup")


def available(asked: str | torch.device | None) -> torch.device:
    """The device asked for; without a wish a GPU where there is one. Raises ``ModelError`` where it is not here."""
    try:
        device = torch.device(asked or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as e:
        reason = str(e).splitlines()[0]
        raise ModelError(f"device {asked}: not available here ({reason}); use cpu, or cuda on a machine with it") from e
    return device


def free_bytes(device: torch.device) -> int | None:
    """Bytes that can still be taken on a device; None where the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
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
    """What a memory limit on the container leaves."""
    try:
        limit = (_CGROUP / "memory.max").read_text().strip()
        used = int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(0, int(limit) - used)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out: a GPU's, or the allocator's on a CPU."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and ("out of memory" in text or "can't allocate memory" in text)


def halving(
    attempt: Callable[[int | None], Iterable[T]], size: int | None, tried: Callable[[int | None], int],
    say: Callable[[str], object],
) -> Iterator[T]:  # fmt: skip
    """Yield what ``attempt(size)`` gives; when memory runs out, attempt again with half of what was tried.

    An attempt that has yielded results has to continue after them when it is called again. ``tried(size)`` is how many
    items were in memory together. ``say`` is told of every halving. Raises the error when a single item does not fit.
    """
    while True:
        try:
            yield from attempt(size)
            return
        except (RuntimeError, MemoryError) as e:
            n = tried(size)
            if not is_out_of_memory(e) or n <= 1:
                raise
        # Outside the except clause, so that the failed frames no longer hold their tensors.
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        size = n // 2
        say(f"out of memory with {n} at once; continuing with {size}")
