"""Measures speed in rounds (``timing``): ``evaluation`` (asking), ``real`` (a real model), against ``peers``.

``lm_eval_side`` is the part that runs under lm-evaluation-harness's own interpreter.
"""
