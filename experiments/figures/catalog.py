"""Every figure by its id, as the command line and the report name it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ...errors import InputError
from . import behaviour, gates, layers, mechanism
from .drawing import Drawing, write
from .io import RunData, load

FigureFunction = Callable[[Sequence[RunData]], Drawing]

FIGURES: dict[str, FigureFunction] = {
    "collapse-curve": behaviour.collapse_curve,
    "family-curves": behaviour.family_curves,
    "family-heatmap": behaviour.family_heatmap,
    "gate-funnel": gates.gate_funnel,
    "gap-slopes": behaviour.gap_slopes,
    "step-bars": behaviour.step_bars,
    "failure-quadrants": gates.failure_quadrants,
    "gap-bars": behaviour.gap_bars,
    "gap-scatter": behaviour.gap_scatter,
    "stability-scatter": behaviour.stability_scatter,
    "k-histogram": gates.k_histogram,
    "bottlenecks": gates.bottlenecks,
    "outcomes": gates.outcomes,
    "neuron-overlap": mechanism.neuron_overlap,
    "neuron-overlap-means": mechanism.neuron_overlap_means,
    "neuron-map": mechanism.neuron_map,
    "neuron-check": mechanism.neuron_check,
    "lookback": mechanism.lookback,
    "lookback-means": mechanism.lookback_means,
    "patching": layers.patching,
    "cosine-prompt-end": layers.cosine_prompt_end,
    "cosine-trajectory": layers.cosine_trajectory,
    "mink": mechanism.min_k,
}

TITLES: dict[str, str] = {
    "collapse-curve": "Residual failure over depth",
    "family-curves": "Residual failure over depth, by family",
    "family-heatmap": "Residual failure by family and depth",
    "gate-funnel": "Through the gates",
    "gap-slopes": "From the steps to the whole",
    "step-bars": "Accuracy on steps and whole",
    "failure-quadrants": "Which steps were right when the whole was wrong",
    "gap-bars": "Three gaps on the same answers",
    "gap-scatter": "The whole against independent steps",
    "stability-scatter": "Failure against atom stability",
    "k-histogram": "Steps that had to be revealed",
    "bottlenecks": "Bottleneck skills",
    "outcomes": "How every answer was graded",
    "neuron-overlap": "Neurons that tasks share",
    "neuron-overlap-means": "Shared neurons, failures against successes",
    "neuron-map": "Where the neurons lie",
    "neuron-check": "Do the selected neurons matter?",
    "lookback": "Lookback ratio by layer and head",
    "lookback-means": "Mean lookback ratio",
    "patching": "Patching the prompt's end",
    "cosine-prompt-end": "Prompt-end states: failures against successes",
    "cosine-trajectory": "Movement from step to step",
    "mink": "Min-K%++ by what is asked",
}


def draw(figure_id: str, runs: Iterable[str | Path | RunData]) -> Drawing:
    """A figure with its rows and caption; in a notebook, show ``.figure``.

    Raises ``InputError`` for an unknown id or a folder that is no run. What was not measured is said in the figure.
    """
    if figure_id not in FIGURES:
        raise InputError(f"figure {figure_id!r}: no such figure; use one of {', '.join(FIGURES)}")
    return FIGURES[figure_id](load(runs))


def save(figure_id: str, runs: Iterable[str | Path | RunData], out: str | Path) -> list[Path]:
    """Draw a figure and write ``ID.png``, ``ID.svg``, ``ID.csv`` and ``ID.txt`` (the caption) into ``out``."""
    return write(draw(figure_id, runs), figure_id, out)
