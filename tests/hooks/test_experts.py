"""Neurons inside mixtures of experts: read and edited as if a module held them, on every backend."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from composcope.errors import InputError, ModelError
from composcope.hooks import Model, Site, experts, load_model
from composcope.hooks.anatomy import _stated_experts
from composcope.hooks.backends.transformers import _expert_tap
from composcope.hooks.edits import Patch
from composcope.hooks.interchange import interchange

from ..tiny_models import tiny

NAMES = ["mixtral", "qwen3_moe", "gpt_oss"]
BACKENDS = [
    pytest.param(n, marks=pytest.mark.skipif(importlib.util.find_spec(n) is None, reason=f"{n} is not installed"))
    for n in ("transformers", "transformer_lens", "nnsight")
]
STEP = 1e-3
IDS = torch.randint(5, 90, (2, 9), generator=torch.Generator().manual_seed(0))


def every(lm: Model, layer: int = 1) -> list[Site]:
    assert lm.anatomy.n_experts is not None
    return [Site(layer, "neuron", e) for e in range(lm.anatomy.n_experts)]


def routed(model: Any, layer: int) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, chosen experts and weights of a layer, as its experts module was called."""
    seen: list[tuple[Tensor, ...]] = []
    experts = model.get_decoder().layers[layer].mlp.experts
    handle = experts.register_forward_pre_hook(lambda _m, args: seen.append(args))
    with torch.no_grad():
        model(IDS)
    handle.remove()
    return seen[0][0], seen[0][1], seen[0][2]


