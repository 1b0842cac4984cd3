"""One number per case and probe, chosen beforehand and without looking at labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..probes.examples import Example


@dataclass(frozen=True)
class Score:
    """A probe's one number per case."""

    probe: str
    quantity: str
    expected: str
    """How it should move with the dose, declared beforehand: ``increasing`` or ``decreasing``."""
    short: str
    """For lines with many of them."""


Values = Mapping[str, Mapping[str, float]]
"""Quantity -> case -> value."""


def measure(lm: Any, examples: Sequence[Example]) -> Values:
    """Every probe's number for each case of ``examples`` (wholes with their parts)."""
    wholes = [e for e in examples if e.role == "whole"]
    if len(wholes) < 2:
        return {score.quantity: {} for score in SCORES}
    found: dict[str, Mapping[str, float]] = {}
    for probe in (_min_k, _lookback, _neurons, _trajectory):
        found.update(probe(lm, wholes, examples))
    return found


def _min_k(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> Values:
    from ..probes import min_k

    tokens = min_k.token_scores(lm, [e.prompt_ids for e in wholes], [e.question_span for e in wholes])
    return {"Min-K%++ of the question": _by_case(wholes, min_k.aggregate(tokens).min_k_pp)}


def _lookback(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> Values:
    from ..probes import lookback

    prompts, responses = [e.prompt_ids for e in wholes], [e.response_ids for e in wholes]
    found = lookback.masses(lm, prompts, responses, [e.cue_tokens for e in wholes])
    return {"mean lookback ratio": _by_case(wholes, [float(m.ratio().double().nanmean()) for m in found])}


def _trajectory(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> Values:
    from ..probes import trajectory

    found = trajectory.step_cosines(lm, [e.prompt_ids for e in wholes], [e.response_ids for e in wholes])
    means = [float(s.cosines.mean()) if s.cosines.numel() else np.nan for s in found]
    return {"mean step cosine": _by_case(wholes, means)}


def _neurons(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> Values:
    """Overlap of the whole's key neurons with those of each kind of part, within cases (gold answers' first token)."""
    from ..probes import neurons

    sets = neurons.key_neurons(lm, examples)
    whole = {e.case: s for e, s in zip(examples, sets, strict=True) if e.role == "whole"}
    out: dict[str, dict[str, float]] = {f"neurons shared with {kind}": {} for kind in ("math", "commonsense")}
    for e, neurons_of_part in zip(examples, sets, strict=True):
        name = f"neurons shared with {e.kind}"
        if name in out and e.case in whole:
            out[name][e.case] = neurons.share(whole[e.case], neurons_of_part).overlap
    return {name: {case: found.get(case, np.nan) for case in whole} for name, found in out.items()}


def _by_case(wholes: Sequence[Example], values: Any) -> dict[str, float]:
    return {e.case: float(v) for e, v in zip(wholes, values, strict=True)}


SCORES: tuple[Score, ...] = (
    Score("min-k", "Min-K%++ of the question", "increasing", "min-k"),
    Score("lookback", "mean lookback ratio", "increasing", "lookback"),
    Score("neurons", "neurons shared with math", "decreasing", "neurons/math"),
    Score("neurons", "neurons shared with commonsense", "increasing", "neurons/commonsense"),
    Score("trajectory", "mean step cosine", "increasing", "cosine"),
)
