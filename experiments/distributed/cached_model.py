"""A model in this process with a store: measured items are read from it, and a shard measures only its own items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...errors import NoCasesError
from ...files import text_hash
from ...probes.spread import Measure, Notes
from ..config import Shard
from ..run import provenance
from .store import Store, entry_key

POOL = 64
"""Number of items measured between two writes."""


def scope(target: Any) -> str:
    """Hash of everything that a target's measurements depend on: weights, numerics and the code of probes and hooks."""
    numerics = target.numerics()
    who = sorted(target.engine.identity.items())
    kind = str(numerics.get("device", "")).partition(":")[0]
    how = [numerics.get("dtype"), numerics.get("attention"), kind]
    return text_hash([repr(who), repr(how), provenance.source_hash(("probes", "hooks"))])


class Missing(NoCasesError):
    """A shard has measured its own items, but those of other shards are still missing."""


class CachedModel:
    """A ``Model`` whose measurements go through a store; everything else comes from the model itself.

    With ``part`` only every n-th item is measured. Raises ``Missing`` if other items are not in the store yet.
    """

    def __init__(self, lm: Any, store: Store, scope: str, part: Shard | None = None) -> None:
        self.lm, self.store, self.scope, self.part = lm, store, scope, part

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lm, name)

    def spread(
        self, measure: Measure[Any, Any], items: Sequence[Any], notes: Notes, *, light: bool
    ) -> Iterator[tuple[int, Any]]:
        """See ``probes.spread``."""
        if light:  # doing it again is as fast as reading it
            yield from measure(self.lm, items, notes)
            return
        keys = [entry_key(self.scope, measure, item) for item in items]
        todo = [i for i, key in enumerate(keys) if key not in self.store]
        mine = [i for i in todo if self.part is None or self.part.has(i)]
        for start in range(0, len(mine), POOL):
            some = mine[start : start + POOL]
            found = [(some[j], result) for j, result in measure(self.lm, [items[i] for i in some], notes)]
            self.store.write((keys[i], result) for i, result in found)
        self.store.refresh()
        missing = [key for key in keys if key not in self.store]
        if missing:
            raise Missing(
                f"{len(missing)} of {len(items)} items are other shards'; when all have run, give the same command "
                "without --shard"
            )
        for i, key in enumerate(keys):
            yield i, self.store.get(key)

    def call(self, function: Any, *args: Any) -> Any:
        """See ``probes.spread.call``."""
        return function(self.lm, *args)
