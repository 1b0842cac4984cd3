"""The cost model: its arithmetic against counted operations, and the documentation against both."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from composcope.benchmarks.scale import (
    H100,
    POSITIVE,
    SIZES,
    STUDIES,
    Hardware,
    Load,
    Planned,
    Shape,
    Training,
    gpus_for,
    item_flops,
    lines,
    load_of,
    seconds,
    study_lines,
    study_minutes,
    training_seconds,
)
from composcope.benchmarks.tasks import make
from composcope.errors import InputError
from composcope.experiments.console.exits import guarded
from composcope.experiments.interventions.recipes import AdapterRecipe
from composcope.experiments.run.folder import command_line
from composcope.probes import lookback, neurons
from composcope.probes.patching import prompt_end_sweep
from composcope.probes.patching.engine import transplant_pairs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "scale.md"
SMALL = Shape(4, 64, 160, 4, 2, 300)
PAPERS = {"agentcoma", "compositional-gsm", "stad", "composition-collapse"}


def model() -> Any:
    return make(SMALL)


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
    # some versions of torch count the multiplications of the rotary angles, too: 16 for each token
    assert 0 <= counted.flops - n * SMALL.token(0, logits=True) <= 16 * n


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


@pytest.mark.parametrize(("n", "new"), [(24, 16), (48, 8), (48, 24)])
def test_patching_costs_about_what_is_counted(n: int, new: int) -> None:
    lm, pairs, layers = model(), 4, [*range(SMALL.layers)]
    donors, recipients = ([[*range(first, first + n)]] * pairs for first in (3, 103))
    computed = item_flops(SMALL, Load(prompt=n, continuation=new))
    own = ("identity", "random", "noise")
    with Counted() as swept, torch.backends.mkldnn.flags(enabled=False):
        matched = [(i, i) for i in range(pairs)]
        prompt_end_sweep(lm, donors, recipients, matched, max_new_tokens=new, controls=own, stop_ids=())
    assert swept.flops / pairs == pytest.approx(computed["patching"], rel=0.15)
    with Counted() as positive, torch.backends.mkldnn.flags(enabled=False):
        transplant_pairs(lm, [*zip(donors, recipients, strict=True)], layers, new, ())
    assert positive.flops / pairs == pytest.approx(computed[POSITIVE], rel=0.15)


def test_twice_the_gpus_take_half_the_time_and_too_few_take_none() -> None:
    load = Load()
    one, eight = (seconds(SIZES["8B"], load, H100, n) for n in (1, 8))
    assert one is not None and eight is not None
    assert all(eight[k] == pytest.approx(one[k] / 8) for k in one)
    assert gpus_for(SIZES["70B"], H100) == 4
    assert seconds(SIZES["70B"], load, H100, 2) is None


def test_a_study_of_no_asks_is_refused() -> None:
    with pytest.raises(InputError, match="--asks 0"):
        load_of(asks=0, prompt=None)


@pytest.mark.parametrize("line", ["scale --asks 0", "probes --preset nope", "probes --repeats 0"])
def test_a_wrong_option_of_a_script_is_one_line(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = line.split()
    monkeypatch.setattr(sys, "argv", [name, *options])
    script = import_module(f"composcope.benchmarks.{name}")
    said = (guarded(script.main, command_line), capsys.readouterr().err)
    assert said[0] == 1 and said[1].count("\n") == 1 and options[1] in said[1]


def test_a_training_costs_its_tokens_and_the_weights_read_for_them() -> None:
    """One prompt, 2 completions of 10 tokens: counted by hand for a model of one weight per multiplication."""
    load, size, hardware = Load(prompt=0, response=10), SMALL, Hardware("", flops=1.0, bandwidth=1.0, memory=1.0)
    recipe = AdapterRecipe("grpo", prompts=1, epochs=1, generations=2)
    tokens = 10 * size.token(5)
    computed = 2 * (4 * tokens + 3 * 10 * 2 * size.head) / 0.4
    read = 10 * (2 * size.weights + 2 * 10 * size.kv_bytes)
    assert training_seconds(size, recipe, load, hardware) == pytest.approx(computed + read)
    sft = training_seconds(size, replace(recipe, objective="sft-answer"), load, hardware)
    assert sft == pytest.approx((3 * tokens + 2 * 10 * 2 * size.head) / 0.4)


def test_trainings_run_side_by_side_and_none_is_split() -> None:
    one = training_seconds(SIZES["8B"], AdapterRecipe(), Load(), H100) / 60
    alone, eight = (Planned("", Load(asks=0), (), (Training(AdapterRecipe(), n),)) for n in (1, 8))
    assert study_minutes(SIZES["8B"], alone, 64) == pytest.approx(one)
    assert study_minutes(SIZES["8B"], eight, 4) == pytest.approx(2 * one)
    assert study_minutes(SIZES["70B"], eight, 1) is None


def test_every_paper_has_its_study() -> None:
    assert {s.name.partition(",")[0] for s in STUDIES} == {*PAPERS, "interventions"}


@pytest.mark.parametrize(("name", "made"), [("bench scale", lines), ("bench scale studies", study_lines)])
def test_the_page_holds_the_tables_as_they_are_computed(name: str, made: Callable[[], list[str]]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    inside = text.split(f"<!-- {name} -->")[1].split(f"<!-- end of {name} -->")[0].strip()
    assert inside.splitlines() == made()
