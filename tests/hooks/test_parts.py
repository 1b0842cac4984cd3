"""Parts of a model: where heads lie, what modules pass on, which configurations there are and which modes count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from einops import rearrange
from tiny_models import tiny

from composcope.errors import ModelError
from composcope.hooks import parts
from composcope.hooks.anatomy import _experts, width_of
from composcope.hooks.trace import Trace


def test_heads_lie_where_the_layout_says() -> None:
    n_q, n_kv, d = 4, 2, 3
    q, k, v = (torch.randn(1, 5, n, d) for n in (n_q, n_kv, n_kv))
    flat = [rearrange(x, "b p h d -> b p (h d)") for x in (q, k, v)]
    grouped = torch.cat([rearrange(q, "b p (kv g) d -> b p kv g d", kv=n_kv), k[:, :, :, None], v[:, :, :, None]], 3)
    layouts = {
        "concat": [torch.cat(flat, -1)] * 3,
        "grouped": [rearrange(grouped, "b p kv s d -> b p (kv s d)")] * 3,
        "alone": flat,
    }
    for layout, whole in layouts.items():
        for part, (y, want) in enumerate(zip(whole, (q, k, v), strict=True)):
            found = parts.cut(y, layout, part, n_q, n_kv)
            assert found is not None and torch.equal(found, want.transpose(1, 2)), (layout, part)
            back = parts.paste(y, found + 1, layout, part, n_q, n_kv)
            again = parts.cut(back, layout, part, n_q, n_kv)
            assert again is not None and torch.equal(again, found + 1) and int((back != y).sum()) == want.numel()
    for layout, y in (("alone", q), ("heads_first", q.transpose(1, 2))):
        found = parts.cut(y, layout, 0, n_q, n_kv)
        assert found is not None and torch.equal(found, q.transpose(1, 2))
        assert torch.equal(parts.paste(y, found * 2, layout, 0, n_q, n_kv), y * 2)
        assert parts.cut(y, layout, 1, n_q, n_kv) is None, "as many heads as keys have"
    assert parts.head_index("concat", 0, 4, 2, 9) is None and parts.head_index("alone", 0, 4, 2, 9) is None
    assert parts.head_index("heads_first", 0, 4, 2, 8) is None and parts.cut(flat[0][0], "alone", 0, 4, 2) is None


def test_hidden_states_are_found_however_they_are_passed() -> None:
    x = torch.zeros(1)
    assert parts.first_tensor(((x, 1), 2)) is x and parts.first_tensor([]) is None and parts.first_tensor(1) is None
    assert parts.hidden_in((x,), {"hidden_states": 1}) is x and parts.hidden_in((), {"hidden_states": x}) is x
    assert parts.hidden_in((), {}) is None
    for name in ("out_features", "nf", "outfeatures"):
        assert width_of(SimpleNamespace(**{name: 7})) == 7  # type: ignore[arg-type]
    assert width_of(SimpleNamespace(out_features="7")) is None  # type: ignore[arg-type]
    listed = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(2, 2)) for _ in range(2))
    assert _experts(torch.nn.Sequential(torch.nn.Linear(2, 2), listed)) is listed
    assert _experts(torch.nn.Sequential(torch.nn.ModuleList(listed[:1]))) is None


def test_a_class_that_is_its_own_decoder_has_one_part_beside_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = tiny("llama")
    assert parts.decoder_of(model) is model.model
    for thing in (model, model.model):
        monkeypatch.setattr(thing, "get_decoder", lambda thing=thing: thing)
    assert parts.decoder_of(model) is model.model
    with pytest.raises(ModelError, match=r"LlamaModel: its decoder cannot be separated.*ForCausalLM"):
        parts.decoder_of(model.model)


def test_every_configuration_that_names_an_attention_is_found_once() -> None:
    deep, of_module = SimpleNamespace(), SimpleNamespace(_attn_implementation="sdpa")
    text = SimpleNamespace(sub_configs=("deep", "none"), deep=deep, none=None)
    whole = SimpleNamespace(sub_configs=("text",), text=text, get_text_config=lambda decoder: text)
    modules = [*(SimpleNamespace(config=c) for c in (of_module, text, 3)), SimpleNamespace()]
    model: Any = SimpleNamespace(config=whole, modules=lambda: modules)
    found = parts.attention_configs(model)
    assert len(found) == 4 and {id(c) for c in found} == {id(c) for c in (whole, text, of_module, deep)}


def test_modules_in_training_mode_matter_where_they_drop_something() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.0), torch.nn.Dropout(0.5)).eval()
    model[0].train()
    model[1].train()
    parts.check_eval(model)  # type: ignore[arg-type]
    model[2].train()
    with pytest.raises(ModelError, match=r"Sequential: 2 is in training mode"):
        parts.check_eval(model)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"Sequential is in training mode"):
        parts.check_eval(torch.nn.Sequential())  # type: ignore[arg-type]


def test_a_trace_holds_what_every_module_of_a_block_took_and_gave() -> None:
    model: Any = tiny("llama")
    layers = list(model.model.layers)
    found = Trace(model, layers)
    assert len(found.events) == len(found.ends) == len(found.calls) == len(layers)
    for layer, events, (x, y) in zip(layers, found.events, found.ends, strict=True):
        assert {e.name for e in events} == {name for name, _ in layer.named_modules() if name}
        assert all(layer.get_submodule(e.name) is e.module for e in events)
        by_name = {e.name: e for e in events}
        normed = by_name["input_layernorm"].inputs
        assert normed is not None and torch.equal(normed, x) and x.shape == y.shape == (1, 2, 32)
        torch.testing.assert_close(layer.mlp(by_name["mlp"].inputs), by_name["mlp"].output)
    assert torch.equal(found.ends[0][1], found.ends[1][0]), "one block's output is the next one's input"
    assert not any(m._forward_hooks for m in model.modules())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda y: y[:, :1], "a block must map hidden states to hidden states"),
        (lambda y: y.new_full(y.shape, torch.nan), "NaN logits for a two-token prompt"),
        (lambda y: y[..., :5], "must map hidden states|its forward pass fails on two tokens"),
        (lambda y: y.missing, "its forward pass fails on two tokens without a cache: .*missing"),
    ],
)
def test_blocks_that_do_not_map_states_to_states_are_refused(change: Any, said: str) -> None:
    model: Any = tiny("llama")
    last = model.model.layers[-1]
    forward = last.forward
    last.forward = lambda *args, **kwargs: change(forward(*args, **kwargs))
    with pytest.raises(ModelError, match=said):
        Trace(model, list(model.model.layers))
    assert not any(m._forward_hooks for m in model.modules())
