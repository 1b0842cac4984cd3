"""Measurements on disk, item by item, so that measurements of a killed worker are not repeated.

Each process adds its own files (``HOST-PID-...-N.safetensors``: tensors, and metadata that says how they form each
result). A file is written completely or not at all. The key of an entry is the hash of everything that it depends on,
so stores of several processes, shards and machines are merged by copying their files into one folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ...errors import NoCasesError
from ...evaluation.shards import Shard
from ...files import put_in_place, text_hash
from ...probes.spread import Measure, Notes
from ..run import provenance

_PLAIN = (str, int, float, bool, type(None))


def entry_key(scope: str, measure: Callable[..., Any], item: Any) -> str:
    """sha256 of what a result depends on: ``scope`` (model, code, ...), the measurement and its options, the item."""
    digest = hashlib.sha256()
    options: Mapping[str, Any] = {}
    if isinstance(measure, partial):
        measure, options = measure.func, measure.keywords
    name = f"{measure.__module__}.{measure.__qualname__}"
    for value in (scope, name, dict(options), item):
        _feed(digest, value)
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    if isinstance(value, _PLAIN):
        digest.update(f"{type(value).__name__}:{value!r};".encode())
    elif isinstance(value, torch.Tensor | np.ndarray):
        array = value.detach().cpu() if isinstance(value, torch.Tensor) else torch.from_numpy(value)
        digest.update(f"{array.dtype}{tuple(array.shape)}:".encode())
        digest.update(array.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if array.numel() else b"")
    elif isinstance(value, Mapping):
        _feed_all(digest, "dict", [x for k in sorted(value) for x in (k, value[k])])
    elif isinstance(value, Sequence):  # a list and a tuple of the same values are the same item
        _feed_all(digest, "list", value)
    elif is_dataclass(value) and not isinstance(value, type):
        parts = [x for f in fields(value) for x in (f.name, getattr(value, f.name))]
        _feed_all(digest, type(value).__qualname__, parts)
    else:
        raise TypeError(f"a {type(value).__name__} cannot be part of a measured item")


def _feed_all(digest: Any, kind: str, values: Sequence[Any]) -> None:
    digest.update(f"{kind}[{len(values)}:".encode())
    for value in values:
        _feed(digest, value)


def pack(value: Any, tensors: list[torch.Tensor]) -> Any:
    """``value`` as JSON, its tensors and arrays appended to ``tensors``."""
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach().cpu().contiguous().clone())
        return {"tensor": len(tensors) - 1}
    if isinstance(value, np.ndarray | np.generic):
        tensors.append(torch.from_numpy(np.array(value)))
        return {"array": len(tensors) - 1}
    if isinstance(value, Mapping):
        if not all(isinstance(k, str) for k in value):  # JSON would make texts of the keys
            return {"items": [pack([k, v], tensors) for k, v in value.items()]}
        return {"dict": {k: pack(v, tensors) for k, v in value.items()}}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [pack(v, tensors) for v in value]}
    raise TypeError(f"a {type(value).__name__} cannot be kept in a store of measurements")


def unpack(packed: Any, tensors: Callable[[int], torch.Tensor]) -> Any:
    """The inverse of ``pack``."""
    if not isinstance(packed, dict):
        return packed
    ((kind, inner),) = packed.items()
    if kind == "dict":
        return {k: unpack(v, tensors) for k, v in inner.items()}
    if kind == "items":
        return dict(unpack(pair, tensors) for pair in inner)
    if kind in ("list", "tuple"):
        values = [unpack(v, tensors) for v in inner]
        return values if kind == "list" else tuple(values)
    return tensors(inner).numpy() if kind == "array" else tensors(inner)


class Store:
    """A folder of measurements; ``refresh`` reads it again."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._where: dict[str, tuple[Path, Any]] = {}
        self._seen: set[str] = set()
        # Process ids are reused, in containers almost at once, so a random last part keeps writers apart.
        self._writer = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._written = 0
        self.refresh()

    def refresh(self) -> None:
        """Read files written since the last call. A file that cannot be read is left out, its items measured again."""
        for path in sorted(self.folder.glob("*.safetensors")) if self.folder.is_dir() else []:
            if path.name in self._seen:
                continue
            try:
                with safe_open(path, framework="pt") as f:
                    entries = json.loads((f.metadata() or {})["entries"])
            except (SafetensorError, OSError, KeyError, ValueError):
                continue
            self._seen.add(path.name)
            self._where.update({key: (path, packed) for key, packed in entries.items()})

    def __contains__(self, key: str) -> bool:
        return key in self._where

    def get(self, key: str) -> Any:
        """The result of an entry in the store."""
        path, packed = self._where[key]
        with safe_open(path, framework="pt") as f:
            return unpack(packed, lambda i: f.get_tensor(str(i)))

    def write(self, results: Iterable[tuple[str, Any]]) -> None:
        """Add results to the store in one file, which is written completely or not at all."""
        tensors: list[torch.Tensor] = []
        entries = {key: pack(value, tensors) for key, value in results}
        if not entries:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{self._writer}-{self._written}.safetensors"
        self._written += 1
        temporary = self.folder / f".{name}.tmp"
        save_file({str(i): t for i, t in enumerate(tensors)}, temporary, {"entries": json.dumps(entries)})
        put_in_place(temporary, self.folder / name)


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

    With ``shard`` only every n-th item is measured. Raises ``Missing`` if other items are not in the store yet.
    """

    def __init__(self, lm: Any, store: Store, scope: str, shard: Shard | None = None) -> None:
        self.lm, self.store, self.scope, self.shard = lm, store, scope, shard

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
        mine = [i for i in todo if self.shard is None or self.shard.has(i)]
        for start in range(0, len(mine), POOL):
            some = mine[start : start + POOL]
            found = [(some[j], result) for j, result in measure(self.lm, [items[i] for i in some], notes)]
            self.store.write((keys[i], result) for i, result in found)
        self.store.refresh()
        missing = [key for key in keys if key not in self.store]
        if missing:
            raise Missing(
                f"{len(missing)} of {len(items)} items belong to other shards; when all shards are done, run the same "
                "command without --shard"
            )
        for i, key in enumerate(keys):
            yield i, self.store.get(key)

    def call(self, function: Any, *args: Any) -> Any:
        """See ``probes.spread.call``."""
        return function(self.lm, *args)
