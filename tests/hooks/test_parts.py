"""Parts of a model: where heads lie, what modules pass on, which configurations there are and which modes count."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from einops import rearrange
from tiny_models import tiny

from composcope.errors import ModelError
from composcope.hooks import attention, parts
from composcope.hooks.anatomy import Projection, _attention, _experts, _post_norm, _resolve_layer, width_of
from composcope.hooks.backends import _module
from composcope.hooks.backends.transformers import Tap, install
from composcope.hooks.module_hooks import ModuleHook, hooked
from composcope.hooks.trace import Event, Trace


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
    model.draft = tiny("llama").model
    with pytest.raises(ModelError, match=r"LlamaForCausalLM: its decoder cannot be separated"):
        parts.decoder_of(model)


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
        attended = by_name["self_attn"].inputs  # which are passed by name
        assert attended is not None and torch.equal(attended, by_name["input_layernorm"].output)
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


def test_a_model_of_another_depth_than_its_configuration_says_is_refused_with_its_lists() -> None:
    model: Any = tiny("llama")
    assert parts.blocks_of(model) is model.model.layers
    model.config.num_hidden_layers = 4
    with pytest.raises(ModelError, match=r"LlamaForCausalLM: no single list of 4 blocks .*layers \(3\)"):
        parts.blocks_of(model)
    model.config.num_hidden_layers = 3
    model.model.more = torch.nn.ModuleList(torch.nn.Identity() for _ in range(3))
    with pytest.raises(ModelError, match=r"layers \(3\), more \(3\)"):
        parts.blocks_of(model)


def test_a_trace_that_runs_out_of_memory_says_that_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = tiny("llama")

    def full(*args: Any, **kwargs: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(model.model, "forward", full)
    with pytest.raises(torch.OutOfMemoryError):
        Trace(model, list(model.model.layers))


class _Takes(torch.nn.Module):
    def __init__(self, gives: Any = "states") -> None:
        super().__init__()
        self.gives = gives

    def forward(self, hidden_states: Any = None) -> Any:
        return hidden_states if self.gives == "states" else self.gives


@pytest.mark.parametrize("side", ["in", "in-place"])
def test_a_tap_takes_states_by_place_or_by_name_and_refuses_a_call_without_them(side: str) -> None:
    module, x = _Takes(), torch.zeros(1, 2, 4)
    handle = install(Tap(module, side), lambda y: y + 1, (2, 2))
    for given in (((x.clone(),), {}), ((), {"hidden_states": x.clone()})):
        assert torch.equal(module(*given[0], **given[1]), x + 1)
    with pytest.raises(ModelError, match="_Takes: called without hidden states"):
        module()
    handle.remove()
    assert module(x) is x


def test_a_tap_of_an_output_refuses_what_is_no_tensor_or_has_no_heads() -> None:
    x = torch.zeros(1, 2, 5)
    for module, tap, said in (
        (gives := _Takes(None), Tap(gives, "out"), "gave no tensor"),
        (whole := _Takes(), Tap(whole, "out", Projection(whole, "alone", 0)), r"shape \(1, 2, 5\) cannot be cut"),
    ):
        install(tap, lambda y: y, (2, 2))
        with pytest.raises(ModelError, match=f"_Takes: .*{said}"):
            module(x)


@pytest.mark.parametrize("side", ["in", "out"])
@pytest.mark.parametrize("shape", [(1, 2, 4), (2, 4)])
def test_hooks_of_states_change_them_in_their_order_however_they_are_passed(side: Any, shape: tuple[int, ...]) -> None:
    module, x, seen = _Takes(), torch.zeros(shape), []
    changes = (lambda y: y + 1, lambda y: 3 * y, lambda y: seen.append(y.shape))
    with hooked([ModuleHook(module, side, change) for change in changes], 1):
        for given in ((x,), {}), ((), {"hidden_states": x}):
            found = module(*given[0], **given[1])
            assert torch.equal(found, torch.full(shape, 3.0)) and seen.pop() == (1, 2, 4)
        with pytest.raises(ModelError, match="without hidden states"):
            module(3)
    assert module(x) is x


def _event(name: str, module: Any, gives: float, takes: float | None = None) -> Event:
    return Event(module, name, None if takes is None else torch.full((1, 2, 4), takes), torch.full((1, 2, 4), gives))


def test_a_block_without_attention_projection_or_mlp_is_refused_and_says_which_is_missing() -> None:
    linear, half = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)
    own, out, mlp = _event("self_attn", torch.nn.ModuleList([linear]), 1), _event("self_attn.o", linear, 1), linear
    block = torch.nn.ModuleDict({"self_attn": torch.nn.ModuleList([linear]), "mlp": torch.nn.ModuleList([mlp])})
    ends = [(torch.zeros(1, 2, 4), torch.ones(1, 2, 4))]
    for events, said in (
        ([], "self_attn: no output projection of width 4"),
        ([own], "self_attn: no output projection of width 4"),
        ([out], "self_attn: no output projection of width 4"),
        ([_event("self_attn.o", half, 1), own], "self_attn: no output projection of width 4"),
        ([out, own], "no MLP down projection of width 4"),
        ([out, own, _event("mlp.down", half, 1)], "no MLP down projection of width 4"),
        ([out, own, _event("mlp.down", linear, 1)], r"no MLP among its children \['self_attn', 'mlp'\]"),
    ):
        trace: Any = SimpleNamespace(ends=ends, events=[events], calls=[])
        with pytest.raises(ModelError, match=f"ModuleDict.*{said}"):
            _resolve_layer(trace, 0, block, (4, 2, 2))
    with pytest.raises(ModelError, match=r"Sequential: no attention .*'0 \(Linear\)'"):
        _attention(torch.nn.Sequential(linear))


def test_the_norm_behind_an_mlp_is_the_module_between_its_output_and_the_end() -> None:
    down, norm, mlp, tail = (torch.nn.Identity() for _ in range(4))
    end, block = _event("tail", tail, 3), torch.nn.Identity()
    last = _event("mlp.down", down, 1)
    assert _post_norm(block, [], None, end) is None
    assert _post_norm(block, [last], last, _event("tail", tail, 1)) is None
    direct = [last, _event("norm", norm, 3, takes=1)]
    assert _post_norm(block, direct, last, end) is norm
    with pytest.raises(ModelError, match=r"Identity: tail is not the output of mlp.down"):
        _post_norm(block, [last, _event("norm", norm, 3, takes=2), _event("mlp", mlp, 1)], last, end)


def test_attention_of_another_kind_is_refused_by_the_module_that_calls_it() -> None:
    q, model = torch.zeros(1, 2, 3, 4), tiny("llama")
    own: Any = torch.nn.Linear(2, 2)
    with pytest.raises(ModelError, match=r"Linear: .*eager_attention_forward"):
        attention._eager(own)
    own.reorder_and_upcast_attn = True
    with pytest.raises(ModelError, match=r"Linear: .*sdpa"):
        attention._native(own, "eager")
    with pytest.raises(ModelError, match=attention.NAME):
        attention._dispatch(own, q, q, q, None)
    call = attention.Call(own, q, q, q, torch.zeros(1, 3, 3), {}, lambda *_, **__: (q, None))
    with pytest.raises(ModelError, match=r"Linear: attention mask of shape \(1, 3, 3\)"):
        attention.check_mask(call)
    attention.check_mask(call._replace(mask=torch.zeros(1, 1, 3, 3)))
    attention.check_mask(call._replace(mask=None))
    with pytest.raises(ModelError, match=r'mask of shape SimpleNamespace, need 4 axes; .*implementation="sdpa"'):
        attention.check_mask(call._replace(mask=SimpleNamespace()))
    with attention.interpose(model, lambda call: call.output()):
        with pytest.raises(ModelError, match="already"), attention.interpose(model, lambda call: call.output()):
            pass
    assert model.config._attn_implementation == "sdpa"


@pytest.mark.parametrize("backend", ["transformer_lens", "nnsight"])
def test_a_library_that_cannot_be_imported_is_named(
    backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, backend, None)
    with pytest.raises(ModelError, match=f'backend "{backend}": {backend} cannot be imported'):
        _module(backend)
    monkeypatch.delitem(sys.modules, backend)
    (tmp_path / f"{backend}.py").write_text("raise ImportError('libcudart.so: no such file')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelError, match=rf"{backend} cannot be imported \(libcudart.so: no such file\)"):
        _module(backend)
