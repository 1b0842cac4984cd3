"""The cost model held against this machine: CPU seconds of one item of each step, beside the FLOP computed for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from ...hooks.model import Model
from ...probes import lookback, min_k, neurons, patching, trajectory
from ...probes.patching.engine import generate
from .measure import machine
from .presets import LLAMA12, Models
from .scale import SIZES, Load, item_flops
from .tasks import texts

LOAD = Load(prompt=128, response=32, sources=1, continuation=4)
"""Sizes of an item that one CPU thread does in seconds."""


def _ways(lm: Model, load: Load) -> dict[str, Callable[[], Any]]:
    (prompt, donor), (response,) = texts(lm, 2, load.prompt), texts(lm, 1, load.response, seed=1)
    (moved,) = texts(lm, 1, 41, seed=2)
    return {
        "ask": lambda: generate(lm, [prompt], load.response, ()),
        "neurons": lambda: neurons.attribute_many(lm, [prompt], [[5]], 8),
        "lookback": lambda: lookback.ratios(lm, [prompt], [response], 1),
        "patching": lambda: patching.prompt_end_sweep(
            lm, [donor], [prompt], [(0, 0)], max_new_tokens=load.continuation, controls=(), stop_ids=()
        ),
        "trajectory": lambda: (
            trajectory.prompt_end_states(lm, [prompt]), trajectory.step_cosines(lm, [prompt], [moved], eos=())
        ),
        "min-k": lambda: min_k.token_scores(lm, [prompt]),
    }  # fmt: skip


def measured(repeats: int = 3) -> list[tuple[str, float, float]]:
    """Step, FLOP computed, and the median CPU seconds of one item on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        lm = Models().get(LLAMA12)
        flops = item_flops(SIZES["llama12"], LOAD)
        out = []
        for name, run in _ways(lm, LOAD).items():
            run()
            seconds = []
            for _ in range(repeats):
                start = time.process_time()
                run()
                seconds.append(time.process_time() - start)
            out.append((name, flops[name], sorted(seconds)[repeats // 2]))
        return out
    finally:
        torch.set_num_threads(threads)


def measured_lines() -> list[str]:
    """``measured`` as a markdown table, with what it was measured on."""
    about = machine("cpu", 1)
    rows = [f"| {n} | {f / 1e9:.1f} | {s:.2f} | {f / s / 1e9:.0f} |" for n, f, s in measured()]
    load = (
        f"prompt of {LOAD.prompt} tokens, answer of {LOAD.response}, {LOAD.sources} source, {LOAD.continuation} tokens"
    )
    return [
        f"{about['date']}, {LLAMA12}, one thread on {about['processor']}, torch {about['torch']}; {load}.",
        "", "| one item | computed, GFLOP | measured, CPU s | GFLOP/s |", "|---|--:|--:|--:|", *rows,
    ]  # fmt: skip
