"""Writes files and folders completely or not at all, even on a power failure; hashes files and texts."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from .errors import InputError


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


def write_between(path: Path, begin: str, end: str, text: str) -> None:
    """Replace the text between two marks of a page; raises ``InputError`` if they are not there once each."""
    old = path.read_text(encoding="utf-8") if path.is_file() else ""
    if old.count(begin) != 1 or old.count(end) != 1:
        raise InputError(f"{path}: needs the lines {begin!r} and {end!r} once each; add them where the table belongs")
    before, rest = old.split(begin)
    write_text(path, f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}")


def put_in_place(made: Path, path: Path) -> Path:
    """Rename a finished file or folder to its final name, replacing a file or an empty folder, and sync the name."""
    made.replace(path)
    sync_folder(path.parent)
    return path


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk; without this, a power failure may lose a file that was itself synced."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as e:
        if e.errno != errno.EINVAL:  # a file system that cannot sync folders
            raise
    finally:
        os.close(fd)


def file_sha256(path: str | Path) -> str:
    """sha256 of a file. This process remembers it by path, size and modification time."""
    path = Path(path).resolve()
    stat = path.stat()
    return _sha256_of(str(path), stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=1024)
def _sha256_of(path: str, size: int, mtime_ns: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_hash(parts: Iterable[str]) -> str:
    """sha256 of several texts. The separator distinguishes ("ab", "c") from ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8"))
        digest.update(b"\x00")
    return digest.hexdigest()


def sweep(folder: Path) -> None:
    """Remove half-finished files of killed processes from a folder that this process has locked."""
    for path in folder.rglob(".*.tmp"):
        if path.is_file():
            path.unlink(missing_ok=True)
        else:
            shutil.rmtree(path, ignore_errors=True)
