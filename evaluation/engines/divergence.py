"""How far greedy answers depend on the batch they were made in: the floor under any difference between two runs.

In fp32 they do not; in 16 bits a near tie between two tokens can go either way, and everything after it differs. The
share of such answers is the smallest difference between two runs that means anything.

    in_words(measure(engine, sample(asks)))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import torch

from ...errors import InputError
from ..asks import Ask
from ..statistics import clopper_pearson
from .continuous import common
from .local import LocalEngine

SAMPLE = 16
"""Number of asks that are answered once more, alone and in one batch."""


@dataclass(frozen=True)
class Divergence:
    """Answers one by one against the same answers in batches."""

    n: int
    """Asks compared."""
    n_different: int
    """Asks whose tokens differ anywhere."""
    first_steps: tuple[int, ...]
    """For each of those, the index of the first generated token that differs."""
    margins: tuple[float, ...]
    """For each of those, the gap in logits between the two tokens that were chosen there, one by one: a near tie."""
    dtype: str

    @property
    def rate(self) -> float:
        """Share of asks whose answer depends on the batch."""
        return self.n_different / self.n


def batch_divergence(engine: LocalEngine, asks: Sequence[Ask]) -> Divergence:
    """Answer ``asks`` alone and in the engine's own batches, and compare token by token.

    Costs both runs and one forward pass for each ask that differs. Raises ``InputError`` without greedy asks.
    """
    greedy = [replace(a, temperature=0.0) for a in dict.fromkeys(asks) if a.temperature == 0]
    if not greedy:
        raise InputError("batch_divergence: no greedy asks (temperature 0) to compare; give at least one")
    alone = LocalEngine(engine.model, engine.tokenizer, batch_size=1, continuous=False, folder=engine.folder)
    one = {a: r for a, r in alone.answer(greedy) if r.response_ids is not None}
    many = {a: r for a, r in engine.answer(greedy) if r.response_ids is not None}
    steps, margins = [], []
    both = [ask for ask in greedy if ask in one and ask in many]
    for ask in both:
        a, b = one[ask].response_ids, many[ask].response_ids
        step = first_difference(a or (), b or ())
        if step is not None:
            steps.append(step)
            margins.append(_margin(engine.model, one[ask].prompt_ids or (), a or (), b or (), step))
    return Divergence(
        n=len(both),
        n_different=len(steps),
        first_steps=tuple(steps),
        margins=tuple(margins),
        dtype=str(engine.model.dtype).removeprefix("torch."),
    )


def first_difference(a: Sequence[int], b: Sequence[int]) -> int | None:
    """Index of the first token in which two answers differ; None for equal ones."""
    shared = common(a, b)
    return None if shared == len(a) == len(b) else shared


@torch.inference_mode()
def _margin(model: Any, prompt: Sequence[int], a: Sequence[int], b: Sequence[int], step: int) -> float:
    if step >= min(len(a), len(b)):
        return 0.0
    logits = model(torch.tensor([[*prompt, *a[:step]]], device=model.device)).logits[0, -1].float()
    return float((logits[a[step]] - logits[b[step]]).abs())


def sample(asks: Sequence[Ask], n: int = SAMPLE) -> list[Ask]:
    """``n`` different greedy asks, spread evenly over all of them."""
    greedy = [ask for ask in asks if ask.temperature == 0]
    return [greedy[i * len(greedy) // n] for i in range(n)] if len(greedy) > n else greedy


def measure(engine: LocalEngine, asks: Sequence[Ask]) -> dict[str, Any] | None:
    """The divergence of ``asks``, as stored in a run's manifest; None if there is no greedy ask.

    ``rate`` is the share of answers in which any token differs between one-by-one and batched generation, with its
    Clopper-Pearson interval. ``margins`` are the logit gaps between the two tokens at which such a pair diverges.
    """
    if all(ask.temperature > 0 for ask in asks):
        return None
    found = batch_divergence(engine, asks)
    if found.n == 0:
        return None
    interval = clopper_pearson(found.n_different, found.n)
    return {
        "dtype": found.dtype, "n": found.n, "n_different": found.n_different, "rate": found.rate,
        "interval": "clopper-pearson", "low": interval.low, "high": interval.high,
        "first_steps": list(found.first_steps), "margins": [round(m, 6) for m in found.margins],
    }  # fmt: skip


def in_words(measured: Mapping[str, Any]) -> str:
    """The measurement as one line of text."""
    m = measured
    line = (
        f"in {m['dtype']} {m['n_different']} of {m['n']} answers depend on the batch they were made in "
        f"({100 * m['rate']:.0f} % [{100 * m['low']:.0f} %, {100 * m['high']:.0f} %], clopper-pearson)"
    )
    if not m["margins"]:
        return f"{line}; a smaller difference between runs says nothing about the model"
    return (
        f"{line}; they diverge at near ties, {median(m['margins']):.2g} logits apart (median); --dtype float32 has no "
        "such differences"
    )
