"""Neuron attribution: which MLP neurons carry an answer, what tasks share, and whether it is true.

The parts: attribution (``attribute``, ``attribute_many``), sets (``select``, ``overlap``, ``location_map``), the causal
check, and the whole over labelled examples.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ...hooks.model import Model
from .attribution import Attributions, attribute, attribute_many
from .checks import CausalCheck, causal_check
from .examples import key_neurons, over_examples
from .experts import by_expert
from .sets import Overlap, Selection, location_map, overlap, select, select_clusters, share

__all__ = [
    "Attributions",
    "CausalCheck",
    "Overlap",
    "Selection",
    "activation_times_gradient",
    "attribute",
    "attribute_many",
    "by_expert",
    "causal_check",
    "key_neurons",
    "location_map",
    "over_examples",
    "overlap",
    "select",
    "select_clusters",
    "share",
]


def activation_times_gradient(lm: Model, prompt: Sequence[int], answer: Sequence[int]) -> Tensor:
    """The cheap estimate: activation times gradient at full activation, ``layer neuron``, mean over answer tokens.

    One node instead of an integral; it misses what saturates along the path. Behind a norm of the MLP output the norm's
    factor is frozen, as for ``attribute``.
    """
    return attribute(lm, prompt, answer, rule="gradient")
