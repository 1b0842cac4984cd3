"""Do the chosen neurons matter? Suppress and amplify them, against random neurons of the same layers.

Dai et al. 2022, section 4.3: neurons that carry an answer lower its probability when silenced and raise it when
doubled; as many random neurons of the same layers should not. Done at the position that predicts the answer's first
token, all variants of a case as rows of one recomputed position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..errors import InputError, ModelError
from ..hooks.model import Model
from ..hooks.rows import Prefix, Watch, prefill, row_budget, step
from .neuron_sets import Neuron


@dataclass(frozen=True)
class CausalCheck:
    """Log-probability of each case's answer token, in nats."""

    base: Tensor
    """case"""
    suppressed: Tensor
    amplified: Tensor
    random_suppressed: Tensor
    """case draw: as many random neurons of the same layers"""
    random_amplified: Tensor

    def change(self, which: str) -> Tensor:
        """Log of the ratio P(changed) / P per case, random draws averaged; ``which`` names a field."""
        x = getattr(self, which)
        return (x.mean(1) if x.dim() == 2 else x) - self.base


def causal_check(
    lm: Model,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    neurons: Sequence[Sequence[Neuron]],
    *,
    suppress: float = 0.0,
    amplify: float = 2.0,
    draws: int = 8,
    seed: int = 0,
) -> CausalCheck:
    """Change of each answer's first-token probability when a case's neurons are scaled.

    Args:
        neurons: per case, as ``select`` gives them; a case without neurons stays unchanged.
        suppress, amplify: factors on the activations.
        draws: random sets per case, from the same layers and disjoint from the chosen ones.
    """
    if not len(prompts) == len(answers) == len(neurons):
        raise InputError(
            f"{len(prompts)} prompts, {len(answers)} answers, {len(neurons)} sets; need one of each per case"
        )
    if lm.anatomy.n_experts:
        raise ModelError("causal check: scales neurons of dense MLPs; not available for mixtures of experts")
    rng = np.random.default_rng(seed)
    sets = [[list(chosen), *(_random_like(lm, chosen, rng) for _ in range(draws))] for chosen in neurons]
    out = torch.empty(len(prompts), 2 * (1 + draws) + 1, dtype=torch.float64)
    per_case = 2 * (1 + draws) + 1
    size = max(1, row_budget(lm, 1, max(map(len, prompts)), graph=False) // per_case)
    order = sorted(range(len(prompts)), key=lambda i: -len(prompts[i]))
    for start in range(0, len(order), size):
        some = order[start : start + size]
        prefix = prefill(lm, [prompts[i] for i in some])
        targets = torch.tensor([answers[i][0] for i in some], device=lm.device)
        out[some] = _scaled(lm, prefix, targets, [sets[i] for i in some], (suppress, amplify)).double().cpu()
    base, low, high = out[:, 0], out[:, 1 : 2 + draws], out[:, 2 + draws :]
    return CausalCheck(base, low[:, 0], high[:, 0], low[:, 1:], high[:, 1:])


def _random_like(lm: Model, chosen: Sequence[Neuron], rng: np.random.Generator) -> list[Neuron]:
    taken = set(chosen)
    out: list[Neuron] = []
    for layer in sorted({n[0] for n in chosen}):
        count = sum(n[0] == layer for n in chosen)
        free = [i for i in range(lm.anatomy.d_mlp) if (layer, i) not in taken]
        out += [(layer, int(i)) for i in rng.choice(free, size=min(count, len(free)), replace=False)]
    return out


@torch.no_grad()
def _scaled(
    lm: Model, prefix: Prefix, targets: Tensor, sets: Sequence[Sequence[Sequence[Neuron]]], factors: tuple[float, float]
) -> Tensor:
    """Log-probabilities ``query variant``: unchanged, each set suppressed, each set amplified."""
    n_sets = len(sets[0])
    variants = 1 + 2 * n_sets
    scale: dict[int, Tensor] = {}
    for q, of_case in enumerate(sets):
        for s, neurons in enumerate(of_case):
            for layer, index in neurons:
                if layer not in scale:
                    scale[layer] = torch.ones(len(sets), variants, lm.anatomy.d_mlp, device=lm.device, dtype=lm.dtype)
                scale[layer][q, 1 + s, index] = factors[0]
                scale[layer][q, 1 + n_sets + s, index] = factors[1]
    watches = []
    for layer, by in scale.items():
        down = lm.anatomy.layers[layer].down
        assert down is not None
        watches.append(Watch(down, "in", lambda z, by=by: z * by))
    out = step(lm, prefix, grow={-1: lambda x: x.expand(-1, variants, -1).contiguous()}, watch=watches)
    log_p = out.logits.log_softmax(-1, dtype=torch.promote_types(out.logits.dtype, torch.float32))
    return log_p.gather(-1, targets[:, None, None].expand(-1, variants, 1))[..., 0]
