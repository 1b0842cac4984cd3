"""Suffix recomputation: rows against full forward passes."""

from __future__ import annotations

import pytest
import torch

from composcope.errors import ModelError
from composcope.hooks import Model, Site, load_model
from composcope.hooks.rows import extend, prefill, step

from ..tiny_models import CONFIGS, tiny

PROMPTS = [[5 + (7 * i + 3 * n) % 85 for i in range(length)] for n, length in enumerate((11, 7, 14))]


def full(lm: Model, ids: list[int], at: int, factor: float | None) -> torch.Tensor:
    def edit(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, at] *= factor or 1.0
        return y

    with torch.no_grad():
        return lm.run(torch.tensor([ids]), edit={} if factor is None else {Site(1, "resid_post"): edit}).logits[0, -1]


@pytest.mark.parametrize("name", CONFIGS)
def test_rows_decode_as_full_recomputation_does(name: str) -> None:
    lm = load_model(tiny(name))
    prefix = prefill(lm, PROMPTS)
    with torch.no_grad():
        now = step(lm, prefix, grow={1: lambda x: torch.cat([x, 1.5 * x], 1)})
        logits, history, steps = [now.logits], extend(None, now), []
        for offset in range(1, 7):
            steps.append(logits[-1].argmax(-1))
            now = step(lm, prefix, steps[-1], offset=offset, history=history)
            history = extend(history, now, parents=[0, 0])
            logits.append(now.logits)
    for b, prompt in enumerate(PROMPTS):
        for row, factor in enumerate((None, 1.5)):
            ids = list(prompt)
            for t, got in enumerate(logits):
                expected = full(lm, ids, len(prompt) - 1, factor)
                assert torch.allclose(got[b, row], expected, atol=2e-4), (b, row, t)
                ids.append(int(got[b, row].argmax()))


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2", "gpt2"])
def test_any_position_of_any_prompt_can_be_asked_for(name: str) -> None:
    lm = load_model(tiny(name))
    queries = [(0, 4), (0, 10), (2, 13), (1, 1), (1, 0)]
    with torch.no_grad():
        got = step(lm, prefill(lm, PROMPTS, queries)).logits[:, 0]
        for logits, (prompt, position) in zip(got, queries, strict=True):
            expected = lm.run(torch.tensor([PROMPTS[prompt]])).logits[0, position]
            assert torch.allclose(logits, expected, atol=1e-4)


def test_states_are_read_where_the_queries_are() -> None:
    lm = load_model(tiny("qwen3"))
    site = Site(1, "neuron")
    prefix = prefill(lm, PROMPTS, read=[site])
    with torch.no_grad():
        for n, prompt in enumerate(PROMPTS):
            expected = lm.run(torch.tensor([prompt]), read=[site]).acts[site][0, -1]
            assert torch.allclose(prefix.states[site][n], expected, atol=1e-5)


def test_attention_that_rows_cannot_reproduce_is_refused() -> None:
    lm = load_model(tiny("llama"))
    prefix = prefill(lm, PROMPTS)
    wrong = prefix.select([0, 1, 2])
    object.__setattr__(wrong, "windows", (3, 3, 3))
    with pytest.raises(ModelError, match="differs from the full forward pass"):
        step(lm, wrong)


def test_prompts_and_suffixes_past_the_context_are_refused() -> None:
    lm = load_model(tiny("llama"))
    with pytest.raises(ModelError, match="context holds 64"):
        prefill(lm, [[5] * 65])
    prefix = prefill(lm, [[5] * 64])
    with pytest.raises(ModelError, match="context holds 64"):
        step(lm, prefix, torch.tensor([[5]]), offset=1)
