"""Every figure by its id, as the command line and the report name it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path

from ...errors import InputError
from ..run.provenance import of_manifest
from . import (
    accuracies,
    behaviour,
    channels,
    doses,
    gates,
    layers,
    magnitudes,
    mechanism,
    scatters,
    skills,
    training,
)
from .drawing import Drawing, write
from .io import RunData, load

FigureFunction = Callable[..., Drawing]
"""Of a sequence of runs (or of what ``READERS`` reads) and, for some, of options by name."""

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
    "scaffold-gain": accuracies.scaffold_gain,
    "skill-heatmap": accuracies.skill_heatmap,
    "skill-distribution": skills.skill_distribution,
    "skill-coverage": skills.skill_coverage,
    "skill-granularity": skills.skill_granularity,
    "context-control": accuracies.context_control,
    "prompt-gain": accuracies.prompt_gain,
    "leakage": scatters.leakage,
    "distraction": scatters.distraction,
    "second-hop": scatters.second_hop,
    "co-presented": scatters.co_presented,
    "magnitudes": magnitudes.magnitudes,
    "training-curve": training.training_curve,
    "pair-gains": accuracies.pair_gains,
    "channels": channels.channels,
    "size-scatter": scatters.size_scatter,
    "dose-response": doses.dose_response,
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

BUILT_IN = tuple(FIGURES)
"""The figures of this package; others come from plugin files."""

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
    "scaffold-gain": "With any scaffold",
    "skill-heatmap": "Skills asked alone",
    "skill-distribution": "How often each skill is called for",
    "skill-coverage": "Steps that no skill fits",
    "skill-granularity": "The skills, by how many were asked for",
    "context-control": "First steps with the whole's numbers added",
    "prompt-gain": "Relative gain of other ways to ask",
    "leakage": "Originals and their changed versions",
    "distraction": "The first question, alone and inside the pair",
    "second-hop": "The second question, alone and as second hop",
    "co-presented": "The second question beside an independent first",
    "magnitudes": "How large the answers are",
    "training-curve": "Accuracy over training",
    "pair-gains": "Matched models, step by step",
    "channels": "Three channels between matched models",
    "size-scatter": "Gaps against model size",
    "dose-response": "Probes over the dose series",
    "outcomes": "How every answer was graded",
    "neuron-overlap": "Neurons that tasks share",
    "neuron-overlap-means": "Shared neurons, failures against successes",
    "neuron-map": "Where the neurons lie",
    "neuron-check": "Do the selected neurons matter?",
    "lookback": "Lookback ratio by layer and head",
    "lookback-means": "Mean lookback ratio",
    "patching": "Patching, layer by layer",
    "cosine-prompt-end": "States where the answer is decided: failures against successes",
    "cosine-trajectory": "Movement from step to step",
    "mink": "Min-K%++ by what is asked",
}


READERS: dict[str, Callable[[Sequence[str | Path | RunData]], Sequence[object]]] = {
    "skill-distribution": skills.read_maps,
    "skill-coverage": skills.read_maps,
    "skill-granularity": skills.read_maps,
    "training-curve": training.read_checkpoints,
}
"""Figures that are drawn from other folders than runs, or from those too."""


def draw(figure_id: str, runs: Iterable[str | Path | RunData], **options: object) -> Drawing:
    """A figure with its rows and caption; in a notebook, show ``.figure``.

    ``options`` are the figure's own (``group_by``, ``bands``). Raises ``InputError`` for an unknown id or option, or a
    folder that is no run. What was not measured is said in the figure.
    """
    found = FIGURES.get(figure_id) or _installed(figure_id)
    if found is None:
        near = get_close_matches(figure_id, FIGURES, n=3, cutoff=0.5)
        meant = f"; did you mean {' or '.join(near)}?" if near else ""
        raise InputError(f"figure {figure_id!r}: no such figure; see `composcope plot --list`{meant}")
    taken = signature(found).parameters
    given = {k: v for k, v in options.items() if v is not None}
    for name in given:
        if name not in taken:
            raise InputError(f"--{name.replace('_', '-')}: the figure {figure_id} has no such option; leave it out")
    read = READERS.get(figure_id, load)(list(runs))
    return of_runs(found(read, **given), read)


def of_runs(drawing: Drawing, runs: Iterable[object]) -> Drawing:
    """The drawing with what the runs behind it were made with; runs that it does not show are named in the caption."""
    known = [r for r in runs if isinstance(r, RunData)]
    absent = _not_shown(drawing, known)
    said = f" Nothing to draw of: {', '.join(absent)}." if absent else ""
    made_with = tuple(of_manifest(r.manifest) for r in known)
    return replace(drawing, caption=drawing.caption + said, made_with=made_with)


def _not_shown(drawing: Drawing, runs: Sequence[RunData]) -> list[str]:
    """Runs without a row, of the protocols that are drawn (others could not have any).

    None where rows do not stand for single runs, or where folders of the same name cannot be told apart.
    """
    names = [r.name for r in runs]
    shown = {str(row.get("run")) for row in drawing.rows}
    if drawing.empty is not None or not shown <= set(names) or len(set(names)) < len(names):
        return []
    protocols = {r.protocol for r in runs if r.name in shown}
    return [r.name for r in runs if r.name not in shown and r.protocol in protocols]


def _installed(figure_id: str) -> FigureFunction | None:
    """A figure of an installed package (entry-point group ``composcope.figures``)."""
    for point in entry_points(group="composcope.figures", name=figure_id):
        return point.load()
    return None


def save(figure_id: str, runs: Iterable[str | Path | RunData], out: str | Path, **options: object) -> list[Path]:
    """Draw a figure and write ``ID.png``, ``ID.svg``, ``ID.csv`` and ``ID.txt`` (the caption) into ``out``."""
    return write(draw(figure_id, runs, **options), figure_id, out)
