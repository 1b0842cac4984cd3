"""Files and folders written all or nothing, also when the power fails; and the hash of a file or of texts."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path


def write_text(path: str | Path, text: str) -> Path:
    """Write a file atomically: a reader sees the old content or the new one, never half of it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        return put_in_place(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def put_in_place(made: Path, path: Path) -> Path:
    """Give what was made its name, in place of a file or an empty folder of that name, and make the name last."""
    made.replace(path)
    sync_folder(path.parent)
    return path


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last: without that, a file that was synced may be gone after a power failure."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as e:
        if e.errno != errno.EINVAL:  # a file system that cannot do that for folders
            raise
    finally:
        os.close(fd)


def file_sha256(path: str | Path) -> str:
    """sha256 of a file; remembered for this process by path, size and modification time."""
    path = Path(path).resolve()
    stat = path.stat()
    return _sha256_of(str(path), stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256_of(path: str, size: int, mtime_ns: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_hash(parts: Iterable[str]) -> str:
    """sha256 of several texts; the separator keeps ("ab", "c") apart from ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8"))
        digest.update(b"\x00")
    return digest.hexdigest()


def sweep(folder: Path) -> None:
    """Remove what killed processes left half made in a folder that this one holds."""
    for path in folder.rglob(".*.tmp"):
        if path.is_file():
            path.unlink(missing_ok=True)
        else:
            shutil.rmtree(path, ignore_errors=True)
