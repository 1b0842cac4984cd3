"""Products by another library: the same numbers and gradients, and PyTorch's own wherever they do not fit."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from tiny_models import tiny
from torch import nn
from torch.nn import functional as F

from composcope import products
from composcope.hooks import load_model
from composcope.hooks.precision import widened
from composcope.hooks.rows import prefill, step


@pytest.fixture
def preferred(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The other library taken wherever it is there, whatever the processor; counts its calls."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise") or not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch has no oneDNN")
    calls, onednn = [0], products._onednn

    def counted(*args: Any) -> torch.Tensor:
        calls[0] += 1
        return onednn(*args)

    monkeypatch.setattr(products, "prefers_onednn", lambda: True)
    monkeypatch.setattr(products, "_onednn", counted)
    return calls


@pytest.mark.parametrize("shape", [(7,), (1, 7), (2, 5, 7), (300, 7)])
@pytest.mark.parametrize("bias", [True, False])
def test_products_and_gradients_are_those_of_pytorch(shape: tuple[int, ...], bias: bool, preferred: list[int]) -> None:
    layer = nn.Linear(7, 11, bias=bias).requires_grad_(False)
    x = torch.randn(shape)
    grown = [x.clone().requires_grad_() for _ in range(2)]
    with products.fast_products(layer):
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias), rtol=1e-5, atol=1e-6)
        assert preferred == [1]
        layer(grown[0]).square().sum().backward()
    F.linear(grown[1], layer.weight, layer.bias).square().sum().backward()
    assert grown[0].grad is not None and grown[1].grad is not None
    torch.testing.assert_close(grown[0].grad, grown[1].grad, rtol=1e-5, atol=1e-5)
    assert preferred == [3]


@pytest.mark.parametrize(
    ("x", "weight"),
    [
        (torch.randn(3, 7, dtype=torch.float64), torch.randn(5, 7, dtype=torch.float64)),
        (torch.randn(3, 7, dtype=torch.bfloat16), torch.randn(5, 7, dtype=torch.bfloat16)),
        (torch.randn(0, 7), torch.randn(5, 7)),
        (torch.randn(3, 7), nn.Parameter(torch.randn(5, 7))),
    ],
    ids=["float64", "bfloat16", "nothing", "weights that learn"],
)
def test_what_does_not_fit_is_left_to_pytorch(x: torch.Tensor, weight: torch.Tensor, preferred: list[int]) -> None:
    got = products.linear(x, weight)
    assert torch.equal(got, F.linear(x, weight)) and got.requires_grad == weight.requires_grad and preferred == [0]


def test_biases_that_lie_apart_in_memory_are_left_to_pytorch(preferred: list[int]) -> None:
    x, weight, biases = torch.randn(3, 7), torch.randn(5, 7), torch.randn(10)
    for bias in (biases[::2], biases[:1].expand(5)):
        assert torch.equal(products.linear(x, weight, bias), F.linear(x, weight, bias)) and preferred == [0]


def test_second_derivatives_are_those_of_pytorch(preferred: list[int]) -> None:
    x, weight = torch.randn(3, 7, requires_grad=True), torch.randn(5, 7)
    found = []
    for product in (products.linear, F.linear):
        (slope,) = torch.autograd.grad(product(x, weight).tanh().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), x)[0])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
    assert preferred == [4]


def test_a_graph_holds_no_copies_of_weights_that_are_widened_only_while_they_run(preferred: list[int]) -> None:
    model: Any = tiny("llama")
    lm = load_model(model.to(torch.bfloat16).requires_grad_(False))
    copies: list[weakref.ref[torch.Tensor]] = []
    up = model.model.layers[1].mlp.up_proj
    up.register_forward_hook(lambda m, *_: copies.append(weakref.ref(m.weight)))
    with widened(lm, "float32"):
        prefix = prefill(lm, [[5, 31, 77]])
        direction = torch.zeros(32, requires_grad=True)
        logits = step(lm, prefix, grow={0: lambda x: x + direction}, check=False).logits
        assert preferred[0] and len(copies) == 2 and [c() for c in copies] == [None, None]
        assert torch.autograd.grad(logits[0, 0, 7], direction)[0].any()


def test_the_model_is_as_before_also_after_an_error_and_other_layers_are_left_alone(preferred: list[int]) -> None:
    class Own(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(7, 7), Own(7, 7), nn.Linear(7, 7)).requires_grad_(False)
    model[2].__dict__["forward"] = torch.neg  # as a library that moves weights does
    before = [dict(m.__dict__) for m in model]
    with pytest.raises(KeyboardInterrupt), products.fast_products(model):
        model(torch.randn(2, 7))
        raise KeyboardInterrupt
    assert preferred == [1] and [dict(m.__dict__) for m in model] == before


@pytest.fixture
def packing(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(torch.ops.mkldnn, "_reorder_linear_weight") or not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch has no oneDNN")
    monkeypatch.setattr(products, "prefers_packed", lambda: True)
    monkeypatch.setattr(products, "WORTH_PACKING", 70)


@pytest.mark.parametrize("rows", [1, 3, 16, 200])
@pytest.mark.parametrize("bias", [True, False])
def test_packed_products_are_those_of_pytorch_for_any_number_of_rows(rows: int, bias: bool, packing: None) -> None:
    layer = nn.Linear(7, 11, bias=bias)
    packed = products.pack(nn.Sequential(layer))
    x = torch.randn(2, rows, 7)
    with torch.inference_mode(), products.packed_products(packed):
        assert "forward" in layer.__dict__
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias), rtol=1e-5, atol=1e-6)
    assert "forward" not in layer.__dict__
    with products.packed_products(packed):
        assert layer(x).requires_grad, "weights that learn are PyTorch's business"


def test_only_large_float32_layers_of_the_plain_class_are_packed(packing: None) -> None:
    class Own(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(7, 11), nn.Linear(7, 7), Own(7, 11), nn.Linear(7, 11).to(torch.bfloat16))
    moved = nn.Linear(7, 11)
    moved.__dict__["forward"] = torch.neg  # as a library that moves weights does
    assert list(products.pack(nn.Sequential(*model, moved))) == [model[0]]


@pytest.mark.parametrize("why", ["memory", "slower here"])
def test_nothing_is_packed_where_it_does_not_fit_or_pay(
    why: str, packing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = nn.Linear(7, 11)
    if why == "memory":
        monkeypatch.setattr(products, "free_bytes", lambda _: 7 * 11 * 4 * products.SHARE - 1)
    else:
        monkeypatch.setattr(products, "prefers_packed", lambda: False)
    assert products.pack(layer) == {}


def test_a_model_is_as_before_after_packed_products_also_after_ctrl_c(packing: None) -> None:
    model = nn.Sequential(nn.Linear(7, 11), nn.Linear(11, 7))
    before = [dict(m.__dict__) for m in model]
    packed = products.pack(model)
    with pytest.raises(KeyboardInterrupt), products.packed_products(packed):
        raise KeyboardInterrupt
    assert len(packed) == 2 and [dict(m.__dict__) for m in model] == before
