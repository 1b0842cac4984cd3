"""Studies over one or several models: what the scripts of the four papers are made of.

``spec`` says what is studied (models with their groups, data, pairs), ``running`` makes one run a model and data set,
``opening`` lets a recipe put its own probes into a run, ``tables`` counts, ``published`` stands beside it what the
papers print, ``pairs`` compares matched models, ``results`` writes it all down.
"""
