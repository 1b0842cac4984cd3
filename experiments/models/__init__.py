"""Models: the engine that answers (this process, a server, workers) and the model that the probes open."""
