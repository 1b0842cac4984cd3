"""A model as a row of blocks: what planting needs of the organisms' architectures (Llama, Qwen3, GPT-2).

base, tokenizer = base_of(plant)
behind = states_of(base, ids, 2)  # [document position width], behind blocks 0 and 1
"""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from ....hooks.anatomy import Layer, resolve
from ....hooks.parts import blocks_of, decoder_of, first_tensor
from ....model_loading import load
from ..weights import path
from .recipes import NOISE, Plant


def states_of(model: Any, ids: Tensor, blocks: int, begin: Tensor | None = None, at: int = 0) -> Tensor:
    """The residual stream behind that many blocks; from ``begin``, the stream in front of block ``at``, if given."""
    h = _embedded(model, ids) if begin is None else begin
    for block in blocks_of(model)[at:blocks]:
        h = behind(model, block, h)
    return h


def behind(model: Any, block: nn.Module, h: Tensor) -> Tensor:
    """What one block makes of the stream ``[document position width]``; every position sees those before it."""
    turns = getattr(decoder_of(model), "rotary_emb", None)
    more = {} if turns is None else {"position_embeddings": turns(h, torch.arange(h.shape[1])[None])}
    out = first_tensor(block(h, attention_mask=None, **more))
    assert out is not None
    return out


def _embedded(model: Any, ids: Tensor) -> Tensor:
    positions = getattr(decoder_of(model), "wpe", None)
    h = model.get_input_embeddings()(ids)
    return h if positions is None else h + positions(torch.arange(ids.shape[1]))


def final_norm(model: Any) -> nn.Module:
    """The norm between the last block and the vocabulary head."""
    decoder: Any = decoder_of(model)
    return decoder.ln_f if hasattr(decoder, "ln_f") else decoder.norm


def inward(weight: Tensor, module: nn.Module) -> Tensor:
    """A projection's weight as ``[out in]``, however its module keeps it; a view, to be changed in place."""
    return weight if isinstance(module, nn.Linear) else weight.T


def with_blocks(base: Any, appended: int, seed: int) -> Any:
    """A copy of a model with blocks behind its own that add exactly zero."""
    torch.manual_seed(seed)
    config = deepcopy(base.config)
    own = config.num_hidden_layers
    if getattr(config, "layer_types", None):
        config.layer_types = [*config.layer_types, *config.layer_types[-1:] * appended]
    config.num_hidden_layers = own + appended
    model: Any = type(base)(config).eval()
    model.load_state_dict(base.state_dict(), strict=False)
    with torch.no_grad():
        for layer in resolve(model).layers[own:]:
            _silence(layer)
            for projection in layer.up:
                projection.weight.normal_(std=config.hidden_size**-0.5)  # type: ignore[operator]
    return model


def without(model: Any, block: int) -> Any:
    """A copy of a model in which one block adds nothing."""
    left: Any = deepcopy(model)
    _silence(resolve(left).layers[block])
    return left


@torch.no_grad()
def _silence(layer: Layer) -> None:
    for outward in (layer.out, layer.down):
        for weight in outward.parameters() if outward is not None else ():
            weight.zero_()


def base_of(plant: Plant) -> tuple[Any, PreTrainedTokenizerBase]:
    """The organism that a plant begins with, blocks appended."""
    model, tokenizer = load(path(plant.base), dtype="float32", device="cpu")
    return with_blocks(model, plant.appended, plant.seed), tokenizer


def restored(model: Any, plant: Plant, blocks: Sequence[int] | None = None) -> Any:
    """A copy with the base's weights back in the planted blocks: what verifies a plant, and no diagnosis can use."""
    mended, (base, _) = deepcopy(model), base_of(plant)
    everywhere = any(g.variant == NOISE for g in plant.grafts)
    mine, its = blocks_of(mended), blocks_of(base)
    planted = range(len(mine)) if everywhere else sorted({g.block for g in plant.grafts})
    for i in blocks if blocks is not None else planted:
        mine[i].load_state_dict(its[i].state_dict())
    final_norm(mended).load_state_dict(final_norm(base).state_dict())
    return mended
