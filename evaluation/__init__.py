"""What a model gets wrong: cases are asked, answers are graded, and grades become metrics and sets of cases.

Nothing here looks inside a model; text goes in and counts come out. ``pipeline`` runs the loop.

What is asked: ``case`` (a question with its gold answer and parts), ``cases`` (files of them), ``options`` (those of a
multiple choice), ``gold`` (gold answers from published records), ``prompts`` (the wordings of parts, wholes, scaffolds
and pairs), ``asks`` (one prompt, its response and its grade), ``skills`` (the skill that each step needs).
Who answers: ``engines`` (models that answer), ``identity`` (which model it was), ``journal`` (every response, kept as
it comes, with ``journal_files``: lock and checksums).
What it is worth: ``grading`` (right or wrong, by rules), ``judging`` (by a judge model), ``sandbox`` (runs programs
that a model wrote).
What is counted: ``graded`` (one graded ask, a line of ``graded.jsonl``, and contradictions in them), ``protocols``
(published ways to ask and to count), ``metrics`` (a number with its interval and n, and contradictions between them),
``statistics`` (the interval of a rate or a difference; ``few_cases``: of functions of rates), ``dependence`` (errors
where cases share facts),
``grading_error`` (bounds from the known error of grading), ``analyses`` (further tables of the papers).
Data: ``benchmarks`` (readers; they say what a case shares with others), ``builders`` (make new ones), ``importers``
(results of other programs), ``text_files`` (files from outside, with messages that name file and line).
"""

from .asks import Ask, Grade, Response
from .case import Case, Part
from .cases import read_cases, write_cases

__all__ = ["Ask", "Case", "Grade", "Part", "Response", "read_cases", "write_cases"]
