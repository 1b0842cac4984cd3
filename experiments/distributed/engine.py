"""Ray workers in the place of an engine and of a model: asks are answered there, and probes measure their items there.

Each worker has its own journal segment; what probes find is summarized here.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import ModelError
from ...evaluation.asks import Ask, Response
from ...evaluation.engines.base import BaseEngine, ReplayEngine
from ...evaluation.journal import Journal, ask_identity, read_journal
from ...probes.spread import Measure, Notes
from ...terminal import to_stderr
from ..models.target import Loading, Target, as_answered, load_from_server, load_local, load_own_server, sources
from ..run import write_text
from ..run.folder import MEASURED
from ..run.reader import read_run
from .pool import Pool
from .store import Store, entry_key, scope
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

    def record(self, key: str, ask: Ask, response: Response, identity: Mapping[str, str]) -> None:
        """See ``Journal.record``."""
        if key in self.written:
            self.contents.put(key, response)
        else:
            super().record(key, ask, response, identity)


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


@dataclass(frozen=True)
class RayTarget(Target):
    """A target on Ray workers. ``model`` is None: the weights are on the workers, and the tokenizer is also here."""

    pool: Any = None
    """``Pool``"""
    run: Path = Path()

    def open_model(self) -> FleetModel:
        """The model for the probes; its measurements run on the workers, item by item."""
        return FleetModel(self.pool, self.tokenizer, self.run, scope(self))

    def facts(self) -> Mapping[str, Any]:
        """The manifest's facts about the model, as a worker reported them."""
        return self.pool.about["facts"]

    def numerics(self) -> Mapping[str, Any]:
        """The settings on a worker that affect the last digits."""
        return self.pool.about["numerics"]

    def record(self) -> Mapping[str, Any]:
        """The manifest's entry about the workers."""
        pool = self.pool
        started = [{k: a[k] for k in ("host", "pid", "versions")} for a in pool.abouts]
        about = {"workers": pool.workers, "gpus_per_worker": pool.gpus, "cpus_per_worker": pool.cpus, "lost": pool.lost}
        return {"fleet": {**about, "started": started, "peak_memory": pool.peaks()}}

    def close(self) -> None:
        """Stop the workers. Closing twice is harmless."""
        self.pool.close()


def load_fleet(loading: Loading, run: Path, say: Callable[[str], None]) -> RayTarget:
    """Start the workers, each with the model, and open the tokenizer here.

    Raises ``InputError`` without Ray or a cluster, and ``ModelError`` if workers cannot load the model or differ.
    """
    from ...model_loading import load_tokenizer

    source, _ = sources(loading, say)
    pool = Pool(replace(loading, model=source.name), say)
    try:
        tokenizer = load_tokenizer(source.location)
        engine = _answered_elsewhere(run, pool) or RayEngine(pool)
        prompting = loading.prompting or pool.about["prompting"]
        return RayTarget(source, None, tokenizer, engine, prompting, pool=pool, run=run)
    except BaseException:
        pool.close()
        raise


def _answered_elsewhere(run: Path, pool: Pool) -> ReplayEngine | None:
    """The engine of a run that a server answered: its answers are only read, and the workers probe its weights.

    Raises ``ModelError`` if the workers have other weights.
    """
    if not (run / "graded.jsonl").is_file():
        return None
    before = read_run(run).manifest.engine
    identity, made = (before.identity, before.provenance) if before else ({}, {})
    if made.get("engine") in (None, "transformers"):
        return None
    here = pool.about["identity"]["weights"]
    if identity.get("weights", here) != here:
        raise ModelError(
            f"{run}: was answered by weights {identity['weights'][:12]}, the workers have {here[:12]}; give the run's "
            "model with --model or --probe-model"
        )
    return ReplayEngine(identity, made, read_journal(run / "journal").failures)


def load_target(loading: Loading, run: Path | None = None, say: Callable[[str], None] | None = None) -> Target:
    """Load a model and its tokenizer from a folder, the cache or the hub, or connect to the server that has it.

    ``run`` is the run's folder: for the log of our own server, and, if it holds a run already, for the identity by
    which this one knows the model (``as_answered``). ``say`` receives progress messages. Close the target when done.
    Raises ``InputError`` or ``ModelError`` for names, folders, weights and servers that cannot be used.
    """
    target = OPENERS[loading.engine](loading, run or Path(), say or to_stderr)
    known = read_run(run).manifest.identity if run is not None and (run / "manifest.json").is_file() else {}
    return as_answered(target, known.get("weights")) if loading.engine == "transformers" else target


Opener = Callable[[Loading, Path, Callable[[str], None]], Target]
OPENERS: Mapping[str, Opener] = {
    "transformers": lambda loading, _, say: load_local(loading, say),
    "openai": load_from_server,
    "vllm": load_own_server,
    "ray": load_fleet,
}
"""How each engine opens the model."""
