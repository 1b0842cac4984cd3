"""The cost model: its arithmetic against counted operations, and the documentation against both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from composcope.errors import InputError
from composcope.experiments.bench.presets import Shape, make
from composcope.experiments.bench.scale import H100, SIZES, Load, Size, gpus_for, hours, item_flops, lines, load_of
from composcope.probes import lookback, neurons

PAGE = Path(__file__).resolve().parents[3] / "docs" / "scale.md"
SMALL = Size(4, 64, 160, 4, 2, 300)


def model() -> Any:
    s = SMALL
    return make(Shape(s.layers, s.d_model, s.d_mlp, s.heads, s.kv_heads, s.vocab))


def test_weights_are_those_of_the_model() -> None:
    assert sum(p.numel() for p in model().model.parameters() if p.dim() > 1) == SMALL.weights


def test_the_sizes_are_the_published_ones() -> None:
    assert SIZES["8B"].weights == pytest.approx(8.03e9, rel=0.01)
    assert SIZES["70B"].weights == pytest.approx(70.6e9, rel=0.01)


class Counted(TorchDispatchMode):
    """FLOP of the matrix products that are run inside; those of fused attention on the CPU are not seen."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if (count := flop_registry.get(func._overloadpacket)) is not None:
            self.flops += count(*args, **(kwargs or {}), out_val=out)
        return out


def test_a_prompt_costs_what_is_counted() -> None:
    lm, n = model(), 24
    with Counted() as counted, torch.no_grad():
        lm.model(torch.arange(3, 3 + n)[None])
    assert counted.flops == n * SMALL.token(0, logits=True)


def test_attribution_and_lookback_cost_about_what_is_counted() -> None:
    lm, n = model(), 24
    prompt, load = list(range(3, 3 + n)), Load(prompt=n, response=10)
    computed = item_flops(SMALL, load)
    with Counted() as attribution, torch.backends.mkldnn.flags(enabled=False):  # which nobody counts
        neurons.attribute_many(lm, [prompt], [[5]], 8)
    assert attribution.flops == pytest.approx(computed["neurons"], rel=0.15)
    with Counted() as looking, torch.backends.mkldnn.flags(enabled=False):
        lookback.ratios(lm, [prompt], [list(range(3, 13))], 1)
    assert looking.flops == pytest.approx(computed["lookback"], rel=0.15)


def test_twice_the_gpus_take_half_the_time_and_too_few_take_none() -> None:
    load = Load()
    one, eight = (hours(SIZES["8B"], load, H100, n) for n in (1, 8))
    assert one is not None and eight is not None
    assert all(eight[k] == pytest.approx(one[k] / 8) for k in one)
    assert gpus_for(SIZES["70B"], H100) == 4
    assert hours(SIZES["70B"], load, H100, 2) is None


def test_a_study_of_no_asks_is_refused() -> None:
    with pytest.raises(InputError, match="--asks 0"):
        load_of(asks=0, prompt=None)


def test_the_page_holds_the_tables_as_they_are_computed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    inside = text.split("<!-- bench scale -->")[1].split("<!-- end of bench scale -->")[0].strip()
    assert inside.splitlines() == lines()
