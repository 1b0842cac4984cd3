"""Grading: from a response to correct, incorrect, abstained or invalid. Rules only; no model is asked.

``grade`` decides; ``extract`` finds the answer in the response; ``comparing`` compares it, by the type of the answer.
Reading a response: ``view`` (what of it counts), ``cues`` ("the answer is"), ``echo`` (answers in the words of the
question), ``affirming`` (statements of what a question asks), ``mentions`` (whether a name is asserted or in passing).
By type of answer: ``text`` (also which answers count as abstaining) and ``names`` (with ``peoples``: countries, their
adjectives and languages), ``booleans``, ``choices``, ``dates`` (and times of day), ``lists``, ``numbers`` (reads
numbers), ``numeric_answer`` (which number is the answer), ``words`` (numbers in words), ``formulas``.
``verdicts`` has what a comparison gives, and says whose doing an invalid grade is.
"""

from .extract import extract
from .grade import grade

__all__ = ["extract", "grade"]
