"""Benchmarks: readers that turn case files, and the files that others released, into cases.

``catalog`` has them by name and loads any of them; ``hub`` downloads one from the Hugging Face hub; ``world`` makes
questions from fact tables that ship.
Readers: ``agentcoma``, ``bamboogle``, ``gsm8k``, ``hotpotqa`` (also 2WikiMultiHopQA), ``math_hard``, ``mquake``,
``multiarith``, ``musique``, ``stad``, ``tot`` (Test of Time), ``twohopfact``. ``relations`` words the facts of
knowledge bases as questions.
"""

from .catalog import READERS, Benchmark, load

__all__ = ["READERS", "Benchmark", "load"]
