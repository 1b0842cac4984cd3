"""The validity study: check on a dose series of organisms whether each probe follows what is known by construction.

``composcope study validity --out runs/validity``

The organisms know their parts equally well and saw no, very few, some or many compositions in training; ``over_doses``
has the questions. Probes from a ``--plugin`` file are asked the same. ``--trainings 8`` trains eight seeds of all
doses, and ``--series`` takes existing trainings.
"""

from dataclasses import replace
from pathlib import Path

from ...errors import InputError
from ...evaluation.metrics import span
from ...probes.catalog import PROBES
from ..organism import series as organism_series
from ..organism.series import Series
from ..organism.weights import DOSES
from ..run import read_json
from ..validity.scores import BASELINES
from .results import metric_rows
from .spec import Spec, StudyModel
from .study import Preset, Row, Study, StudyTable

MODELS = tuple(f"organism:{dose}" for dose in DOSES)


def models(spec: Spec) -> Spec:
    """The requested doses, for the shipped training and for every training in ``spec.series``.

    Raises ``InputError`` for other models, for one that is given twice, and for series that cannot be used.
    """
    names = [m.model for m in spec.models]
    unknown = [name for name in names if name not in MODELS]
    if unknown:
        raise InputError(f"--model {unknown[0]}: the validity study runs on organisms, {', '.join(MODELS)}")
    if len(set(names)) < len(names):
        twice = max(names, key=names.count)
        raise InputError(f"--models: {twice} is given twice, and every dose is asked in one way; give it once")
    if len(spec.data) > 1:
        raise InputError(f"--data: {', '.join(spec.data)}: every dose is asked the same data; give one data set")
    if spec.only_series and not spec.series:
        raise InputError("--only-series: nothing is left; give at least one --series DIR")
    named = {_dose(m): m for m in spec.models}
    trainings = _trainings(spec)
    organism_series.check(trainings)
    made = [_of(named[dose], one, dose) for one in trainings for dose in named] if spec.series else spec.models
    labels = {m.label for m in made}
    pairs = tuple(p for p in spec.pairs if {p.a, p.b} <= labels)
    return replace(spec, models=tuple(made), pairs=pairs)


def _dose(model: StudyModel) -> str:
    return str(model.groups.get("dose") or model.model.removeprefix("organism:"))


def _of(model: StudyModel, training: Series, dose: str) -> StudyModel:
    """A dose of a training, asked in the same way as the shipped one."""
    label = model.label if training.shipped else f"{model.label}-seed-{training.seed}"
    groups = {**model.groups, "dose": dose, "seed": training.seed}
    return replace(model, model=training.model(dose), label=label, groups=groups)


def _trainings(spec: Spec) -> list[Series]:
    """The shipped training, unless it is left out, and the trainings in ``spec.series``."""
    doses = [d for d in DOSES if any(_dose(m) == d for m in spec.models)]
    first = [] if spec.only_series else [organism_series.shipped(doses)]
    return [*first, *(one for folder in spec.series for one in organism_series.read(folder, doses))]


def tables(study: Study) -> list[StudyTable]:
    """Behavior of each dose, and each probe's answers with n, interval and verdict, over trainings if several."""
    from ..validity import over_doses as validity

    accuracy = metric_rows(study, ["step:0", "step:1", "both", "composition", "gap", "press_gap"])
    examined = _examined(study)
    own = {name: probe.measure for name, probe in PROBES.added.items()}
    rows = validity.examine_series(
        study.folder, examined, seed=study.spec.seed, n=study.spec.probe_cases or validity.N_CASES, probes=own
    )
    shown = [{**row, "shown": _shown(row)} for row in rows]
    notes = read_json(study.folder / "validity.json")["notes"]
    note = " ".join(n for n in notes if n not in validity.NOTES)
    doses = StudyTable("doses", "The dose series", accuracy)
    columns = ("short", "question", "model", "measure", "shown", "interval", "n", "verdict", "statement")
    title = "Do the probes measure what they claim to measure?"
    if len(examined) < 2:
        return [doses, StudyTable("validity", title, shown, note, columns)]
    seeds = [one.seed for one, _ in examined]
    over = [r for r in shown if r["seed"] == "all"]
    return [
        doses,
        StudyTable("validity-seeds", f"{title} Over {len(seeds)} trainings",
              [{k: v for k, v in r.items() if k != "headline"} for r in over],  # which only the report page needs
              note,
              ("short", "question", "model", "measure", *(f"seed {s}" for s in seeds), "shown", "interval", "n",
               "as_expected", "p", "without_lowest", *(f"beyond {name}" for name in BASELINES), "nothing", "verdict",
               "note")),
        StudyTable("validity", f"{title} Each training by itself", [r for r in shown if r["seed"] != "all"],
              "Intervals are over the cases of one training.", columns),
    ]  # fmt: skip


def _examined(study: Study) -> list[tuple[Series, dict[str, Path]]]:
    """Each training with its finished runs, lowest dose first."""
    runs = {r.model.model: r.path for r in study.runs}
    found = [(one, {d: runs[one.model(d)] for d in one.folders if one.model(d) in runs})
             for one in _trainings(study.spec)]  # fmt: skip
    return [(one, paths) for one, paths in found if paths]


def _shown(row: Row) -> str:
    value, low, high = (row.get(k) for k in ("value", "low", "high"))
    return "undefined" if value is None else f"{value:.3f}{span(low, high, '{:.3f}'.format) or ' (no interval)'}"


PRESET = Preset(
    name="validity",
    order=5,
    title="Validity: probes on a dose series whose truth is known",
    protocol="compositionality-gap",
    data=("organism:mixed",),
    tables=tables,
    headline=("both", "composition", "press_gap"),
    figures=("gap-slopes", "failure-quadrants", "dose-response"),
    organism_limit={"organism:mixed": 200},
    models=models,
)
