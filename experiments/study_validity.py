"""The validity study: the shipped dose series, and whether each probe follows what is known about it by construction.

``python -m composcope.experiments.study_validity --out runs/validity``

Organisms that know their parts equally well and saw none, a trace of, some or many compositions in training. Three
questions to every probe, each with a known right answer: does it follow the dose, does it tell failures from matched
successes, does it tell training members from held-out cases (see ``validity``)?
"""

from __future__ import annotations

from ..errors import InputError
from .organism.weights import DOSES
from .studies.preset import Preset
from .studies.results import Row, Table, metric_rows
from .studies.running import Study

MODELS = tuple(f"organism:{dose}" for dose in DOSES)


def tables(study: Study) -> list[Table]:
    """What each dose does, and each probe's answers with n, interval and verdict."""
    accuracy = metric_rows(study, ["step:0", "step:1", "both", "composition", "gap", "press_gap"])
    note = "One training per dose: a trend over the doses is descriptive, not an estimate over trainings."
    columns = ("short", "question", "model", "measure", "shown", "interval", "n", "verdict", "statement")
    return [
        Table("doses", "The dose series", accuracy),
        Table("validity", "Do the probes measure what they say?", _verdicts(study), note, columns),
    ]


def _verdicts(study: Study) -> list[Row]:
    """Every probe's answers over the finished doses, lowest first."""
    from . import validity

    doses = {name.removeprefix("organism:"): name for name in MODELS}
    runs = {r.model.model.removeprefix("organism:"): r.path for r in study.runs}
    unknown = [name for name in runs if name not in doses]
    if unknown:
        raise InputError(f"--model {unknown[0]}: the validity study runs on organisms, {', '.join(MODELS)}")
    ordered = {dose: runs[dose] for dose in doses if dose in runs}
    rows = validity.examine(study.folder, ordered, seed=study.spec.seed, n=study.spec.probe_cases or 60)
    return [{**row, "shown": _shown(row)} for row in rows]


def _shown(row: Row) -> str:
    value, low, high = (row.get(k) for k in ("value", "low", "high"))
    if value is None:
        return "undefined"
    return f"{value:.3f} (no interval)" if low is None or high is None else f"{value:.3f} [{low:.3f}, {high:.3f}]"


PRESET = Preset(
    name="validity",
    title="Validity: probes on a dose series whose truth is known",
    protocol="compositionality-gap",
    data=("organism:mixed",),
    tables=tables,
    headline=("both", "composition", "press_gap"),
    figures=("gap-slopes", "failure-quadrants", "dose-response"),
    organism_limit={"organism:mixed": 200},
)

if __name__ == "__main__":
    from .studies.cli import main

    raise SystemExit(main(PRESET.name))
