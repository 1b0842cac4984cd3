"""Builders: make benchmarks, some from fixed data and some with a model's help.

Without a model: ``temporal`` (questions about dated facts), ``facts`` (reads those facts), ``classification`` (chains
of "X is a Y"), ``synthetic`` (made-up kinship, numbers and places), ``code_items`` and ``compositional_gsm`` (pairs of
GSM8K problems).
With a model: ``scaffolds`` (splits questions into steps and reveals them one by one), with ``scaffold_teacher`` (what
the teacher model is asked, and how its replies are read); ``review`` (how good what was built is, and which items a
person should check).
"""
