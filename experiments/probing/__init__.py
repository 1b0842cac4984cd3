"""One probing: selects the cases, runs the probes on them, and keeps single cases for the report."""
