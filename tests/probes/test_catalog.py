"""What a probe's controls say of one run, and what its single cases are computed of."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from composcope.errors import InputError
from composcope.hooks import precision
from composcope.probes import patching, single_cases
from composcope.probes.catalog import PROBES, of_function
from composcope.probes.result import ProbeResult


def _verdicts(probe: str, rows: list[dict[str, Any]]) -> list[str]:
    """The verdicts of a probe's checks over these rows of its table."""

    def chosen(quantity: str, **where: Any) -> list[dict[str, Any]]:
        return [r for r in rows if all(r.get(k) == v for k, v in {"quantity": quantity, **where}.items())]

    checks = PROBES[probe].checks
    assert checks is not None
    return [row["verdict"] for row in checks(SimpleNamespace(rows=chosen))]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (-2.0, -0.5, "yes"), (0.5, 0.9, "no"), (-1.0, 1.0, "cannot say"), (-1.0, 0.0, "cannot say"),
        (0.0, 1.0, "cannot say"), (None, None, "cannot say"),
    ],
)  # fmt: skip
def test_silencing_hurts_where_the_whole_interval_lies_below_zero(
    low: float | None, high: float | None, verdict: str
) -> None:
    row = {"quantity": "suppress_log_ratio_excess", "kind": "math", "group": "failure", "low": low, "high": high}
    others = [{**row, "group": "failure - success"}, {**row, "kind": "math - composition"}, {**row, "quantity": "x"}]
    assert _verdicts("neurons", [row, *others]) == [verdict]


@pytest.mark.parametrize(
    ("quantity", "group", "values", "verdict"),
    [
        ("unchanged_rate", "identity", (1.0, None, 1.0), "yes"),
        ("unchanged_rate", "identity", (1.0, 0.99, 1.0), "no"),
        ("kl_from_donor", "positive", (0.0, None, 0.0009), "yes"),
        ("kl_from_donor", "positive", (0.0, 0.0011, 0.0), "no"),
        ("flip_rate", "positive", (0.0, 0.5, 0.1, None), "yes"),
        ("flip_rate", "positive", (0.49, 0.4, 0.0), "cannot say"),
    ],
)
def test_patching_is_trusted_by_the_worst_layer_of_its_own_state_and_the_best_of_whole_answers(
    quantity: str, group: str, values: tuple[float | None, ...], verdict: str
) -> None:
    rows = [{"quantity": quantity, "group": group, "layer": i, "value": v} for i, v in enumerate(values)]
    assert _verdicts("patching", [*rows, {**rows[0], "group": "donor", "value": 0.3}]) == [verdict]


def test_a_value_replaced_by_itself_has_to_leave_every_answer() -> None:
    row = {"quantity": "kept_same", "group": "all", "n": 20}
    other = {**row, "group": "failure", "value": 0.5}
    for value, verdict in ((1.0, ["yes"]), (0.95, ["no"])):
        assert _verdicts("faithfulness", [{**row, "value": value}, other]) == verdict
    assert _verdicts("faithfulness", [{**row, "n": 0, "value": None}]) == []


def test_single_cases_are_computed_of_what_the_probe_itself_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, tuple[Any, ...]] = {}
    for name in ("neuron", "lookback", "patching", "trajectory", "min_k", "readout"):
        monkeypatch.setattr(
            single_cases, f"{name}_cases", lambda lm, *got, name=name: given.setdefault(name, (lm, *got))
        )
    (tmp_path / "result.json").write_text('{"settings": {"position": "answer-slot"}}')
    maps = {"difference.math": torch.ones(2, 3), "p.math": torch.zeros(2, 3), "ratio.math.failure": torch.zeros(2, 3)}
    save_file(maps, tmp_path / "tensors.safetensors")
    whole, part, other = (SimpleNamespace(case=c, role=r) for c, r in (("a", "whole"), ("a", "part:0"), ("b", "whole")))
    few, every = [whole, part], [whole, part, other]
    for probe in PROBES.values():
        if probe.cases is not None:
            probe.cases("lm", few, every, 3, tmp_path)
    *_, differences = given.pop("lookback")
    assert list(differences) == ["math"] and torch.equal(differences["math"], maps["difference.math"])
    (tmp_path / "tensors.safetensors").unlink()
    cases = PROBES["lookback"].cases
    assert cases is not None and cases("lm", few, every, 3, tmp_path)[-1] == {}, "a probe may have no maps"
    del given["lookback"]
    assert given == {
        "neuron": ("lm", few, "answer-slot"), "patching": ("lm", every, tmp_path, 3, {"a"}),
        "trajectory": ("lm", [whole]), "min_k": ("lm", few), "readout": ("lm", few, every, tmp_path),
    }  # fmt: skip


@pytest.mark.parametrize("wide", [False, True])
def test_patching_says_in_which_precision_its_rows_were_computed(monkeypatch: pytest.MonkeyPatch, wide: bool) -> None:
    monkeypatch.setattr(precision, "widens", lambda lm, dtype: wide)
    models: list[Any] = []
    result = ProbeResult("patching", [], settings={"a": 1})
    monkeypatch.setattr(patching, "over_examples", lambda lm, *_, **__: models.append(lm) or result)
    settings: Any = SimpleNamespace(rows_dtype="float32", position="prompt-end")
    found = PROBES["patching"].run(SimpleNamespace(), [], settings, SimpleNamespace(bar=None))
    assert found.settings == ({"a": 1, "rows_dtype": "float32"} if wide else {"a": 1})
    assert [getattr(lm, "rows_dtype", None) for lm in models] == ["float32" if wide else None]


def test_the_function_of_a_plugin_is_not_sent_to_ray() -> None:
    fleet = SimpleNamespace(spread=print, call=lambda function, *given: function(None, *given))
    result = ProbeResult("mine", [{"quantity": "x", "group": "all", "n": 1, "value": 2.0}])
    probe = of_function("mine", lambda lm, examples: result)
    for engine, refused in (("transformers", False), ("ray", True)):
        with pytest.raises(InputError, match="leave out --engine ray") if refused else nullcontext():
            assert probe.run(fleet, [], SimpleNamespace(serving=SimpleNamespace(engine=engine)), None) is result
