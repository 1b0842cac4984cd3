"""Neurons and readouts of single cases, token by token, against the probes' own numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import tiny

from composcope.errors import InputError
from composcope.hooks import load_model
from composcope.probes.neurons import attribute
from composcope.probes.neurons.attribution import positive_by_position
from composcope.probes.readout import over_examples
from composcope.probes.single_cases import neuron_cases, readout_cases

from .synthetic_readouts import NAME, N, examples, planted


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_what_pushes_an_answer_at_the_last_position_is_the_gradient_rules_score(name: str) -> None:
    lm, prompt, answer = load_model(tiny(name)), [3, 5, 7, 11, 13], 17
    found = positive_by_position(lm, prompt, answer)
    with torch.no_grad():
        p = lm.run(torch.tensor([prompt])).logits[0, -1].softmax(-1)[answer]
    scores = attribute(lm, prompt, [answer], rule="gradient")
    assert found.shape == (5,) and bool((found >= 0).all()) and float(found[:-1].sum()) > 0
    torch.testing.assert_close(found[-1] * p, scores.clamp_min(0).sum(), rtol=1e-3, atol=1e-8)


def test_a_mixture_of_experts_has_no_neurons_by_token_and_says_so() -> None:
    lm = load_model(tiny("mixtral"), planted(lambda i: False).tokenizer)
    with pytest.raises(InputError, match="experts"):
        positive_by_position(lm, [3, 5], 7)
    found = neuron_cases(lm, examples(), "answer-slot")
    assert found.entries == [] and len(found.left_out) == 1


def test_shares_of_neurons_reach_to_the_token_before_the_answer_and_add_up() -> None:
    lm, few = planted(lambda i: True), examples()[:4]
    found = neuron_cases(lm, few, "answer-slot").entries
    assert [e.about["case"] for e in found] == ["c0", "c1"]
    for e, entry in zip(few[::2], found, strict=True):
        share = entry.tensors["share"]
        assert len(share) == len(entry.about["tokens"]) == len(e.prompt_ids) + 1  # its slot is one token on
        assert float(share.sum()) == pytest.approx(1, abs=1e-5)
    longer = replace(few[0], answer_ids=(*few[0].answer_ids, NAME + 20))
    (entry,) = neuron_cases(lm, [longer, few[1]], "prompt-end").entries
    first = positive_by_position(lm, longer.prompt_ids, longer.answer_ids[0])
    assert entry.about["total"] == pytest.approx(float(first.sum()), rel=1e-5), "of an answer's first token"
    some = neuron_cases(lm, [replace(few[0], slot=None), *few[1:]], "answer-slot")
    assert [e.about["case"] for e in some.entries] == ["c1"] and not some.left_out
    without = [replace(e, slot=None) for e in few]
    assert neuron_cases(lm, without, "answer-slot").entries == []
    assert len(neuron_cases(lm, without, "prompt-end").entries) == 2


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Path]:
    """A model in which the source's token of every odd case holds the bridge, and the readout probe's result on it."""
    lm, folder = planted(lambda i: i % 2 == 1), tmp_path_factory.mktemp("probed") / "readout"
    result = over_examples(lm, examples(), permutations=10)
    result.save(folder)
    return lm, result, folder


def test_the_lens_finds_the_bridge_at_the_token_that_holds_it_and_not_before(probed: tuple[Any, Any, Path]) -> None:
    lm, _, folder = probed
    every = examples()
    held: dict[bool, list[float]] = {True: [], False: []}
    for entry in readout_cases(lm, every, every, folder).entries:
        (k,) = [i for i, r in enumerate(entry.about["readings"]) if r["what"] == "bridge"]
        lens, at = entry.tensors["lens"][k], entry.about["tokens"].index(f" s{entry.about['case'][1:]}")
        assert len(lens) == len(entry.about["tokens"]) - entry.about["first"]
        held[int(entry.about["case"][1:]) % 2 == 1].append(float(lens[at - entry.about["first"]]))
    assert len(held[True]) == N // 2 and min(held[True]) > 0.9
    assert 0.3 < sum(held[False]) / len(held[False]) < 0.7


def test_ridge_is_the_probes_own_number_where_it_was_read_and_missing_elsewhere(probed: tuple[Any, Any, Path]) -> None:
    lm, result, folder = probed
    every = examples()
    entries = readout_cases(lm, every[:8], every, folder).entries
    assert [e.about["case"] for e in entries] == ["c0", "c1", "c2", "c3"]
    of_bridge = [r for r in result.values if r["quantity"] == "held_ridge" and r["kind"] == "bridge"]
    for entry in entries:
        (k,) = [i for i, r in enumerate(entry.about["readings"]) if r["what"] == "bridge"]
        ridge, places = entry.tensors["ridge"][k], entry.about["places"]
        read = {at[-1] - entry.about["first"] for at in places.values()}
        assert {i for i, x in enumerate(ridge.tolist()) if x == x} == read
        (own,) = [r["value"] for r in of_bridge if r["case"] == entry.about["case"]]
        assert float(ridge[places["answer-slot"][-1] - entry.about["first"]]) == pytest.approx(own, abs=1e-6)


def test_runs_of_before_have_the_lens_alone(probed: tuple[Any, Any, Path], tmp_path: Path) -> None:
    lm, result, _ = probed
    older = replace(result, tensors={k: v for k, v in result.tensors.items() if not k.startswith("wholes.")},
                    axes={k: v for k, v in result.axes.items() if not k.startswith("wholes.")})  # fmt: skip
    older.save(tmp_path / "readout")
    every = examples()
    assert {tuple(e.tensors) for e in readout_cases(lm, every[:4], every, tmp_path / "readout").entries} == {("lens",)}
