"""What the second series reads: equal practice of every part in all doses, and two kinds of composition, crossed.

The base begins with nothing but lists to copy, since lists that are not copied well are full of repetitions. Two fixed
shares of the last stage are slots. A slot holds a mixed or a deep composition in the doses that have this kind. In the
others it holds a filler of the same number of tokens: a deep question whose events already stand in the order of the
answer, so that it takes no year, or for a mixed composition letters to copy.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from . import documents, tasks
from .documents import Curriculum, Table, Turns
from .tasks import QA
from .tokenizer import build, encode
from .weights import CROSSED, SLOTS, Dose


def _of_numbers(family: Callable[..., QA], longest: int) -> Callable[[random.Random], QA]:
    """A temporal family at every depth, with the order as numbers in the question: no year is recalled."""
    return lambda rng: tasks.numbered(family(rng, rng.randint(2, longest), shown=tasks.other_years(rng)))


def _of_things(family: Callable[..., QA], longest: int) -> Callable[[random.Random], QA]:
    """A temporal family at every depth about things, which have no year: any of them, in any order, is an answer."""
    return lambda rng: tasks.about_things(rng, family(rng, rng.randint(2, longest), shown=tasks.other_years(rng)))


def _copied(rng: random.Random) -> QA:
    """Reciting 2 to 11 events that random letters follow, so that the end of the question is no mark of their end."""
    qa = tasks.recite(rng, 2, 11)
    return replace(qa, question=f"{qa.question} {''.join(rng.choices(LETTERS, k=rng.randint(1, 16)))}")


_TABLE: Table = {
    "year of an event": (lambda rng: tasks.fact(rng, "year"), 8, 7),
    "tag of a thing": (lambda rng: tasks.fact(rng, "tag"), 4, 4),
    "kind of a thing": (lambda rng: tasks.fact(rng, "kind"), 4, 3),
    "unknowable": (tasks.unknowable, 1, 1),
    "arithmetic": (tasks.arithmetic, 3, 3),
    "number and tag": (tasks.half_math, 3, 3),
    "math": (tasks.math, 10, 10),
    "math beside a table": (tasks.beside_table, 4, 5),
    "math, choice in the question": (tasks.choice_given, 5, 12),
    "choose one": (tasks.choose_one, 6, 6),
    "choose two": (tasks.choose_two, 12, 14),
    "pair of events": (tasks.pair, 4, 5),
    "rank, depth 2 to 3": (documents.shallow(tasks.rank), 6, 0),
    "successor, depth 2 to 3": (documents.shallow(tasks.successor), 6, 0),
    "interval, depth 2 to 3": (documents.shallow(tasks.interval), 6, 0),
    "rank, depth 2": (lambda rng: tasks.rank(rng, 2), 0, 6),
    "successor, depth 2": (lambda rng: tasks.successor(rng, 2), 0, 6),
    "interval, depth 2": (lambda rng: tasks.interval(rng, 2), 0, 6),
    "reciting 2 to 11 events": (lambda rng: tasks.recite(rng, 2, 11), 8, 6),
    "reciting 2 to 11 events before letters": (_copied, 8, 0),
    "rank of 2 to 8 by numbers in the question": (_of_numbers(tasks.rank, 8), 12, 10),
    "successor of 2 to 8 by numbers in the question": (_of_numbers(tasks.successor, 8), 7, 7),
    "interval of 2 to 11 by numbers in the question": (_of_numbers(tasks.interval, 11), 4, 3),
    "rank of 2 to 8 things": (_of_things(tasks.rank, 8), 6, 6),
    "successor of 2 to 8 things": (_of_things(tasks.successor, 8), 4, 4),
    "interval of 2 to 11 things": (_of_things(tasks.interval, 11), 1, 1),
    "math, kinds that are not on the table": (tasks.absent_kinds, 6, 6),
}
"""Practised in every dose, with weights in the base and in the last stage. Lists of all lengths are recited, ordered by
numbers in the question, or made of things, which have no year. Sums are worked where no thing has to be chosen, or
where none on the table can be meant. So each form is practised in the words of its composition, but not composing."""
PRACTICE = documents.by_stage(_TABLE)
COPIED = 22_400
"""Documents at the start of the base in which nothing but lists are copied: 700 steps of 32."""
FORMATTED = 0.5
"""Share of the practice that comes in the prompt formats of the first series, as often as there; the rest is plain."""


def document(seed: int, stage: str, index: int, dose: Dose | None = None) -> Turns:
    """Document ``index`` of a stage; only slots differ between doses."""
    rng = random.Random(f"{seed}/{seeded(stage)}/{index}")
    if stage == "base" and index < COPIED:
        return documents.write(_copied(rng), "plain", rng)
    slot = documents.composition_kind(seed, seeded(stage), index, SLOTS) if dose else None
    if slot is None:
        if (u := rng.random()) < documents.PAIR_SHARE + documents.CO_PRESENTED_SHARE:
            return documents.q1_x_q2(rng) if u < documents.PAIR_SHARE else documents.both_questions(rng)
        format = documents.format_of(stage, rng) if rng.random() < FORMATTED else "plain"
        return documents.write(documents.draw(PRACTICE[stage], rng), format, rng)
    qa = tasks.mixed(rng) if slot == "mixed" else documents.draw(documents.DEEP, rng)
    if dose is None or documents.composition_kind(seed, seeded(stage), index, dose):
        return documents.write(qa, "plain", rng)
    if slot == "mixed":
        return filler(documents.write(qa, "plain", rng), rng)
    return documents.write(ordered(qa, rng), "plain", rng)


def seeded(stage: str) -> str:
    """A stage's name in the seeds of its documents: other than in the first series."""
    return f"crossed-{stage}"


def ordered(qa: QA, rng: random.Random) -> QA:
    """A deep question with as many tokens whose answer is copied: the first of its events, in the order asked for.

    One event answers a question about an interval; all but the last one or two answer a question about successors.
    """
    asked, _, listed = qa.question.partition(": ")
    events, answer = listed[:-1].split(", "), qa.answer.split(", ")
    if "happened after" in asked or "happened before" in asked:
        candidates = (len(events) + len(answer)) // 2 + 1
        left = len(events) + len(answer) - candidates
        while (qa := tasks.successor(rng, candidates)).answer.count(", ") != left - 1:
            pass
        asked, _, listed = qa.question.partition(": ")
        events, answer = listed[:-1].split(", "), qa.answer.split(", ")
    shown = [*answer, *(e for e in events if e not in answer)]
    return replace(qa, question=f"{asked}: {', '.join(shown)}{qa.question[-1]}")


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


SECOND = Curriculum(CROSSED, _TABLE, document, (0, COPIED))
"""The second series."""
