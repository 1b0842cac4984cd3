"""Lookback ratio: how much each head looks back at the prompt while the response is written.

Chuang et al. 2024 (Lookback Lens, eq. 1-3): for the query that predicts response token i, with the attention weights of
one head split at the end of the context, A = mean weight on context keys, B = mean weight on new keys (response tokens
so far, and the trailing ``cue_tokens`` of the prompt), ratio = A / (A + B). For a prompt of N tokens, the query that
predicts token i is at position N - 1 + i; it is itself a key, so from step 1 on it counts as new.

    ratio = lookback.ratios(lm, [prompt_ids], [response_ids])[0]  # layer head step

``masses`` and ``ratios`` read stored responses (teacher-forced), ``generate`` reads while it writes.
Modules: ``measuring`` (stored responses, and while the model writes), ``examples`` (labelled ones).
"""

from .examples import over_examples
from .measuring import Form, Masses, RecordedGeneration, generate, iter_masses, masses, ratios

__all__ = ["Form", "Masses", "RecordedGeneration", "generate", "iter_masses", "masses", "over_examples", "ratios"]
