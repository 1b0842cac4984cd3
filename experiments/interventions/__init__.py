"""Trains a model to compose, or steers it while it answers, and measures what changes.

Training: ``recipes`` (objective, data and budget), ``data`` (prompts that are not evaluated), ``reward`` (for GRPO),
``trainers`` (sets up trl; an adapter becomes a model folder), ``training`` (trains one adapter, also on a base of
another architecture), ``training_curve`` (accuracy during the training), ``inside`` (probes before and after it).
Without training: ``inference`` (steering and patching while the model answers).
The study: ``study`` (all recipes and seeds), ``study_tables`` (its tables, also as Markdown).
"""
