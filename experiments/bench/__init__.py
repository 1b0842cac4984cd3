"""Benchmarks of speed: the cost of asking and of probing, measured by one command."""
