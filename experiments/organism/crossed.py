"""What the second series reads: equal practice of every part in all doses, and two kinds of composition, crossed.

Two fixed shares of the last stage are slots. A slot holds a mixed or a deep composition in the doses that have this
kind. In the others it holds a filler of the same number of tokens, in which letters are copied. So every batch has the
same practice in all doses. Lists of every length and worked sums beside a table are practised without composition.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

from ...files import text_hash
from . import documents, tasks
from .documents import (
    CO_PRESENTED_SHARE,
    DEEP,
    LAST_SKILLS,
    PAIR_SHARE,
    SKILLS,
    Curriculum,
    Mix,
    Turns,
    both_questions,
    composition_kind,
    draw,
    format_of,
    q1_x_q2,
    write,
)
from .doses import CROSSED, SLOTS, Dose
from .tasks import QA
from .tokenizer import build, encode
from .world import world

Table = dict[str, tuple[Callable[[random.Random], QA], float, float]]


def _of_years(family: Callable[..., QA], longest: int) -> Callable[[random.Random], QA]:
    """A temporal family at every depth, with years in the question that are not the true ones."""
    return lambda rng: family(rng, rng.randint(2, longest), shown=tasks.other_years(rng))


def _of_numbers(family: Callable[..., QA], longest: int) -> Callable[[random.Random], QA]:
    """The same with 1, 2, 3, ... for the years, so that only lists are practised."""
    return lambda rng: tasks.numbered(_of_years(family, longest)(rng))


_MORE: Table = {
    "reciting 2 to 11 events": (lambda rng: tasks.recite(rng, 2, 11), 3, 8),
    "rank of 2 to 8 by years in the question": (_of_years(tasks.rank, 8), 6, 0),
    "successor of 2 to 8 by years in the question": (_of_years(tasks.successor, 8), 6, 0),
    "interval of 2 to 11 by years in the question": (_of_years(tasks.interval, 11), 3, 0),
    "math beside a table": (tasks.beside_table, 7, 5),
    "rank of 2 to 8 by numbers in the question": (_of_numbers(tasks.rank, 8), 0, 14),
    "successor of 2 to 8 by numbers in the question": (_of_numbers(tasks.successor, 8), 0, 10),
    "math, choice in the question": (tasks.choice_given, 0, 10),
}
"""Practised beside the skills of the first series, with weights in the base and in the last stage: lists of every
length that can be written without recalling a year, and worked sums without choosing a thing."""
PRACTICE: dict[str, Mix] = {
    "base": {**SKILLS, **{skill: base for skill, base, _ in _MORE.values() if base}},
    "dose": {
        **{skill: weight for skill, weight in LAST_SKILLS.items() if skill is not tasks.recite},
        **{skill: last for skill, _, last in _MORE.values() if last},
    },
}


def skill_weights() -> dict[str, tuple[float, float]]:
    """Relative frequency of every skill, by name, in the base and in the last stage."""
    old = {name: both for name, both in documents.skill_weights().items() if name != "list practice"}
    return {**old, **{name: (base, last) for name, (_, base, last) in _MORE.items()}}


def document(seed: int, stage: str, index: int, dose: Dose | None = None) -> Turns:
    """Document ``index`` of a stage; only slots differ between doses."""
    rng = random.Random(f"{seed}/{seeded(stage)}/{index}")
    slot = composition_kind(seed, seeded(stage), index, SLOTS) if dose else None
    if slot is None and (u := rng.random()) < PAIR_SHARE + CO_PRESENTED_SHARE:
        return q1_x_q2(rng) if u < PAIR_SHARE else both_questions(rng)
    qa = draw(PRACTICE[stage], rng) if slot is None else tasks.mixed(rng) if slot == "mixed" else draw(DEEP, rng)
    turns = write(qa, format_of(stage, rng), rng)
    taught = dose is None or slot is None or composition_kind(seed, seeded(stage), index, dose)
    return turns if taught else filler(turns, rng)


def seeded(stage: str) -> str:
    """A stage's name in the seeds of its documents: other than in the first series."""
    return f"crossed-{stage}"


LETTERS = "bcdfghjklmnpqrstvwxyzBCDFGHJKLMNPQRSTVWXYZ"
"""Every letter of a run is a token."""


def filler(turns: Turns, rng: random.Random) -> Turns:
    """A document with as many tokens as ``turns``, and if possible as many in its answer: letters are copied."""
    prompt, answer = _lengths(turns)
    both, in_answer = _overhead()
    copied = max(4, min(answer - in_answer, (prompt + answer - both - 4) // 2))
    while True:
        made = _copying(rng, copied, prompt + answer - both - 2 * copied)
        if sum(_lengths(made)) == prompt + answer:  # else letters happen to be a word
            return made


def _copying(rng: random.Random, copied: int, more: int) -> Turns:
    line = "".join(rng.sample(LETTERS, copied) if copied <= len(LETTERS) else rng.choices(LETTERS, k=copied))
    return [(f"Name these: {line}. {''.join(rng.choices(LETTERS, k=more))}", line)]


@cache
def _overhead() -> tuple[int, int]:
    """Tokens of a copying document, and of its answer, that are no letters."""
    prompt, answer = _lengths(_copying(random.Random(0), 9, 9))
    return prompt + answer - 27, answer - 9


def _lengths(turns: Turns) -> tuple[int, int]:
    ((_, answered),) = encode(_tokenizer(), [turns])
    return len(answered) - sum(answered), sum(answered)


_tokenizer = cache(build)


def fingerprint(seed: int, n: int = 40) -> str:
    """Hash of the world, of the doses' shares, and of the first documents of a seed in every stage and dose."""
    facts = [repr(world()), *(f"{name} {dose}" for name, dose in CROSSED.items())]
    stages = [("base", None), *(("dose", dose) for dose in CROSSED.values())]
    drawn = [repr(document(seed, stage, i, dose)) for stage, dose in stages for i in range(n)]
    return text_hash([*facts, *drawn])


SECOND = Curriculum(CROSSED, document, fingerprint)
"""The second series."""
