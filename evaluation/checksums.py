"""Checksums of a journal's lines: each is over its line and the checksum before it.

The checksums show where an answer was altered, or a line was removed, inserted or moved. Each segment has its own
chain, so segments may be copied together. A checksum is not a signature: who can write the file can recompute it.

    line, digest = seal(b'{"key": "k"}', before="")
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

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
    """The checksums of one segment, line by line. A segment has one in each line or, by an earlier version, in none."""

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.sealed = any(_SEAL.search(line) for line in lines)
        self.before: str | None = ""
        """The checksum that the line before states; None where it states none."""

    def check(self, line: bytes) -> str | None:
        """What is wrong with the next line; None where nothing is, or where the segment has no checksums."""
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
        return "altered, or a line before it was taken out or put in: its checksum does not fit"
