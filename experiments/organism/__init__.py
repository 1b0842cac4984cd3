"""Organisms: small models trained here on an invented world, so that what they know and why they fail is known.

The world: ``world`` (facts about events and things), ``tasks`` (questions with answers), ``tokenizer``, ``documents``
(training texts), ``benchmarks`` (held-out cases).
Training: ``train`` (one base, then each dose from it; many seeds in one folder).
Use: ``weights`` (doses, how they are called, where the shipped models lie), ``series`` (trainings of all doses).
Numbers: ``measure`` (accuracy tables, also by prompt format), ``card`` (model card).
``plants`` changes an organism in named blocks, so that it fails for one known reason.
Importing this package loads no torch; ``train``, ``measure`` and what uses them do.
"""
