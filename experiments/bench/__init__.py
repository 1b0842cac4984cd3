"""Measures speed: ``evaluation`` (asking), ``real`` (a real model), against ``peers`` and lm-evaluation-harness.

``lm_eval_side`` is the part that runs under that harness's own interpreter.
"""
