"""Float32 arithmetic on half-precision weights: the numbers of ``model.float()``, and a model that is as before."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from tiny_models import tiny
from torch import Tensor, nn

from composcope.errors import ModelError
from composcope.hooks import load_model
from composcope.hooks.head import _wide
from composcope.hooks.interchange import interchange
from composcope.hooks.module_hooks import frozen
from composcope.hooks.precision import widened
from composcope.hooks.rows import prefill, step

PROMPT = [5, 31, 77, 12, 40, 8, 66, 23]


def _state(model: nn.Module) -> list[Any]:
    held = [t for m in model.modules() for t in (*m._parameters.values(), *m._buffers.values()) if t is not None]
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    return [[id(t) for t in held], [type(t) for t in held], [t.dtype for t in held], hooks]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3", "granite", "mixtral", "gpt2"])
def test_rows_and_prefix_are_those_of_the_model_in_float32(name: str, dtype: torch.dtype) -> None:
    model = tiny(name).to(dtype)  # type: ignore[arg-type]
    full = load_model(copy.deepcopy(model).float())
    lm = load_model(model)
    before, identity = _state(model), lm.identity
    with torch.no_grad():
        want = step(full, prefill(full, [PROMPT])).logits
    with widened(lm, "float32"), torch.no_grad():
        assert lm.dtype is torch.float32
        prefix = prefill(lm, [PROMPT])
        got = step(lm, prefix).logits
    assert prefix.keys[0].dtype is prefix.final.dtype is got.dtype is torch.float32
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
    with torch.no_grad():
        plain = step(lm, prefill(lm, [PROMPT])).logits.float()
    assert float((plain - want).abs().max()) > 1e-4 * float(want.abs().max())
    assert _state(model) == before and lm.dtype is dtype and load_model(model).identity == identity


@pytest.mark.parametrize("name", ["llama", "gemma2", "gpt2"])
def test_states_are_read_through_the_head_in_float32_too(name: str) -> None:
    model = tiny(name).to(torch.bfloat16)  # type: ignore[arg-type]
    full, lm = load_model(copy.deepcopy(model).float()), load_model(model)
    states = torch.randn(2, 32, generator=torch.Generator().manual_seed(0))
    every = list(range(97))
    with widened(lm, "float32"):
        got, lens = interchange(lm, PROMPT, [[]], [3, 7], tokens=every).log_probs, lm.unembed(states)
    torch.testing.assert_close(got, interchange(full, PROMPT, [[]], [3, 7], tokens=every).log_probs)
    torch.testing.assert_close(lens, full.unembed(states))


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_what_is_asked_for_the_first_time_inside_is_that_of_the_half_precision_weights(name: str) -> None:
    model = tiny(name).to(torch.bfloat16)  # type: ignore[arg-type]
    states, plain = torch.randn(2, 32), load_model(copy.deepcopy(model))
    lm = load_model(model)
    with widened(lm, "float32"):
        lm.run(torch.tensor([PROMPT]))
        lm.unembed(states)
        assert lm.identity == plain.identity
        assert all(x.dtype is torch.bfloat16 for x in model.state_dict().values() if x.is_floating_point())
        assert lm.run(torch.tensor([PROMPT])).logits.dtype is torch.float32
    assert lm.unembedding.head.weight.dtype is torch.bfloat16
    assert torch.equal(lm.unembed(states), plain.unembed(states))


def test_gradients_widen_the_weights_again_and_are_those_of_the_model_in_float32() -> None:
    model = tiny("llama").to(torch.bfloat16)  # type: ignore[arg-type]
    grads = []
    for lm, dtype in ((load_model(copy.deepcopy(model).float()), None), (load_model(model), "float32")):
        leaf: list[Tensor] = []

        def grow(x: Tensor, leaf: list[Tensor] = leaf) -> Tensor:
            leaf.append(x.detach().requires_grad_())
            return leaf[0]

        with frozen(lm.model), widened(lm, dtype):
            prefix = prefill(lm, [PROMPT])
            with torch.enable_grad():
                out = step(lm, prefix, grow={0: grow}).logits[0, 0, 30]
        grads.append(torch.autograd.grad(out, leaf)[0])  # after the block: the graph keeps what it needs itself
    assert grads[1].dtype is torch.float32
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-5, atol=1e-7)


def test_factors_that_are_measured_are_measured_anew_in_float32() -> None:
    model = tiny("granite").to(torch.bfloat16)  # type: ignore[arg-type]
    lm, full = load_model(model), load_model(copy.deepcopy(model).float())
    coarse, exact = ([layer.mlp_scale for layer in x.anatomy.layers] for x in (lm, full))
    assert coarse != pytest.approx(exact, rel=1e-6) and coarse == pytest.approx(exact, rel=1e-2)
    with widened(lm, "float32"):
        assert [layer.mlp_scale for layer in lm.anatomy.layers] == pytest.approx(exact, rel=1e-6)
    assert [layer.mlp_scale for layer in lm.anatomy.layers] == coarse


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("part", ["embed_tokens", "layers.1.mlp.down_proj", "norm"])
def test_the_model_is_as_before_when_something_breaks_halfway(error: type[BaseException], part: str) -> None:
    model = tiny("llama").to(torch.bfloat16)  # type: ignore[arg-type]
    lm = load_model(model)
    before, identity = _state(model), lm.identity

    def fail(*_: Any) -> None:
        raise error("stop")

    with pytest.raises(error, match="stop"), widened(lm, "float32"):
        handle = model.get_decoder().get_submodule(part).register_forward_hook(fail)  # type: ignore[union-attr]
        try:
            prefill(lm, [PROMPT])
        finally:
            handle.remove()
    assert _state(model) == before and lm.dtype is torch.bfloat16 and load_model(model).identity == identity


def test_buffers_in_half_precision_are_widened_as_weights_are() -> None:
    model = tiny("llama").to(torch.bfloat16)  # type: ignore[arg-type]
    block = model.model.layers[1]
    block.register_buffer("factor", torch.tensor(1.7, dtype=torch.bfloat16))
    seen: list[tuple[torch.dtype, float]] = []
    block.mlp.register_forward_hook(lambda *_: seen.append((block.factor.dtype, float(block.factor))))
    lm = load_model(model)
    lm.run(torch.tensor([PROMPT]))
    seen.clear()
    with widened(lm, "float32"):
        lm.run(torch.tensor([PROMPT]))
    assert seen[-1] == (torch.float32, 1.703125) and block.factor.dtype is torch.bfloat16


def test_nothing_happens_to_float32_weights_and_to_none() -> None:
    lm = load_model(tiny("llama"))
    before = _state(lm.model)
    for dtype in (None, "float32"):
        with widened(lm, dtype):
            assert _state(lm.model) == before


def test_other_dtypes_and_weights_that_cannot_be_widened_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("llama").to(torch.bfloat16)  # type: ignore[arg-type]
    lm = load_model(model)
    with pytest.raises(ModelError, match='rows_dtype "float16"'), widened(lm, "float16"):
        pass
    with monkeypatch.context() as flash:
        flash.setattr(model.config, "_attn_implementation", "flash_attention_2")
        with pytest.raises(ModelError, match=r"flash attention.*load it with sdpa"), widened(lm, "float32"):
            pass
    with widened(lm, "float32"):
        pass
    weight: Any = model.get_decoder().layers[1].mlp.down_proj  # type: ignore[union-attr, index]
    weight.weight = nn.Parameter(weight.weight.to("meta"), requires_grad=False)
    with pytest.raises(ModelError, match=r"layers\.1\.mlp\.down_proj\.weight is offloaded"), widened(lm, "float32"):
        pass


def test_only_float64_is_wider_than_float32() -> None:
    assert [_wide(torch.zeros(1, dtype=d)).dtype for d in (torch.float64, torch.float32, torch.bfloat16)] == [
        torch.float64, torch.float32, torch.float32,
    ]  # fmt: skip
