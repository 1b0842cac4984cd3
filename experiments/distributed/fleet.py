"""A model on the workers of a pool: probes distribute their measurements over it and summarize them here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...probes.spread import Measure, Notes
from ..run.folder import MEASURED
from .engine import mark
from .pool import Pool
from .store import Store, entry_key

ITEMS_PER_WORKER = 4
MAX_ITEMS = 64


class FleetModel:
    """Takes the place of a ``Model`` for probes: it has the model's sizes and ``spread``, but no weights."""

    def __init__(self, pool: Pool, tokenizer: Any, run: Path, scope: str) -> None:
        """``run`` is the run folder; ``scope`` is the hash of what all measurements depend on (model, dtype, code)."""
        import torch

        self.pool, self.tokenizer, self.scope = pool, tokenizer, scope
        self.anatomy, self.dtype, self.eos_ids = pool.one("sizes")
        self.device = torch.device("cpu")
        """The device on which results arrive."""
        self.place = mark(run)
        self.store = Store(run / "probes" / MEASURED)

    def spread(
        self, measure: Measure[Any, Any], items: Sequence[Any], notes: Notes, *, light: bool
    ) -> Iterator[tuple[int, Any]]:
        """See ``probes.spread``; items in the store are not measured again."""
        keys = [entry_key(self.scope, measure, item) for item in items]
        self.store.refresh()
        todo = [i for i, key in enumerate(keys) if key not in self.store]
        yield from ((i, self.store.get(key)) for i, key in enumerate(keys) if key in self.store)
        where: dict[str, list[int]] = {}
        for i in todo:
            where.setdefault(keys[i], []).append(i)
        work = [
            (measure, [items[i] for i in some], [keys[i] for i in some], self.place)
            for some in self._parts([found[0] for found in where.values()], items)
        ]
        late: list[str] = []
        for args, (results, remarks, written) in self.pool.map("measure", work, lambda args: self._rest(args, late)):
            if notes is not None:
                notes.extend(remark for remark in remarks if remark not in notes)
            if not written:
                self.store.write((args[2][j], result) for j, result in results)
            yield from ((i, result) for j, result in results for i in where.pop(args[2][j], []))
        yield from ((i, self.store.get(key)) for key in late for i in where.pop(key, []))

    def call(self, function: Any, *args: Any) -> Any:
        """See ``probes.spread.call``."""
        return self.pool.one("call", function, args)

    def _parts(self, todo: Sequence[int], items: Sequence[Any]) -> list[list[int]]:
        """Groups of items of a similar size, the largest first."""
        order = sorted(todo, key=lambda i: -_size(items[i]))
        size = max(1, min(MAX_ITEMS, -(-len(order) // (ITEMS_PER_WORKER * self.pool.workers))))
        return [order[i : i + size] for i in range(0, len(order), size)]

    def _rest(self, args: tuple[Any, ...], late: list[str]) -> tuple[Any, ...] | None:
        measure, items, keys, place = args
        self.store.refresh()
        left = [(item, key) for item, key in zip(items, keys, strict=True) if key not in self.store]
        late += [key for key in keys if key in self.store]
        return (measure, [x for x, _ in left], [k for _, k in left], place) if left else None


def _size(item: Any) -> int:
    """The approximate number of tokens of an item."""
    if isinstance(item, int):
        return 1
    for name in ("prompt_ids", "ids"):
        if hasattr(item, name):
            return len(getattr(item, name))
    return sum(map(_size, item)) if isinstance(item, list | tuple) else 0
