"""Models: who answers (this process, a server, workers) and who is opened for the probes."""
