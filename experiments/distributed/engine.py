"""Ray workers in the place of an engine and of a model: asks are answered there, and probes measure their items there.

Each worker has its own journal segment; what probes find is summarized here.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...evaluation.asks import Ask, Response
from ...evaluation.engines.base import BaseEngine
from ...evaluation.journal import Journal, ask_identity, read_journal
from ...probes.spread import Measure, Notes
from ..run import write_text
from ..run.folder import MEASURED
from .pool import Pool
from .store import Store, entry_key
from .worker import MARK, Place

ITEMS_PER_WORKER = 4
"""Number of items per worker in a round, so that all workers finish at about the same time."""
MIN_ASKS = 32
"""Asks per item if there are enough, so that batches stay full."""
MAX_ASKS = 1024


class WorkersJournal(Journal):
    """The driver's side of a journal: answers that a worker has already written are only recorded in memory."""

    def __init__(self, folder: str | Path, written: set[str], *, reuse: bool = False) -> None:
        self.written = written
        super().__init__(folder, reuse=reuse)

    def append(self, key: str, ask: Ask, response: Response, identity: Mapping[str, str]) -> None:
        """See ``Journal.append``."""
        if key not in self.written:
            super().append(key, ask, response, identity)
        elif response.finish_reason == "error":
            self.contents.failures[key] = response
        else:
            self.contents.failures.pop(key, None)
            self.contents.responses.setdefault(key, response)


class RayEngine(BaseEngine):
    """An engine whose answers come from the workers; its identity and provenance are theirs."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.identity: dict[str, str] = dict(pool.about["identity"])
        self.provenance: dict[str, Any] = dict(pool.about["provenance"])
        self.place: Place | None = None
        self.written: set[str] = set()
        """Asks whose answers are in the journal segment of a worker."""

    def open_journal(self, folder: str | Path, *, reuse: bool = False) -> Journal:
        """The journal that the workers and the driver write together."""
        journal = WorkersJournal(folder, self.written, reuse=reuse)
        self.place = mark(Path(folder).parent)
        return journal

    def answer(self, asks: Sequence[Ask]) -> Iterator[tuple[Ask, Response]]:
        """Answer every ask, in items that hold whole cases; see ``Engine``."""
        late: list[tuple[Ask, Response]] = []
        for args, (found, written) in self.pool.map("answer", self._items(asks), lambda args: self._rest(args, late)):
            yield from late
            late.clear()
            some: Sequence[Ask] = args[0]
            for i, response in found:
                if written:
                    self.written.add(response.ask)
                yield some[i], response
        yield from late

    def _items(self, asks: Sequence[Ask]) -> list[tuple[Any, ...]]:
        by_case: dict[str, list[Ask]] = {}
        for ask in asks:
            by_case.setdefault(ask.case, []).append(ask)
        size = -(-len(asks) // (ITEMS_PER_WORKER * self.pool.workers))
        size = min(MAX_ASKS, max(MIN_ASKS, size, self.pool.loading.batch_size or 0))
        items: list[list[Ask]] = [[]]
        for some in by_case.values():
            if items[-1] and len(items[-1]) + len(some) > size:
                items.append([])
            items[-1] += some
        return [(item, self.place) for item in items if item]

    def _rest(self, args: tuple[Any, ...], late: list[tuple[Ask, Response]]) -> tuple[Any, ...] | None:
        """What a lost worker left undone; answers that it had already journalled go to ``late``."""
        asks, place = args
        here = None if place is None else place.here()
        known = {} if here is None else read_journal(here / "journal").responses
        left = []
        for ask in asks:
            key = ask_identity(ask, self.identity)
            if key in known:
                self.written.add(key)
                late.append((ask, known[key]))
            else:
                left.append(ask)
        return (left, place) if left else None


def mark(run: Path) -> Place:
    """Mark a run folder so that workers can tell whether they see it."""
    found = run / MARK
    if not found.is_file():
        write_text(found, secrets.token_hex(8))
    return Place(str(run.resolve()), found.read_text(encoding="utf-8"))


PARTS_PER_WORKER = 4
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
        size = max(1, min(MAX_ITEMS, -(-len(order) // (PARTS_PER_WORKER * self.pool.workers))))
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
