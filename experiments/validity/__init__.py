"""Tests whether the probes measure what they claim to, on small models whose truth is known.

``over_doses`` (models that saw more or fewer compositions: does a probe follow?), ``over_seeds`` (the same over several
trainings), ``positive_controls`` (does a probe find what was put there?), ``scores`` (one number per case and probe).
"""
