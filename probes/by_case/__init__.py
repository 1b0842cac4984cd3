"""What single cases look like inside: tokens, maps and sweeps of a few cases, kept next to each probe's summaries.

The probes report means with intervals. To look at one case one needs its own map, its own tokens and what they were
given: those are kept here for a few failures and successes, as safetensors with an index that says what was left out.
``entries`` has the types, ``tokens`` and ``patching`` compute, ``sites`` names what is patched.
"""
