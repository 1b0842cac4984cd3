"""A journal's lock, and the checksums of its lines: each is over its line and the checksum before it.

One process holds the lock, and the kernel releases it however that process ends. The checksums show where an answer was
altered, or a line was removed, inserted or moved. Each segment has its own chain, so segments may be copied together. A
checksum is not a signature: who can write the file can recompute it.

    fd = acquire(Path("run/journal/lock"))
    line, digest = seal(b'{"key": "k"}', before="")
"""

import fcntl
import hashlib
import os
import re
import socket
import time
from collections.abc import Iterable
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


_LENGTH = 32
_SEAL = re.compile(rb', "sum": "([0-9a-f]{%d})"}$' % _LENGTH)
"""The last field of a line. Inside a text the quotes would be escaped."""
_RESEMBLES = re.compile(rb'[,{]\s*"sum"\s*:')
"""A checksum in a line that another program has written again, with other spaces or another order of fields."""


def seal(line: bytes, before: str) -> tuple[bytes, str]:
    """A JSON object's line with its checksum as last field, and the checksum."""
    digest = _digest(line, before)
    return line[:-1] + b', "sum": "' + digest.encode() + b'"}', digest


def _digest(line: bytes, before: str) -> str:
    return hashlib.sha256(before.encode() + b"\n" + line).hexdigest()[:_LENGTH]


class Chain:
    """The checksums of one segment, line by line. A segment has one in each line or, by an earlier version, in none."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.sealed = any(_RESEMBLES.search(line) for line in lines)
        self.before: str | None = ""
        """The checksum that the line before states; None where it states none."""

    def check(self, line: bytes) -> str | None:
        """What is wrong with the next line; None where nothing is, or where the segment has no checksums."""
        line = line.rstrip(b" \t\r")  # of an editor, or of a system with other line ends
        found = _SEAL.search(line)
        before, self.before = self.before, found and found[1].decode()
        if not self.sealed:
            return None
        if found is None:
            return "its checksum is missing"
        if before is None:
            return "it cannot be checked, since the line before it is damaged"
        if _digest(line[: found.start()] + b"}", before) == self.before:
            return None
        return "its checksum does not match: the line was changed, or a line before it was removed or inserted"
