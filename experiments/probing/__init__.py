"""Probes one evaluated run: ``run`` selects cases, runs the probes and keeps a few single cases for the report."""
