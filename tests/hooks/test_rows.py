"""Suffix recomputation: rows against full forward passes."""

from __future__ import annotations

import pytest
import torch

from composcope.errors import ModelError
from composcope.hooks import Model, Site, load_model
from composcope.hooks.continuing import continue_rows
from composcope.hooks.rows import prefill, step

from ..tiny_models import CONFIGS, tiny

PROMPTS = [[5 + (7 * i + 3 * n) % 85 for i in range(length)] for n, length in enumerate((11, 7, 14))]


FACTORS = (1.0, 1.5, -2.0)
"""What the residual stream at the prompt end is multiplied with, after each block: the first changes nothing."""


def recomputed(lm: Model, prompt: list[int], layer: int | None, factor: float, new: int, stops: list[int]) -> list[int]:
    """Greedy tokens, the whole sequence computed again for every one."""

    def edit(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[:, len(prompt) - 1] *= factor
        return y

    ids: list[int] = list(prompt)
    while len(ids) < len(prompt) + new and (len(ids) == len(prompt) or ids[-1] not in stops):
        edits = {} if layer is None else {Site(layer, "resid_post"): edit}
        with torch.no_grad():
            ids.append(int(lm.run(torch.tensor([ids]), edit=edits).logits[0, -1].argmax()))
    return [*ids[len(prompt) :], *[-1] * (len(prompt) + new - len(ids))]


def born_after_every_block(lm: Model, prompts: list[list[int]], new: int, stops: list[int]) -> torch.Tensor:
    layers = range(lm.anatomy.n_layers)
    prefix = prefill(lm, prompts)

    def more(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, *(f * x[:, :1] for f in FACTORS)], 1)

    with torch.no_grad():
        first = step(lm, prefix, grow=dict.fromkeys(layers, more))
    born = [lm.anatomy.n_layers, *(layer for layer in layers for _ in FACTORS)]
    return continue_rows(lm, prefix, first, born, new, stops)


@pytest.mark.parametrize("name", CONFIGS)
def test_rows_continue_as_full_recomputation_does(name: str) -> None:
    lm = load_model(tiny(name))
    free = born_after_every_block(lm, PROMPTS, 6, [])
    for stops in ([], [int(free[0, 0, 1]), int(free[2, -1, 2])]):  # the second: rows end at different steps
        got = born_after_every_block(lm, PROMPTS, 6, stops)
        for b, prompt in enumerate(PROMPTS):
            rows = [(None, 1.0), *((layer, f) for layer in range(lm.anatomy.n_layers) for f in FACTORS)]
            for row, (layer, factor) in enumerate(rows):
                assert got[b, row].tolist() == recomputed(lm, prompt, layer, factor, 6, stops), (b, layer, factor)


def test_rows_that_agree_run_once_up_to_where_they_differ() -> None:
    lm = load_model(tiny("llama"))
    n_layers, sizes = lm.anatomy.n_layers, []
    prefix = prefill(lm, PROMPTS[:1])
    grow = {layer: lambda x: torch.cat([x, x[:, :1]], 1) for layer in range(n_layers)}  # all the same: all agree
    handles = [
        layer.block.register_forward_hook(lambda _m, _a, y: sizes.append((y if torch.is_tensor(y) else y[0]).shape[1]))
        for layer in lm.anatomy.layers
    ]
    try:
        with torch.no_grad():
            first = step(lm, prefix, grow=grow)
        sizes.clear()
        continue_rows(lm, prefix, first, [n_layers, *range(n_layers)], 4, [])
    finally:
        for h in handles:
            h.remove()
    assert sizes == [1 + layer for layer in range(n_layers)] * 3


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
