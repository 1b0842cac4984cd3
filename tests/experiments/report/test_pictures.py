"""Pictures of single cases: packed arrays of each, and what is left out where they are too large."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from composcope.experiments.report import pictures
from composcope.experiments.report.pictures import packed
from composcope.experiments.run.reader import ProbeData, load
from composcope.experiments.run.single_cases import CaseValue

from ..bare_runs import bare_run


def _picture(n: int, attention: int, **about: Any) -> dict[str, Any]:
    entry = {"role": "whole", "group": "failure", "arrays": {"attention": "x" * attention, "ratio": "y" * 10}}
    return {"case": f"c{n}", "probes": {"lookback": [entry], "patching": [{"donor": "d", "arrays": {}, **about}]}}


def test_attention_is_left_out_from_the_last_case_on_and_then_whole_cases() -> None:
    def files() -> dict[str, Any]:
        return {f"pictures/0-{i}": _picture(i, 1000) for i in range(4)}

    def kept(budget: int) -> tuple[tuple[int, int], list[bool]]:
        made = files()
        told = pictures._shrink(made, budget)
        return told, ["attention" in f["probes"]["lookback"][0]["arrays"] for f in made.values()]

    whole, size = sum(map(pictures.size_of, files().values())), pictures.size_of(_picture(0, 1000))
    assert kept(whole) == ((0, 0), [True] * 4) and kept(whole - 1) == ((1, 0), [True, True, True, False])
    assert kept(2 * size) == ((3, 0), [True, False, False, False])
    assert kept(2 * pictures.size_of(_picture(0, 1000)) // 10) == ((4, 3), [False])
    one_swept = _picture(0, 9, sweep_positions=[1])
    one_swept["probes"]["patching"].append({"donor": "e", "arrays": {}})
    entry = pictures._entry("f", one_swept)
    assert entry == {"case": "c0", "file": "f", "group": "failure", "probes": ["lookback", "patching"],
                     "attention": ["whole"], "donor": "d", "sweep": True}  # fmt: skip
    assert pictures._note({"note": "kept for 2", "cases_per_group": 2, "left_out": ["a", "b"]}) == (
        "Kept for 2 (--case-details 2). Left out: a; b.")  # fmt: skip


def test_heads_of_every_whole_are_packed_only_where_they_belong_to_named_cases() -> None:
    ratios = np.random.default_rng(0).uniform(size=(2, 3, 4))

    def run(names: list[str], tensors: dict[str, Any]) -> Any:
        return bare_run(probe=lambda name: ProbeData(name, (), tensors, settings={"cases": names}))

    made = [run(["a", "b"], {"wholes": ratios}), run(["a"], {"wholes": ratios}), run([], {})]
    found = pictures.heads([*made, bare_run(probe=lambda _: None)])
    assert list(found) == ["heads/0"] and found["heads/0"]["cases"] == ["a", "b"]
    assert found["heads/0"]["ratio"] == pictures.packed(ratios)


def test_the_numbers_of_a_case_are_those_of_its_whole_by_quantity_and_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        ("c", "whole", "composition", "mean_ratio", 0.5),
        ("c", "whole", "composition & math", "overlap", 0.25),
        ("c", "whole:cot", "composition", "mean_ratio", 9.0),
        ("c", "part:0", "math", "mean_ratio", 9.0),
        ("d", "whole", "composition", "mean_ratio", math.nan),
        ("e", "whole", "composition", "overlap", 0.0),
    ]
    monkeypatch.setattr(pictures, "read_values", lambda path, probe: [CaseValue(*r, None) for r in rows])
    found = pictures._values(bare_run(probe_names=["p"]))
    assert found == {"c": {"mean ratio": 0.5, "overlap (math)": 0.25}, "e": {"overlap": 0.0}}


AddCases = Callable[..., dict[str, Any]]


def unpacked(value: dict[str, Any]) -> np.ndarray:
    """What the page reads, computed as it does."""
    kind, missing = ("<u2", 65535) if value["bits"] == 16 else ("u1", 255)
    numbers = np.frombuffer(base64.b64decode(value["data"]), kind).astype(float)
    numbers[numbers == missing] = np.nan
    return (value["low"] + (value["high"] - value["low"]) * numbers / (missing - 1)).reshape(value["shape"])


def test_pictures_hold_the_arrays_of_each_case(synthetic: ModuleType, add_cases: AddCases, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8)
    arrays = add_cases(run, ["case-0001", "case-0003"])
    rows = ["case,role,kind,quantity,value", "a,whole,composition,min_k,0.5", "a,whole,composition & cue,min_k,0.25",
            "a,part:0,math,min_k,1", "b,whole,composition,min_k,nan", "b,whole,composition,min_k,"]  # fmt: skip
    (run / "probes" / "min-k" / "values.csv").write_text("\n".join(rows) + "\n")
    found = pictures.collect(load([run]))
    (about,) = found.index["runs"]
    assert about["values"]["a"] == {"min k": 0.5, "min k (cue)": 0.25} and "b" not in about["values"]
    assert [c["case"] for c in about["cases"]] == ["case-0001", "case-0003"]
    assert about["cases"][1]["attention"] == ["whole", "part:0"] and about["cases"][1]["sweep"]
    assert about["notes"]["lookback"] == "Kept for 2 of 9 cases (--case-details 2)."
    second = found.files["pictures/0-1"]["probes"]["lookback"][1]
    np.testing.assert_allclose(unpacked(second["arrays"]["attention"]), arrays["lookback"]["3.attention"], atol=1e-4)


def test_too_large_pictures_lose_precision_then_attention_then_cases_and_say_so(
    synthetic: ModuleType, add_cases: AddCases, tmp_path: Path
) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8)
    add_cases(run, ["case-0001", "case-0003", "case-0005"])
    data = load([run])
    full = sum(map(pictures.size_of, pictures.collect(data).files.values()))
    coarse = pictures.collect(data, full - 1)
    entry = coarse.files["pictures/0-0"]["probes"]["lookback"][0]
    assert entry["arrays"]["attention"]["bits"] == 8 and entry["arrays"]["ratio"]["bits"] == 16
    assert coarse.index["notes"] == []
    some = pictures.collect(data, int(0.55 * full))
    assert "Attention per token of" in some.index["notes"][0] and len(some.files) == 3
    assert [bool(c["attention"]) for c in some.index["runs"][0]["cases"]][-1] is False
    few = pictures.collect(data, int(0.1 * full))
    assert "were left out" in few.index["notes"][-1] and len(few.files) < 3
    assert len(few.index["runs"][0]["cases"]) == len(few.files)


def test_a_broken_file_of_single_cases_is_a_note(synthetic: ModuleType, add_cases: AddCases, tmp_path: Path) -> None:
    run = synthetic.make_run(tmp_path / "run", n=8)
    add_cases(run, ["case-0001"])
    (run / "probes" / "lookback" / "cases" / "tensors.safetensors").write_bytes(b"no")
    found = pictures.collect(load([run]))
    assert "cannot be read" in found.index["runs"][0]["notes"]["lookback"]
    kept = ["neurons", "patching", "trajectory", "min-k", "readout"]
    assert found.index["runs"][0]["cases"][0]["probes"] == kept


@pytest.mark.parametrize(("bits", "error"), [(16, 2**-17), (8, 2**-8.9)])
def test_packed_arrays_come_back_within_half_a_step(bits: int, error: float) -> None:
    values = np.random.default_rng(0).normal(0, 3, (4, 5, 6))
    values[0, 0, :2] = np.nan, np.inf
    found = unpacked(packed(values, bits))
    span = np.nanmax(values[np.isfinite(values)]) - values[np.isfinite(values)].min()
    assert np.isnan(found[0, 0, :2]).all()
    np.testing.assert_allclose(found[np.isfinite(values)], values[np.isfinite(values)], atol=error * span)


def test_packed_constants_empties_and_nothing_but_nan_are_kept() -> None:
    assert unpacked(packed(np.full((2, 2), 0.25))).tolist() == [[0.25, 0.25], [0.25, 0.25]]
    assert packed(np.zeros((3, 0)))["shape"] == [3, 0]
    assert np.isnan(unpacked(packed(np.array([np.nan, -np.inf])))).all()
