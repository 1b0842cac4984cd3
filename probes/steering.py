"""Steering: whether adding the direction from failures to successes makes failing cases succeed.

    along = direction(lm, successes, failures, layers)
    steer(lm, recipients, along, layers).tokens  # recipient source layer step

The direction of a layer is the mean prompt-end residual state of the successes minus that of the failures. It is added,
times a strength, to the prompt-end state of other cases after that layer's block, and the model continues. Controls add
a random direction of the same length, the same direction backwards, and nothing at all (which must change nothing).
Patching puts a donor's whole state there instead. The caller judges
whether a continuation is right, from ``Steered.tokens``: this module knows token ids only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ..errors import InputError, NoCasesError
from ..hooks.edits import noise_like
from ..hooks.model import Model
from .patching.engine import chosen_layers, continue_patched, prompt_end_states

Ids = Sequence[int]
STRENGTHS = (1.0, 2.0)
"""1 moves a mean failure onto the mean success."""


@dataclass(frozen=True)
class Steered:
    """Continuations of every recipient from every source at every layer."""

    base: Int[Tensor, "recipient step"]
    """Unchanged; -1 after the end."""
    tokens: Int[Tensor, "recipient source layer step"]
    sources: tuple[str, ...]
    layers: tuple[int, ...]


def direction(
    lm: Model, successes: Sequence[Ids], failures: Sequence[Ids], layers: Sequence[int]
) -> Float[Tensor, "layer d_model"]:
    """Mean success minus mean failure state at the prompt's end, in float32.

    Raises ``NoCasesError`` without both groups, ``InputError`` without layers and for those that the model lacks.
    """
    if not successes or not failures:
        raise NoCasesError(f"{len(successes)} successes and {len(failures)} failures; a direction needs both")
    chosen = chosen_layers(lm, layers)
    means = [prompt_end_states(lm, prompts, chosen).float().mean(0) for prompts in (successes, failures)]
    return means[0] - means[1]


def steer(
    lm: Model, recipients: Sequence[Ids], along: Float[Tensor, "_ _"], layers: Sequence[int], *,
    strengths: Sequence[float] = STRENGTHS, n_random: int = 2, max_new_tokens: int = 64,
    stop_ids: Sequence[int] | None = None, seed: int = 0,
) -> Steered:  # fmt: skip
    """Continue every recipient with ``along`` (layer d_model) added to its prompt-end state after each block.

    Sources: ``+S`` for each strength S, ``-S`` for the largest one, ``random:i`` (directions drawn at random, as long
    as the largest step), ``none``. Each layer is a separate row: layers are never steered together.
    """
    chosen = sorted(set(chosen_layers(lm, layers)))
    if list(layers) != chosen:
        raise InputError(f"layers {list(layers)}: give each once, the lowest first, as the rows of along")
    if tuple(along.shape) != (wanted := (len(chosen), lm.anatomy.d_model)):
        raise InputError(f"along of shape {tuple(along.shape)}: need {wanted} (layer d_model)")
    if not strengths or not all(s > 0 for s in strengths) or len({f"{s:g}" for s in strengths}) < len(strengths):
        raise InputError(f"strengths {list(strengths)}: give different numbers above 0, at least one")
    _check_recipients(recipients)
    own = prompt_end_states(lm, recipients, chosen)
    steps = {f"+{s:g}": s * along for s in strengths}
    most = max(strengths)
    steps[f"-{most:g}"] = -most * along
    for i, noise in enumerate(_noise(along, most, n_random, seed)):
        steps[f"random:{i}"] = noise
    steps["none"] = torch.zeros_like(along)
    states = torch.stack([own + step.to(own) for step in steps.values()], 1)
    return _continue(lm, recipients, states, tuple(steps), chosen, max_new_tokens, stop_ids)


def patch(
    lm: Model, recipients: Sequence[Ids], donors: Mapping[str, Sequence[Ids]], layers: Sequence[int], *,
    max_new_tokens: int = 64, stop_ids: Sequence[int] | None = None, seed: int = 0,
) -> Steered:  # fmt: skip
    """Continue every recipient with its prompt-end state replaced by a donor's, after each block.

    ``donors`` names groups of donor prompts, one prompt per recipient each. Two controls are added: ``noise`` (as far
    from the recipient's state as the first group's donor, in a random direction) and ``none`` (its own state).
    """
    if taken := sorted({"noise", "none"} & set(donors)):
        raise InputError(f"donors {taken}: these are the names of controls; give the groups other names")
    chosen = sorted(set(chosen_layers(lm, layers)))
    if not donors or any(len(group) != len(recipients) for group in donors.values()):
        sizes = {name: len(group) for name, group in donors.items()}
        raise InputError(f"donors {sizes} for {len(recipients)} recipients: give one donor per recipient in each group")
    _check_recipients(recipients)
    own = prompt_end_states(lm, recipients, chosen)
    states = {name: prompt_end_states(lm, group, chosen) for name, group in donors.items()}
    states |= {"noise": noise_like(own, next(iter(states.values())), seed), "none": own}
    stacked = torch.stack(list(states.values()), 1)
    return _continue(lm, recipients, stacked, tuple(states), chosen, max_new_tokens, stop_ids)


def _check_recipients(recipients: Sequence[Ids]) -> None:
    if not len(recipients):
        raise NoCasesError("0 recipients; give at least one prompt to continue")


def _noise(along: Tensor, strength: float, n: int, seed: int) -> list[Tensor]:
    """Random directions, per layer as long as ``strength * along``."""
    generator = torch.Generator().manual_seed(seed)
    size = strength * along.norm(dim=-1, keepdim=True)
    drawn = [torch.randn(along.shape, generator=generator, dtype=torch.float32).to(along) for _ in range(n)]
    return [x / x.norm(dim=-1, keepdim=True) * size for x in drawn]


def _continue(
    lm: Model, recipients: Sequence[Ids], states: Tensor, names: tuple[str, ...], layers: list[int],
    max_new_tokens: int, stop_ids: Sequence[int] | None,
) -> Steered:  # fmt: skip
    stops = tuple(lm.eos_ids if stop_ids is None else stop_ids)
    got = continue_patched(lm, recipients, states, layers, max_new_tokens, stops)
    return Steered(got.base, got.tokens, names, tuple(layers))
