"""The lock of a journal: one process holds it, and the kernel releases it however that process ends.

fd = acquire(Path("run/journal/lock"))
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from pathlib import Path

from ..errors import JournalError

_TRIES = 10


def acquire(path: Path) -> int:
    """Lock ``path`` for this process. Raises ``JournalError`` naming the process that holds the lock."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock_now(fd)
    except BlockingIOError:
        holder = os.read(fd, 200).decode(errors="replace").strip() or "another process"
        os.close(fd)
        raise JournalError(
            f"{path.parent}: {holder} is writing here; wait for it to end, or give another --out"
        ) from None
    except OSError:
        os.close(fd)
        raise
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"pid {os.getpid()} on {socket.gethostname()}".encode(), 0)
    return fd


def _lock_now(fd: int) -> None:
    # A reader holds the lock for microseconds while it looks whether a writer does: that must not refuse a writer.
    for _ in range(_TRIES - 1):
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(path: Path) -> bool:
    """True while a writer holds the lock at ``path``."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
