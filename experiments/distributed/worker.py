"""The code that runs on a Ray worker: one model that answers asks and measures items. Nodes must have the package.

If the node shares the run folder's file system with the driver, a worker saves its results there before sending them:
answers in its own journal segment, measurements in its own store file. So neither a killed worker nor a killed driver
loses them. On other nodes the driver writes the results when they arrive.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ... import errors
from ...evaluation.asks import Ask, Response
from ...evaluation.journal import Journal, ask_identity
from ..config import Serving
from ..models.target import Loading
from ..run import provenance
from ..run.folder import MEASURED
from .store import Store

MARK = ".fleet"
"""File in a run folder by which a worker recognizes the driver's folder, and not another folder of the same name."""


@dataclass(frozen=True)
class Place:
    """A run folder as the driver names it."""

    folder: str
    mark: str

    def here(self) -> Path | None:
        """The folder, if this node sees it."""
        try:
            same = (Path(self.folder) / MARK).read_text(encoding="utf-8") == self.mark
        except OSError:
            return None
        return Path(self.folder) if same else None


@dataclass(frozen=True)
class Failure:
    """A worker's error that a user can fix."""

    kind: str
    message: str

    def error(self) -> errors.ComposcopeError:
        """The error, to be raised in the process that runs the command."""
        return getattr(errors, self.kind, errors.ModelError)(self.message)


def _reported(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return errors that a user can fix as values; all other errors are defects and keep their traceback."""

    def guarded(self: Worker, *args: Any) -> Any:
        try:
            return method(self, *args)
        except errors.ComposcopeError as e:
            kind = next(c.__name__ for c in type(e).__mro__ if c.__module__ == errors.__name__)
            return Failure(kind, f"worker on {platform.node()}: {e}")

    return guarded


class Worker:
    """A Ray worker. Nothing is loaded before ``load``."""

    def __init__(self, loading: Loading, threads: int) -> None:
        several = (loading.serving.gpus_per_worker or 0) > 1
        device = loading.device or ("auto" if several else None)
        self.loading = replace(loading, serving=Serving(), device=device)
        self.threads = threads
        self.target: Any = None
        self._lm: Any = None
        self._journals: dict[Place, Journal | None] = {}
        self._stores: dict[Place, Store | None] = {}

    @_reported
    def load(self, code: Mapping[str, Any]) -> dict[str, Any]:
        """Check that this node runs the driver's code, load the model, and describe it."""
        mine = provenance.code()
        for what in ("version", "source"):
            if mine[what] != code[what]:
                raise errors.ModelError(
                    f"composcope here is {mine['version']} (source {mine['source'][:12]}), the driver's "
                    f"{code['version']} (source {code['source'][:12]}); install the same package on every node"
                )
        import torch

        from ...terminal import to_stderr
        from ..console.exits import quiet_libraries
        from ..models.target import load_local

        quiet_libraries()
        torch.set_num_threads(self.threads)
        self.target = load_local(self.loading, to_stderr)
        return {
            "host": platform.node(),
            "pid": os.getpid(),
            "identity": dict(self.target.engine.identity),
            "provenance": dict(self.target.engine.provenance),
            "facts": dict(self.target.facts()),
            "numerics": dict(self.target.numerics()),
            "prompting": self.target.prompting,
            "versions": provenance.libraries(),
        }

    @_reported
    def answer(self, asks: Sequence[Ask], place: Place | None) -> tuple[list[tuple[int, Response]], bool]:
        """Responses by index of the ask, and whether they are already in the run's journal."""
        engine, journal = self.target.engine, self._journal(place)
        keys = [ask_identity(ask, engine.identity) for ask in asks]
        where = {key: i for i, key in enumerate(keys)}
        known = {key: kept for key in keys if journal is not None and (kept := journal.get(key)) is not None}
        found = [(where[key], response) for key, response in known.items()]
        for ask, response in engine.answer([a for a, key in zip(asks, keys, strict=True) if key not in known]):
            key = ask_identity(ask, engine.identity)
            if journal is not None:
                journal.record(key, ask, response, engine.identity)
            found.append((where[key], response))
        return found, journal is not None

    @_reported
    def measure(
        self, measure: Callable[..., Any], items: Sequence[Any], keys: list[str], place: Place | None
    ) -> tuple[list[tuple[int, Any]], list[str], bool]:
        """Results by index of the item, remarks, and whether the results are already in the run's store."""
        notes: list[str] = []
        results = [(i, _on_cpu(result)) for i, result in measure(self._model(), items, notes)]
        store = self._store(place)
        if store is not None:
            store.write((keys[i], result) for i, result in results)
        return results, notes, store is not None

    @_reported
    def call(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """``function(lm, *args)``"""
        return function(self._model(), *args)

    @_reported
    def sizes(self) -> tuple[Any, Any, tuple[int, ...]]:
        """The model's anatomy without its modules, its dtype and its end-of-response ids."""
        lm = self._model()
        return without_modules(lm.anatomy), lm.dtype, lm.eos_ids

    @_reported
    def peak(self) -> dict[str, Any]:
        """Peak memory of this process."""
        from ..run.provenance import memory_peaks

        return {"host": platform.node(), "pid": os.getpid(), **memory_peaks()}

    def _model(self) -> Any:
        if self._lm is None:
            self._lm = self.target.open_model()
        return self._lm

    def _journal(self, place: Place | None) -> Journal | None:
        if place is None:
            return None
        if place not in self._journals:
            here = place.here()
            # The driver holds the journal's lock for all its workers and has compared the provenance.
            journal = None if here is None else Journal(here / "journal", reuse=True, lock=False)
            if journal is not None:
                journal.begin(self.target.engine.identity, self.target.engine.provenance)
            self._journals[place] = journal
        return self._journals[place]

    def _store(self, place: Place | None) -> Store | None:
        if place is None:
            return None
        if place not in self._stores:
            here = place.here()
            self._stores[place] = None if here is None else Store(here / "probes" / MEASURED)
        return self._stores[place]


def without_modules(anatomy: Any) -> Any:
    """Sizes and shape of a model: every module becomes an empty one, and attributes made of modules become empty."""
    from torch import nn

    def stripped(value: Any) -> Any:
        if isinstance(value, nn.Module):
            return nn.Identity()
        if isinstance(value, tuple):
            return value if all(isinstance(x, int) for x in value) else ()
        return value if isinstance(value, int | float) else None

    layers = [replace(x, **{f.name: stripped(getattr(x, f.name)) for f in fields(x)}) for x in anatomy.layers]
    return replace(anatomy, layers=tuple(layers))


def _on_cpu(value: Any) -> Any:
    """Results without references to the worker's GPU or graph."""
    import torch

    if isinstance(value, torch.Tensor):
        return value.detach().cpu()
    if isinstance(value, dict):
        return {k: _on_cpu(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_on_cpu(v) for v in value)
    return value
