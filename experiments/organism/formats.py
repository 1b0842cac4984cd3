"""Measures how well an organism answers in each prompt format, so that a protocol knows which formats it can use."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from ...evaluation import prompts
from . import tasks, world
from .documents import FORMAT_WEIGHTS, write, write_both, write_pair
from .measure import AskModel, CardRow
from .tasks import QA

TOPICS: dict[str, Callable[[random.Random], QA]] = {
    "year": lambda rng: tasks.fact(rng, "year"),
    "commonsense": lambda rng: _choice(rng),
    "math": lambda rng: tasks.math(rng, held=True),
    "pair of events": lambda rng: tasks.pair(rng, held=True, far=True),
    "mixed composition": lambda rng: tasks.mixed(rng, held=True),
    "rank of four": lambda rng: tasks.rank(rng, 4, held=True),
}


def _choice(rng: random.Random) -> QA:
    _, first, second = tasks.draw_pair(rng, held=True)
    return tasks.choose(tasks.table(rng, (first, second)), (first, second))


def final_answer(text: str, format: str) -> str:
    """The answer in a response: inside the tags, after the last cue, or the number that ends a worked sum."""
    if "xml" in format:
        found = re.findall(r"<answer>(.*?)</answer>", text)
        return found[-1].strip() if found else ""
    if prompts.ANSWER_CUE in text:
        return text.rsplit(prompts.ANSWER_CUE, 1)[1].strip()
    worked = re.fullmatch(r"\d+ .* is (\d+)", text.strip())
    return worked[1] if worked else text.strip()


def by_format(ask: AskModel, n: int = 100, seed: int = 2000) -> list[CardRow]:
    """Accuracy per topic and format on held-out combinations; formats that do not fit a topic are left out."""
    rows = []
    for topic, draw in TOPICS.items():
        for format in FORMAT_WEIGHTS:
            rng = random.Random(f"{seed}/{topic}/{format}")
            asked = [(qa, write(qa, format, rng)[0]) for qa in (draw(rng) for _ in range(n))]
            if format != "plain" and all(user == qa.question for qa, (user, _) in asked):
                continue
            answers = ask([user for _, (user, _) in asked])
            right = sum(final_answer(a, format) == qa.answer for a, (qa, _) in zip(answers, asked, strict=True))
            rows.append(CardRow(f"{topic}, {format}", right, n))
    return [*rows, _pairs(ask, n, seed), _both(ask, n, seed)]


def _both(ask: AskModel, n: int, seed: int) -> CardRow:
    rng = random.Random(f"{seed}/both")
    drawn = [(tasks.fact(rng, "tag", main=True), tasks.half_math(rng)) for _ in range(n)]
    answers = ask([write_both(*d)[0][0] for d in drawn])
    right = sum(final_answer(a, "pair") == second.answer for a, (_, second) in zip(answers, drawn, strict=True))
    return CardRow("tag and number with a tag, co-presented", right, n)


def _pairs(ask: AskModel, n: int, seed: int) -> CardRow:
    rng = random.Random(f"{seed}/pairs")
    drawn = [tasks.draw_pair(rng, held=True) for _ in range(n)]
    answers = ask([write_pair(*d)[0][0] for d in drawn])
    tags = world.world().tags
    gold = [str(world.apply(operation, tags[first], tags[second])) for operation, first, second in drawn]
    return CardRow("tag then X, pair", sum(final_answer(a, "pair") == g for a, g in zip(answers, gold, strict=True)), n)
