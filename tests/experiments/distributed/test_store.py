"""The store of measurements: what goes in comes out, and is found by what it depends on only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from composcope.experiments.config import Shard
from composcope.experiments.distributed.store import CachedModel, Missing, Store, entry_key
from composcope.probes.lookback.examples import _measure as lookback
from composcope.probes.min_k import _measure as min_k
from composcope.probes.spread import collect

VALUE = {
    "tensor": torch.randn(3, 2, dtype=torch.float64),
    "half": torch.randn(2).bfloat16(),
    "array": np.array([1.5, float("nan")]),
    "nothing": torch.empty(0, 4),
    "parts": [([0, 1], torch.arange(3), None), ("text ü", True, -7, 1e-300, float("inf"))],
    "inner": {"a": 0.1 + 0.2},
}


def same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bool(torch.equal(a.nan_to_num(), b.nan_to_num()))
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    Store(tmp_path).write([("one", VALUE), ("two", torch.ones(2)), ("three", 0.5)])
    other = Store(tmp_path)
    assert same(other.get("one"), VALUE)
    assert same(other.get("two"), torch.ones(2))
    assert other.get("three") == 0.5
    assert "four" not in other


def test_a_store_sees_what_others_write_and_leaves_out_what_it_cannot_read(tmp_path: Path) -> None:
    mine, theirs = Store(tmp_path), Store(tmp_path)
    theirs.write([("a", 1)])
    theirs.write([("b", 2)])
    (tmp_path / "broken-1-0.safetensors").write_bytes(b"not a file of tensors")
    assert "a" not in mine
    mine.refresh()
    assert (mine.get("a"), mine.get("b")) == (1, 2)


@pytest.mark.parametrize(
    "other",
    [
        ("other model", partial(min_k, max_tokens=None), ((1, 2, 3), None)),
        ("scope", partial(min_k, max_tokens=64), ((1, 2, 3), None)),
        ("scope", partial(lookback, max_tokens=None), ((1, 2, 3), None)),
        ("scope", partial(min_k, max_tokens=None), ((1, 2, 4), None)),
        ("scope", partial(min_k, max_tokens=None), ((1, 2, 3), (1, 2))),
        ("scope", partial(min_k, max_tokens=None), ((1, 2), (3, None))),
        ("scope", partial(min_k, max_tokens=None), ((1, 2, 3.0), None)),
        ("scope", partial(min_k, max_tokens=None), (torch.tensor([1, 2, 3]), None)),
    ],
)
def test_a_key_holds_everything_that_a_result_depends_on(other: tuple[str, Any, Any]) -> None:
    mine = entry_key("scope", partial(min_k, max_tokens=None), ((1, 2, 3), None))
    assert mine == entry_key("scope", partial(min_k, max_tokens=None), [[1, 2, 3], None])
    assert entry_key(*other) != mine


def test_tensors_of_another_shape_or_type_are_other_items() -> None:
    table = torch.arange(6)
    shapes = [entry_key("scope", min_k, (x, None)) for x in (table, table.view(2, 3), table.view(3, 2), table.double())]
    assert len(set(shapes)) == 4


def count(lm: Any, items: Sequence[int], notes: Any) -> Any:
    for i, item in enumerate(items):
        lm.append(item)
        yield i, item * 10


def test_shards_measure_their_own_items_once_and_the_last_look_puts_them_together(tmp_path: Path) -> None:
    items = list(range(7))
    ran: list[list[int]] = [[], [], []]
    for i in (1, 2):
        with pytest.raises(Missing, match="of 7 items are other shards'"):
            collect(CachedModel(ran[i - 1], Store(tmp_path), "s", Shard(i, 3)), count, items)
    assert collect(CachedModel(ran[2], Store(tmp_path), "s", Shard(3, 3)), count, items) == [x * 10 for x in items]
    assert sorted(item for mine in ran for item in mine) == items
    again: list[int] = []
    assert collect(CachedModel(again, Store(tmp_path), "s"), count, items) == [x * 10 for x in items]
    assert again == []
    assert collect(CachedModel(again, Store(tmp_path), "other model"), count, items) == [x * 10 for x in items]
    assert again == items
