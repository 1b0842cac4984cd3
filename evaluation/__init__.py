"""What a model gets wrong: cases, asks, responses, grades, metrics and case sets. Text in, counts out."""

from .asks import Ask, Grade, Response
from .cases import Case, Part, read_cases, write_cases

__all__ = ["Ask", "Case", "Grade", "Part", "Response", "read_cases", "write_cases"]
