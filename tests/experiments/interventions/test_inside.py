"""What a training changes inside a model: which cases are opened, and what is measured of them."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_models import tiny

from composcope.evaluation.cases import Case, Part
from composcope.evaluation.graded import Graded
from composcope.experiments.interventions import inside
from composcope.experiments.validity.scores import lookback_ratios, step_cosines
from composcope.hooks import load_model
from composcope.probes import neurons, patching
from composcope.probes.examples import Example


def _example(case: str, family: str = "f", depth: int = 4, role: str = "whole") -> Any:
    return SimpleNamespace(case=case, family=family, depth=depth, role=role, prompt_ids=(0, ord(case)))


def test_states_come_from_the_next_case_of_the_family_and_depth() -> None:
    wholes = [_example("a"), _example("b", family="g"), _example("c"), _example("d", depth=6), _example("e")]
    assert inside._next_of_family(wholes) == [(2, 0), (4, 2), (0, 4)]


def test_a_patch_changes_an_answer_where_any_of_its_tokens_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    wholes, given = [_example("a"), _example("b")], {}

    def sweep(lm: Any, donors: Any, recipients: Any, pairs: Any, **options: Any) -> Any:
        given.update(options, pairs=pairs)
        tokens = torch.tensor([[[[1, 2], [1, 3]], [[4, 5], [4, 5]]], [[[1, 2], [1, 2]], [[4, 5], [4, 5]]]])
        return SimpleNamespace(
            tensors={"tokens": tokens, "base_tokens": torch.tensor([[1, 2], [4, 6]])}, settings={"layers": [0, 3]}
        )

    monkeypatch.setattr(patching, "prompt_end_sweep", sweep)
    found = inside._patching(None, wholes)
    assert (given["pairs"], given["controls"], given["max_new_tokens"]) == ([(1, 0), (0, 1)], (), inside.PATCHED_TOKENS)
    assert found == {"patch at layer 0 changes the answer": {"a": 0.0, "b": 1.0},
                     "patch at layer 3 changes the answer": {"a": 0.0, "b": 1.0}}  # fmt: skip
    assert inside._patching(None, wholes[:1]) == {}


def test_neurons_are_shared_with_the_parts_of_the_same_case_on_average(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("a whole", "a part:0", "a part:1", "b part:0", "b whole", "c whole")
    examples = [_example(case, role=role) for case, role in map(str.split, asked)]
    sets = [1.0, 0.25, 0.75, math.nan, 2.0, 3.0]
    monkeypatch.setattr(neurons, "key_neurons", lambda lm, given: sets)
    monkeypatch.setattr(neurons, "share", lambda whole, part: SimpleNamespace(overlap=part * whole))
    (found,) = inside._neurons(None, examples).values()
    assert found["a"] == 0.5 and math.isnan(found["b"]) and math.isnan(found["c"])


def test_cases_that_are_opened_are_known_to_all_models_above_the_control_with_families_in_turn() -> None:
    part = Part("p", "1")
    about = [("a", "x", 4), ("b", "x", 4), ("c", "y", 4), ("d", "x", 2), ("e", "x", 6), ("f", "x", 4)]
    cases = {i: Case(i, "q", "1", (part,), family=f, depth=d) for i, f, d in about}

    def run(unknown: str) -> Any:
        rows = [Graded(i, "part:0", "incorrect" if i in unknown else "correct") for i in cases]
        return SimpleNamespace(cases=cases, graded=rows)

    assert inside.shared([run(""), run("f")], 9) == ["a", "c", "e", "b"]
    assert inside.shared([run("a"), run("")], 2) == ["b", "c"]


def test_each_model_is_opened_with_its_runs_settings_and_gives_one_number_per_probe_and_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm, loaded = load_model(tiny("llama")), []
    examples = [
        Example(case, role, "composition", "success", tuple(ids), (7, 8 + i, 9), (20 + i,), 0, (1, 6), "f", 4)
        for i, case in enumerate("abc")
        for role, ids in (("whole", range(5, 13 + i)), ("part:0", range(40, 48 + i)))
    ]

    def load_target(loading: Any) -> Any:
        loaded.append(loading)
        return SimpleNamespace(tokenizer="own", open_model=lambda: lm)

    def given(tokenizer: Any, sets: Any) -> list[Example]:
        assert tokenizer == "own" and [(s.name, [e.case for e in s.entries]) for s in sets] == [("success", ["a", "b"])]
        return examples[:4]

    monkeypatch.setattr("composcope.experiments.distributed.engine.load_target", load_target)
    monkeypatch.setattr(inside, "read_config", lambda _: {"model": "m", "benchmark": "b", "dtype": "float32"})
    run: Any = SimpleNamespace(examples=given)
    assert inside.measure("trained", run, Path(), ["a"], "cpu") == {} and not loaded
    found = inside.measure("trained", run, Path(), ["a", "b"], "cpu")
    assert [(one.model, one.device, one.dtype) for one in loaded] == [("trained", "cpu", "float32")]
    wholes = examples[:4:2]
    assert found["lookback ratio"] == lookback_ratios(lm, wholes)["mean lookback ratio"]
    assert found["step-to-step cosine"] == step_cosines(lm, wholes)["mean step cosine"]
    patched = [f"patch at layer {layer} changes the answer" for layer in range(lm.anatomy.n_layers)]
    assert list(found) == ["lookback ratio", "step-to-step cosine", "neurons shared with the parts", *patched]
    assert all(list(values) == ["a", "b"] for values in found.values())


def test_measured_states_are_kept_while_runs_and_code_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []

    def measure(model: str, run: Any, folder: Path, cases: Any, device: Any) -> Any:
        measured.append(model)
        return {"x": {c: 1.0 + len(model) for c in cases}}

    runs = {}
    for name in ("base", "trained"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "graded.jsonl").write_text(name)
        runs[name] = tmp_path / name
    case = SimpleNamespace(cluster=None, crossed=())
    monkeypatch.setattr(inside, "measure", measure)
    monkeypatch.setattr(inside, "shared", lambda found, n: ["a", "b", "c"][:n])
    monkeypatch.setattr(
        inside,
        "read_run",
        lambda _: SimpleNamespace(evaluated=lambda: SimpleNamespace(cases=dict.fromkeys("abc", case))),
    )
    given: Any = (("m", runs["base"]), {"grpo": ("trained", runs["trained"])}, tmp_path)
    before, after, out = given
    for _ in range(2):
        (row,) = inside.compare(before, after, out, 3)
        assert (row["variant"], row["before"], row["after"], row["value"], row["n"]) == ("grpo", 2, 8, 6, 3)
    assert measured == ["m", "trained"]
    assert inside.compare(before, after, out, 2)[0]["n"] == 2 and len(measured) == 4
    (runs["trained"] / "graded.jsonl").write_text("other answers")
    inside.compare(before, after, out, 2)
    assert len(measured) == 6


def test_inside_differences_are_paired_by_case_and_undefined_ones_left_out() -> None:
    before = {"x": {"a": 1.0, "b": 2.0, "c": math.nan}, "y": {"a": 1.0}}
    after = {"x": {"a": 1.5, "b": 3.5, "c": 1.0}}
    one, other = inside.differences("v", before, after)
    assert (one["n"], one["before"], one["after"], one["value"]) == (2, 1.5, 2.5, pytest.approx(1.0))
    assert one["low"] is not None and one["low"] < 1 < one["high"]
    assert (other["n"], other["value"]) == (0, None)
    one, _ = inside.differences("v", before, after, dict.fromkeys("abc", "one fact"))
    assert (one["n"], one["low"]) == (2, None), "cases about one fact are one case"
