"""Benchmarks: readers that turn case files, and the files that others released, into cases.

``catalog`` has them by name and loads any of them; ``hub`` downloads one from the Hugging Face hub; ``world`` makes
questions from fact tables that ship.
Readers: ``agentcoma``, ``arithmetic`` (GSM8K, MATH, MultiArith, Test of Time), ``multi_hop`` (MuSiQue, HotpotQA,
2WikiMultiHopQA), ``two_hop_facts`` (Bamboogle, MQuAKE, TwoHopFact, SOCRATES), ``stad``. Each reader sets the
``cluster`` of its cases: what they share.
"""

from .catalog import READERS, Benchmark, load

__all__ = ["READERS", "Benchmark", "load"]
