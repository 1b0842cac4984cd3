"""Measures speed in rounds (``timing``) on a real model (``real``); ``asking`` has the peers.

``lm_eval_side`` is the part that runs under lm-evaluation-harness's own interpreter.
"""
