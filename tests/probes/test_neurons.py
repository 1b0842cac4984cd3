"""Neuron attribution against literal integration, golden arrays, and itself under other batches and chunks."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from composcope.errors import InputError, ModelError, NoCasesError
from composcope.hooks import Model, load_model
from composcope.probes import neurons
from composcope.probes.effects import cliffs_delta
from composcope.probes.examples import Example
from composcope.probes.matching import match
from composcope.probes.neurons import checks, quadrature
from composcope.probes.neurons import examples as of_examples
from composcope.probes.neurons.checks import sampled
from composcope.probes.neurons.examples import _beyond_rounding, _per_case, _warnings
from composcope.probes.neurons.paths import Path as NeuronPath
from composcope.probes.neurons.paths import _check_norm, _factor
from composcope.probes.neurons.quadrature import _TargetProbability
from composcope.probes.neurons.sets import coarse
from composcope.probes.patching import attribution_patching

from ..oracles import neurons as oracle
from ..tiny_models import tiny

DENSE = ["llama", "qwen3", "qwen2", "mistral", "phi3", "gpt2", "gpt_neox", "granite", "opt"]
POST_NORM = ["gemma2", "gemma3", "olmo2"]
PROMPTS = [[5, 31, 77, 12, 40, 8, 66, 23], [9, 9, 51, 80, 17], [60, 3, 3, 14, 28, 71, 5, 33, 90, 11, 47]]
ANSWERS = [[30], [44], [71]]
GOLDEN = ["tiny_llama", "tiny_gpt2"]
PUBLISHED = Path(__file__).parents[1] / "references" / "published"


def down(lm: Model) -> list[Any]:
    return [layer.down for layer in lm.anatomy.layers]


def literal(lm: Model, prompt: list[int], token: int, nodes: list[tuple[float, float]]) -> Tensor:
    return oracle.attribute(lm.model, torch.tensor([prompt]), token, down(lm), nodes)


@pytest.mark.parametrize("name", DENSE)
def test_attribution_is_the_literal_integral_on_every_architecture(name: str) -> None:
    lm = load_model(tiny(name))
    nodes = list(zip(*neurons_quadrature(8), strict=True))
    got = neurons.attribute_many(lm, PROMPTS, ANSWERS, steps=8)
    for prompt, answer, scores in zip(PROMPTS, ANSWERS, got.mean, strict=True):
        expected = literal(lm, prompt, answer[0], nodes)
        assert torch.allclose(scores, expected, atol=3e-6 + 1e-4 * float(expected.abs().max()))


def neurons_quadrature(n: int) -> tuple[list[float], list[float]]:
    x, w = np.polynomial.legendre.leggauss(n)
    return [float(v) for v in (x + 1) / 2], [float(v) for v in w / 2]


@pytest.mark.parametrize("name", POST_NORM)
def test_behind_a_norm_the_path_runs_after_it(name: str) -> None:
    lm = load_model(tiny(name))
    nodes = list(zip(*neurons_quadrature(8), strict=True))
    norms: list[Any] = [layer.post_norm for layer in lm.anatomy.layers]
    assert all(n is not None for n in norms)
    got = neurons.attribute(lm, PROMPTS[0], [30], steps=8)
    expected = oracle.attribute_behind_norm(lm.model, torch.tensor([PROMPTS[0]]), 30, down(lm), norms, nodes)
    assert torch.allclose(got, expected, atol=3e-6 + 1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe"])
def test_neurons_of_experts_are_attributed_to_with_the_routing_frozen(name: str) -> None:
    lm = load_model(tiny(name))
    nodes = list(zip(*neurons_quadrature(8), strict=True))
    got = neurons.by_expert(lm, neurons.attribute(lm, PROMPTS[0], [30], steps=8))
    blocks = [layer.mlp for layer in lm.anatomy.layers]
    expected = oracle.attribute_experts(lm.model, torch.tensor([PROMPTS[0]]), 30, blocks, nodes)
    assert got.shape == (3, 4, lm.anatomy.d_mlp)
    assert torch.allclose(got, expected, atol=3e-6 + 1e-4 * float(expected.abs().max()))
    assert float(expected.abs().max()) > 1e-4


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe", "gpt_oss"])
def test_scores_of_experts_sum_to_what_silencing_them_costs_where_no_router_follows(name: str) -> None:
    got = neurons.attribute_many(load_model(tiny(name)), PROMPTS, ANSWERS)
    for scores, error, full, silenced in zip(got.scores, got.error, got.probability, got.silenced, strict=True):
        assert float((scores != 0).float().mean()) <= 0.5  # two experts of four
        assert bool((error[:, -1] <= 1e-2 * (full - silenced[:, -1]).abs() + 1e-6).all())


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_the_reference_rule_is_the_published_sum_at_the_published_site(name: str) -> None:
    lm = load_model(tiny(name))
    ids, nodes = torch.tensor([PROMPTS[0]]), oracle.reference_nodes(6)
    got = neurons.attribute(lm, PROMPTS[0], [30], steps=6, rule="reference")
    if name == "gpt2":
        up: list[Any] = [layer.up[0] for layer in lm.anatomy.layers]
        expected = oracle.attribute_before_activation(lm.model, ids, 30, up, nodes)
        assert not torch.allclose(literal(lm, PROMPTS[0], 30, nodes), expected, atol=1e-4)
    else:
        expected = literal(lm, PROMPTS[0], 30, nodes)
    assert torch.allclose(got, expected, atol=3e-6)


def test_the_reference_rule_takes_the_published_20_points_unless_told_otherwise() -> None:
    lm = load_model(tiny("llama"))
    got = neurons.attribute(lm, PROMPTS[0], [30], rule="reference")
    expected = {n: literal(lm, PROMPTS[0], 30, oracle.reference_nodes(n)) for n in (10, 20)}
    assert torch.allclose(got, expected[20], atol=3e-6) and not torch.allclose(got, expected[10], atol=3e-6)


@pytest.mark.parametrize("effect", [0.2, 1e-3])
def test_the_accepted_error_is_a_hundredth_of_the_effect_and_a_millionth_at_most(effect: float) -> None:
    full = torch.tensor([[0.5]], dtype=torch.float64)
    got = quadrature.limit(full, full - effect)
    assert float(got) == pytest.approx(0.01 * effect + 1e-6, rel=1e-9)


@pytest.mark.parametrize(("full", "silenced"), [(0.5, 0.4), (0.2, 0.5)])
def test_an_error_below_the_rounding_of_the_larger_probability_is_accepted(full: float, silenced: float) -> None:
    got = quadrature.limit(torch.tensor([[full]]), torch.tensor([[silenced]]), rounding=0.03)
    assert float(got) == pytest.approx(0.01 * abs(full - silenced) + 0.015)


@pytest.mark.parametrize("name", [*POST_NORM, "exaone4"])
def test_the_reference_rule_scales_the_up_projection_before_the_norm_as_the_published_code_does(name: str) -> None:
    lm = load_model(tiny(name))
    decoder: Any = lm.model.get_decoder()  # type: ignore[operator]
    up = [block.mlp.up_proj for block in decoder.layers]
    expected = oracle.attribute_before_activation(
        lm.model, torch.tensor([PROMPTS[0]]), 30, up, oracle.reference_nodes(20)
    )
    got = neurons.attribute_many(lm, PROMPTS[:1], [[30]], rule="reference")
    assert torch.allclose(got.mean[0], expected, atol=3e-6 + 1e-4 * float(expected.abs().max()))
    ours = neurons.attribute_many(lm, PROMPTS[:1], [[30]], rule="reference", site="down")
    assert (got.site, ours.site) == ("before-norm", "after-norm") and ours.rule == "reference"
    assert float((ours.mean[0] - expected).abs().max()) > 0.1 * float(expected.abs().max())
    assert neurons.attribute_many(lm, PROMPTS[:1], [[30]]).site == "after-norm"


def test_scores_behind_a_norm_are_finite_where_the_norm_was_given_a_zero() -> None:
    torch.manual_seed(0)
    down, z, g = torch.nn.Linear(6, 4, bias=False), torch.randn(1, 1, 6), torch.randn(1, 1, 4)
    layer: Any = SimpleNamespace(down=down, mlp_scale=0.5, post_norm=torch.nn.RMSNorm(4))
    path = NeuronPath(layer, torch.tensor([[0.5]]), "down")
    path.seen = {"z": z, "a": torch.tensor([[[2.0, 0.0, -1.0, 4.0]]]), "b": torch.tensor([[[1.0, 0.0, -3.0, 2.0]]])}
    factor = torch.tensor([0.5, 0.0, 3.0, 0.5])
    torch.testing.assert_close(path.scores(g).detach(), z * ((0.5 * g * factor) @ down.weight).detach())


@pytest.mark.parametrize("site", ["pre", "before-norm"])
@pytest.mark.parametrize("known", [True, False])
def test_a_path_through_the_mlp_leads_to_the_blocks_own_output_whatever_the_factor(site: Any, known: bool) -> None:
    torch.manual_seed(0)
    up, down, norm = torch.nn.Linear(4, 6), torch.nn.Linear(6, 4, bias=False), torch.nn.RMSNorm(4)
    mid, u = torch.randn(1, 1, 4), up(torch.randn(1, 1, 4))
    z = torch.nn.functional.gelu(u)
    y = down(z) if site == "pre" else norm(down(z))
    layer: Any = SimpleNamespace(
        mlp=torch.nn.Sequential(up, torch.nn.GELU(), down), up=(up,), down=down, mlp_scale=0.7,
        post_norm=None if site == "pre" else norm,
    )  # fmt: skip
    path = NeuronPath(layer, torch.tensor([[0.0, 0.5, 1.0]]), site)
    path.seen = {"u": u, "z": z, "y": y} | ({"mid": mid} if known else {})
    found = path._points_through_mlp(mid + 0.7 * y)
    torch.testing.assert_close(found[:, [0, 2]], torch.cat([mid, mid + 0.7 * y], 1))
    assert not torch.allclose(found[:, 1:2], mid + 0.35 * y), "bent on the way"


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gpt2"])
def test_scores_of_a_layer_sum_to_what_silencing_it_costs(name: str) -> None:
    lm = load_model(tiny(name))
    got = neurons.attribute_many(lm, PROMPTS, ANSWERS)
    assert got.unconverged() == 0
    for scores, full, silenced, gap in zip(got.scores, got.probability, got.silenced, got.gap, strict=True):
        assert torch.allclose(scores.sum(-1) - (full[:, None] - silenced), gap, atol=1e-7)
        assert bool((gap.abs() <= 1e-2 * (full[:, None] - silenced).abs() + 1e-6).all())


@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_paths_on_which_everything_happens_near_zero_are_refined_until_complete(name: str) -> None:
    model = tiny(name)
    with torch.no_grad():  # an MLP output far larger than the stream that it is added to
        blocks: Any = model.get_decoder().layers
        layer = blocks[0]
        if name == "llama":
            layer.mlp.down_proj.weight.mul_(300)
        else:
            layer.post_feedforward_layernorm.weight.add_(300)
    lm = load_model(model)
    fixed = neurons.attribute_many(lm, PROMPTS, ANSWERS, steps=8)
    got = neurons.attribute_many(lm, PROMPTS, ANSWERS)
    assert fixed.unconverged() > 0 == got.unconverged()
    assert all(int(n[0, 0]) > 8 for n in got.nodes)
    for error, gap, full, silenced in zip(got.error, got.gap, got.probability, got.silenced, strict=True):
        assert bool((gap.abs() <= error + 1e-7).all())
        assert bool((error <= 1e-2 * (full[:, None] - silenced).abs() + 1e-6).all())


def test_refinement_comes_near_the_integral_by_many_nodes() -> None:
    model = tiny("llama")
    with torch.no_grad():
        model.get_decoder().layers[0].mlp.down_proj.weight.mul_(30)  # type: ignore[union-attr, operator]
    lm = load_model(model)
    exact = neurons.attribute(lm, PROMPTS[0], [30], steps=400)
    refined = neurons.attribute(lm, PROMPTS[0], [30])
    coarse = neurons.attribute(lm, PROMPTS[0], [30], steps=8)
    error = float((refined - exact).abs().max())
    assert error < 0.01 * float(exact.abs().max())
    assert error < 0.2 * float((coarse - exact).abs().max())


def test_batches_and_chunks_do_not_matter() -> None:
    lm = load_model(tiny("qwen2"))
    together = neurons.attribute_many(lm, PROMPTS, ANSWERS, steps=6)
    for rows in (1, 8, 23):
        parts = neurons.attribute_many(lm, PROMPTS, ANSWERS, steps=6, max_rows=rows)
        for a, b in zip(together.mean, parts.mean, strict=True):
            assert torch.allclose(a, b, atol=2e-6)
    for i in range(3):
        alone = neurons.attribute(lm, PROMPTS[i], ANSWERS[i], steps=6)
        assert torch.allclose(alone, together.mean[i], atol=2e-6)


def test_chunks_shrink_when_memory_runs_out_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    lm = load_model(tiny("llama"))
    expected = neurons.attribute(lm, PROMPTS[0], [30], steps=6)
    forward = lm.model.forward

    def small(*args: Any, input_ids: Tensor, **kwargs: Any) -> Any:
        out = forward(*args, input_ids=input_ids, **kwargs)
        if out.logits.shape[1] > 12 and torch.is_grad_enabled():
            raise torch.OutOfMemoryError("out of memory")
        return out

    monkeypatch.setattr(lm.model, "forward", small)
    with pytest.warns(RuntimeWarning, match="out of memory with 25 at once; continuing with 12"):
        got = neurons.attribute_many(lm, [PROMPTS[0]], [[30]], steps=6, max_rows=25).mean[0]
    assert torch.allclose(got, expected, atol=2e-6)


def test_activations_that_are_not_finite_are_refused() -> None:
    model = tiny("llama")
    lm = load_model(model)
    with torch.no_grad():
        model.get_input_embeddings().weight[77] = float("inf")  # type: ignore[union-attr, operator, index]
    with pytest.raises(ModelError, match="NaN or infinite activations at position 7 of prompt 0"):
        neurons.attribute(lm, PROMPTS[0], [30])


def test_answers_of_several_tokens_are_teacher_forced_and_averaged() -> None:
    lm = load_model(tiny("llama"))
    answer = [30, 61, 9]
    tokens = neurons.attribute(lm, PROMPTS[0], answer, steps=6, per_token=True)
    for j, token in enumerate(answer):
        alone = neurons.attribute(lm, [*PROMPTS[0], *answer[:j]], [token], steps=6)
        assert torch.allclose(tokens[j], alone, atol=2e-6)
    assert torch.allclose(neurons.attribute(lm, PROMPTS[0], answer, steps=6), tokens.mean(0), atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_the_probability_of_the_target_and_its_gradient_are_those_of_softmax(dtype: torch.dtype) -> None:
    g = torch.Generator().manual_seed(0)
    logits = (3 * torch.randn(3, 5, 301, generator=g)).to(dtype).requires_grad_()
    targets, weight = torch.tensor([0, 300, 17]), torch.randn(3, 5, generator=g)
    wide = torch.promote_types(dtype, torch.float32)
    got = _TargetProbability.apply(logits, targets)
    index = targets[:, None, None].expand(-1, 5, 1)
    expected = logits.softmax(-1, dtype=wide).gather(-1, index)[..., 0]
    assert got.dtype == wide and torch.equal(got, expected)  # type: ignore[union-attr]
    mine, theirs = (torch.autograd.grad((p * weight).sum(), logits)[0] for p in (got, expected))  # type: ignore[operator]
    assert mine.dtype == dtype
    assert float((mine - theirs).abs().max()) <= 1e-7 * float(theirs.abs().max())


def test_activation_times_gradient_is_what_it_says() -> None:
    lm = load_model(tiny("llama"))
    got = neurons.activation_times_gradient(lm, PROMPTS[0], [30])
    assert torch.allclose(got, literal(lm, PROMPTS[0], 30, [(1.0, 1.0)]), atol=3e-6)


def test_inference_mode_is_left_where_gradients_are_needed_and_spoils_no_later_measure() -> None:
    pairs: Any = ([PROMPTS[1]], [PROMPTS[1][::-1]], [(3, 4)])
    for measure in (
        lambda lm: neurons.attribute(lm, PROMPTS[0], [30]),
        lambda lm: neurons.attribution.positive_by_position(lm, PROMPTS[0], 30),
        lambda lm: attribution_patching(lm, *pairs).tensors["estimate"],
    ):
        lm = load_model(tiny("llama"))
        with torch.inference_mode():
            inside = measure(lm)
            assert torch.is_inference_mode_enabled()
        assert torch.equal(inside, measure(lm)) and torch.equal(inside, measure(load_model(tiny("llama"))))


def test_the_model_is_as_before_after_attribution_and_after_a_failure() -> None:
    model = tiny("gpt2")
    lm = load_model(model)
    before = (lm.identity, [p.requires_grad for p in model.parameters()], model.config._attn_implementation)
    neurons.attribute(lm, PROMPTS[0], [30], steps=3, rule="reference")
    with pytest.raises(InputError, match="answer token 97"):
        neurons.attribute(lm, PROMPTS[0], [97])
    with pytest.raises(ModelError, match="one projection before its activation"):
        neurons.attribute_many(load_model(tiny("llama")), PROMPTS, ANSWERS, site="pre")
    after = (
        load_model(model).identity,
        [p.requires_grad for p in model.parameters()],
        model.config._attn_implementation,
    )
    assert before == after
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_bad_input_is_refused_by_name() -> None:
    lm = load_model(tiny("llama"))
    for act, text in (
        (lambda: neurons.attribute(lm, PROMPTS[0], []), "answer without a token"),
        (lambda: neurons.attribute(lm, [], [3]), "prompt without a token"),
        (lambda: neurons.attribute_many(lm, PROMPTS, ANSWERS[:2]), "3 prompts and 2 answers"),
        (lambda: neurons.attribute(lm, PROMPTS[0], [3], steps=1), "at least 2"),
        (lambda: neurons.attribute(lm, PROMPTS[0], [3], rule="simpson"), "simpson"),  # type: ignore[arg-type]
        (lambda: neurons.causal_check(lm, PROMPTS[:1], [[]], [[(0, 1)]]), r"answer 0: \[\]"),
        (lambda: neurons.causal_check(lm, PROMPTS[:1], [[97]], [[(0, 1)]]), "token ids below 97"),
        (lambda: neurons.causal_check(lm, PROMPTS[:1], [[3]], [[(0, 56)]]), r"neuron \(0, 56\) of case 0"),
        (lambda: neurons.causal_check(lm, PROMPTS[:1], [[3]], [[(3, 1)]]), r"neuron \(3, 1\) of case 0"),
        (lambda: neurons.select([torch.rand(2, 4)] * 2), "at least 3"),
        (lambda: neurons.select([torch.full((2, 4), torch.nan)] * 3), "NaN"),
        (lambda: neurons.overlap([[(0, 1)]], [], 10), "1 and 0 sets"),
    ):
        with pytest.raises(InputError, match=text):
            act()
    for name in ("llama", "mixtral"):
        with pytest.raises(ModelError, match="needs a norm behind the MLP and no experts"):
            neurons.attribute(load_model(tiny(name)), PROMPTS[0], [3], site="before-norm")


def test_key_neurons_are_those_of_the_loops() -> None:
    scores = torch.rand(6, 3, 4, 20, generator=torch.Generator().manual_seed(0), dtype=torch.float64) ** 6
    got = neurons.select(list(scores), t=0.3, u=0.5, v=4)
    assert got.neurons == oracle.key_neurons(scores.tolist(), 0.3, 0.5, 4)
    assert got.common and not got.common & {n for s in got.neurons for n in s}


def test_key_neurons_of_examples_do_not_depend_on_how_many_are_attributed_to_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lm, some = load_model(tiny("llama")), examples(2)[:5]
    both, first = (
        neurons.attribute_many(lm, [e.prompt_ids for e in some], [e.answer_ids[:n] for e in some]).mean for n in (2, 1)
    )
    monkeypatch.setattr(of_examples, "POOL", 2)
    assert of_examples.key_neurons(lm, some, None) == neurons.select(both).neurons
    assert of_examples.key_neurons(lm, some) == neurons.select(first).neurons
    spaced = [replace(e, prompt_ids=e.prompt_ids[:-1], answer_ids=(e.prompt_ids[-1], *e.answer_ids), separators=1)
              for e in some]  # fmt: skip
    assert of_examples.key_neurons(lm, spaced) == neurons.select(first).neurons, "white space is no answer"


def test_a_neuron_has_to_lie_above_the_threshold() -> None:
    assert set(coarse(torch.tensor([[1.0, 0.25, 0.5], [0.0, 0.26, -1.0]]), t=0.25)) == {(0, 0), (0, 2), (1, 1)}
    assert set(coarse(torch.tensor([[1.0, 0.3, 0.15]]))) == {(0, 0), (0, 1)}, "a fifth of the largest unless said"
    chosen = neurons.select([torch.tensor([[1.0, 0.26]])] * 3, decimals=1)
    assert chosen.clusters == [{(0, 0): 1.0, (0, 1): 0.3}] * 3, "scores are rounded where the published ones are"


def test_common_neurons_leave_before_the_cut_so_that_the_sets_stay_full() -> None:
    shared = torch.zeros(5, 2, 10)
    shared[:, 0, :3] = 1.0
    for q in range(5):
        shared[q, 1, 2 * q : 2 * q + 2] = 0.9
    assert all(len(s) == 2 for s in neurons.select(list(shared), v=2).neurons)
    kept = neurons.select(list(shared), v=5, remove_common=False)
    assert kept.neurons == neurons.select(list(shared), v=2).neurons  # ICA of a neuron in every query is negative
    shared[0, 0, :3] = 0  # of one in all queries but one it is 0
    nearly = neurons.select(list(shared), v=5, remove_common=False).neurons
    assert nearly == neurons.select(list(shared), v=2).neurons and len(nearly[1]) == 2


def test_overlap_knows_its_baselines() -> None:
    a = [[(0, 1), (0, 2)], [(1, 5)], []]
    b = [[(0, 2), (0, 3), (0, 4)], [(1, 5)], [(1, 1)]]
    got = neurons.overlap(a, b, 40)
    assert [s.overlap for s in got.matched[:2]] == [0.5, 1.0] and math.isnan(got.matched[2].overlap)
    assert got.mean() == 0.75 and got.mean(measure="jaccard") == pytest.approx((1 / 4 + 1) / 2)
    assert got.mean("mismatched") == 0.0 and got.empty == 1
    assert got.pooled.overlap == pytest.approx(2 / 3)
    assert got.chance == pytest.approx((3 + 1) / 2 / 40)
    first = [Example(f"c{i}", "whole", "x", "failure", (1, 2), (3,), (4, 5 + (i == 2)), 0, (0, 1)) for i in range(3)]
    by_case = _per_case(*([(e, s) for e, s in zip(first, sets, strict=True)] for sets in ([a[0]] * 3, [*b[:2], a[0]])))
    assert all([e.case for e, _ in column] == ["c0", "c1", "c2"] for column in by_case.values())
    assert {name: [x for _, x in column] for name, column in by_case.items()} == {
        "neuron_overlap": [0.5, 0, 1], "neuron_jaccard": [0.25, 0, 1], "neuron_overlap_mismatched": [0.5, 0.75, 0.25],
        "neuron_overlap_same_answer": pytest.approx([0, 0.5, math.nan], nan_ok=True),  # of c1; of c0, and never of c2
        "neuron_overlap_excess": [0, -0.75, 0.75],
    }  # fmt: skip
    counts = neurons.location_map(b, 2, 8, bins=4)
    assert counts.tolist() == [[0, 2 / 3, 1 / 3, 0], [1 / 3, 0, 1 / 3, 0]]


def test_scaling_neurons_by_rows_is_scaling_them_in_a_full_pass() -> None:
    lm = load_model(tiny("qwen3"))
    chosen = [[(0, 3), (2, 11)], [(1, 7)], []]
    got = neurons.causal_check(lm, PROMPTS, ANSWERS, chosen, draws=2, suppress=0.0, amplify=3.0)
    from composcope.hooks import Site

    for i, neuron_set in enumerate(chosen):
        for factor, field in ((0.0, got.suppressed), (3.0, got.amplified), (1.0, got.base)):
            edits = {}
            for layer in {n[0] for n in neuron_set}:
                index = [n[1] for n in neuron_set if n[0] == layer]

                def scale(x: Tensor, index: list[int] = index, factor: float = factor) -> Tensor:
                    y = x.clone()
                    y[:, -1, index] *= factor
                    return y

                edits[Site(layer, "neuron")] = scale
            with torch.no_grad():
                logits = lm.run(torch.tensor([PROMPTS[i]]), edit=edits).logits[0, -1]
            assert float(field[i]) == pytest.approx(float(logits.log_softmax(-1)[ANSWERS[i][0]]), abs=1e-4)


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe", "gpt_oss"])
def test_scaling_neurons_of_experts_is_scaling_columns_of_their_down_projection(name: str) -> None:
    lm = load_model(tiny(name))
    width, prompt = lm.anatomy.d_mlp, PROMPTS[0][:1]  # one token: weights act on nothing but the position asked about
    ids = torch.tensor([prompt])
    scores = neurons.by_expert(lm, neurons.attribute(lm, prompt, [30]))
    layer, expert, index = (int(i) for i in np.unravel_index(int(scores[1:].argmax()), scores[1:].shape))
    layer += 1
    got = neurons.causal_check(lm, [prompt], [[30]], [[(layer, expert * width + index)]], draws=3, amplify=3.0)
    experts: Any = lm.anatomy.layers[layer].experts
    column = experts.down_proj[expert, index] if name == "gpt_oss" else experts.down_proj[expert, :, index]
    own = column.detach().clone()
    for factor, field in ((1.0, got.base), (0.0, got.suppressed), (3.0, got.amplified)):
        with torch.no_grad():
            column.copy_(factor * own)
            expected = float(lm.model(ids).logits[0, -1].log_softmax(-1)[30])
        assert float(field[0]) == pytest.approx(expected, abs=1e-4)
    assert abs(float(got.suppressed[0] - got.base[0])) > 1e-3
    assert bool((got.random_suppressed != got.base[:, None]).any())


def test_random_neurons_are_those_of_the_same_layer_in_its_own_width_or_of_the_same_expert() -> None:
    layers = [SimpleNamespace(down=down, n_neurons=n) for down, n in ((1, 5), (1, 0), (None, 24))]
    lm: Any = SimpleNamespace(anatomy=SimpleNamespace(layers=layers, d_mlp=8))
    rng = np.random.default_rng(0)
    for layer, index, others in ((0, 3, {0, 1, 2, 4}), (1, 3, {*range(8)} - {3}), (2, 12, {*range(8, 16)} - {12})):
        drawn = {checks._random_like(lm, [(layer, index)], rng)[0] for _ in range(200)}
        assert drawn == {(layer, i) for i in others}


def test_random_neurons_are_none_of_the_chosen_and_follow_the_seed() -> None:
    lm = load_model(tiny("llama"))
    half, some = [(1, i) for i in range(0, 56, 2)], [(0, 3), (2, 11)]

    def drawn(seed: int) -> Tensor:
        return neurons.causal_check(lm, PROMPTS[:2], ANSWERS[:2], [half, some], draws=3, seed=seed).random_suppressed

    first, second = drawn(0), drawn(1)
    assert torch.equal(first, drawn(0)) and not torch.allclose(first[1], second[1], atol=1e-4)
    assert torch.allclose(first[0], second[0, 0].expand(3), atol=1e-4)  # there are no others than the other half


def test_queries_are_sampled_evenly() -> None:
    assert sampled(80) == list(range(0, 80, 10)) and sampled(3) == [0, 1, 2]


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_neurons_that_carry_an_answer_matter_more_than_random_ones(name: str) -> None:
    lm = load_model(tiny(name))
    prompts = [[5 + (11 * i + 17 * c) % 85 for i in range(9)] for c in range(12)]
    with torch.no_grad():
        answers = [[int(lm.run(torch.tensor([p])).logits[0, -1].argmax())] for p in prompts]
    scores = neurons.attribute_many(lm, prompts, answers).mean
    check = neurons.causal_check(lm, prompts, answers, neurons.select(scores).neurons)
    assert float(check.change("suppressed").mean()) < float(check.change("random_suppressed").mean()) - 0.02
    assert float(check.change("amplified").mean()) > float(check.change("random_amplified").mean()) + 0.02


def examples(n: int = 8) -> list[Example]:
    g = torch.Generator().manual_seed(1)
    out = []
    for c in range(n):
        for role, kind in (("whole", "composition"), ("part:0", "commonsense"), ("part:1", "math")):
            prompt = tuple(torch.randint(5, 90, (9 + c % 3,), generator=g).tolist())
            answer = tuple(torch.randint(5, 90, (2,), generator=g).tolist())
            group = "failure" if c % 2 else "success"
            out.append(Example(f"c{c}", role, kind, group, prompt, (), answer, 0, (0, 5)))
    return out


@pytest.mark.parametrize(
    ("rule", "steps", "used"), [("reference", None, 20), ("reference", 4, 4), ("gradient", None, 1), ("gradient", 4, 1)]
)
def test_settings_say_how_many_nodes_were_used(rule: Any, steps: int | None, used: int) -> None:
    lm = load_model(tiny("llama"))
    got = neurons.over_examples(lm, examples(3), rule=rule, steps=steps, draws=0)
    assert (got.settings["steps"], got.settings["answer_tokens"]) == (used, 1)
    compared = {r["quantity"] for r in got.table if r["quantity"].startswith("gradient")}
    assert bool(compared) == (rule != "gradient"), "the estimate is not compared with itself"
    assert (neurons.attribute_many(lm, [[5, 6]], [[7]], steps, rule).nodes[0] == used).all()


def test_examples_give_overlaps_maps_and_a_causal_check(tmp_path: Path) -> None:
    lm = load_model(tiny("llama"))
    got = neurons.over_examples(lm, examples(), draws=2)
    tasks = got.settings["tasks"]
    assert tasks == ["composition", "commonsense", "math"]
    assert got.tensors["overlap"].shape == (3, 3)
    assert got.tensors["location_map.math"].shape == (3, 16)
    assert torch.allclose(got.tensors["layer_marginal.math"], got.tensors["location_map.math"].sum(1))
    by_layer = [r for r in got.table if r["quantity"] == "neurons_in_layer"]
    assert {(r["group"], r["kind"], r["layer"]) for r in by_layer} == {
        (g, k, i) for g in ("failure", "success") for k in ("shared", "own") for i in range(3)
    }
    for group in ("failure", "success"):  # both are means over cases
        every = [sum(r["value"] for r in by_layer if (r["group"], r["layer"]) == (group, i)) for i in range(3)]
        assert got.tensors[f"layer_marginal.composition.{group}"].tolist() == pytest.approx(every)
    for group in ("failure", "success"):
        layers = torch.tensor([sum(r["value"] for r in by_layer if r["group"] == group and r["layer"] == i)
                               for i in range(3)])  # fmt: skip
        assert torch.allclose(layers, got.tensors[f"layer_marginal.composition.{group}"].float(), atol=1e-5)
    quantities = {r["quantity"] for r in got.table}
    assert {
        "neuron_overlap",
        "neuron_overlap_mismatched",
        "neuron_overlap_chance",
        "suppress_log_ratio_excess",
    } <= quantities
    for row in got.table:
        assert {"quantity", "group", "n", "value", "low", "high", "interval", "kind"} <= set(row)
    matched = [r for r in got.table if r["group"] == "matched failure - success"]
    assert {r["quantity"] for r in matched} >= {"neuron_overlap", "suppress_log_ratio_excess", "answer_probability"}
    assert all(
        (r["n"] or r["note"]) and "p_adjusted" in r and r["family"].startswith(("primary", "exploratory"))
        for r in matched
    )
    assert "matched to" in got.settings["matched"]
    pairs = match(examples()).pairs
    [before] = [r for r in got.table if r["quantity"] == "preceding_token_differs"]
    last = {e.case: e.prompt_ids[-1] for e in examples() if e.role == "whole"}
    assert (before["n"], before["count"]) == (len(pairs), sum(last[f] != last[s] for f, s in pairs)) and len(pairs) > 1
    got.save(tmp_path)
    assert (tmp_path / "table.csv").is_file()
    with pytest.raises(NoCasesError):
        neurons.over_examples(lm, [])


def test_attributions_that_say_little_are_counted_in_warnings() -> None:
    own: Any = [Example(c, "whole", "k", "failure", (5,), (), (7 + i, 8), 0, (0, 1)) for i, c in enumerate("abc")]
    alike: Any = [*own, Example("d", "whole", "k", "failure", (5,), (), (7, 9), 0, (0, 1))]
    lm: Any = SimpleNamespace(dtype=torch.float32, anatomy=SimpleNamespace(n_experts=None))
    mixture: Any = SimpleNamespace(dtype=torch.float32, anatomy=SimpleNamespace(n_experts=4))

    def found(*probability: float, unconverged: int = 0) -> Any:
        return SimpleNamespace(probability=probability, unconverged=unconverged)

    good = found(0.5, 0.5)
    chosen, none = SimpleNamespace(neurons=[[1]] * 4), SimpleNamespace(neurons=[[1], [], []])
    assert _warnings(lm, own, chosen, good, 1) == [] == _warnings(lm, alike, chosen, good, None)  # type: ignore[arg-type]
    for said, given in (
        ("2 of 4 answers begin with the same token", (lm, alike, chosen, good, 1)),
        ("2 of 3 queries have no key neuron", (lm, own, none, good, 1)),
        ("1 queries: the answer's probability is 0", (lm, own, chosen, found(0, 0.5), 1)),
        ("1 queries: the answer's probability is within", (lm, own, chosen, found(1, 0.5), 1)),
        ("3 (query, layer) pairs miss completeness", (lm, own, chosen, found(0.5, unconverged=3), 1)),
        ("routing frozen", (mixture, own, chosen, good, 1)),
    ):  # fmt: skip
        (warning,) = _warnings(*given)  # type: ignore[arg-type]
        assert said in warning


def test_changes_within_rounding_are_no_changes() -> None:
    change = torch.tensor([3e-6, -2e-6, 1e-3, -0.5, 0.0], dtype=torch.float64)
    assert _beyond_rounding(change).tolist() == [0, 0, 1e-3, -0.5, 0]
    noisy = change + torch.tensor([-4e-6, 3e-6, 1e-6, -1e-6, 2e-6])
    assert [cliffs_delta(_beyond_rounding(x)[:2], [0.0, 0.0]) for x in (change, noisy)] == [0, 0]


@pytest.mark.parametrize("model", GOLDEN)
def test_the_published_code_is_reproduced(model: str) -> None:
    lm = load_model(PUBLISHED / "models" / model)
    folder = PUBLISHED / "qrnca" / model
    queries = json.loads((folder / "queries.json").read_text()).values()
    prompts = [p for q in queries for p in q["input_ids"]]
    answers = [[t] for q in queries for t in q["target_ids"]]
    ref, exact = np.load(folder / "ref.npz"), np.load(folder / "exact.npz")
    got = neurons.attribute_many(lm, prompts, answers, steps=20, rule="reference")
    scores = torch.stack(got.mean).view(8, 3, *got.mean[0].shape)
    assert np.abs(scores.numpy() - ref["scores_steps20"]).max() < 3e-6
    assert np.abs(scores.numpy() - ref["naive_fp64_steps20"]).max() < 5e-6
    short = neurons.attribute_many(lm, prompts[:3], answers[:3], steps=16, rule="reference")
    assert np.abs(torch.stack(short.mean).numpy() - ref["scores_q0_steps16_bs8"]).max() < 3e-6
    fine = neurons.attribute_many(lm, prompts[:3], answers[:3])
    assert np.abs(torch.stack(fine.mean).numpy() - exact["ig_exact_z_site"]).max() < 5e-6
    assert np.abs(torch.cat(fine.silenced).numpy() - exact["p_zeroed_z_site"]).max() < 5e-6
    _check_sets(folder, scores)


def _check_sets(folder: Path, scores: Tensor) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    chosen = neurons.select(list(scores))
    assert [len(c) for c in chosen.clusters] == expected["cluster_sizes"]
    assert {f"{a}_{b}": n for (a, b), n in chosen.df.items()} == expected["df"]
    assert sorted(chosen.common) == sorted(map(tuple, expected["ref_common"]))
    assert chosen.neurons == [[tuple(n) for n, _ in q] for q in expected["corrected_key_neurons"]]
    published = neurons.select(list(scores), decimals=6, remove_common=False)
    for mine, theirs in zip(published.neurons, expected["ref_key_neurons"], strict=True):
        assert sorted(mine) == sorted(map(tuple, theirs["neurons"]))
    maps = json.loads((folder / "overlap_heatmap.json").read_text())
    got = neurons.overlap(chosen.neurons[::2], chosen.neurons[1::2], scores.shape[-2] * scores.shape[-1])
    for measure in ("overlap", "jaccard", "dice"):
        assert got.mean(measure=measure) == pytest.approx(maps["overlap"][measure]["matched_mean"])
        assert got.mean("mismatched", measure) == pytest.approx(maps["overlap"][measure]["mismatched_mean"])
        assert getattr(got.pooled, measure) == pytest.approx(maps["overlap"][measure]["pooled"])
    counts = neurons.location_map(chosen.neurons, scores.shape[-2], scores.shape[-1]) * 8
    assert counts.round().int().tolist() == maps["heatmap_counts_16_bins"]


def test_a_factor_of_experts_is_one_up_to_rounding_and_other_maps_are_refused() -> None:
    mine, off, experts = torch.tensor([1.0, -2, 3]), torch.tensor([0, 0, 0.1]), torch.nn.Identity()
    for factor, known in ((1.0, 1), (1.009, 1), (0.991, 1), (1.02, 1.02), (0.5, 0.5), (0.004, 0.004), (-2.0, -2)):
        assert _factor(experts, factor * mine, mine) == pytest.approx(known, abs=1e-6)
    assert _factor(experts, (mine + off).bfloat16(), mine) == pytest.approx(1.02, abs=5e-3)
    for other in (mine + off, (mine + 6 * off).bfloat16(), mine * torch.nan):
        with pytest.raises(ModelError, match="up to a factor"):
            _factor(experts, other, mine)


@pytest.mark.parametrize(
    ("norm", "fits"), [(torch.nn.RMSNorm(4), True), (torch.nn.LayerNorm(4, bias=False), False),
                       (torch.nn.LayerNorm(4), False), (torch.nn.Linear(4, 4), False)],
)  # fmt: skip
def test_only_norms_that_rescale_may_follow_the_mlp(norm: torch.nn.Module, fits: bool) -> None:
    if isinstance(bias := getattr(norm, "bias", None), torch.Tensor):
        torch.nn.init.ones_(bias)
    with nullcontext() if fits else pytest.raises(ModelError, match="not an RMS norm"), torch.no_grad():
        _check_norm(SimpleNamespace(post_norm=norm))  # type: ignore[arg-type]
