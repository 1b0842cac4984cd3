"""Further analyses of the four papers, over graded rows of one or several runs.

Each is a function from ``Source`` objects (``base``) to an ``Analysis`` with metrics and tables; it asks no model.

Composition collapse: ``gated`` (prompt formats on the same cases, facts that several models know, failures that
thinking repairs), ``taxonomy`` (kinds of failures, stricter and looser grading), ``adjudicator`` (how reliable the
automatic grading is).
AgentCoMa: ``agentcoma`` (small against large models, people as the reference).
STaD: ``stad`` (the skills that limit a model; does the teacher matter?).
All: ``base.lengths`` (length of responses by role).
"""
