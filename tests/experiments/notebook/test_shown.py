"""Tables and maps of a notebook, and a model in memory without its tokenizer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from composcope.errors import InputError
from composcope.experiments.config import Config
from composcope.experiments.notebook import probing, shown
from composcope.experiments.run.reader import ProbeData
from composcope.hooks import model as hooks


def test_rows_of_a_table_are_counted_walked_through_and_taken_by_number() -> None:
    rows = [{"a": 1, "b": None}, {"a": 2, "b": None}]
    table = shown.Table("mine", rows)
    assert (len(table), list(table), table[1], repr(table)) == (2, rows, rows[1], "<mine: 2 rows; .to_df()>")
    assert list(table.to_df().columns) == ["a"], "a column that is empty in every row is left out"
    assert list(shown.Table("mine", [*rows, {"c": 3}]).to_df().columns) == ["a", "c"], "and no other"
    with pytest.raises(InputError, match=r"mine: rows have numbers.*to_df"):
        table["a"]  # type: ignore[call-overload]


def test_maps_are_known_by_their_names_with_their_axes() -> None:
    tensors = {"difference.composition": np.arange(6.0).reshape(2, 3), "other": np.zeros(2)}
    maps = shown.Maps(ProbeData("mine", (), tensors, axes={"difference.composition": ["layer", "head"]}))
    assert list(maps) == maps._ipython_key_completions_() == ["failure - success", "other"] and len(maps) == 2
    assert repr(maps) == "<maps of mine: failure - success, other>"
    found = maps["failure - success"]
    assert found.dims == ("layer", "head") and float(found[1, 2]) == 5 == float(found.sel(layer=1, head=2))
    assert found.attrs == {"probe": "mine", "tensor": "difference.composition"} and found.name == "failure - success"
    assert maps["other"].dims == ("axis 0",)
    with pytest.raises(InputError, match=r"no map 'othr'.*did you mean 'other'"):
        maps["othr"]


def test_a_probe_without_a_figure_of_its_own_asks_for_the_name_of_one() -> None:
    probe: Any = SimpleNamespace(name="my-own")
    with pytest.raises(InputError, match="probe my-own: has no figure of its own"):
        shown.ProbeResults.plot(probe)


def test_a_model_in_memory_needs_its_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "load_model", lambda model, tokenizer: SimpleNamespace(tokenizer=tokenizer))
    with pytest.raises(InputError, match="tokenizer: missing"):
        probing.in_memory(object(), None, Config(model="m", benchmark="b"))
