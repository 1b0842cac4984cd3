"""What makes the data that a figure draws: the command to run where a run has none of it."""

from __future__ import annotations


def _evaluate(protocol: str, more: str = "") -> str:
    return f"composcope evaluate -m MODEL -b CASES -p {protocol}{more}"


_GATE, _GAP, _REASONING, _SCAFFOLDS = (
    _evaluate(name) for name in ("double-gate", "compositionality-gap", "reasoning-gap", "scaffolding")
)
_NEURONS, _LOOKBACK, _PATCHING, _TRAJECTORY, _MIN_K = (
    f"composcope probe RUN --probes {name}" for name in ("neurons", "lookback", "patching", "trajectory", "min-k")
)
_SKILLS = "composcope build skills RECORDS --teacher TEACHER --out DIR"
MAKES: dict[str, str] = {
    "collapse-curve": _GATE,
    "family-curves": _GATE,
    "family-heatmap": _GATE,
    "gate-funnel": _GATE,
    "gap-slopes": _GAP,
    "step-bars": _GAP,
    "failure-quadrants": _GAP,
    "gap-bars": _GAP,
    "gap-scatter": _GAP,
    "stability-scatter": _GATE,
    "k-histogram": _SCAFFOLDS,
    "bottlenecks": _SCAFFOLDS,
    "scaffold-gain": _SCAFFOLDS,
    "skill-heatmap": _SCAFFOLDS,
    "skill-distribution": _SKILLS,
    "skill-coverage": _SKILLS,
    "skill-granularity": _SKILLS,
    "context-control": f"{_GAP} (with cases whose parts have extra_context)",
    "prompt-gain": _evaluate("compositionality-gap", " --also cot,self-ask"),
    "leakage": f"{_REASONING} (with cases that have meta.original)",
    "distraction": _REASONING,
    "second-hop": _REASONING,
    "co-presented": _REASONING,
    "magnitudes": f"{_REASONING} (with cases whose answers are numbers)",
    "training-curve": "composcope intervene -m MODEL --recipe grpo --curve -o DIR",
    "pair-gains": f"{_GAP} (for two models)",
    "channels": f"{_GATE} (for two models)",
    "size-scatter": "composcope study agentcoma --models FILE (with the field size)",
    "dose-response": "composcope study validity",
    "outcomes": "composcope evaluate -m MODEL -b CASES",
    "neuron-overlap": _NEURONS,
    "neuron-overlap-means": _NEURONS,
    "neuron-map": _NEURONS,
    "neuron-check": _NEURONS,
    "lookback": _LOOKBACK,
    "lookback-means": _LOOKBACK,
    "patching": _PATCHING,
    "cosine-prompt-end": _TRAJECTORY,
    "cosine-trajectory": _TRAJECTORY,
    "mink": _MIN_K,
}
"""By figure id."""


def how(figure: str) -> str:
    """``; COMMAND makes it`` for a figure of ours; empty for others."""
    return f"; this makes it: {MAKES[figure]}" if figure in MAKES else ""
