"""Products with packed weights: the same numbers, and PyTorch's own wherever packing does not fit or pay."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from composcope.evaluation.engines import decoding


@pytest.fixture
def packing(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(torch.ops.mkldnn, "_reorder_linear_weight") or not torch.backends.mkldnn.is_available():
        pytest.skip("this PyTorch has no oneDNN")
    monkeypatch.setattr(decoding, "prefers_packed", lambda: True)
    monkeypatch.setattr(decoding, "WORTH_PACKING", 70)


@pytest.mark.parametrize("rows", [1, 3, 16, 200])
@pytest.mark.parametrize("bias", [True, False])
def test_packed_products_are_those_of_pytorch_for_any_number_of_rows(rows: int, bias: bool, packing: None) -> None:
    layer = nn.Linear(7, 11, bias=bias)
    packed = decoding.pack(nn.Sequential(layer))
    x = torch.randn(2, rows, 7)
    with torch.inference_mode(), decoding.packed_products(packed):
        assert "forward" in layer.__dict__
        torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias), rtol=1e-5, atol=1e-6)
    assert "forward" not in layer.__dict__
    with decoding.packed_products(packed):
        assert layer(x).requires_grad, "weights that learn are PyTorch's business"


def test_only_large_float32_layers_of_the_plain_class_are_packed(packing: None) -> None:
    class Own(nn.Linear):
        pass

    model = nn.Sequential(nn.Linear(7, 11), nn.Linear(7, 7), Own(7, 11), nn.Linear(7, 11).to(torch.bfloat16))
    moved = nn.Linear(7, 11)
    moved.__dict__["forward"] = torch.neg  # as a library that moves weights does
    assert list(decoding.pack(nn.Sequential(*model, moved))) == [model[0]]


@pytest.mark.parametrize("why", ["memory", "slower here"])
def test_nothing_is_packed_where_it_does_not_fit_or_pay(
    why: str, packing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = nn.Linear(7, 11)
    if why == "memory":
        monkeypatch.setattr(decoding, "free_bytes", lambda _: 7 * 11 * 4 * decoding.SHARE - 1)
    else:
        monkeypatch.setattr(decoding, "prefers_packed", lambda: False)
    assert decoding.pack(layer) == {}


def test_a_model_is_as_before_after_packed_products_also_after_ctrl_c(packing: None) -> None:
    model = nn.Sequential(nn.Linear(7, 11), nn.Linear(11, 7))
    before = [dict(m.__dict__) for m in model]
    packed = decoding.pack(model)
    with pytest.raises(KeyboardInterrupt), decoding.packed_products(packed):
        raise KeyboardInterrupt
    assert len(packed) == 2 and [dict(m.__dict__) for m in model] == before


def test_any_temperature_above_zero_samples() -> None:
    rows = [decoding.DecodedRow((1,), 9, frozenset(), temperature=0.01, seed=seed) for seed in "abcdef"]
    assert len(set(decoding.choose(torch.zeros(6, 50), rows))) > 3


def test_weights_are_not_packed_where_nothing_can_pack_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    assert decoding.prefers_packed.__wrapped__() is False
