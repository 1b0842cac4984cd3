"""From a model's name to the engine that answers and the model that the probes open.

``resolve`` (what a name means, without loading it; real models that come as Python packages), ``target`` (the model
under study, also behind a server, and teachers, judges and solvers).
"""
