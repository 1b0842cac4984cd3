"""Faithfulness: does the answer come from the working that the model wrote? (Lanham et al. 2023, arXiv 2307.13702)

    over_examples(lm, examples).table  # failures against matched successes

``working`` finds steps, written values and the final answer in a response; ``altering`` puts other values in their
place, says what would follow and lets the model go on from there; ``examples`` all of it over labelled examples;
``summary`` its table.
"""

from .altering import Altered, AlteredOutcome
from .examples import over_examples
from .working import Working, Written, read_working

__all__ = ["Altered", "AlteredOutcome", "Working", "Written", "over_examples", "read_working"]
