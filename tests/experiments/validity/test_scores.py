"""One number of a case for each probe and each baseline, and the cases that have none."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from composcope.errors import InputError
from composcope.experiments.validity import scores
from composcope.probes import lookback, min_k, neurons, trajectory
from composcope.probes.patching import engine
from composcope.probes.result import ProbeResult


def _example(case: str, role: str = "whole", kind: str = "composition", n: int = 3) -> Any:
    return SimpleNamespace(case=case, role=role, kind=kind, prompt_ids=(1, 2), response_ids=tuple(range(n)),
                           cue_tokens=1,
                           question_span=(0, 1), shares=case, group="failure", answer_ids=(9,))  # fmt: skip


WHOLES = [_example("a", n=4), _example("b", n=2)]


def test_a_number_of_a_case_is_that_of_its_whole_and_cases_without_one_are_left_out() -> None:
    score = scores.ProbeScore("p", "q", "increasing", "p")
    found = scores.CaseScores({"q": {"a": 1.0, "b": np.nan, "c": 3.0}}, shares={"a": "x", "c": "y"})
    values, near = found.known(score, ["c", "b", "a", "d"])
    assert values.tolist() == [3.0, 1.0] and near == ["y", "x"] and np.isnan(found.of(score, "d"))
    examples = [*WHOLES, _example("a", "part:0")]
    result = ProbeResult(
        "own",
        [],
        tensors={"t": torch.tensor([1.0, 2.0, 9.0]), "map": torch.zeros(3, 2)},
        axes={"t": ("example",), "map": ("example", "layer")},
        settings={"expected": {"t": "decreasing"}},
    )
    ((own, by_case),) = scores._own("mine", result, examples).items()
    assert (own.quantity, own.expected, own.short) == ("t (mine)", "decreasing", "mine/t")
    assert by_case == {"a": 1.0, "b": 2.0}
    with pytest.raises(InputError, match="no tensor has 'example'"):
        scores._own("mine", ProbeResult("own", []), examples)
    with pytest.raises(InputError, match="of shape"):
        scores._own("mine", replace(result, tensors={"t": torch.zeros(2)}), examples)


def test_numbers_of_the_probes_are_means_over_a_case_and_the_matched_one_is_of_its_first_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ratios = [torch.tensor([[[0.5, 0.1, 0.3]], [[0.7, 0.1, float("nan")]]]), torch.tensor([[[0.2]], [[0.4]]])]
    monkeypatch.setattr(lookback, "masses", lambda *_: [SimpleNamespace(ratio=lambda r=r: r) for r in ratios])
    found = scores.lookback_ratios(None, WHOLES)
    assert found["mean lookback ratio"] == pytest.approx({"a": np.mean([0.5, 0.1, 0.3, 0.7, 0.1]), "b": 0.3})
    assert found["lookback ratio, length-matched"] == pytest.approx({"a": 0.6, "b": 0.3})
    cosines = [torch.tensor([[0.5, 1.0]]), torch.empty(1, 0)]
    monkeypatch.setattr(trajectory, "step_cosines", lambda *_: [SimpleNamespace(cosines=c) for c in cosines])
    moved = scores.step_cosines(None, WHOLES)["mean step cosine"]
    assert moved["a"] == 0.75 and np.isnan(moved["b"])
    parts = [
        _example(c, f"part:{i}", kind) for c, i, kind in (("a", 0, "math"), ("a", 1, "commonsense"), ("c", 0, "math"))
    ]
    examples = [*WHOLES, *parts]
    monkeypatch.setattr(neurons, "key_neurons", lambda *_: [1.0, 2.0, 0.25, 0.5, 0.75])
    monkeypatch.setattr(neurons, "share", lambda whole, part: SimpleNamespace(overlap=whole * part))
    shared = scores._neurons(None, WHOLES, examples)
    assert shared["neurons shared with math"]["a"] == 0.25 and shared["neurons shared with commonsense"]["a"] == 0.5
    assert all(np.isnan(of["b"]) and set(of) == {"a", "b"} for of in shared.values())


def test_baselines_are_the_first_token_the_length_and_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def tokens(lm: Any, prompts: Any, spans: Any) -> Any:
        seen.append((prompts, spans))
        return [SimpleNamespace(log_prob=[-float(i + 1), -9.0]) for i in range(len(prompts))]

    monkeypatch.setattr(min_k, "token_scores", tokens)
    monkeypatch.setattr(min_k, "aggregate", lambda found: SimpleNamespace(log_prob=[-0.5] * len(found)))
    silent = _example("c", n=0)
    found = scores.baselines(None, [*WHOLES, silent])
    names = scores.BASELINES
    assert found[names["confidence"]] == {"a": -1.0, "b": -2.0} and found[names["length"]] == {"a": 4, "b": 2, "c": 0}
    assert found[names["likelihood"]] == dict.fromkeys("abc", -0.5)
    assert seen[1] == ([[1, 2, 0], [1, 2, 0]], [(2, 3), (2, 3)]), "the first token after the prompt"


def test_every_number_of_a_case_is_measured_and_of_fewer_than_two_cases_none_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("_min_k", "lookback_ratios", "_neurons", "step_cosines", "baselines", "_nulls")
    examples = [*WHOLES, _example("a", "part:0")]
    for name in names:
        monkeypatch.setattr(scores, name, lambda *given, name=name: {name: given})
    mine = ProbeResult("own", [], tensors={"t": torch.tensor([1.0, 2.0, 9.0])}, axes={"t": ("example",)})
    asked: list[Any] = []
    found = scores.measure("lm", examples, {"mine": lambda *given: asked.append(given) or mine})
    assert {name: found.values[name] for name in names} == dict.fromkeys(names, ("lm", WHOLES, examples))
    assert asked == [("lm", examples)] and [s.quantity for s in found.own] == ["t (mine)"]
    assert found.values["t (mine)"] == {"a": 1.0, "b": 2.0} and found.shares == {"a": "a", "b": "b"}
    never: Any = {"mine": lambda *_: pytest.fail("asked")}
    few = scores.measure("lm", examples[1:], never)
    assert (few.values, few.own, few.shares) == ({}, [], {"b": "b"})
    alone: Any = SimpleNamespace(**{**vars(WHOLES[0]), "shares": None})
    assert scores.measure("lm", [alone], never).shares == {"a": ("case", "a")}, "the same case at every dose"


def test_the_question_is_scored_by_its_own_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []
    monkeypatch.setattr(min_k, "token_scores", lambda *args: given.append(args) or ["tokens"])
    monkeypatch.setattr(min_k, "aggregate", lambda found: SimpleNamespace(min_k_pp=[0.5, -1.0], log_prob=[9, 9]))
    assert scores._min_k("lm", WHOLES, []) == {"Min-K%++ of the question": {"a": 0.5, "b": -1.0}}
    assert given == [("lm", [(1, 2), (1, 2)], [(0, 1), (0, 1)])]


def test_numbers_that_measure_nothing_are_the_same_for_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def states(lm: Any, prompts: Any, layers: Any) -> torch.Tensor:
        given.append((prompts, layers))
        return torch.tensor([[[1.0, 0.0, 2.0]], [[0.0, 3.0, 0.0]]])

    monkeypatch.setattr(engine, "prompt_end_states", states)

    def lm(weight: float) -> Any:
        some = [torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.full((2, 2), weight))]
        return SimpleNamespace(anatomy=SimpleNamespace(n_layers=9), model=SimpleNamespace(parameters=lambda: some))

    first, again, other = (scores._nulls(lm(w), WHOLES, []) for w in (1.0, 1.0, 2.0))
    assert given[0] == ([(1, 2), (1, 2)], [4]), "the middle layer"
    directions = [f"random direction {i}" for i in (1, 2, 3)]
    assert list(first) == [*directions, "offset noise"] and first == again
    assert all(first[d] == other[d] for d in directions), "the same directions of any model"
    assert not set(first["offset noise"].values()) & set(other["offset noise"].values())
    seed = int.from_bytes(hashlib.sha256(np.full((2, 2), 1.0, np.float32).tobytes()).digest()[:8], "big")
    rng = np.random.default_rng(seed)
    offset, (a, b) = 2 * rng.normal(), rng.normal(size=2)
    assert first["offset noise"] == pytest.approx({"a": offset + a, "b": offset + b}), "one offset of all its cases"
    drawn = np.random.default_rng(0).normal(size=(3, 3))
    unit = drawn / np.linalg.norm(drawn, axis=0)
    for i, name in enumerate(directions):
        assert first[name] == pytest.approx({"a": unit[0, i] + 2 * unit[2, i], "b": 3 * unit[1, i]})
