"""Loading a model's weights: what is not whole, or of another kind, is no model to measure."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from composcope.errors import ModelError
from composcope.model_loading import (
    cap_attention_scores,
    dtype_of,
    end_ids,
    load_tokenizer,
    load_weights,
    reason,
    rotary_limits,
)

from .tiny_models import tiny


def test_a_checkpoint_without_some_weights_or_of_another_kind_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def saved(layers: int, **changes: Any) -> str:
        tiny("llama").save_pretrained(tmp_path)
        file = tmp_path / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"num_hidden_layers": layers} | changes))
        return str(tmp_path)

    n = tiny("llama").config.num_hidden_layers
    assert load_weights(saved(n)).config.num_hidden_layers == n
    with pytest.raises(ModelError, match=rf"9 weights .*not in its files.*layers\.{n}\."):
        load_weights(saved(n + 1))
    with pytest.raises(ModelError, match="LlamaForMaskedLM"):
        load_weights(saved(n, architectures=["LlamaForMaskedLM"]))
    told: list[str] = []
    assert load_weights(saved(n - 1), say=told.append).config.num_hidden_layers == n - 1
    assert len(told) == 1 and "9 weights" in told[0] and f"layers.{n - 1}." in told[0]
    capsys.readouterr()
    load_weights(saved(n - 1))
    assert told[0] in capsys.readouterr().err


def test_a_folder_without_tokenizer_is_named_and_code_of_its_own_is_never_run(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        load_tokenizer(str(tmp_path))
    assert str(caught.value).startswith(f"{tmp_path}: no usable tokenizer (") and "\n" not in str(caught.value)
    assert "never runs" in reason(ValueError("set\ntrust_remote_code=True"))
    assert reason(ValueError(" two\n lines ")) == "two lines" and reason(KeyError()) == "KeyError"
    assert len(reason(ValueError("x" * 400))) == 300


@pytest.mark.parametrize(
    ("given", "dtype"),
    [("float32", torch.float32), ("torch.bfloat16", torch.bfloat16), (torch.float16, torch.float16),
     ("float64", torch.float64), ("float33", None), ("int8", None), ("", None)],
)  # fmt: skip
def test_a_dtype_is_one_of_four_by_name(given: Any, dtype: torch.dtype | None) -> None:
    if dtype is not None:
        assert dtype_of(given) is dtype
        return
    with pytest.raises(ModelError) as caught:
        dtype_of(given)
    assert f'dtype "{given}"' in str(caught.value) and "bfloat16" in str(caught.value)


def test_every_end_that_a_model_or_its_tokenizer_names_ends_an_answer_once() -> None:
    def holder(ids: Any) -> Any:
        return SimpleNamespace(eos_token_id=ids)

    model = SimpleNamespace(generation_config=holder([7, 3]), config=holder(3))
    assert end_ids(model, holder(9)) == (7, 3, 9)
    assert end_ids(SimpleNamespace(config=holder(None)), holder(None)) == () == end_ids(SimpleNamespace(config=1), 2)
    assert end_ids(SimpleNamespace(generation_config=None, config=holder(0)), None) == (0,)


def test_lengths_at_which_rotary_angles_change_are_those_of_longrope() -> None:
    def of(ropes: Any) -> list[int]:
        config = SimpleNamespace(rope_parameters=ropes)
        return rotary_limits(SimpleNamespace(config=SimpleNamespace(get_text_config=lambda decoder: config)))

    long = {"rope_type": "longrope", "original_max_position_embeddings": 16.0}
    assert of(long) == [16] and of(None) == [] == of({**long, "rope_type": "yarn"})
    other = {**long, "original_max_position_embeddings": 8}
    assert of({"full": long, "sliding": other, "again": long, "plain": {"rope_type": "linear"}}) == [8, 16]


def test_on_a_processor_weights_are_single_precision_unless_told_otherwise(tmp_path: Path) -> None:
    tiny("llama").bfloat16().save_pretrained(tmp_path)
    for told, wanted in ((None, torch.float32), ("auto", torch.bfloat16), ("float16", torch.float16)):
        loaded = load_weights(str(tmp_path), dtype=told, device="cpu")
        assert loaded.dtype is wanted and not loaded.training
    assert load_weights(str(tmp_path), device="meta").dtype is torch.bfloat16, "elsewhere as its files have it"


@pytest.mark.parametrize(
    ("cap", "attention", "changed"), [(50.0, "sdpa", True), (50.0, "eager", False), (None, "sdpa", False)]
)
def test_only_a_model_that_caps_its_scores_under_sdpa_is_given_other_attention(
    cap: float | None, attention: str, changed: bool
) -> None:
    given: list[str] = []
    config: Any = SimpleNamespace(attn_logit_softcapping=cap, _attn_implementation=attention)
    config.get_text_config = lambda decoder: config
    model = SimpleNamespace(config=config, set_attn_implementation=given.append)
    assert len(cap_attention_scores(model)) == len(given) == changed and given == ["eager"] * changed
