"""How much a model's greedy answers depend on the batch, where they can: measured in every 16-bit run, and said.

In float32 they do not. In bfloat16 and float16 a near tie between two tokens falls one way or the other, and all that
follows differs: the share of such answers is the floor under any difference between two runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from ...evaluation.asks import Ask
from ...evaluation.statistics import clopper_pearson

SAMPLE = 16
"""Asks that are answered once more, alone and together."""


def depends_on_batch(engine: Any) -> bool:
    """Whether an engine runs in this process in 16 bits."""
    made = engine.provenance
    return made.get("engine") == "transformers" and made.get("dtype") in ("bfloat16", "float16")


def sample(asks: Sequence[Ask], n: int = SAMPLE) -> list[Ask]:
    """``n`` different greedy asks, evenly spread over all of them."""
    greedy = [ask for ask in asks if ask.temperature == 0]
    return [greedy[i * len(greedy) // n] for i in range(n)] if len(greedy) > n else greedy


def measure(engine: Any, asks: Sequence[Ask]) -> dict[str, Any] | None:
    """The divergence of a sample as the manifest has it; None where there is no greedy ask.

    ``rate`` is the share of answers that differ in any token between one by one and one batch, with its
    Clopper-Pearson interval; ``margins`` are the gaps in logits between the two tokens where each such pair parts.
    """
    from ...evaluation.engines.divergence import batch_divergence

    if not asks:
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


def describe(measured: dict[str, Any]) -> str:
    """One line about it."""
    m = measured
    line = (
        f"in {m['dtype']} {m['n_different']} of {m['n']} answers depend on the batch they were made in "
        f"({100 * m['rate']:.0f} % [{100 * m['low']:.0f} %, {100 * m['high']:.0f} %], clopper-pearson)"
    )
    if not m["margins"]:
        return f"{line}; differences between runs below that are not the model's"
    return (
        f"{line}; they part at near ties, {median(m['margins']):.2g} logits apart (median); --dtype float32 has no "
        "such differences"
    )
