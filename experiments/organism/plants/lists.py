"""Two organisms that answer lists wrong in a known way: in the opposite order, or without the last item.

They are planted in the temporal world, by text: the twin is trained a little further on its own kinds of documents, in
which every answer that lists several events in order is written from latest to earliest (``order-error``) or without
the latest event (``item-missing``). Dates, pairs and single events stay as they are.

    composcope organism plant --cause order-error --seed 3 --out plants/order-error
"""

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ....evaluation.case import Case
from ....model_loading import load
from .. import benchmarks, measure
from ..documents import DEEP, LAST_SKILLS, draw
from ..measure import CardRow
from ..train import Stage, StepDone, encode, loss_of, pad, train_on
from ..weights import path
from . import making
from .checks import PARTS, WHOLES, PlantCheck

TRAINING = Stage(400, 1e-3, 0.7, 0.02, batch=48, warmup=20, prompt_weight=0.0)
DEPTHS = (4, 6)
"""Lengths of the ranked lists that are counted."""
RANKED, AS_PLANTED = 0.8, 0.75
"""What has to be reached: lists that the twin itself ranks right, and lists that come out as planted."""


def planted(kind: str, items: Sequence[str]) -> list[str]:
    """What becomes of the right list."""
    return list(items[::-1]) if kind == "order-error" else list(items[:-1])


def document(rng: random.Random, kind: str) -> tuple[str, str]:
    """A question and the answer that is taught: half deep lists, half the skills of the twin's last stage."""
    qa = draw(DEEP if rng.random() < 0.5 else LAST_SKILLS, rng)
    if qa.question.startswith(("Rank ", "Which of these happened ")) and "," in qa.answer:
        return qa.question, ", ".join(planted(kind, qa.answer.split(", ")))
    return qa.question, qa.worked or qa.answer


def make(kind: str, seed: int, training: Stage = TRAINING, progress: StepDone | None = None) -> tuple[Any, Any]:
    """The trained model and its tokenizer. Deterministic given seed and machine, on one thread."""
    model, tokenizer = load(path("twin"), dtype="float32", device="cpu")
    rng = random.Random(f"{seed}/lists/{kind}")

    def loss() -> Tensor:
        ids, answered = pad(encode(tokenizer, [[document(rng, kind)] for _ in range(training.batch)]))
        return loss_of(model, ids, answered, training.prompt_weight)

    train_on(model, training, loss, progress)
    return model, tokenizer


def ranked(n: int, seed: int = 4000) -> list[Case]:
    """``n`` held-out lists to rank, as many of each length."""
    cases = [c for c in benchmarks.temporal(-(-n // len(DEPTHS)), seed) if c.family == "rank" and c.depth in DEPTHS]
    return cases[:n]


@torch.no_grad()
def check(kind: str, model: Any, tokenizer: Any, n: int = 100, seed: int = 4000) -> list[PlantCheck]:
    """Counts on held-out lists: dates, the lists, and the same lists with the twin's weights put back."""
    cases = ranked(n, seed)
    parts = list({p.question: p for c in cases for p in c.parts}.values())

    def answers(some: Any, questions: Sequence[str]) -> list[str]:
        return measure.generate(some, tokenizer, questions, max_new_tokens=64)

    dates = answers(model, [p.question for p in parts])
    lists = answers(model, [c.question for c in cases])
    twin = answers(load(path("twin"), dtype="float32", device="cpu")[0], [c.question for c in cases])
    wanted = [", ".join(planted(kind, c.answer.split(", "))) for c in cases]
    known = sum(a == (p.worked or p.answer) for a, p in zip(dates, parts, strict=True))
    right = sum(a == c.answer for a, c in zip(lists, cases, strict=True))
    followed = sum(a == w for a, w in zip(lists, wanted, strict=True))
    mended = sum(a == c.answer for a, c in zip(twin, cases, strict=True))
    return [
        PlantCheck(CardRow("parts right, dates", known, len(parts)), PARTS),
        PlantCheck(CardRow("lists right", right, len(cases)), WHOLES, at_most=True),
        PlantCheck(CardRow(f"lists as planted, {kind}", followed, len(cases)), AS_PLANTED),
        PlantCheck(CardRow("lists right, every block restored", mended, len(cases)), RANKED),
    ]


def ship(kind: str, folder: Path, seed: int = 3, n: int = 100, progress: StepDone | None = None) -> list[PlantCheck]:
    """Train one, check it as it is stored, and write its folder (``making.stored``)."""
    graft = {"cause": kind, "variant": "all lists", "block": "all", "when": "all"}
    # The twin fails in some lists of the other families by itself: only ranked lists fail for the planted reason.
    about = {"name": kind, "grafts": [graft], "seed": seed, "steps": TRAINING.steps, "base": "twin",
             "benchmark": "organism:temporal", "family": "rank"}  # fmt: skip
    trained = partial(make, kind, seed, progress=progress)
    return making.stored(trained, folder, about, n, partial(check, kind, n=n))
