"""Whose doing an invalid grade is: the response's own, or that of a connection, a judge, a sandbox or this machine."""

from ..sandbox.results import NOT_RUN

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
