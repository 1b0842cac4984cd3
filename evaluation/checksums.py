"""Checksums of a journal's lines: each is over its line and the checksum before it.

The checksums show where an answer was altered, or a line was removed, inserted or moved. Each segment has its own
chain, so segments may be copied together. A checksum is not a signature: who can write the file can recompute it.

    line, digest = seal(b'{"key": "k"}', before="")
"""

from __future__ import annotations

import hashlib
import re

_LENGTH = 32
_SEAL = re.compile(rb', "sum": "([0-9a-f]{%d})"}$' % _LENGTH)
"""The last field of a line. Inside a text the quotes would be escaped."""


def seal(line: bytes, before: str) -> tuple[bytes, str]:
    """A JSON object's line with its checksum as last field, and the checksum."""
    digest = _digest(line, before)
    return line[:-1] + b', "sum": "' + digest.encode() + b'"}', digest


def _digest(line: bytes, before: str) -> str:
    return hashlib.sha256(before.encode() + b"\n" + line).hexdigest()[:_LENGTH]


class Chain:
    """The checksums of one segment, line by line."""

    def __init__(self) -> None:
        self.before: str | None = ""
        """The checksum of the line before; None where that line cannot be read."""
        self.sealed = False

    def broken(self) -> None:
        """The next line follows one that cannot be read."""
        self.before = None

    def check(self, line: bytes) -> str | None:
        """What is wrong with the next line; None where nothing is, or where the segment has no checksums."""
        found = _SEAL.search(line)
        if found is None:
            self.broken()
            return "its checksum is missing" if self.sealed else None
        self.sealed, before = True, self.before
        self.before = stated = found[1].decode()
        if before is None or _digest(line[: found.start()] + b"}", before) == stated:
            return None
        return "altered, or a line before it was taken out or put in: its checksum does not fit"
