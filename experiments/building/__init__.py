"""Builds benchmarks, and imports the results of other tools."""