@pytest.mark.parametrize("name", NAMES)
def test_an_experts_neurons_are_there_for_the_tokens_that_chose_it(name: str) -> None:
    model = tiny(name)
    lm = load_model(model)
    hidden, index, _ = routed(model, 1)
    experts: Any = model.get_decoder().layers[1].mlp.experts  # type: ignore[union-attr, index]
    with torch.no_grad():
        acts = lm.run(IDS, read=every(lm)).acts
    for e, site in enumerate(every(lm)):
        got = acts[site].flatten(0, 1)
        assert acts[site].shape == (2, 9, lm.anatomy.d_mlp)
        assert torch.equal((got != 0).any(-1), (index == e).any(-1))
        for t in torch.where((index == e).any(-1))[0].tolist():
            if name == "gpt_oss":
                gate_up = hidden[t] @ experts.gate_up_proj[e] + experts.gate_up_proj_bias[e]
                gate, up = gate_up[::2].clamp(max=7.0), gate_up[1::2].clamp(-7.0, 7.0)
                want = (up + 1) * gate * torch.sigmoid(1.702 * gate)
            else:
                gate, up = (hidden[t] @ experts.gate_up_proj[e].T).chunk(2)
                want = torch.nn.functional.silu(gate) * up
            assert torch.allclose(got[t], want, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", NAMES)
def test_an_edit_of_neurons_is_an_edit_of_the_columns_that_they_write_with(name: str, backend: str) -> None:
    model = tiny(name)
    lm = load_model(model, backend=backend)
    experts: Any = model.get_decoder().layers[1].mlp.experts  # type: ignore[union-attr, index]
    sites = every(lm)

    def scale(x: Tensor) -> Tensor:
        y = x.clone()
        y[..., :5] *= -2.0
        return y

    with torch.no_grad():
        base = lm.run(IDS).logits
        assert torch.equal(lm.run(IDS, read=sites, edit=dict.fromkeys(sites, torch.clone)).logits, base)
        one, all_of_them = lm.run(IDS, edit={sites[2]: scale}).logits, lm.run(IDS, edit=dict.fromkeys(sites, scale))
        weight = experts.down_proj
        columns = weight[:, :5] if name == "gpt_oss" else weight[:, :, :5]
        columns[2] *= -2.0
        assert torch.allclose(one, lm.run(IDS).logits, atol=2e-5)
        columns[[0, 1, 3]] *= -2.0
        assert torch.allclose(all_of_them.logits, lm.run(IDS).logits, atol=2e-5)
    assert not torch.allclose(base, one, atol=1e-2)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_reach_the_neurons_of_experts(backend: str) -> None:
    lm = load_model(tiny("qwen3_moe"), backend=backend)
    sites = every(lm)
    run = lm.run(IDS[:1], read=sites)
    gradients = torch.autograd.grad(run.logits[0, -1, 7], [run.acts[s] for s in sites])
    for site, gradient in zip(sites, gradients, strict=True):
        chosen = (run.acts[site] != 0).any(-1)
        assert bool((gradient[~chosen] == 0).all())
        at = tuple(torch.nonzero(gradient[0].abs() == gradient[0].abs().max())[0].tolist())

        def nudged(sign: float, at: tuple[int, ...] = at, site: Site = site) -> float:
            def edit(x: Tensor) -> Tensor:
                y = x.clone()
                y[(0, *at)] += sign * STEP
                return y

            with torch.no_grad():
                return float(lm.run(IDS[:1], edit={site: edit}).logits[0, -1, 7])

        slope = (nudged(1) - nudged(-1)) / (2 * STEP)
        assert slope == pytest.approx(float(gradient[(0, *at)]), rel=2e-2, abs=2e-3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_model_is_as_before_after_a_failed_edit_of_an_expert(backend: str) -> None:
    model = tiny("mixtral")
    lm = load_model(model, backend=backend)
    with torch.no_grad():
        before = lm.run(IDS).logits

        def fail(x: Tensor) -> Tensor:
            raise RuntimeError("stop here")

        with pytest.raises(Exception, match="stop here"):
            lm.run(IDS, edit={Site(1, "neuron", 0): fail})
        assert torch.equal(lm.run(IDS).logits, before)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_mistakes_with_experts_are_one_clear_line() -> None:
    mixture, dense = load_model(tiny("mixtral")), load_model(tiny("llama"))
    for lm, site, text in (
        (mixture, Site(0, "neuron"), r"name one: Site\(0, \"neuron\", 0..3\)"),
        (mixture, Site(0, "neuron", 4), r"4 experts \(0-3\)"),
        (mixture, Site(0, "mlp_out", 1), "only the kind"),
        (mixture, Site(0, "pattern", 1), "a head is named head=1"),
        (dense, Site(0, "head", 1), "a head is named head=1"),
        (dense, Site(0, "neuron", 0), "no experts"),
    ):
        with pytest.raises(ModelError, match=text) as error:
            lm.run(IDS, read=[site])
        assert "\n" not in str(error.value)
    patched = Patch(Site(1, "neuron", 3), 2, torch.zeros(56))
    with pytest.raises(InputError, match=r"row 0: .*expert=3\) cannot be patched in rows"):
        interchange(mixture, [5, 6, 7], [[patched]], [2])
    last = Site(0, "neuron", 3)
    assert mixture.run(IDS, read=[last]).acts[last].shape == (*IDS.shape, 56)
    layer = replace(mixture.anatomy.layers[0], down=dense.anatomy.layers[0].down)
    with pytest.raises(ModelError, match="this layer's MLP has no experts"):
        _expert_tap(layer, Site(0, "neuron", 0))


def test_a_change_that_gives_nothing_changes_nothing() -> None:
    model = tiny("mixtral")
    module: Any = model.get_decoder().layers[1].mlp.experts  # type: ignore[union-attr, index]
    sent = experts.Dispatch(*routed(model, 1))
    output = module(*sent)
    assert torch.equal(experts.changed(module, sent, output, lambda e, tokens, z: None), output)


def test_experts_whose_output_is_not_the_sum_of_them_are_refused() -> None:
    model = tiny("mixtral")
    lm = load_model(model)
    experts: Any = model.get_decoder().layers[1].mlp.experts  # type: ignore[union-attr, index]
    experts.register_forward_hook(lambda _m, _a, y: 1.02 * y)
    lm.run(IDS)
    with pytest.raises(ModelError, match="not the weighted sum of its experts"):
        lm.run(IDS, read=every(lm)[:1])


def test_modules_that_are_no_experts_are_refused() -> None:
    for wrong in (None, torch.nn.Linear(2, 2)):
        with pytest.raises(ModelError, match=f"{type(wrong).__name__}: its experts"):
            experts.required(wrong)
    behind: Any = tiny("mixtral").get_decoder().layers[1].mlp.experts  # type: ignore[union-attr, index]
    assert experts.required(behind) is behind
    behind.has_post_expert_norm = True
    with pytest.raises(ModelError, match=r"MixtralExperts: its experts .* a norm behind them"):
        experts.required(behind)
    x, index = torch.zeros(3, 2), torch.zeros(3, 1, dtype=torch.long)
    sent = experts.given(torch.nn.Identity(), (x[None],), {"index": index, "weight": x[:, :1], "other": 1})
    assert torch.equal(sent.hidden, x) and sent.index is index and torch.equal(sent.weight, x[:, :1])
    for args in ((x, index), (x, index, None), (x, index[0], x), (None, index, x)):
        with pytest.raises(ModelError, match="Identity: was not called with"):
            experts.given(torch.nn.Identity(), args, {})


@pytest.mark.parametrize("name", ["num_local_experts", "num_experts", "n_routed_experts"])
def test_the_number_of_experts_is_the_one_that_the_configuration_states(name: str) -> None:
    assert _stated_experts(SimpleNamespace(**{name: 6})) == 6
    assert _stated_experts(SimpleNamespace(**{name: None})) is None is _stated_experts(SimpleNamespace())
