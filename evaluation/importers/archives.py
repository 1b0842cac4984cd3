"""Members of zip archives, also those compressed with Zstandard, which Python reads from 3.14 only.

inspect_ai writes its ``.eval`` logs so since 2025. Sizes are bounded: a few megabytes can unpack to any number of
gigabytes, and what an archive says of its sizes need not be true.
"""

from __future__ import annotations

import importlib
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from typing import Any

ZSTANDARD = 93
"""Compression method in a zip archive (APPNOTE.TXT, 4.4.5)."""
_HEADER = struct.Struct("<4s5H3I2H")


MOST_BYTES = 1 << 30
"""Of all members that are read from one archive, unpacked."""
MOST_PER_MEMBER = 1 << 26
"""A sample with its whole transcript has some megabytes."""


def check_sizes(archive: zipfile.ZipFile, names: Iterable[str]) -> None:
    """Raises ``zipfile.BadZipFile`` where members unpack to more than may be read."""
    total = 0
    for name in names:
        size = archive.getinfo(name).file_size
        total += size
        if size > MOST_PER_MEMBER or total > MOST_BYTES:
            what, most = (name, MOST_PER_MEMBER) if size > MOST_PER_MEMBER else ("its members together", MOST_BYTES)
            raise zipfile.BadZipFile(f"{what} would unpack to more than {most >> 20} MB, the most that is read")


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """The content of a member, its checksum compared; no more is unpacked than the archive says that there is.

    Raises ``KeyError`` for a name that is not there, ``NotImplementedError`` for a compression that nothing here
    reads, ``zipfile.BadZipFile`` for damaged content and for too much of it.
    """
    info = archive.getinfo(name)
    check_sizes(archive, [name])
    if info.compress_type != ZSTANDARD:
        with archive.open(info) as member:
            # Not ``archive.read``, which unpacks all there is and then looks at the size.
            return member.read(info.file_size + 1)
    content = _decompress(_raw(archive, info), info.file_size)
    if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(f"Bad CRC-32 for file {name!r}")
    return content


def _raw(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The compressed bytes, which follow a local header of their own length."""
    file = archive.fp
    if file is None:
        raise zipfile.BadZipFile("archive is closed")
    file.seek(info.header_offset)
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or header[:4] != b"PK\3\4":
        raise zipfile.BadZipFile(f"Bad magic number for file header of {info.filename!r}")
    *_, name_length, extra_length = _HEADER.unpack(header)
    file.seek(info.header_offset + _HEADER.size + name_length + extra_length)
    return file.read(info.compress_size)


def _decompress(raw: bytes, size: int) -> bytes:
    for read in (_standard_library, _zstandard, _arrow):
        found = read()
        if found is not None:
            try:
                return found(raw, size)
            except Exception as e:  # each library has its own errors
                raise zipfile.BadZipFile(f"Zstandard content cannot be read ({e})") from e
    raise NotImplementedError("compressed with Zstandard, which this Python cannot read")


_Reader = Callable[[bytes, int], bytes]


def _optional(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _standard_library() -> _Reader | None:
    found = _optional("compression.zstd")
    return None if found is None else lambda raw, size: found.ZstdDecompressor().decompress(raw, size + 1)


def _zstandard() -> _Reader | None:
    found = _optional("zstandard")
    return None if found is None else lambda raw, size: found.ZstdDecompressor().stream_reader(raw).read(size + 1)


def _arrow() -> _Reader | None:
    """pyarrow comes with ``datasets``."""
    found = _optional("pyarrow")
    return None if found is None else lambda raw, size: found.Codec("zstd").decompress(raw, size, asbytes=True)
