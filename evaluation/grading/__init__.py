"""Grading: from a response to correct, incorrect, abstained or invalid."""

from .extract import extract
from .grade import grade

__all__ = ["extract", "grade"]
