"""Neuron attribution: the MLP neurons that carry an answer, their overlap between tasks, and a causal check.

    scores = neurons.attribute_many(lm, prompts, answers).mean
    chosen = neurons.select(scores)
    neurons.causal_check(lm, prompts, answers, chosen.neurons)

``over_examples`` does all of this for labelled examples.

Modules: ``attribution`` (a score for each neuron) with ``paths`` and ``quadrature`` (its integral),
``sets`` (chosen neurons and their overlap), ``checks`` (do the chosen ones matter?), ``examples`` (labelled ones).
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from ...hooks.model import Model
from .attribution import Attributions, attribute, attribute_many
from .checks import CausalCheck, causal_check
from .examples import key_neurons, over_examples
from .paths import by_expert
from .sets import Overlap, Selection, location_map, overlap, select, select_clusters, share

__all__ = [
    "Attributions", "CausalCheck", "Overlap", "Selection", "activation_times_gradient", "attribute", "attribute_many",
    "by_expert", "causal_check", "key_neurons", "location_map", "over_examples", "overlap", "select", "select_clusters",
    "share",
]  # fmt: skip


def activation_times_gradient(lm: Model, prompt: Sequence[int], answer: Sequence[int]) -> Float[Tensor, "layer neuron"]:
    """The cheap estimate: activation times gradient at full activation, averaged over answer tokens.

    One node instead of an integral, so effects that saturate along the path are missed. The factor of a norm on the
    MLP's output is frozen, as in ``attribute``.
    """
    return attribute(lm, prompt, answer, rule="gradient")
