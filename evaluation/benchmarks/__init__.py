"""Benchmarks: case files of our own shape, and readers for the shapes that others released."""

from .load import READERS, load

__all__ = ["READERS", "load"]
