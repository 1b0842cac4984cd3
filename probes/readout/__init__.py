"""Readouts: does a state hold the bridge, an operand, the answer? By layer and position, against two kinds of foils.

    over_examples(lm, examples).table  # failures against matched successes

``readings`` has the texts, places and foils, and the readers: the logit lens, centred over texts (``lens``), a linear
reader trained on part prompts only, each entity left out in turn (``ridge``), and answers of several tokens
(``patchscope``). ``examples`` is all of it over labelled examples.
"""

from .examples import over_examples
from .readings import Reading, Scores, lens, name_tokens, patchscope, ridge

__all__ = ["Reading", "Scores", "lens", "name_tokens", "over_examples", "patchscope", "ridge"]
