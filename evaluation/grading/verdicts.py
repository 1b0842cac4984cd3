"""What a comparison gets and gives: a text that may hold the answer, what it is compared with, and the grade.

    right("12", "numeric")  # a correct grade

Each kind of answer (number, date, name, list, formula) compares what was ``Said`` with what was ``Asked``.
``by_the_answer`` says whose doing an invalid grade is.
"""

from dataclasses import dataclass

from ..asks import Grade
from ..sandbox.results import NOT_RUN

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


NOT_OF_THE_ANSWER = (
    "error", "judge", "score", "not scored", "partially correct", "stored verdict", "doubt", "math-verify needs",
    *(f"code: {reason}" for reason in NOT_RUN),
)  # fmt: skip
"""Beginnings of reasons that say nothing about the response: failed asks (``error: timeout``), judges without a
verdict, scores of other programs that are none or between right and wrong, answers whose grade is doubted
(``grading_error``), and what this machine did not run.

Only these are listed, so that a new reason of the rules counts as the response's own without being added anywhere.
"""


def by_the_answer(reason: str | None) -> bool:
    """Whether an invalid grade with this reason is the model's own doing; not if there is none."""
    return bool(reason) and not str(reason).startswith(NOT_OF_THE_ANSWER)
