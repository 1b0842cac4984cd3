"""What a model gets wrong: cases, asks, responses, grades, metrics and case sets. Text in, counts out."""

from .asks import Ask, Grade, Response
from .case_files import read_cases
from .cases import Case, Part, write_cases

__all__ = ["Ask", "Case", "Grade", "Part", "Response", "read_cases", "write_cases"]
