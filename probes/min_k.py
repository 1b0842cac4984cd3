"""Min-K% and Min-K%++: was a text in the training data, judged by its least likely tokens?

    score(lm, [ids], k=0.2).min_k_pp  # one number per text

Min-K% (Shi et al. 2024, eq. 1) averages the k% lowest token log-probabilities. Min-K%++ (Zhang et al. 2025, eq. 3-4)
first standardizes each one by what the model expected: z_t = (log p(x_t | x_<t) - mu_t) / sigma_t with mu and sigma
the mean and standard deviation of log p(v | x_<t) over the vocabulary, v ~ p. Higher = more likely seen. The first
token of a text is never scored. Scores of different lengths, dtypes or tokenizers do not compare.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import InputError
from ..hooks.capture import Request, capture, id_rows
from ..hooks.head import head_of, vocabulary_statistics
from ..hooks.model import Model
from ..terminal import Bar, no_bar, stage, tick
from .examples import Example
from .result import ProbeResult
from .spread import Notes, collect
from .tables import Values, group_rows, kinds_of, matched_pairs, matched_rows, value_rows
from .verdicts import corrected

Array = NDArray[np.float64]
Ids = Sequence[int]
RATIOS = tuple(i / 10 for i in range(1, 11))
SMALL_SIGMA = 1e-2


class MinKScores(NamedTuple):
    """One float64 number per text."""

    min_k: Array
    min_k_pp: Array
    log_prob: Array
    """Mean log-probability of the scored tokens (minus the loss)."""


@dataclass(frozen=True)
class TokenScores:
    """The scored tokens of one text, float64."""

    log_prob: Array
    mean: Array
    """Expected log-probability under the model's prediction."""
    variance: Array
    z: Array
    """(log_prob - mean) / sqrt(variance); unbounded below where the model was sure and wrong."""
    positions: tuple[int, ...]
    """Positions of the scored tokens in the text."""

    @property
    def small_sigma(self) -> int:
        """Tokens predicted with such certainty (standard deviation < 0.01) that their z is numerically delicate."""
        return int((self.variance < SMALL_SIGMA**2).sum())


def token_scores(
    lm: Model, ids: Sequence[Ids], spans: Sequence[tuple[int, int] | None] | None = None, *,
    sigma_floor: float = 0.0, max_tokens: int | None = None, rows: int | None = None, tile: int | None = None,
    notes: list[str] | None = None,
) -> list[TokenScores]:  # fmt: skip
    """Log-probability and z of every token but the first, or of those inside each text's half-open span.

    Tokens outside the span still condition the others. If a prediction has no spread at all, z is 0 for the predicted
    token (never NaN); ``sigma_floor`` bounds sigma from below (0 = as published). Logits are never held. Raises
    ``InputError`` for texts of fewer than two tokens and spans with nothing to score.
    """
    ids = id_rows(ids, "text")
    spans = [None] * len(ids) if spans is None else spans
    if len(spans) != len(ids):
        raise InputError(f"{len(ids)} texts, {len(spans)} spans; give one (or None) of each")
    scored = [_scored(t, s, i) for i, (t, s) in enumerate(zip(ids, spans, strict=True))]
    requests = [Request(t[:b], hidden=(a - 1, b - 1)) for t, (a, b) in zip(ids, scored, strict=True)]
    head = head_of(lm.model)
    out: dict[int, TokenScores] = {}
    for i, got in capture(lm, requests, max_tokens=max_tokens, notes=notes):
        assert got.hidden is not None
        a, b = scored[i]
        found = vocabulary_statistics(head, got.hidden, torch.as_tensor(ids[i][a:b]), rows=rows, tile=tile)
        log_prob, mean, variance = (x.numpy() for x in found)
        z = standardize(log_prob, mean, variance, sigma_floor)
        out[i] = TokenScores(log_prob, mean, variance, z, tuple(range(a, b)))
        tick(1)
    return [out[i] for i in range(len(ids))]


