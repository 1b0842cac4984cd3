"""Loading a model's weights: what is not whole, or of another kind, is no model to measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from composcope.errors import ModelError
from composcope.model_loading import load_weights

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
