"""Does Min-K%++ tell texts that a model was trained on? Its positive control: texts shown 0, 1, 10 and 100 times.

Compositions that no organism has seen are drawn, and chance decides how often each of them is shown; a copy of the twin
then goes on training on them, among fresh documents of its own kind. The texts of all levels are alike but for that, so
an AUROC against the texts never shown is about the exposure. The same numbers before the training are its null.

    for row in member_exposures(series, n=30, seed=0):
        print(row["group"], row["value"])
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from ...evaluation.cases import Case
from ...hooks.progress import Bar, no_bar
from ...probes import min_k
from ...probes import validity as known_answers
from ...probes.result import Row
from ..config import Config
from ..distributed.loading import load_target
from ..models.target import Target
from ..organism.documents import DOSES, Turns, document
from ..organism.series import Series
from ..organism.train import encode, loss_of, optimizers, pad
from .members import as_examples, drawn

EXPOSURES = (1, 10, 100)
"""How often the texts of a level are shown; those that are never shown are compared with them."""
BATCH = 64
"""Documents a step: half of them are shown texts, half are fresh."""
LEARNING_RATE = 1e-3
"""A third of the peak of the organisms' own last stage: the parts have to stay known."""


def member_exposures(
    series: Series, *, n: int = 30, seed: int = 0, device: str | None = None, progress: Bar = no_bar
) -> list[Row]:
    """AUROC of Min-K%++ of the question, texts shown k times against ``n`` never shown, before and after the training.

    ``n`` texts a level. The unit is the text: which text is shown how often is drawn. One training is described, so an
    interval says nothing about other trainings.
    """
    cases, turns = drawn(n * (1 + len(EXPOSURES)), f"{seed}/validity/exposures")
    levels = _levels(cases, n)
    target = load_target(Config(model=series.model("twin"), benchmark="organism:mixed", device=device))
    before = _scores(target, cases)
    shown = [turns[case.id] for k in EXPOSURES for case in levels[k] for _ in range(k)]
    _train(target.hooks().model, target.tokenizer, shown, series, seed, progress)
    after = _scores(target, cases)
    rows = [
        {**row, "group": f"shown {k} times{when}", "exposures": k}
        for k in EXPOSURES
        for when, scores in ((", before", before), ("", after))
        for row in known_answers.membership_auroc(
            [scores[c.id] for c in levels[k]], [scores[c.id] for c in levels[0]],
            quantity="Min-K%++ of the question", permutations=0, seed=seed,
        ).table
    ]  # fmt: skip
    return rows


def _levels(cases: Sequence[Case], n: int) -> dict[int, Sequence[Case]]:
    """The texts of each level, in the order in which they were drawn."""
    return {k: cases[i * n : (i + 1) * n] for i, k in enumerate((0, *EXPOSURES))}


def _scores(target: Target, cases: Sequence[Case]) -> Mapping[str, float]:
    wholes = [e for e in as_examples(target, cases) if e.role == "whole"]
    tokens = min_k.token_scores(target.hooks(), [e.prompt_ids for e in wholes], [e.question_span for e in wholes])
    found = np.asarray(min_k.aggregate(tokens).min_k_pp, dtype=float)
    return {e.case: float(v) for e, v in zip(wholes, found, strict=True)}


def _train(
    model: Any, tokenizer: Any, shown: Sequence[Turns], series: Series, seed: int, progress: Bar = no_bar
) -> None:
    """Train in place on the shown texts in a drawn order, among as many fresh documents; all tokens count the same."""
    order = list(shown)
    random.Random(f"{seed}/validity/exposures/order").shuffle(order)
    steps = math.ceil(len(order) / (BATCH // 2))
    fresh = _fresh(series)
    model.requires_grad_(True)
    model.train()
    opts = optimizers(model, LEARNING_RATE)
    with progress("training on texts shown 1, 10 and 100 times", steps) as advance, torch.enable_grad():
        for step in range(steps):
            own = order[step * BATCH // 2 : (step + 1) * BATCH // 2]
            ids, answered = pad(encode(tokenizer, [*own, *(next(fresh) for _ in range(BATCH // 2))]))
            loss_of(model, ids.to(model.device), answered.to(model.device), prompt_weight=1.0).backward()
            for opt in opts:
                opt.step()
                opt.zero_grad(set_to_none=True)
            advance(1)
    model.eval()
    model.requires_grad_(False)


def _fresh(series: Series) -> Iterator[Turns]:
    """Documents of the twin's kind that it has not seen."""
    index = int(series.recipe["dose"]["steps"]) * int(series.recipe["dose"]["batch"]) + BATCH * BATCH
    while True:
        yield document(series.seed, "dose", index, DOSES["twin"])
        index += 1
