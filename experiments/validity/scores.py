"""One number per case and probe, chosen beforehand and without looking at labels.

``SCORES`` lists the numbers of the shipped probes. For your own probe, ``probe(lm, examples)``, they are the tensors of
its result with one number per example: their values on wholes. The result's settings say how they should move with the
dose, ``{"expected": {TENSOR: "decreasing"}}``; the default is increasing.

Some numbers have a known answer. Every verdict has to beat the ``BASELINES``, which count as confounds if they are
used as a probe. Nulls measure nothing (random directions of the prompt-end state, an offset of each model with noise).
"""

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...errors import InputError
from ...probes.examples import Example
from ...probes.result import ProbeResult


@dataclass(frozen=True)
class ProbeScore:
    """A probe's one number per case."""

    probe: str
    quantity: str
    expected: str
    """The expected direction with the dose, declared beforehand: ``increasing`` or ``decreasing``."""
    short: str
    """A short name for dense tables."""
    kind: Literal["probe", "null", "confound"] = "probe"
    """``null`` and ``confound`` mark numbers that are not probes: a yes on them would discredit the verdicts."""


ValuesByCase = Mapping[str, Mapping[str, float]]
"""Quantity -> case -> value."""
Probes = Mapping[str, Callable[[Any, Sequence[Example]], ProbeResult]]


@dataclass(frozen=True)
class CaseScores:
    """The numbers of one model on some cases."""

    values: dict[str, Mapping[str, float]] = field(default_factory=dict)
    own: list[ProbeScore] = field(default_factory=list)
    """Numbers of your own probes."""
    shares: Mapping[str, Hashable] = field(default_factory=dict)
    """What each case shares with others, as ``evaluation.dependence`` takes it."""

    def of(self, score: ProbeScore, case: str) -> float:
        """The number of a case; NaN if it has none."""
        return self.values.get(score.quantity, {}).get(case, np.nan)

    def known(self, score: ProbeScore, cases: Sequence[str]) -> tuple[np.ndarray, list[Hashable]]:
        """The numbers of the cases that have one, and what these share."""
        found = [(x, self.shares.get(c)) for c in cases if np.isfinite(x := self.of(score, c))]
        return np.array([x for x, _ in found], dtype=float), [label for _, label in found]


def measure(lm: Any, examples: Sequence[Example], probes: Probes | None = None) -> CaseScores:
    """Every probe's number for each case of ``examples`` (wholes with their parts), including your own ``probes``.

    Raises ``InputError`` for a probe without a tensor with one number per example.
    """
    wholes = [e for e in examples if e.role == "whole"]
    # Every dose has the same cases, so a case shares at least itself.
    found = CaseScores(shares={e.case: e.shares or ("case", e.case) for e in wholes})
    if len(wholes) < 2:
        return found
    for probe in (_min_k, lookback_ratios, _neurons, step_cosines, baselines, _nulls):
        found.values.update(probe(lm, wholes, examples))
    for name, function in (probes or {}).items():
        own = _own(name, function(lm, examples), examples)
        found.own.extend(own)
        found.values.update({score.quantity: values for score, values in own.items()})
    return found


def _own(name: str, result: ProbeResult, examples: Sequence[Example]) -> dict[ProbeScore, dict[str, float]]:
    """Each tensor with one number per example: its values on wholes, by case."""
    tensors = {t: x for t, x in result.tensors.items() if tuple(result.axes.get(t, ())) == ("example",)}
    if not tensors:
        raise InputError(
            f"probe {name}: no tensor has 'example' as its only axis; return one number per example to have it examined"
        )
    wanted = result.settings.get("expected", {})
    if not isinstance(wanted, Mapping) or not set(wanted.values()) <= {"increasing", "decreasing"}:
        raise InputError(f"probe {name}: settings 'expected' is {wanted!r}; name tensors increasing or decreasing")
    out: dict[ProbeScore, dict[str, float]] = {}
    for tensor, x in tensors.items():
        if x.shape != (len(examples),):
            raise InputError(f"probe {name}: tensor {tensor} of shape {tuple(x.shape)} for {len(examples)} examples")
        score = ProbeScore(name, f"{tensor} ({name})", wanted.get(tensor, "increasing"), f"{name}/{tensor}")
        values = zip(examples, x.double().cpu().tolist(), strict=True)
        out[score] = {e.case: v for e, v in values if e.role == "whole"}
    return out


