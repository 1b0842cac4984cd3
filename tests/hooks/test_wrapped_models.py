"""Compiled models and models with adapters are opened as the model inside; what cannot be is refused."""

from __future__ import annotations

import pytest
import tiny_models
import torch

from composcope.errors import ModelError
from composcope.hooks import Site, load_model

IDS = torch.tensor([[3, 17, 42, 9]])


def test_a_compiled_model_is_opened_as_the_model_inside(capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny_models.tiny("llama")
    lm = load_model(torch.compile(model))
    assert lm.model is model
    assert lm.notes and lm.notes[-1] in capsys.readouterr().err


def test_a_model_with_an_adapter_is_read_with_the_adapter() -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed (the extra train)")
    model = tiny_models.tiny("llama")
    plain = model(input_ids=IDS).logits
    config = peft.LoraConfig(target_modules=["q_proj", "o_proj", "down_proj"], r=2, init_lora_weights=False)
    adapted = peft.get_peft_model(model, config).eval()
    lm = load_model(adapted)
    run = lm.run(IDS, read=[Site(1, "neuron"), Site(1, "head"), Site(1, "q")])
    assert torch.equal(run.logits, adapted(input_ids=IDS).logits) and not torch.allclose(run.logits, plain)
    assert run.acts[Site(1, "neuron")].shape == (1, 4, 56)
    assert "default" in lm.notes[-1]


def test_virtual_tokens_are_refused() -> None:
    peft = pytest.importorskip("peft", reason="peft is not installed (the extra train)")
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    with pytest.raises(ModelError, match="PROMPT_TUNING"):
        load_model(peft.get_peft_model(tiny_models.tiny("llama"), config).eval())
