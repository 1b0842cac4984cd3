"""Studies over one or several models: the building blocks of the scripts for the four papers.

``spec`` reads what is studied (models with their groups, data, pairs), ``running`` makes one run per model and data
set, ``opening`` lets a recipe add its own probes to a run, ``published`` looks up the numbers that the papers print,
``pairs`` compares matched models, and ``results`` writes the tables, figures and pages.
"""