def _min_k(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> ValuesByCase:
    from ...probes import min_k

    tokens = min_k.token_scores(lm, [e.prompt_ids for e in wholes], [e.question_span for e in wholes])
    return {"Min-K%++ of the question": _by_case(wholes, min_k.aggregate(tokens).min_k_pp)}


def lookback_ratios(lm: Any, wholes: Sequence[Example], examples: Sequence[Example] = ()) -> ValuesByCase:
    from ...probes import lookback

    prompts, responses = [e.prompt_ids for e in wholes], [e.response_ids for e in wholes]
    found = lookback.masses(lm, prompts, responses, [e.cue_tokens for e in wholes])
    ratios = [m.ratio().double() for m in found]
    return {
        "mean lookback ratio": _by_case(wholes, [float(r.nanmean()) for r in ratios]),
        # One token of every response, because the mean over a response falls with its length.
        "lookback ratio, length-matched": _by_case(wholes, [float(r[..., :1].nanmean()) for r in ratios]),
    }


def baselines(lm: Any, wholes: Sequence[Example], examples: Sequence[Example] = ()) -> ValuesByCase:
    """Numbers that are cheaper than any probe: confidence, length, and the likelihood of the question."""
    from ...probes import min_k

    question = min_k.token_scores(lm, [e.prompt_ids for e in wholes], [e.question_span for e in wholes])
    asked = [e for e in wholes if e.response_ids]
    spans = [(len(e.prompt_ids), len(e.prompt_ids) + 1) for e in asked]
    first = min_k.token_scores(lm, [[*e.prompt_ids, e.response_ids[0]] for e in asked], spans)
    return {
        BASELINES["confidence"]: _by_case(asked, [s.log_prob[0] for s in first]),
        BASELINES["length"]: _by_case(wholes, [len(e.response_ids) for e in wholes]),
        BASELINES["likelihood"]: _by_case(wholes, min_k.aggregate(question).log_prob),
    }


def _nulls(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> ValuesByCase:
    """Numbers that measure nothing. They are the same at every call for the same weights."""
    from ...probes.patching.engine import prompt_end_states

    states = prompt_end_states(lm, [e.prompt_ids for e in wholes], [lm.anatomy.n_layers // 2])[:, 0].double().cpu()
    directions = np.random.default_rng(0).normal(size=(states.shape[1], DIRECTIONS))
    along = states.numpy() @ (directions / np.linalg.norm(directions, axis=0))
    weights = next(p for p in lm.model.parameters() if p.ndim == 2).detach().float().cpu().numpy()
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(weights.tobytes()).digest()[:8], "big"))
    found = {f"random direction {i + 1}": _by_case(wholes, along[:, i]) for i in range(DIRECTIONS)}
    return {**found, "offset noise": _by_case(wholes, 2 * rng.normal() + rng.normal(size=len(wholes)))}


def step_cosines(lm: Any, wholes: Sequence[Example], examples: Sequence[Example] = ()) -> ValuesByCase:
    from ...probes import trajectory

    found = trajectory.step_cosines(lm, [e.prompt_ids for e in wholes], [e.response_ids for e in wholes])
    means = [float(s.cosines.mean()) if s.cosines.numel() else np.nan for s in found]
    return {"mean step cosine": _by_case(wholes, means)}


def _neurons(lm: Any, wholes: Sequence[Example], examples: Sequence[Example]) -> ValuesByCase:
    """Overlap of the whole's key neurons with those of each kind of part, within cases (gold answers' first token)."""
    from ...probes import neurons

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


DIRECTIONS = 3
BASELINES = {
    "confidence": "first-token confidence", "length": "response length", "likelihood": "question log-likelihood",
}  # fmt: skip
"""The baselines that a verdict has to go beyond, by the names in its text."""
SCORES: tuple[ProbeScore, ...] = (
    ProbeScore("min-k", "Min-K%++ of the question", "increasing", "min-k"),
    ProbeScore("lookback", "mean lookback ratio", "increasing", "lookback"),
    ProbeScore("lookback", "lookback ratio, length-matched", "increasing", "lookback/first token"),
    ProbeScore("neurons", "neurons shared with math", "decreasing", "neurons/math"),
    ProbeScore("neurons", "neurons shared with commonsense", "increasing", "neurons/commonsense"),
    ProbeScore("trajectory", "mean step cosine", "increasing", "cosine"),
    *(ProbeScore("confound", quantity, "increasing", name, "confound") for name, quantity in BASELINES.items()),
    *(
        ProbeScore("null", f"random direction {i + 1}", "increasing", f"direction {i + 1}", "null")
        for i in range(DIRECTIONS)
    ),
    ProbeScore("null", "offset noise", "increasing", "offset", "null"),
)
