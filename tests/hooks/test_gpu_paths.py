"""What only runs on a GPU gives what the CPU gives (`make test-gpu`)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_models import tiny

from composcope.hooks import load_model
from composcope.hooks.head import Head, vocabulary_statistics
from composcope.probes import lookback, min_k, trajectory

PROMPTS = [np.random.default_rng(n).integers(3, 97, n).tolist() for n in (13, 9, 16)]
RESPONSES = [[5, 9, 12], [7], [8, 20, 33, 41]]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_heads_lose_nothing_against_widened_ones(dtype: torch.dtype) -> None:
    g = torch.Generator().manual_seed(0)
    weight, hidden = (torch.randn(n, 256, generator=g).to(dtype) for n in (5000, 40))
    targets = torch.randint(0, 5000, (40,), generator=g)
    fast = vocabulary_statistics(Head(weight.cuda(), None, None, 1.0), hidden.cuda(), targets)
    wide = vocabulary_statistics(Head(weight.float(), None, None, 1.0), hidden.float(), targets)
    for a, b in zip(fast, wide, strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["llama", "gemma2", "mistral", "gpt_oss"])
def test_readings_on_a_gpu_equal_those_on_the_cpu(name: str) -> None:
    here, there = load_model(tiny(name)), load_model(tiny(name), device="cuda")
    pairs = [
        (m.context, w.context)
        for m, w in zip(
            lookback.masses(there, PROMPTS, RESPONSES, 2), lookback.masses(here, PROMPTS, RESPONSES, 2), strict=True
        )
    ]
    live = [lookback.generate(lm, PROMPTS, 4, 2, eos=()) for lm in (there, here)]
    pairs += [(a.new, b.new) for a, b in zip(live[0].masses, live[1].masses, strict=True)]
    pairs.append((trajectory.prompt_end_states(there, PROMPTS), trajectory.prompt_end_states(here, PROMPTS)))
    for a, b in pairs:
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)
    scores = [min_k.score(lm, PROMPTS) for lm in (there, here)]
    np.testing.assert_allclose(scores[0].min_k_pp, scores[1].min_k_pp, rtol=1e-3)
