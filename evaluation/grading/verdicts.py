"""What a comparison gets and gives: a text that may hold the answer, what it is compared with, and the grade.

    right("12", "numeric")  # a correct grade

Each kind of answer (number, date, name, list, formula) compares what was ``Said`` with what was ``Asked``.
"""

from dataclasses import dataclass

from ..asks import Grade

Verdict = Grade | None
"""None where a text has no answer of the type that is asked for."""


@dataclass(frozen=True)
class Asked:
    """What an answer is compared with."""

    golds: tuple[str, ...]
    options: tuple[tuple[str, str], ...] = ()
    question: str | None = None
    consistency: bool = False


@dataclass(frozen=True)
class Said:
    """A text that may hold the answer."""

    text: str
    rest: str = ""
    """The same text and what follows it."""
    cued: bool = False


def right(answer: str, match: str) -> Grade:
    return Grade("correct", answer, match)


def wrong(answer: str, reason: str | None = None) -> Grade:
    return Grade("incorrect", answer, None, reason)


def undecided(answer: str, reason: str) -> Grade:
    """A grade where no rule can tell; ``reason`` says between what."""
    return Grade("invalid", answer, None, reason)
