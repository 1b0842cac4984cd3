"""Masses seen while the model writes are those of teacher forcing on what it wrote."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles import lookback as oracle
from oracles.patching import greedy
from tiny_models import tiny

from composcope.errors import InputError, ModelError
from composcope.hooks import load_model
from composcope.probes import lookback
from composcope.probes.lookback import measuring

PROMPTS = [np.random.default_rng(n).integers(3, 97, n).tolist() for n in (13, 9, 16)]
SPANS = [(4, 9), (3, 7), (5, 12)]
SHOTS = [(1, 4), None, (0, 5)]


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "mistral", "gpt_oss", "qwen2", "mixtral", "gpt_neox"])
def test_live_masses_equal_teacher_forced_ones(name: str) -> None:
    model = tiny(name)
    lm = load_model(model)
    got = lookback.generate(lm, PROMPTS, 7, [4, 0, 1], question_spans=SPANS, few_shot_spans=SHOTS, eos=())
    for prompt, response in zip(PROMPTS, got.responses, strict=True):
        assert response == greedy(model, prompt, 7)
    want = lookback.masses(lm, PROMPTS, got.responses, [4, 0, 1], question_spans=SPANS, few_shot_spans=SHOTS)
    for a, b in zip(got.masses, want, strict=True):
        torch.testing.assert_close(a.context, b.context, atol=5e-6, rtol=0)
        torch.testing.assert_close(a.new, b.new, atol=5e-6, rtol=0)
        assert a.regions.keys() == b.regions.keys()
        for name in a.regions:
            torch.testing.assert_close(a.regions[name], b.regions[name], atol=5e-6, rtol=0)
    assert "few_shot" in want[0].regions and "few_shot" not in want[1].regions


def test_live_ratios_equal_the_stepwise_maps_and_do_not_depend_on_the_batch() -> None:
    lm = load_model(tiny("mistral"))
    together = lookback.generate(lm, PROMPTS, 5, 2, eos=())
    alone = lookback.generate(lm, PROMPTS, 5, 2, eos=(), max_tokens=1)
    eager = tiny("mistral", attn="eager")
    assert together.responses == alone.responses
    for prompt, response, a, b in zip(PROMPTS, together.responses, together.masses, alone.masses, strict=True):
        torch.testing.assert_close(a.ratio(), b.ratio(), atol=5e-6, rtol=0)
        torch.testing.assert_close(a.ratio(), oracle.ratios(eager, prompt, response, 2), atol=5e-6, rtol=0)


def test_prompts_of_other_lengths_are_padded_only_where_that_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[list[int]]] = []
    monkeypatch.setattr(measuring, "check_left", lambda model, anatomy, mask: seen.append(mask.tolist()))
    lookback.generate(load_model(tiny("llama")), [[5, 6, 7], [8]], 2, eos=())
    assert seen == [[[1, 1, 1], [0, 0, 1]], [[1, 1, 1, 1], [0, 0, 1, 1]]]


def test_a_response_ends_with_its_end_token_while_others_go_on() -> None:
    lm = load_model(tiny("llama"))
    free = lookback.generate(lm, PROMPTS, 6, eos=())
    end = free.responses[0][2]
    got = lookback.generate(lm, PROMPTS, 6, eos=[end])
    for a, b, m in zip(got.responses, free.responses, got.masses, strict=True):
        assert a == (b[: b.index(end) + 1] if end in b else b)
        assert m.context.shape[-1] == len(a)
    assert len(got.responses[0]) <= 3
    [own] = lm.eos_ids
    for ends, said in ((None, [own]), ((), [own, own])):
        found = lookback.generate(lm, PROMPTS[:1], 2, eos=ends, pick=lambda logits: torch.full((len(logits),), own))
        assert found.responses == [said], "without end tokens the model's own end nothing"


def test_tokens_may_be_chosen_otherwise_and_the_masses_belong_to_them() -> None:
    lm = load_model(tiny("qwen3"))
    generator = torch.Generator().manual_seed(0)

    def sample(logits: torch.Tensor) -> torch.Tensor:
        return torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]

    got = lookback.generate(lm, PROMPTS, 6, 1, eos=(), pick=sample)
    assert got.responses[0] != greedy(lm.model, PROMPTS[0], 6)
    want = lookback.masses(lm, PROMPTS, got.responses, 1)
    for a, b in zip(got.masses, want, strict=True):
        torch.testing.assert_close(a.new, b.new, atol=5e-6, rtol=0)


def test_the_model_is_as_before_also_after_an_interruption() -> None:
    model = tiny("llama")
    lm = load_model(model)

    def stop(logits: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lookback.generate(lm, PROMPTS, 3, pick=stop)
    assert model.config._attn_implementation == "sdpa"
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_spans_that_overlap_or_leave_the_prompt_are_refused() -> None:
    lm = load_model(tiny("llama"))
    with pytest.raises(InputError, match="overlap"):
        lookback.masses(lm, PROMPTS[:1], [[5]], question_spans=[(3, 7)], few_shot_spans=[(1, 4)])
    with pytest.raises(InputError, match="few_shot span"):
        lookback.masses(lm, PROMPTS[:1], [[5]], question_spans=[(3, 7)], few_shot_spans=[(7, 99)])
    n = len(PROMPTS[0])
    for span in ((3, n + 1), (-1, 3), (4, 4), (5, 4)):
        with pytest.raises(InputError, match=r"question span .* is empty or outside its"):
            lookback.masses(lm, PROMPTS[:1], [[5, 6, 7]], question_spans=[span])
        with pytest.raises(InputError, match=r"few_shot span .* is empty or outside its"):
            lookback.masses(lm, PROMPTS[:1], [[5, 6, 7]], question_spans=[(n - 1, n)], few_shot_spans=[span])
    assert lookback.masses(lm, PROMPTS[:1], [[5, 6, 7]], question_spans=[(0, n)])
    with pytest.raises(InputError, match="1 prompts, 2 question_spans"):
        lookback.masses(lm, PROMPTS[:1], [[5]], question_spans=[None, None])
    with pytest.raises(InputError, match="3 prompts, 1 question_spans"):
        lookback.masses(lm, PROMPTS, [[5]] * 3, question_spans=[(3, 7)])


def test_bad_input_to_generation_is_refused_before_anything_runs() -> None:
    lm = load_model(tiny("llama"))
    with pytest.raises(InputError, match="context of 64"):
        lookback.generate(lm, PROMPTS, 50)
    with pytest.raises(InputError, match="60 prompt and 6 response tokens"):
        lookback.generate(lm, [[5] * 60], 6)
    assert len(lookback.generate(lm, [[5] * 60], 5, eos=()).responses[0]) == 5, "the last token is not fed"
    with pytest.raises(InputError, match="max_new_tokens is 0"):
        lookback.generate(lm, PROMPTS, 0)
    lm.model.train()
    with pytest.raises(ModelError, match="training mode"):
        lookback.generate(lm, PROMPTS, 3)
