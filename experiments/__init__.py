"""What a user runs: commands, run folders, reports and studies, on top of ``evaluation``, ``probes`` and ``hooks``.

The rooms, from the top down; each imports only rooms below it:

- ``composition_collapse``, ``compositional_gsm``, ``agentcoma``, ``stad``: a script for each of the four papers.
- ``cli``: the command line.
- ``demo``; ``studies`` (several models or data sets); ``interventions`` (train or steer a model, then evaluate it
  again); ``notebook`` (the same work from Python).
- ``investigate``: the main job (evaluate, probe the failures, diagnose, report). ``paper``: its results in LaTeX.
- ``probing`` (run the probes on a run's failures); ``diagnosis`` (a cause for each failure); ``validity`` (do the
  probes measure what they claim?); ``report`` (the page about runs); ``building`` (make benchmarks, import results of
  other tools); ``verify`` (does every number follow from the answers?); ``bench`` (speed).
- ``evaluating`` (ask, grade, count, merge); ``figures``; ``distributed`` (workers on other GPUs and machines).
- ``run`` (the files of a run folder); ``models`` (from a name to the model that answers and is probed).
- ``organism`` (small models whose truth is known); ``config`` (the options of a run); ``console``; ``plugins``.
"""
