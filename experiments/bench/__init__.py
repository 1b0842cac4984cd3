"""What the probes and the evaluation cost, measured by one command."""
