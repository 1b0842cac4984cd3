"""Activation patching: does a state of a successful case make a failing case succeed?

    patching.prompt_end_sweep(lm, donors, recipients, max_new_tokens=16).table

``prompt_end_sweep`` replaces the residual stream at the last prompt position after every block in turn, and continues
decoding. ``position_sweep`` and ``head_sweep`` go over positions, heads and other sites;
``attribution_patching`` estimates them all from one backward pass. Every prompt-end sweep has controls: the recipient's
own state (must change nothing), another recipient's state, noise as large as the difference, and the states of the full
prompt (must give the donor's first token at every layer).

After the last block a transplant changes the first token only: no later position sees it. With a fixed first token
that is a guaranteed null, so the last layer's row says nothing about the model.

Modules: ``prompt_end`` and ``positions`` (the sweeps), ``engine`` (puts states in and decodes), ``outcomes`` (what the
answers became), ``attribution`` (the estimate), ``examples`` (labelled examples).
"""

from .attribution import attribution_patching
from .examples import graders, new_tokens, over_examples
from .outcomes import Grader
from .positions import head_sweep, position_sweep
from .prompt_end import CONTROLS, Control, prompt_end_sweep

__all__ = [
    "CONTROLS", "Control", "Grader", "attribution_patching", "graders", "head_sweep", "new_tokens", "over_examples",
    "position_sweep", "prompt_end_sweep",
]  # fmt: skip
