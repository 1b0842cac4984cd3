"""Layers of one model with other numbers of heads, or wider ones: each is read and written by its own."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from composcope.errors import InputError, ModelError
from composcope.hooks import Model, Site, load_model, parts
from composcope.hooks.sites import KINDS
from composcope.probes import lookback, patching

from ..tiny_models import REFUSED, tiny

IDS = torch.tensor([[5, 31, 77, 12, 40, 8, 66, 23]])
DONOR, RECIPIENT, ANSWERS = IDS[0].tolist(), [18, 22, 41, 7, 7, 63, 50, 36], [(4, 9)]
BACKENDS = ("transformers", "nnsight")


def opened(name: str, backend: str = "transformers") -> Model:
    if backend != "transformers":
        pytest.importorskip(backend)
    return load_model(tiny(name), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("name", "heads", "widths"),
    [("gemma4_text", [(4, 2), (4, 1), (4, 2), (4, 1)], [8, 12, 8, 12]), ("laguna", [(4, 2), (4, 2), (8, 2)], [8] * 3)],
)
def test_every_layer_is_read_and_edited_with_its_own_heads(
    name: str, heads: list[Any], widths: list[int], backend: str
) -> None:
    lm = opened(name, backend)
    n = lm.anatomy.n_layers
    assert [lm.anatomy.heads(i) for i in range(n)] == heads and lm.anatomy.d_head == max(widths)
    for i, ((n_q, n_kv), d) in enumerate(zip(heads, widths, strict=True)):
        sites = {k: Site(i, k) for k in KINDS if not (k == "neuron" and lm.anatomy.layers[i].experts)}  # type: ignore[arg-type]
        with torch.no_grad():
            plain, run = lm.model(IDS).logits, lm.run(IDS, read=sites.values())
            assert torch.equal(run.logits, plain)
            shapes = {k: tuple(run.acts[s].shape) for k, s in sites.items()}
            assert shapes["q"] == (1, n_q, 8, d) and shapes["k"] == (1, n_kv, 8, d)
            assert shapes["head"] == (1, 8, n_q * d) and shapes["pattern"] == (1, n_q, 8, 8)
            last = Site(i, "head", head=n_q - 1)
            assert torch.equal(lm.run(IDS, read=[last]).acts[last], run.acts[sites["head"]][..., -d:])
            for site in sites.values():
                assert torch.equal(lm.run(IDS, edit={site: lambda x: x}).logits, plain) or site.kind == "pattern"
                assert not torch.equal(lm.run(IDS, edit={site: lambda x: 1.3 * x + 0.1}).logits, plain)


@pytest.mark.parametrize(("name", "layers"), [("gemma4_text", None), ("laguna", [2])])
def test_a_sweep_over_heads_puts_in_whole_heads_of_every_layer(name: str, layers: list[int] | None) -> None:
    lm = opened(name)
    got = patching.head_sweep(lm, [DONOR], [RECIPIENT], ANSWERS, layers=layers).tensors["logit_difference"][0]
    screen = patching.attribution_patching(
        lm, [DONOR], [RECIPIENT], ANSWERS, units="heads", layers=layers, verify=None
    ).tensors
    base = screen["patched"][0]
    for row, layer in enumerate(layers or range(lm.anatomy.n_layers)):
        site, (n, _) = Site(layer, "head"), lm.anatomy.heads(layer)
        for head in range(n):
            with torch.no_grad():
                value = lm.run(IDS, read=[site]).acts[site]

                def put(x: Tensor, head: int = head, n: int = n, value: Tensor = value) -> Tensor:
                    y = x.unflatten(-1, (n, -1)).clone()
                    y[:, :, head] = value.unflatten(-1, (n, -1))[:, :, head]
                    return y.flatten(-2)

                run = torch.tensor([RECIPIENT])
                logits = lm.run(run, edit={site: put}).logits[0, -1]
                before = lm.run(run).logits[0, -1]
            expected = float(logits[4] - logits[9])
            assert float(got[row, head]) == pytest.approx(expected, abs=1e-4)
            assert float(base[row, head]) == pytest.approx(expected - float(before[4] - before[9]), abs=1e-4)
            one = patching.position_sweep(
                lm, [DONOR], [RECIPIENT], ANSWERS, kind="head", head=head, layers=[layer], positions=range(8)
            )
            assert one.tensors["logit_difference"].shape == (1, 1, 8)


def test_one_table_over_layers_of_unequal_numbers_of_heads_is_refused() -> None:
    lm = opened("laguna")
    for sweep in (patching.head_sweep, lambda *a: patching.attribution_patching(*a, units="heads")):
        with pytest.raises(InputError, match=r"layers \[0, 1, 2\] have \[4, 8\] heads; give layers that have equally"):
            sweep(lm, [DONOR], [RECIPIENT], ANSWERS)
    with pytest.raises(InputError, match=r"layers \[0, 1, 2\] have \[4, 8\] heads"):
        patching.position_sweep(lm, [DONOR], [RECIPIENT], ANSWERS, kind="head", head=1)
    with pytest.raises(InputError, match="give kind='head' and a head below 4"):
        patching.position_sweep(lm, [DONOR], [RECIPIENT], ANSWERS, kind="head", head=5, layers=[0])
    with pytest.raises(ModelError, match=r"Laguna.*: layers have different numbers of heads \(4, 8\); masses"):
        lookback.ratios(lm, [DONOR], [[3, 4]], 1)
    assert torch.equal(lm.run(IDS).logits, lm.model(IDS).logits)


def test_a_part_of_the_block_that_neither_attention_nor_mlp_wrote_is_seen_also_where_it_is_small() -> None:
    heads: dict[str, Any] = dict(num_attention_heads=4, initializer_range=0.3, max_position_embeddings=64)
    size: dict[str, Any] = dict(vocab_size=97, hidden_size=32, num_hidden_layers=3, bos_token_id=1, eos_token_id=2)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gpt_neox_japanese", **size, **heads)).eval()
    bias: Any = model.gpt_neox_japanese.layers[-1].attention.dense_bias  # added behind the module
    with torch.no_grad():
        bias.normal_(std=0.02)
    with pytest.raises(ModelError, match="GPTNeoXJapaneseLayer: the outputs of attention and mlp do not add up"):
        load_model(model)


@pytest.mark.parametrize("over", [{}, {"hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 97}])
def test_a_gemma_4_whose_layers_scale_their_stream_or_have_inputs_of_their_own_is_refused(over: dict[str, Any]) -> None:
    model: Any = tiny("gemma4_text", **over)
    for layer in model.model.layers if not over else ():
        layer.layer_scalar.fill_(0.7)
    with pytest.raises(ModelError, match="do not add up"):
        load_model(model)


def test_a_factor_on_the_mlp_alone_is_told_from_one_on_attention() -> None:
    model: Any = tiny("llama")
    block = model.model.layers[1]

    def forward(hidden_states: Tensor, **settings: Any) -> Tensor:
        between = hidden_states + block.self_attn(block.input_layernorm(hidden_states), **settings)[0]
        return between + 0.5 * block.mlp(block.post_attention_layernorm(between))

    block.forward = forward
    layers = load_model(model).anatomy.layers
    assert [layer.mlp_scale for layer in layers] == [1, pytest.approx(0.5, abs=1e-3), 1]


@pytest.mark.parametrize("attn", ["sdpa", "eager"])
def test_attention_to_later_tokens_is_refused_when_the_model_is_opened(attn: str) -> None:
    with pytest.raises(ModelError, match="Gemma3ForCausalLM: tokens attend to later ones"):
        load_model(tiny("gemma3_text", attn=attn))
    assert "gemma3_text" in REFUSED
    load_model(tiny("gemma3_text", attn=attn, use_bidirectional_attention=False))


def test_a_block_that_changes_no_more_than_the_stream_is_rounded_by_is_opened() -> None:
    model = tiny("llama")
    block = model.model.layers[1]
    with torch.no_grad():
        block.self_attn.o_proj.weight.zero_()
        block.mlp.down_proj.weight.mul_(1e-6)  # a gate that is shut
    load_model(model)


def test_a_setting_of_layers_that_differ_is_the_first_layers() -> None:
    class Differs:
        per_layer_config = (SimpleNamespace(a=1), SimpleNamespace(a=2))

        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("by layer")

    assert (parts.stated(SimpleNamespace(a=3), "a"), parts.stated(SimpleNamespace(), "a")) == (3, None)
    assert (parts.stated(Differs(), "a"), parts.stated(Differs(), "b")) == (1, None)


def test_sizes_of_layers_that_differ_come_from_the_layers() -> None:
    layers = (
        SimpleNamespace(heads=(2, 1), n_neurons=10),
        SimpleNamespace(heads=(0, 0), n_neurons=0),
        SimpleNamespace(heads=(8, 0), n_neurons=30),
    )
    one = load_model(tiny("llama")).anatomy
    found = replace(one, layers=layers)
    assert [found.heads(i) for i in range(3)] == [(2, 1), (4, 2), (8, 2)]
    assert (found.n_layers, found.n_neurons, found.all_neurons) == (3, 30, 70)
    layers = (SimpleNamespace(heads=(0, 0), n_neurons=0),) * 3
    dense, sparse = replace(one, layers=layers), replace(one, layers=layers, n_experts=4)
    assert (sparse.n_neurons, dense.n_neurons, sparse.all_neurons) == (224, 56, 672)
    stated = load_model(tiny("gpt2", num_key_value_heads=2)).anatomy  # which this architecture does not use
    assert (stated.n_kv_heads, stated.heads(0)) == (4, (4, 4))
