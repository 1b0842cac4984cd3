"""What cannot be measured is refused by name, before or instead of a number; and nothing half-written stays."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import tiny

from composcope import devices
from composcope.devices import free_bytes, is_out_of_memory
from composcope.errors import ComposcopeError, InputError, ModelError
from composcope.hooks import Model, Site, load_model
from composcope.hooks.capture import MAX_TOKENS, Request, capture_all, token_budget
from composcope.probes import lookback, min_k, neurons, patching, trajectory
from composcope.probes.result import ProbeResult

PROMPTS = [np.random.default_rng(n).integers(3, 97, n).tolist() for n in (13, 9, 16)]
RESPONSES = [[5, 9, 12], [7], [8, 20, 33, 41]]
READINGS: dict[str, Callable[[Model], object]] = {
    "lookback": lambda lm: lookback.ratios(lm, PROMPTS, RESPONSES, 2),
    "live lookback": lambda lm: lookback.generate(lm, PROMPTS, 3, 2),
    "prompt ends": lambda lm: trajectory.prompt_end_states(lm, PROMPTS),
    "steps": lambda lm: trajectory.step_cosines(lm, PROMPTS, RESPONSES),
    "min-k": lambda lm: min_k.score(lm, PROMPTS),
}
ALL: dict[str, Callable[[Model], object]] = {
    **READINGS,
    "attribution": lambda lm: neurons.attribute(lm, PROMPTS[0], [5]),
    "patching": lambda lm: patching.prompt_end_sweep(lm, PROMPTS[:1], PROMPTS[1:], controls=()),
    "causal check": lambda lm: neurons.causal_check(lm, PROMPTS[:1], [[5]], [[(0, 1)]]),
    "head sweep": lambda lm: patching.head_sweep(lm, PROMPTS[:1], [PROMPTS[0][::-1]], [(5, 6)]),
    "screen": lambda lm: patching.attribution_patching(lm, PROMPTS[:1], [PROMPTS[0][::-1]], [(5, 6)]),
}


@pytest.mark.parametrize("probe", ALL)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_activations_that_are_not_finite_are_an_error_not_a_number(probe: str, value: float) -> None:
    lm = load_model(tiny("llama"))
    with torch.no_grad():
        lm.model.get_parameter("model.layers.1.mlp.down_proj.weight")[3, 4] = value
    with pytest.raises(ModelError, match=r"NaN|infinite|finite"):
        ALL[probe](lm)


@pytest.mark.parametrize("probe", READINGS)
def test_float16_overflow_is_an_error_not_a_number(probe: str) -> None:
    lm = load_model(tiny("llama").half())
    with torch.no_grad():
        lm.model.get_parameter("model.layers.1.mlp.down_proj.weight").mul_(6e4)
        lm.model.get_parameter("model.layers.1.mlp.up_proj.weight").mul_(1e3)
    with pytest.raises(ModelError, match=r"NaN|infinite"):
        READINGS[probe](lm)


@pytest.mark.parametrize("probe", ALL)
def test_a_model_put_back_into_training_mode_is_refused(probe: str) -> None:
    lm = load_model(tiny("gpt2"))
    lm.model.train()
    with pytest.raises(ModelError, match="training mode"):
        ALL[probe](lm)
    for act in (lambda: lm.run(torch.tensor([[5]])), lambda: lm.prefill(torch.tensor([[5]]))):
        with pytest.raises(ModelError, match="training mode"):
            act()


@pytest.mark.parametrize(
    "call",
    [
        lambda lm: lookback.ratios(lm, [PROMPTS[0]], [[5] * 53]),
        lambda lm: lookback.generate(lm, [PROMPTS[0]], 53),
        lambda lm: trajectory.step_cosines(lm, [PROMPTS[0]], [[5] * 60], steps=60),
        lambda lm: min_k.score(lm, [[5] * 65]),
        lambda lm: capture_all(lm, [Request([5] * 65)]),
    ],
)
def test_what_is_longer_than_the_context_is_refused_with_both_lengths(call: Callable[[Model], object]) -> None:
    with pytest.raises(InputError, match=r"context of 64; (shorten|generate)") as error:
        call(load_model(tiny("llama")))
    assert any(n in str(error.value) for n in ("65", "66", "72", "53"))


def test_the_longest_that_fits_is_read() -> None:
    lm = load_model(tiny("llama"))
    assert lookback.ratios(lm, [PROMPTS[0]], [[5] * 52])[0].shape[-1] == 52
    assert lookback.generate(lm, [PROMPTS[0]], 52, eos=()).masses[0].new.shape[-1] == 52


@pytest.mark.parametrize(("layer", "kind", "says"), [(3, "resid_post", "has 3 layers"), (0, "mlp", "no such kind")])
def test_a_site_that_the_model_does_not_have_is_named(layer: int, kind: str, says: str) -> None:
    lm = load_model(tiny("llama"))
    for act in (lambda s: lm.run(torch.tensor([[5]]), read=[s]), lambda s: lm.read_trunk(torch.tensor([[5]]), [s])):
        with pytest.raises(ModelError, match=says):
            act(Site(layer, kind))  # type: ignore[arg-type]


def test_a_sequence_that_does_not_fit_alone_is_named_and_nothing_is_returned_for_it() -> None:
    lm = load_model(tiny("llama"))

    def full(*_: object) -> None:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:1] DefaultCPUAllocator: can't allocate memory: you tried to")

    handle = lm.anatomy.layers[0].block.register_forward_pre_hook(full)
    try:
        with pytest.warns(RuntimeWarning, match="continuing with 1"), pytest.raises(ModelError) as error:
            min_k_states = trajectory.prompt_end_states(lm, PROMPTS)
            assert min_k_states is None
    finally:
        handle.remove()
    assert "sequence 2: one pass over 16 tokens does not fit into memory" in str(error.value)
    assert trajectory.prompt_end_states(lm, PROMPTS).shape == (3, 3, 32)


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert is_out_of_memory(MemoryError())
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    lm = load_model(tiny("llama"))

    def wrong(*_: object) -> None:
        raise RuntimeError("shape mismatch")

    handle = lm.anatomy.layers[0].block.register_forward_pre_hook(wrong)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        trajectory.prompt_end_states(lm, PROMPTS)
    handle.remove()


def test_batches_are_as_large_as_the_free_memory_allows() -> None:
    lm = load_model(tiny("llama"))
    budgets = [token_budget(lm, free) for free in (0, 10**6, 10**7, 10**12)]
    assert budgets[0] == 1 and budgets == sorted(budgets) and budgets[-1] == MAX_TOKENS
    assert 1 < budgets[1] < budgets[2]
    a = lm.anatomy
    least = 4 * (16 * a.d_model + 4 * a.d_mlp + a.n_layers * a.d_model)
    assert budgets[1] * least <= 10**6 / 4 < 2 * budgets[1] * least, "a quarter of what is free"
    free = free_bytes(torch.device("cpu"))
    assert free is not None and free > 10**6


def test_memory_that_can_be_had_again_at_once_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (
        ("max", "1000\n"),
        ("current", "900\n"),
        ("stat", "anon 350\ninactive_file 500\nactive_file 50\n"),
    ):
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(devices, "_CGROUP", tmp_path)
    monkeypatch.setattr(devices, "_system", lambda: 10**12)
    assert free_bytes(torch.device("cpu")) == 650
    (tmp_path / "memory.current").write_text("2000\n")
    assert free_bytes(torch.device("cpu")) == 0, "beyond its limit"
    (tmp_path / "memory.current").write_text("900\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert free_bytes(torch.device("cpu")) == 10**12, "a container without a limit"
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.stat").unlink()
    assert free_bytes(torch.device("cpu")) == 100, "the limit counts also where nothing says what is of files"
    for name, answer in (("mem_get_info", (10, 100)), ("memory_reserved", 60), ("memory_allocated", 20)):
        monkeypatch.setattr(torch.cuda, name, lambda _, answer=answer: answer)
    assert free_bytes(torch.device("cuda")) == 50


_STARVED = """
import json, resource, warnings
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from composcope.hooks import load_model
from composcope.probes import trajectory
torch.set_num_threads(1)
config = LlamaConfig(vocab_size=99, hidden_size=64, intermediate_size=16384, num_hidden_layers=2, num_attention_heads=4)
lm = load_model(LlamaForCausalLM(config).eval())
prompts = [torch.randint(3, 99, (120 + i,)).tolist() for i in range(16)]
want = trajectory.prompt_end_states(lm, prompts, max_tokens=1)
size = int(next(x for x in open("/proc/self/status") if x.startswith("VmSize")).split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (size + 150 * 2**20, resource.RLIM_INFINITY))
notes = []
got = trajectory.prompt_end_states(lm, prompts, max_tokens=4096, notes=notes)
print(json.dumps({"notes": notes, "error": float((got - want).abs().max())}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space by way of /proc")
def test_where_memory_really_runs_out_the_batch_is_halved_and_the_numbers_stay() -> None:
    done = subprocess.run([sys.executable, "-c", _STARVED], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["notes"] and "out of memory with 16" in found["notes"][0]
    assert found["error"] < 1e-5


def test_a_result_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    row = {"quantity": "x", "group": "g", "n": 1, "value": 1.0, "low": 0.0, "high": 2.0, "interval": "t"}
    old = ProbeResult("p", [row], {"a": torch.ones(2)}, {"a": ("case",)})
    folder = old.save(tmp_path / "p")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    broken = ProbeResult("p", [row, row], {"a": torch.ones(2).to_sparse()}, {"a": ("case",)})
    with pytest.raises(RuntimeError):
        broken.save(folder)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["p"]
    ProbeResult("p", [row, row]).save(folder)
    assert {p.name for p in folder.iterdir()} == {"table.csv", "result.json"}


def test_every_refusal_is_one_line() -> None:
    lm = load_model(tiny("llama"))
    for act in (
        lambda: lookback.masses(lm, PROMPTS, RESPONSES, [1, 2]),
        lambda: lookback.masses(lm, PROMPTS, RESPONSES[:2]),
        lambda: lookback.masses(lm, [[]], [[5]]),
        lambda: trajectory.prompt_end_states(lm, [[]]),
        lambda: min_k.score(lm, [[]]),
        lambda: capture_all(lm, [Request([5, -1])]),
    ):
        with pytest.raises(ComposcopeError) as error:
            act()
        assert "\n" not in str(error.value) and len(str(error.value)) > 20
