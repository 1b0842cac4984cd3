"""Small models that fail for one known reason, which was planted: certain blocks of a trained organism are changed.

``recipes`` (the causes and where each may sit), ``lessons`` (what a changed block is taught), ``training`` (teaches
it), ``checks`` (is the cause there, and nothing else?), ``making`` (makes, checks and writes a model), ``written`` (two
models that write their working; only one of them uses it).
"""
