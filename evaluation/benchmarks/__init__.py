"""Benchmarks: case files of our own shape, and readers for the shapes that others released."""

from .catalog import READERS, Benchmark, load

__all__ = ["READERS", "Benchmark", "load"]
