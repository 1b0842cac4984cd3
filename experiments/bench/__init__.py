"""Measures speed in rounds (``timing``): ``evaluation`` (asking, against peers), ``real`` (a real model).

``lm_eval_side`` is the part that runs under lm-evaluation-harness's own interpreter.
"""
