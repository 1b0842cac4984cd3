"""Part i of n of a job (``--shard i/n``), for arrays of jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..errors import InputError


@dataclass(frozen=True)
class Shard:
    """Part ``index`` of ``of``, counted from 1."""

    index: int
    of: int

    def __str__(self) -> str:
        return f"{self.index}/{self.of}"

    def has(self, position: int) -> bool:
        """Whether the item at a position (from 0) belongs to this shard; a shard takes every n-th item."""
        return position % self.of == self.index - 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``2/8`` -> the second of eight. Raises ``InputError`` for anything else."""
        found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        shard = cls(int(found[1]), int(found[2])) if found else cls(0, 0)
        if not 1 <= shard.index <= shard.of:
            raise InputError(f"--shard {text}: give part and number of parts, counted from 1: 1/8, 2/8, ..., 8/8")
        return shard