def _measure(
    lm: Model, texts: Sequence[tuple[Ids, tuple[int, int] | None]], notes: Notes, *, max_tokens: int | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The fields of each text's ``TokenScores``."""
    found = token_scores(lm, [t for t, _ in texts], [s for _, s in texts], max_tokens=max_tokens, notes=notes)
    yield from enumerate(map(vars, found))


def _scored(ids: Ids, span: tuple[int, int] | None, i: int) -> tuple[int, int]:
    a, b = (1, len(ids)) if span is None else (max(1, span[0]), span[1])
    if len(ids) < 2:
        raise InputError(f"text {i}: {len(ids)} tokens; the first one is never scored, so give at least two")
    if not a < b <= len(ids) or (span is not None and span[0] < 0):
        raise InputError(f"text {i}: span {span} leaves nothing to score in {len(ids)} tokens")
    return a, b


def standardize(log_prob: Array, mean: Array, variance: Array, sigma_floor: float = 0.0) -> Array:
    """z = (log_prob - mean) / sigma; 0 if sigma is 0 and the token is the certain one, minus infinity otherwise."""
    sigma = np.maximum(np.sqrt(variance), sigma_floor)
    gap = log_prob - mean
    sure = np.where(np.abs(gap) <= 1e-12, 0.0, np.where(gap > 0, np.inf, -np.inf))
    return np.divide(gap, sigma, out=sure, where=sigma > 0)


def lowest(values: Array, k: float, at_least_one: bool = False) -> float:
    """Mean of the int(n * k) lowest values (the reference's count, in floating point); NaN if that number is 0."""
    if not 0 < k <= 1:
        raise InputError(f"k is {k}; give a ratio above 0 and at most 1")
    count = int(len(values) * k)
    if count == 0:
        if not at_least_one:
            return float("nan")
        count = 1
    return float(np.sort(values)[:count].mean())


def aggregate(tokens: Sequence[TokenScores], k: float = 0.2, at_least_one: bool = False) -> MinKScores:
    """Text scores from token scores at one ratio."""
    return MinKScores(
        np.array([lowest(t.log_prob, k, at_least_one) for t in tokens], dtype=np.float64),
        np.array([lowest(t.z, k, at_least_one) for t in tokens], dtype=np.float64),
        np.array([t.log_prob.mean() for t in tokens], dtype=np.float64),
    )


def score(
    lm: Model, ids: Sequence[Ids], k: float = 0.2, *, spans: Sequence[tuple[int, int] | None] | None = None,
    at_least_one: bool = False, max_tokens: int | None = None,
) -> MinKScores:  # fmt: skip
    """Min-K%, Min-K%++ and mean log-probability of texts given as token ids; one number per text.

    ``k`` is the share of tokens averaged: int(n * k) of the n scored ones as in the reference, NaN if that is 0
    (``at_least_one`` takes one then). ``spans`` limits scoring to the question's own tokens.
    """
    lowest(np.zeros(1), k)  # refuse a bad ratio before the forward pass
    return aggregate(token_scores(lm, ids, spans, max_tokens=max_tokens), k, at_least_one)


def length_matched(values: Array, n: int, k: float = 0.2, *, draws: int = 200, seed: int = 0) -> float:
    """Expected mean of the k lowest values in a text of ``n`` tokens: the average over random subsets of that size.

    Removes the advantage of longer texts, which have more chances of a low token; NaN if int(n * k) is 0.
    """
    lowest(values, k)  # refuses a bad ratio
    if not 0 < n <= len(values):
        raise InputError(f"cannot match {len(values)} tokens to a length of {n}")
    count = int(n * k)
    if count == 0:
        return float("nan")
    rng = np.random.default_rng(seed)
    subsets = values[rng.random((draws, len(values))).argsort(1)[:, :n]]
    return float(np.sort(subsets, 1)[:, :count].mean())


def _alike(examples: Sequence[Example], values: Array) -> int:
    """How many questions have the value of another case's question of the same kind."""
    cases: dict[tuple[str, float], set[str]] = {}
    keys = [(e.kind, round(float(v), 9)) for e, v in zip(examples, values, strict=True)]
    for e, key in zip(examples, keys, strict=True):
        cases.setdefault(key, set()).add(e.case)
    return sum(len(cases[key]) > 1 for key in keys)


def over_examples(
    lm: Model, examples: Sequence[Example], *, k: float = 0.2, ratios: Sequence[float] = RATIOS,
    question_only: bool = True, max_tokens: int | None = None, seed: int = 0, progress: Bar = no_bar,
) -> ProbeResult:  # fmt: skip
    """Min-K scores of the prompts of labelled examples, by kind and group.

    Only the question's own tokens are scored (``question_only``), conditioned on the template before them: template
    tokens are predicted with certainty and say nothing. Table: ``min_k_pp``, ``min_k``, ``log_prob``, the robust
    ``z_median`` and ``min_k_pp_length_matched`` (every role of a case at the length of its shortest question) by kind
    and group, failure against success per kind, also pair by pair over matched cases (there at the shorter question
    of the pair), kinds within cases. Tensors:
    ``min_k_pp.{kind}.{group}`` ``[case]``, ``by_ratio.{kind}.{group}`` ``[ratio]``, ``tokens.{kind}.{group}``
    ``[case]`` (scored tokens: the scores depend on them).
    """
    said: list[str] = []
    texts = [(e.prompt_ids, e.question_span if question_only else None) for e in examples]
    with stage(progress, "min-k: questions", len(texts)):
        tokens = [TokenScores(**t) for t in collect(lm, partial(_measure, max_tokens=max_tokens), texts, said)]
    scores = aggregate(tokens, k)
    columns = {"min_k_pp": scores.min_k_pp, "min_k": scores.min_k, "log_prob": scores.log_prob}
    columns["z_median"] = np.array([np.median(t.z) for t in tokens])
    shortest: dict[str, int] = {}
    for e, t in zip(examples, tokens, strict=True):
        shortest[e.case] = min(len(t.z), shortest.get(e.case, len(t.z)))
    pairs = zip(examples, tokens, strict=True)
    columns["min_k_pp_length_matched"] = np.array(
        [length_matched(t.z, shortest[e.case], k, seed=seed) for e, t in pairs]
    )
    found, note = matched_pairs(examples)
    rows, kept = [], []
    for quantity, column in columns.items():
        values: Values[float] = [(e, float(v)) for e, v in zip(examples, column, strict=True)]
        kept += value_rows(quantity, values)
        rows += group_rows(quantity, values, seed=seed)
        if quantity == "min_k_pp_length_matched":
            rows += matched_rows(
                quantity, examples, found, lambda i, n: length_matched(tokens[i].z, n or 1, k, seed=seed),
                lambda i: len(tokens[i].z), seed=seed,
            )  # fmt: skip
        else:
            rows += matched_rows(quantity, examples, found, lambda i, _, x=column: float(x[i]), seed=seed)
    tensors: dict[str, torch.Tensor] = {}
    for kind in kinds_of(examples):
        for group in sorted({e.group for e in examples}):
            mine = [i for i, e in enumerate(examples) if e.kind == kind and e.group == group]
            if mine:
                finite = [tokens[i].z for i in mine if np.isfinite(tokens[i].z).all()]
                curve = [np.mean([lowest(z, r, True) for z in finite]) if finite else np.nan for r in ratios]
                tensors[f"min_k_pp.{kind}.{group}"] = torch.from_numpy(scores.min_k_pp[mine])
                tensors[f"by_ratio.{kind}.{group}"] = torch.tensor(curve, dtype=torch.float64)
                tensors[f"tokens.{kind}.{group}"] = torch.tensor([len(tokens[i].z) for i in mine])
    axes = {name: ("ratio",) if name.startswith("by_ratio") else ("case",) for name in tensors}
    short, delicate = int(np.isnan(scores.min_k).sum()), sum(t.small_sigma for t in tokens)
    settings = {
        "k": k, "ratios": list(ratios), "question_only": question_only, "dtype": str(lm.dtype), "seed": seed,
        "small_sigma_tokens": delicate, "short_texts": short, "matched": note,
    }  # fmt: skip
    if short:
        said.append(f"{short} questions have too few tokens for k={k} and are left out")
    if unbounded := sum(not np.isfinite(t.z).all() for t in tokens):
        said.append(f"{unbounded} questions contain a token of probability 0 (z is minus infinity) and are left out")
    if (alike := _alike(examples, scores.min_k_pp)) * 2 > len(examples):
        said.append(
            f"{alike} of {len(examples)} questions have the same min_k_pp as another one of their kind: their lowest "
            "tokens are in words that they share, so it says nothing about the facts asked for"
        )
    if delicate:
        said.append(f"{delicate} scored tokens have sigma < {SMALL_SIGMA}: their z is extreme; see z_median")
    return ProbeResult("min_k", corrected(rows), tensors, axes, settings, said, kept)
