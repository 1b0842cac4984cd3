"""Builders: programs that make benchmarks, with and without models."""
