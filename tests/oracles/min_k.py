"""Min-K% and Min-K%++ as in the papers' equations: full float64 softmax over the vocabulary, sorted, averaged."""

from __future__ import annotations

import math

import torch
from transformers import PreTrainedModel


@torch.no_grad()
def token_scores(model: PreTrainedModel, ids: list[int]) -> list[tuple[float, float, float]]:
    """(log-probability, mean, variance) of every token but the first."""
    logits = model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].double()
    out = []
    for t in range(1, len(ids)):
        p = torch.softmax(logits[t - 1], dim=0)
        log_p = p.log()
        seen = p > 0
        mean = (p[seen] * log_p[seen]).sum()
        variance = (p[seen] * (log_p[seen] - mean) ** 2).sum()
        out.append((float(log_p[ids[t]]), float(mean), float(variance)))
    return out


def score(model: PreTrainedModel, ids: list[int], k: float) -> tuple[float, float, float]:
    """(min_k, min_k_pp, mean log-probability)."""
    tokens = token_scores(model, ids)
    log_probs = [lp for lp, _, _ in tokens]
    z = [(lp - mean) / math.sqrt(variance) for lp, mean, variance in tokens]
    count = int(len(tokens) * k)

    def lowest(values: list[float]) -> float:
        return sum(sorted(values)[:count]) / count if count else math.nan

    return lowest(log_probs), lowest(z), sum(log_probs) / len(log_probs)
