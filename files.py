"""Files and folders that are there whole or not at all, also after the power failed."""

from __future__ import annotations

import errno
import os
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
