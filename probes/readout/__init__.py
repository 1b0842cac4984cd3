"""Readouts: does a state hold the bridge, an operand, the answer? By layer and position, against two kinds of foils.

    over_examples(lm, examples).table  # failures against matched successes

``readings`` the texts, places and foils; ``lens`` the logit lens, centred over texts; ``ridge`` a linear reader that is
trained on part prompts only, each entity left out in turn; ``patchscope`` answers of several tokens; ``examples`` all
of it over labelled examples, and ``from_examples`` what is looked for in each.
"""

from .examples import over_examples
from .lens import lens
from .patchscope import patchscope
from .readings import Reading, Scores, name_tokens
from .ridge import ridge

__all__ = ["Reading", "Scores", "lens", "name_tokens", "over_examples", "patchscope", "ridge"]
