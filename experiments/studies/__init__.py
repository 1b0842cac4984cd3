"""Studies of one or several models: what the scripts for the four papers are made of, and three studies of our own.

A study: ``spec`` (what is studied: models, data, pairs), ``study`` (its types, and how a paper adds its own probes to a
run), ``running`` (one run per model and data set), ``results`` (writes tables, figures and pages,
beside the numbers that the papers print).
Tables: ``tables`` (matched models, patching, cosines, means by kind).
``analyzing``: the papers' further analyses of runs that are there.
Our own: ``validity`` (do the probes follow what is known?), ``calibration`` (are tests and intervals honest?),
``confusion`` (how often the diagnosis names the planted cause, and what it has to beat).
"""
