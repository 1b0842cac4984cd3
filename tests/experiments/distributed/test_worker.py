"""What a worker tells of its model."""

from __future__ import annotations

import pytest
from torch import nn

from composcope.experiments.distributed.worker import without_modules
from composcope.hooks import load_model

from ...tiny_models import tiny


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_an_anatomy_without_modules_has_the_sizes_of_every_layer(name: str) -> None:
    own = load_model(tiny(name)).anatomy
    told = without_modules(own)
    assert [told.heads(i) for i in range(told.n_layers)] == [own.heads(i) for i in range(own.n_layers)] == [(4, 2)] * 3
    assert told.all_neurons == own.all_neurons and not any(list(x.block.children()) for x in told.layers)
    assert all(type(x.block) is nn.Identity and x.up == () for x in told.layers)
