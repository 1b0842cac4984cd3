"""Why a case failed: a cause for each failing case of a run, with its evidence (``composcope diagnose RUN``)."""
