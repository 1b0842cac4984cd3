"""Products by another library: the same numbers and gradients, and PyTorch's own wherever they do not fit."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from composcope.hooks import kernels


@pytest.fixture
def preferred(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The other library taken wherever it is there, whatever the processor; counts its calls."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise") or not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch has no oneDNN")
    calls, onednn = [0], kernels._onednn

    def counted(*args: torch.Tensor) -> torch.Tensor:
        calls[0] += 1
        return onednn(*args)

    monkeypatch.setattr(kernels, "prefers_onednn", lambda: True)
    monkeypatch.setattr(kernels, "_onednn", counted)
    return calls


@pytest.mark.parametrize("shape", [(7,), (1, 7), (2, 5, 7), (300, 7)])
@pytest.mark.parametrize("bias", [True, False])
def test_products_and_gradients_are_those_of_pytorch(shape: tuple[int, ...], bias: bool, preferred: list[int]) -> None:
    layer = nn.Linear(7, 11, bias=bias).requires_grad_(False)
    x = torch.randn(shape)
    grown = [x.clone().requires_grad_() for _ in range(2)]
    with kernels.FastProducts():
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias), rtol=1e-5, atol=1e-6)
        assert preferred == [2]
        layer(grown[0]).square().sum().backward()
    F.linear(grown[1], layer.weight, layer.bias).square().sum().backward()
    assert grown[0].grad is not None and grown[1].grad is not None
    torch.testing.assert_close(grown[0].grad, grown[1].grad, rtol=1e-5, atol=1e-5)
    assert preferred == [4]


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
    got = kernels.linear(x, weight)
    assert torch.equal(got, F.linear(x, weight)) and got.requires_grad == weight.requires_grad and preferred == [0]
