"""Probes one evaluated run: ``run`` selects cases, runs the probes and keeps a few single cases for the report.

chosen = choose(labelled, 24)
with measuring(run.path, target, keep=False) as lm:
    run_probes(run, lm, chosen, config, reporter)
"""

from .run import Chosen as Chosen
from .run import choose as choose
from .run import measure_shard as measure_shard
from .run import measuring as measuring
from .run import run_one as run_one
from .run import run_probes as run_probes
from .run import save_chosen as save_chosen
