"""Early exits: what every layer would predict if the blocks after it were left out (the logit lens).

early_exits(lm, ids, [9, 14], tokens=[gold, foil])  # layer pos token, from layer -1 (before block 0) on
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from .interchange import states
from .model import Model


def early_exits(
    lm: Model, ids: Sequence[int], positions: Sequence[int], tokens: Sequence[int] | None = None,
    layers: Sequence[int] | None = None,
) -> Float[Tensor, "layer pos token"]:  # fmt: skip
    """Logits of each layer's states through the model's own final norm and head, float32, on the CPU.

    ``tokens``: the ids whose logits are wanted, by default the full vocabulary. ``layers``: by default -1 (before block
    0) to the last, so that layer l has the index l + 1; the last layer's logits are the model's own.
    """
    (found,) = states(lm, [ids], [positions], layers)
    return torch.stack([lm.unembed(x, tokens).float().cpu() for x in found])
