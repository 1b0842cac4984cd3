"""TransformerLens and nnsight as backends: same sites, same numbers, same gradients, and a model left alone."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import torch

from composcope.errors import ModelError
from composcope.hooks import Model, Site, load_model
from composcope.hooks.sites import KINDS
from composcope.probes import neurons

from ..tiny_models import tiny

LIBRARIES = [
    pytest.param(n, marks=pytest.mark.skipif(importlib.util.find_spec(n) is None, reason=f"{n} is not installed"))
    for n in ("transformer_lens", "nnsight")
]
NAMES = ["llama", "qwen3", "gemma2", "gpt2", "gpt_neox", "olmo2", "phi3", "mixtral"]
REFUSED: dict[tuple[str, str], set[str]] = {}
PROMPT = [5, 31, 77, 12, 40, 8, 66]


def ids_of(n: int = 9, batch: int = 2) -> torch.Tensor:
    return torch.randint(5, 90, (batch, n), generator=torch.Generator().manual_seed(0))


def sites_of(lm: Model, backend: str, name: str) -> list[Site]:
    missing = REFUSED.get((backend, name), set())
    if lm.anatomy.layers[0].mid is None:
        missing = missing | {"resid_mid"}
    if lm.anatomy.layers[0].down is None:
        missing = missing | {"neuron"}
    return [Site(1, k) for k in KINDS if k not in missing]  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", LIBRARIES)
@pytest.mark.parametrize("name", NAMES)
def test_every_site_is_read_and_edited_as_in_transformers(name: str, backend: str) -> None:
    model = tiny(name, attn="eager")
    ours, theirs = load_model(model), load_model(model, backend=backend)
    sites = sites_of(ours, backend, name)
    with torch.no_grad():
        a, b = ours.run(ids_of(), read=sites), theirs.run(ids_of(), read=sites)
        assert float((a.logits - b.logits).abs().max()) < 1e-5
        for site in sites:
            assert a.acts[site].shape == b.acts[site].shape, site
            assert float((a.acts[site] - b.acts[site]).abs().max()) < 1e-5, site
            x, y = (lm.run(ids_of(), edit={site: lambda v: 1.2 * v + 0.1}).logits for lm in (ours, theirs))
            assert float((x - y).abs().max()) < 1e-5 * max(1.0, float(x.abs().max())), site
            assert not torch.allclose(x, a.logits), site
