"""The requests to the teacher that writes scaffolds. The wordings are ours; the stages are those of STaD, section 2.1.

Every request names the shape of the reply, with one worked example of another kind of task.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

REWRITTEN = "Rewritten question:"
TASK = "Question:"

_EXAMPLE_QUESTION = (
    "A theater has 12 rows of 20 seats. 45 seats are broken and a third of the others are sold. "
    "How many working seats are still free?"
)
_EXAMPLE_STEPS = [
    ("Compute the number of seats in the theater", "12 rows of 20 seats are 12 * 20 = 240 seats.", "240"),
    ("Compute the number of working seats", "240 seats without 45 broken ones are 195.", "195"),
    ("Compute the number of seats sold", "A third of 195 is 65.", "65"),
    ("Compute the number of working seats that are free", "195 - 65 = 130 seats are free.", "130"),
]
_EXAMPLE_REWRITE = (
    "A theater has 12 rows of 20 seats, which makes 240 seats in all. Without the 45 broken ones 195 seats work, and a "
    "third of these are sold. How many working seats are still free?"
)


def steps_request(question: str, max_steps: int) -> str:
    """Asks for the sub-tasks."""
    example = json.dumps({"steps": [s for s, _, _ in _EXAMPLE_STEPS]})
    return f"""Split the solution of a question into the steps that lead to its answer, without solving them.

Rules:
- at most {max_steps} steps, each one logical or arithmetical operation with one concrete result of its own
- no two steps overlap, none repeats another, and together they use everything the question gives
- the last step gives the answer to the question itself
- no step contains a result

Example
Question: {_EXAMPLE_QUESTION}
{example}

Reply with one JSON object like that, and nothing else.

Question: {question}"""


def answers_request(question: str, segments: Sequence[str]) -> str:
    """Asks for the result of every sub-task."""
    example_steps = _numbered([s for s, _, _ in _EXAMPLE_STEPS])
    example = json.dumps({"answers": [{"explanation": e, "answer": a} for _, e, a in _EXAMPLE_STEPS]})
    return f"""Solve the question by carrying out the given steps in order. Give for each step a short explanation \
and its bare result.

Example
Question: {_EXAMPLE_QUESTION}
Steps:
{example_steps}
{example}

Reply with one JSON object like that, with exactly {len(segments)} answers, and nothing else.

Question: {question}
Steps:
{_numbered(segments)}"""


def rewrite_request(question: str, solved: Sequence[tuple[str, str]]) -> str:
    """Asks for the question with its first steps already carried out."""
    example = _solved([(s, a) for s, _, a in _EXAMPLE_STEPS[:2]])
    return f"""Rewrite a question so that it states the results of the steps that are already done. Keep everything \
else of it, above all what is asked for at the end; do not solve more than the given steps and add no hint.

Example
Question: {_EXAMPLE_QUESTION}
Done:
{example}
{REWRITTEN} {_EXAMPLE_REWRITE}

Reply with one line that begins with "{REWRITTEN}".

Question: {question}
Done:
{_solved(solved)}"""


def task_request(question: str, solved: Sequence[tuple[str, str]], segment: str) -> str:
    """Asks for one step as a question of its own."""
    done = _solved(solved) if solved else "(nothing)"
    return f"""Write one step of a solution as a question that can be answered on its own: state every number and \
result that it needs, taken from the question and from the steps already done, and ask for nothing but this step.

Example
Question: {_EXAMPLE_QUESTION}
Done:
{_solved([(s, a) for s, _, a in _EXAMPLE_STEPS[:1]])}
Step: {_EXAMPLE_STEPS[1][0]}
{TASK} A theater has 240 seats, of which 45 are broken. How many seats work?

Reply with one line that begins with "{TASK}".

Question: {question}
Done:
{done}
Step: {segment}"""


def coverage_request(steps: Sequence[tuple[str, str]]) -> str:
    """Asks for the final answer from the steps and their results alone."""
    return f"""Somebody solved a problem that you do not see. These are the steps of the solution and the results of \
all but the last one. Carry out the last step and give its result.

{_solved(steps[:-1])}
Last step: {steps[-1][0]}"""


def _numbered(segments: Sequence[str]) -> str:
    return "\n".join(f"{i}. {s}" for i, s in enumerate(segments, 1))


def _solved(steps: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{i}. {s}: {a}" for i, (s, a) in enumerate(steps, 1))
