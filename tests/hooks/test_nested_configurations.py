"""Models whose configuration holds others are read by the one of their decoder, wherever the library reads it."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tiny_models import tiny

from composcope.hooks import length_limits, load_model
from composcope.hooks.sites import Site


@pytest.mark.parametrize("name", ["llama", "gemma2", "mixtral"])
def test_only_the_decoders_configuration_is_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(name)
    plain = load_model(model)
    ids = torch.tensor([[1, 2, 3, 4]])
    wanted = [Site(0, "resid_post"), Site(1, "pattern")]
    before = plain.run(ids, read=wanted)
    asked: list[bool | None] = []
    own = type(model.config).get_text_config

    def text_config(config: Any, decoder: bool | None = None, encoder: bool | None = None) -> Any:
        if sys._getframe(1).f_globals["__name__"].startswith("composcope"):
            asked.append(decoder)
            return own(config) if decoder else SimpleNamespace()
        return own(config)

    monkeypatch.setattr(type(model.config), "get_text_config", text_config)
    again = load_model(model)
    assert again.anatomy.n_layers == plain.anatomy.n_layers and again.anatomy.d_model == plain.anatomy.d_model
    assert again.anatomy.context == plain.anatomy.context
    after = again.run(ids, read=wanted)
    torch.testing.assert_close(after.logits, before.logits)
    assert length_limits.limits(model) == [] or name == "gemma2"
    assert asked and all(asked)
