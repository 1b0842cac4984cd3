"""Further analyses of the four papers, over graded rows of one or several runs.

Each is a function from ``Source`` objects (``base``) to an ``Analysis`` with metrics and tables; it asks no model.

Composition collapse: ``formats`` (prompt formats on the same cases), ``joint`` (facts that several models know),
``recovery`` (failures that thinking repairs), ``taxonomy`` (kinds of failures), ``tiers`` (stricter and looser
grading), ``adjudicator`` (how reliable the automatic grading is).
AgentCoMa: ``sizes`` (small against large models), ``human_study`` (people as the reference).
STaD: ``profiles`` (the skills that limit a model), ``teachers`` (does the teacher matter?).
All: ``lengths`` (length of responses by role).
"""
