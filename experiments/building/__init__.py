"""Builds benchmarks, and imports the results of other tools.

``benchmarks`` (``composcope build``), ``scaffolds`` (``build scaffolds`` and ``build skills``), ``importing``
(``composcope import``).
"""
