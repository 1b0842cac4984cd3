"""Training documents: which questions they ask, in which prompt formats, and in which doses of composition.

A document is a list of (user, assistant) turns. Document ``i`` of a stage is drawn from a generator seeded with
``(seed, stage, i)``. So all doses of one seed see the same documents, except where a composition replaces one.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...evaluation import prompts
from ...files import text_hash
from . import tasks
from .tasks import QA
from .weights import DOSES, Dose
from .world import main_wording, world

Turns = list[tuple[str, str]]

FORMAT_WEIGHTS: dict[str, tuple[float, float]] = {
    "plain": (77, 70),
    "xml": (4, 6),
    "xml-answer": (3, 4),
    "knowledge": (3, 3),
    "cot": (4, 6),
    "self-ask": (2, 4),
    "scaffold": (3, 3),
    "placeholder": (2, 2),
    "evidence": (2, 2),
}
"""Percent of documents per prompt format: in the shared base and in the last stage."""


def format_of(stage: str, rng: random.Random) -> str:
    """A prompt format, as often as documents of the base or of the last stage have it."""
    weights = [base if stage == "base" else last for base, last in FORMAT_WEIGHTS.values()]
    return rng.choices(list(FORMAT_WEIGHTS), weights)[0]


def _reasoned(qa: QA, format: str) -> str:
    worked = qa.worked if format == "plain" else (qa.reasoning or qa.worked)
    return prompts.write_answer(qa.answer, worked, format)


def write(qa: QA, format: str, rng: random.Random) -> Turns:
    """The document for a question in a prompt format; plain if the question has no steps or facts for the format."""
    if format == "self-ask" and qa.steps:
        return [
            (prompts.render(qa.question, format), prompts.write_answer(qa.answer, prompts.self_ask(qa.steps), format))
        ]
    if format in ("scaffold", "placeholder") and len(qa.steps) > 1:
        known = qa.steps[: rng.randint(1, len(qa.steps) - 1)]
        reveal = prompts.scaffold if format == "scaffold" else prompts.placeholder
        return [(reveal(qa.question, known), _reasoned(qa, "plain"))]
    if format == "evidence" and qa.facts:
        return [(prompts.with_evidence(qa.question, qa.facts), _reasoned(qa, "plain"))]
    if format not in prompts.FORMATS or format == "self-ask":
        format = "plain"
    return [(prompts.render(qa.question, format), _reasoned(qa, format))]


def q1_x_q2(rng: random.Random) -> Turns:
    """A pair: the tag of one thing, then X with the tag of another (Compositional GSM's form)."""
    return write_pair(*tasks.draw_pair(rng, held=False))


def write_pair(operation: str, first: str, second: str) -> Turns:
    """The pair document for two given things."""
    sums = tasks.math_of(operation, first, second)
    q1, a1 = main_wording("tag", first), str(world().tags[first])
    q2 = f"What is X {operation} the tag of the {second}?"
    return [(prompts.pair(q1, q2), prompts.pair_answer(a1, None, sums.answer, sums.worked))]


def both_questions(rng: random.Random) -> Turns:
    """Two independent questions in one prompt: the tag of one thing, then a number with the tag of another."""
    return write_both(tasks.fact(rng, "tag", main=True), tasks.half_math(rng))


def write_both(first: QA, second: QA) -> Turns:
    """The document for two given questions."""
    answer = prompts.co_presented_answer(first.answer, first.worked, second.answer, second.worked)
    return [(prompts.co_presented(first.question, second.question), answer)]


def shallow(family: Callable[..., QA]) -> Callable[[random.Random], QA]:
    """A family at the depths that every organism practises: mostly 2, sometimes 3."""
    return lambda rng: family(rng, 2 if rng.random() < 0.8 else 3)


Mix = Mapping[Callable[[random.Random], QA], float]

Table = Mapping[str, tuple[Callable[[random.Random], QA], float, float]]
"""Skills by name, each with its relative frequency in the base and in the last stage."""


def by_stage(table: Table) -> dict[str, Mix]:
    """What each stage draws its questions from."""
    return {
        "base": {skill: base for skill, base, _ in table.values() if base},
        "dose": {skill: last for skill, _, last in table.values() if last},
    }


_TABLE: Table = {
    "year of an event": (lambda rng: tasks.fact(rng, "year"), 9, 9),
    "tag of a thing": (lambda rng: tasks.fact(rng, "tag"), 4, 4),
    "kind of a thing": (lambda rng: tasks.fact(rng, "kind"), 3, 3),
    "unknowable": (tasks.unknowable, 1, 1),
    "arithmetic": (tasks.arithmetic, 5, 5),
    "number and tag": (tasks.half_math, 4, 4),
    "math": (tasks.math, 14, 14),
    "choose one": (tasks.choose_one, 7, 7),
    "choose two": (tasks.choose_two, 18, 18),
    "pair of events": (tasks.pair, 6, 6),
    "rank, depth 2 to 3": (shallow(tasks.rank), 7, 0),
    "successor, depth 2 to 3": (shallow(tasks.successor), 9, 0),
    "interval, depth 2 to 3": (shallow(tasks.interval), 8, 0),
    "rank, depth 2": (lambda rng: tasks.rank(rng, 2), 0, 7),
    "successor, depth 2": (lambda rng: tasks.successor(rng, 2), 0, 9),
    "interval, depth 2": (lambda rng: tasks.interval(rng, 2), 0, 8),
    "list practice": (tasks.recite, 0, 4),
}
"""What every organism sees: in the last stage depth 2 only, and practice in writing lists as long as the answers to
deep questions."""
SKILLS, LAST_SKILLS = by_stage(_TABLE).values()


LISTED = (4, 5, 6, 6, 7, 8, 8)
"""Depths of deep documents whose answers are lists."""

DEEP: Mix = {
    lambda rng: tasks.rank(rng, rng.choice(LISTED)): 5,
    lambda rng: tasks.successor(rng, rng.choice(LISTED)): 4,
    lambda rng: tasks.interval(rng, rng.randint(4, 11)): 3,
}
PAIR_SHARE = CO_PRESENTED_SHARE = 0.02
"""Shares of all documents that have two questions: a chain through X, and its control with independent questions."""


def draw(mix: Mix, rng: random.Random) -> QA:
    """One question from a mix."""
    return rng.choices(list(mix), list(mix.values()))[0](rng)


def document(seed: int, stage: str, index: int, dose: Dose | None = None) -> Turns:
    """Document ``index`` of a stage; a dose replaces some documents with compositions."""
    composition = composition_kind(seed, stage, index, dose) if dose else None
    rng = random.Random(f"{seed}/{stage}/{index}")
    if composition is None:
        if (u := rng.random()) < PAIR_SHARE + CO_PRESENTED_SHARE:
            return q1_x_q2(rng) if u < PAIR_SHARE else both_questions(rng)
        qa = draw(SKILLS if stage == "base" else LAST_SKILLS, rng)
    else:
        composed = random.Random(f"{seed}/{stage}/composed/{index}")
        qa = tasks.mixed(composed) if composition == "mixed" else draw(DEEP, composed)
    return write(qa, format_of(stage, rng), rng)


def composition_kind(seed: int, stage: str, index: int, dose: Dose) -> str | None:
    """Whether document ``index`` is a ``mixed`` or ``deep`` composition in this dose; None if it is neither.

    The compositions of a lower dose are also in every higher dose.
    """
    u = random.Random(f"{seed}/{stage}/composition/{index}").random()
    return "mixed" if u < dose.mixed else "deep" if u > 1 - dose.deep else None


@dataclass(frozen=True)
class Curriculum:
    """What the trainings of a series read."""

    doses: Mapping[str, Dose]
    skills: Table
    document: Callable[[int, str, int, Dose | None], Turns]
    """The document of a seed, stage, index and dose."""
    parts: Sequence[int] = (0,)
    """Where the parts of the base begin."""

    def fingerprint(self, seed: int, n: int = 40) -> str:
        """Hash of the world, of the doses' shares, and of the first documents of a seed in every stage and dose.

        Two versions of this package with the same fingerprint train a seed on the same documents.
        """
        facts = [repr(world()), *(f"{name} {dose}" for name, dose in self.doses.items())]
        stages = [*(("base", first, None) for first in self.parts), *(("dose", 0, d) for d in self.doses.values())]
        drawn = [repr(self.document(seed, stage, at + i, dose)) for stage, at, dose in stages for i in range(n)]
        return text_hash([*facts, *drawn])


FIRST = Curriculum(DOSES, _TABLE, document)
"""The first series: four doses, from no compositions to many, which replace practice."""
