"""Probes one evaluated run: ``run`` selects cases and runs the probes, ``single_cases`` keeps a few for the report."""
